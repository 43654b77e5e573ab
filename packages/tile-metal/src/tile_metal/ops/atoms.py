"""The matrix instructions of a simdgroup as data: their element types and accumulators.

Both work on operands in registers of fixed lanes. ``simdgroup_matrix`` multiplies 8 x 8 by 8 x 8 elements; tensor
operations (MSL 4.0) 16 x 16 by 16 x 32. Elements of types that an instruction does not take are converted, exactly,
while they are read.
"""

from __future__ import annotations

from functools import cache
from itertools import product

from tile_core.dtypes import DTYPES
from tile_core.lowering.legality import Atom
from tile_core.records import dataclass
from tile_core.simt.ops.products.instruction import MatrixInstruction
from tile_metal.emit import matrices
from tile_metal.target import SIMD

#: Element types of operands in the language.
OPERANDS = tuple(n for n, d in DTYPES.items() if d.is_float and d.has_zero and n != "float64")
#: Element types of accumulators.
ACCUMULATORS = ("float32", "float16", "bfloat16")
INTEGERS = ("int8", "int8", "int32")
"""Element types of the products of integers, which tensor operations have."""
_WIDE = ("float32", "tfloat32")
#: Types whose smallest numbers are subnormal in float16, which an implementation may flush to zero.
_LONG = tuple(n for n in OPERANDS if DTYPES[n].is_narrow and DTYPES[n].exponent > 4)


@dataclass(frozen=True)
class Unit:
    """One kind of matrix instruction.

    Attributes
    ----------
    name
        For variants.
    m, n, k
        Its shape.
    each
        Neighbours of a row that a lane holds: operands and results are made of blocks of 8 rows of ``4 * each``.
    integers
        Whether it multiplies int8.
    """

    name: str
    m: int
    n: int
    k: int
    each: int
    integers: bool = False

    @property
    def columns(self) -> int:
        """Columns of a block."""
        return 4 * self.each

    @property
    def instruction(self) -> MatrixInstruction:
        """The instruction as the core describes it; all its operands are registers."""
        return MatrixInstruction(self.m, self.n, self.k, SIMD)

    def function(self, accumulator: str, operand: str, turned: matrices.Turned = (False, False)) -> str:
        """Return the function that executes it, for operands whose registers are as stored."""
        if self.m == 8:
            return matrices.multiply_name(accumulator, operand)
        return matrices.tensor_name(accumulator, operand, turned)


SIMDGROUP = Unit("simdgroup", 8, 8, 8, 2)
"""``simdgroup_multiply_accumulate``."""
TENSOR = Unit("tensor_ops", 16, 32, 16, 4, integers=True)
"""``mpp::tensor_ops::matmul2d`` of one simdgroup."""


def total_of(operand: str) -> str:
    """Return the element type of accumulators in registers."""
    return "int32" if operand == "int8" else "float32"


def operand_type(a: str, b: str, c: str, unit: Unit) -> str | None:
    """Return the instruction's operand type for operands of two types, or ``None``.

    It is the narrowest that holds all numbers of both.
    """
    if (a, b, c) == INTEGERS:
        return "int8" if unit.integers else None
    if a not in OPERANDS or b not in OPERANDS or c not in ACCUMULATORS:
        return None
    kinds = {t for t in (a, b) if not DTYPES[t].is_narrow}
    if kinds & set(_WIDE) or len(kinds) == 2:
        return "float32"
    if kinds:
        # float16 beside numbers that are subnormal there: both fit float32 only.
        only = kinds.pop()
        return "float32" if only == "float16" and {a, b} & set(_LONG) else only
    return "bfloat16" if {a, b} & set(_LONG) else "float16"


@cache
def table(unit: Unit) -> tuple[Atom, ...]:
    """Return the shape with its combinations of element types, as a legality table."""
    found: dict[str, set[tuple[str, str, str]]] = {}
    for types in (*product(OPERANDS, OPERANDS, ACCUMULATORS), INTEGERS):
        operand = operand_type(*types, unit)
        if operand is not None:
            found.setdefault(operand, set()).add(types)
    shape = {"M": unit.m, "N": unit.n, "K": unit.k}
    return tuple(Atom(shape, frozenset(types), (t, t, total_of(t))) for t, types in sorted(found.items()))
