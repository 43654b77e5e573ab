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
TOTAL = "float32"
"""Element type of all accumulators in registers."""
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
    """

    name: str
    m: int
    n: int
    k: int
    each: int

    @property
    def columns(self) -> int:
        """Columns of a block."""
        return 4 * self.each

    @property
    def instruction(self) -> MatrixInstruction:
        """The instruction as the core describes it; all its operands are registers."""
        return MatrixInstruction(self.m, self.n, self.k, SIMD)

    def function(self, accumulator: str, operand: str) -> str:
        """Return the function that executes it."""
        if self.m == 8:
            return matrices.multiply_name(accumulator, operand)
        return matrices.tensor_name(accumulator, operand)


SIMDGROUP = Unit("simdgroup", 8, 8, 8, 2)
"""``simdgroup_multiply_accumulate``."""
TENSOR = Unit("tensor_ops", 16, 32, 16, 4)
"""``mpp::tensor_ops::matmul2d`` of one simdgroup."""


def operand_type(a: str, b: str, c: str) -> str | None:
    """Return the instruction's operand type for operands of two types, or ``None``.

    It is the narrowest that holds all numbers of both.
    """
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
    for types in product(OPERANDS, OPERANDS, ACCUMULATORS):
        operand = operand_type(*types)
        if operand is not None:
            found.setdefault(operand, set()).add(types)
    shape = {"M": unit.m, "N": unit.n, "K": unit.k}
    return tuple(Atom(shape, frozenset(types), (t, t, TOTAL)) for t, types in sorted(found.items()))
