"""``cuda.tcgen05.block_scale``: products with block scales, with accumulators and scales in tensor memory.

Layout of scales (PTX ISA, "Scale Factor A ID" and "Scale Factor B ID"; the same as CUTLASS copies there): row ``r`` of
A, or column ``r`` of B, is in lane ``r % 32`` of column ``r / 32``, and again in the lanes of the three other warps. A
column has four scales along K, one in each byte; an instruction takes one, two or all of them, as its descriptor
specifies. Power-of-two scales of whole blocks of 128 rows are copied by ``tcgen05.cp`` (`tile_cuda.ops.scale_copies`).
For others every thread reads the scales of its lane from shared memory, in any layout, and stores them
(``tcgen05.st``).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.calls import execute
from tile_core.layout import LayoutMap
from tile_core.lowering.legality import Atom
from tile_core.lowering.variant import Reject
from tile_core.ops.base import OpCall
from tile_core.records import dataclass
from tile_core.simt.ops.gemm_problem import Problem
from tile_core.simt.ops.products.plan import no_instruction
from tile_core.simt.ops.products.variant import matrix_legality
from tile_core.simt.variant import SimtCall
from tile_cuda.ops.accumulator_marks import MATRIX
from tile_cuda.ops.atoms import Family
from tile_cuda.ops.gemm_mma import HELD
from tile_cuda.ops.gemm_tensor import TENSOR_SCALED, TensorProduct, TensorVariant
from tile_cuda.ops.scale_copies import copies, is_copied, scale_layout
from tile_cuda.ops.scale_words import PER_WORD, ScaleWords
from tile_cuda.ops.tensor_plan import GRAIN, LANES, TensorPlan, other_threads, partition
from tile_cuda.ops.warpgroup_plan import CHUNK, WARPGROUP, steps_of
from tile_cuda.ptx.tensor import COPY

if TYPE_CHECKING:
    from tile_core.context import Context

_FP8, _FP4 = ("float8_e4m3fn", "float8_e5m2"), "float4_e2m1fn"
_TOTALS = ("float32", "float16", "bfloat16")
#: Kind of the instructions, by the bits of an element, the scales and the elements of a block: Table 57.
KINDS = {
    (8, "float8_e8m0fnu", 32): "mxf8f6f4.block_scale.scale_vec::1X",
    (4, "float8_e8m0fnu", 32): "mxf4.block_scale.scale_vec::2X",
    (4, "float8_e8m0fnu", 16): "mxf4nvf4.block_scale.scale_vec::4X",
    (4, "float8_e4m3fn", 16): "mxf4nvf4.block_scale.scale_vec::4X",
}
#: Codes of element types in instruction descriptors: Tables 43 and 44.
_CODES = {"float8_e4m3fn": 0, "float8_e5m2": 1, _FP4: 1}
ROWS = 32
"""Rows of A or columns of B that a column of tensor memory has the scales of."""


@dataclass(frozen=True)
class ScaledPlan(TensorPlan):
    """How a product with scales is computed.

    Attributes
    ----------
    scale
        Element type of the scales.
    block
        Elements along K that one of them multiplies.
    """

    scale: str = ""
    block: int = 0

    @classmethod
    def facts(cls, call: SimtCall, problem: Problem) -> tuple[Hashable, ...]:
        """Return the obstacle of its threads, and the scales."""
        return other_threads(call), *scales_of(call)

    @classmethod
    def candidates(cls, problem: Problem, threads: int, *facts: Any) -> Sequence[Any] | Reject:
        """See `TensorPlan.candidates`."""
        others, scale, block = facts
        family = scaled_family(problem.types)
        if family is None:
            return no_instruction(problem, scaled_table())
        wrong = others or other_scales(family, scale, block, KINDS)
        wrong = wrong or "; ".join(Atom(steps_of(family, LANES, GRAIN)).misfits(problem.sizes))
        if wrong:
            return Reject(wrong)
        return [cls(problem, partition(problem), WARPGROUP, family, scale=scale, block=block)]

    @property
    def kind(self) -> str:
        """The instructions' kind."""
        return KINDS[self.family.bits, self.scale, self.block]

    @property
    def vector(self) -> int:
        """Scales of a row that an instruction takes."""
        return self.step // self.block

    @property
    def words(self) -> int:
        """Words of four scales of a row."""
        return -(-self.problem.k // (self.block * PER_WORD))

    @property
    def groups(self) -> tuple[int, int]:
        """Columns of one word for all rows of A, and for all columns of B."""
        return self.problem.m // ROWS, -(-self.problem.n // ROWS)

    @property
    def metadata(self) -> int:
        """Columns of tensor memory for the scales behind the accumulator, an even number."""
        return -(-self.words * sum(self.groups) // 2) * 2

    @property
    def beside(self) -> str:
        """See `TensorPlan.beside`."""
        return "scales"

    def scale_columns(self) -> Iterator[tuple[int, int, int]]:
        """Yield operand (A 0, B 1), word, and 32-line group of each scale column."""
        for role, count in enumerate(self.groups):
            yield from ((role, word, group) for word in range(self.words) for group in range(count))

    def scale_column(self, role: int, line: int, step: int) -> tuple[int, int]:
        """Return the first column and byte of a step's scales for lines from ``line`` on."""
        word, byte = divmod(step * self.vector, PER_WORD)
        before = self.words * self.groups[0] if role else 0
        return before + word * self.groups[role] + line // ROWS, byte

    def scaled_descriptor(self, columns: int, a_byte: int, b_byte: int) -> int:
        """Return the instruction descriptor: Tables 43 and 44 of the PTX ISA."""
        types = _CODES[self.family.a] << 7 | _CODES[self.family.b] << 10
        scales = b_byte << 4 | int(self.scale == "float8_e8m0fnu") << 23 | a_byte << 29
        return types | scales | columns // 8 << 17 | LANES // 128 << 27

    def __str__(self) -> str:
        of = f"{self.metadata} more columns in each of two sets"
        return f"{super().__str__()}; scales in {of}; {self.vector} of {PER_WORD} at a time"


class TensorGemmScaled(TensorVariant):
    """Products with scales; these are in shared memory."""

    name = TENSOR_SCALED
    op = "gemm_scaled"

    def __init__(self) -> None:
        scopes = {"A": ("shared",), "B": ("shared",), "C": (*HELD, MATRIX)}
        legality = matrix_legality(scaled_table(), scopes)
        self.legality = type(legality)(legality.operands, legality.dtypes, legality.atoms, scopes=legality.scopes)

    def refuses(self, call: SimtCall) -> str:
        """Reject storage that no descriptor describes, and scales elsewhere than in shared memory."""
        problem = Problem.of(call)
        for view, dtype in ((problem.a, problem.types[0]), (problem.b, problem.types[1])):
            if dtype == _FP4 and view.dtype != "uint8":
                named = "A_format" if view is problem.a else "B_format"
                return f"each element of {view.name} has a byte of its own; declare it as uint8, with {named}="
        outside = next((v for v in (call.args[1], call.args[3]) if v.scope != "shared"), None)
        if outside is not None:
            return f"{outside.name} is not in shared memory"
        return super().refuses(call)

    def layouts(self, call: SimtCall, ctx: Context) -> Mapping[int, LayoutMap]:
        """Also return the layouts of scales that are copied."""
        found = dict(super().layouts(call, ctx))
        for role in (0, 1):
            layout = scale_layout(call, role)
            if layout is not None and call.args[1 + 2 * role].buffer not in call.placement.layouts:
                found[1 + 2 * role] = layout
        return found

    def plan(self, call: SimtCall) -> TensorPlan | Reject:
        """See `ProductPlan.for_call`."""
        return ScaledPlan.for_call(call)

    def statement(self, plan: TensorPlan, call: SimtCall) -> Stmt:
        """Return the product for one thread."""
        assert isinstance(plan, ScaledPlan)
        return ScaledTensorProduct(plan, call).statement()


class ScaledTensorProduct(TensorProduct):
    """Adds scales to a product."""

    plan: ScaledPlan

    def __init__(self, plan: ScaledPlan, call: SimtCall) -> None:
        super().__init__(plan, call)
        self.copied = [is_copied(call, role) for role in (0, 1)]

    def before(self, mine: Expr) -> list[Stmt]:
        """Return the statements that write the scales of a thread's lane that are not copied."""
        plan = self.plan
        columns = [(at, *origin) for at, origin in enumerate(plan.scale_columns()) if not self.copied[origin[0]]]
        if not columns:
            return []
        first, total = columns[0][0], plan.metadata if not self.copied[1] else plan.words * plan.groups[0]
        held, new = nodes.alloc([total - first], "uint32", "scales", "local")
        found = [new, *self.waited()]
        lane, readers = tirx.floormod(self.lane.row, ROWS), [ScaleWords(self.call, role) for role in (0, 1)]
        for at, role, word, group in columns:
            read = nodes.seq(readers[role].read(held, at - first, lane + group * ROWS, word))
            left, none = readers[role].lines - group * ROWS, nodes.store(held, nodes.const(0, "uint32"), [at - first])
            found.append(read if left >= ROWS else tirx.IfThenElse(lane < left, read, none))
        beyond = range(columns[-1][0] + 1, total)
        found += [nodes.store(held, nodes.const(0, "uint32"), [at - first]) for at in beyond]
        return [*found, *self.written(held, total - first, lambda at: mine + self.beside(first + at))]

    def issued(self, until: str = "") -> list[Stmt]:
        """Return the copies of scales, and the products behind them."""
        found = list[Stmt]()
        for role in (0, 1):
            before = self.plan.words * self.plan.groups[0] if role else 0
            for column, arguments in copies(self.call, role, until) if self.copied[role] else ():
                to = self.base + self.beside(before + column)
                found.append(execute(COPY, [to, *arguments], self.call.span))
        return [*found, *super().issued(until)]

    def described(self, role: int, line: int, step: int, until: str) -> list[Expr]:
        """Return an instruction's operands for A (0) or B (1): 32 bytes along K."""
        per = CHUNK * 8 // DTYPES[self.plan.view(role).dtype].bits
        return self.described_at(role, line, step * per, until)

    def extra(self, i: int, at: int, count: int, step: int) -> tuple[list[Expr], int]:
        """Return the addresses of the scales of A and B, and the instruction descriptor."""
        plan = self.plan
        (a, a_byte), (b, b_byte) = plan.scale_column(0, i * LANES, step), plan.scale_column(1, at, step)
        scales = [self.base + self.beside(a), self.base + self.beside(b)]
        return scales, plan.scaled_descriptor(count, a_byte, b_byte)


def scales_of(call: OpCall) -> tuple[str, int]:
    """Return the element type and the block size of the scales of a product."""
    return str(call.attrs[attributes.TYPES][1]), int(call.attrs[attributes.BLOCK])


def other_scales(family: Family, scale: str, block: int, kinds: Iterable[tuple[int, str, int]]) -> str:
    """Return why no instruction takes these scales; empty if one does.

    Parameters
    ----------
    kinds
        Bits of an element, type of the scales and elements of a block of the instructions that there are.
    """
    legal = [(s, n) for bits, s, n in kinds if bits == family.bits]
    if (scale, block) in legal:
        return ""
    named = ", ".join(f"{s} for {n}" for s, n in legal)
    return f"{scale} for blocks of {block} elements; for {family.a} there are {named}"


def scaled_family(types: tuple[str, str, str]) -> Family | None:
    """Return the instructions with scales for operands and an accumulator of these types."""
    a, b, c = types
    same = (a in _FP8 and b in _FP8) or a == b == _FP4
    return Family(a, b, "float32", False) if same and c in _TOTALS else None


@cache
def scaled_table() -> tuple[Atom, ...]:
    """Return the shapes and their element types as a legality table."""
    atoms = []
    for a, b, total in product((*_FP8, _FP4), (*_FP8, _FP4), _TOTALS):
        family = scaled_family((a, b, total))
        if family is not None:
            sizes = {"M": LANES, "N": GRAIN, "K": CHUNK * 8 // family.bits}
            atoms.append(Atom(sizes, frozenset({(a, b, total)}), (a, b, family.total)))
    return tuple(atoms)
