"""The plan of a product whose sums are in tensor memory: one thread issues it for 128 threads, which move the sums.

PTX ISA, "tcgen05.mma", shapes of ``cta_group::1`` with 128 rows: row i of a tile of C is in lane i of tensor memory,
and a column of 32 bits holds one of its columns. Thread i of the four warps moves lane i.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

from tile_core.layout.digits import Digit
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.legality import Atom
from tile_core.simt.ops.gemm_problem import Problem
from tile_core.simt.ops.products.instruction import Lifetime, MatrixInstruction, MatrixOperand, OperandKind
from tile_core.simt.ops.warp_partition import WarpPartition
from tile_core.simt.variant import SimtCall
from tile_cuda.ops.warpgroup_plan import CHUNK, WARPGROUP, WarpgroupPlan, family_of
from tile_cuda.ptx.tensor import product_name

LANES, GRAIN = 128, 16
"""Rows of an instruction, and what its columns are a multiple of."""
MOST_COLUMNS, ALL_COLUMNS, LEAST_ALLOCATED = 256, 512, 32
"""Columns of an instruction at most; those of tensor memory; the smallest allocation."""
#: Kind of the instructions, and code of the type in an instruction descriptor, of an element type: Table 42.
_CODES = {
    "float16": ("f16", 0), "bfloat16": ("f16", 1), "tfloat32": ("tf32", 2), "float8_e4m3fn": ("f8f6f4", 0),
    "float8_e5m2": ("f8f6f4", 1), "uint8": ("i8", 0), "int8": ("i8", 1),
}  # fmt: skip
_SUMS = {"float32": 1, "int32": 2}


@dataclass(frozen=True)
class TensorPlan(WarpgroupPlan):
    """How a product is computed: tiles of 128 rows, each by instructions of up to 256 columns."""

    @classmethod
    def of(cls, call: SimtCall, sparse: bool = False) -> TensorPlan | None:
        """Return the plan; ``None`` if there is none."""
        problem = Problem.of(call)
        chosen = family_of(problem.types, sparse)
        if chosen is None or problem.m % LANES or problem.n % GRAIN or call.block.count != WARPGROUP:
            return None
        tiles = WarpPartition(1, 1, problem.m // LANES, problem.n // GRAIN)
        found = cls(problem, tiles, call.block.count, chosen)
        return None if found.excess or found.columns > ALL_COLUMNS else found

    @property
    def columns(self) -> int:
        """Columns of tensor memory that the sums take."""
        return self.split.atoms_m * self.problem.n

    @property
    def allocated(self) -> int:
        """Columns that are allocated for them: a power of two."""
        return max(LEAST_ALLOCATED, 1 << (self.columns - 1).bit_length())

    @property
    def instruction(self) -> MatrixInstruction:
        """The instruction for 16 columns."""
        shared = MatrixOperand(OperandKind.DESCRIPTOR, Lifetime.WAITED)
        held = MatrixOperand(OperandKind.REGISTERS, Lifetime.WAITED)
        return MatrixInstruction(LANES, GRAIN, self.step, WARPGROUP, shared, shared, held)

    @property
    def excess(self) -> int:
        """Registers of a thread beyond those that it can have."""
        return max(0, self.columns - 208)

    @property
    def kind(self) -> str:
        """The instructions' kind."""
        return _CODES[self.family.a][0]

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Yield the columns of each instruction for a row of tiles: the first one, and how many."""
        for at in range(0, self.problem.n, MOST_COLUMNS):
            yield at, min(MOST_COLUMNS, self.problem.n - at)

    def descriptor(self, columns: int) -> int:
        """Return the instruction descriptor: Table 42 of the PTX ISA."""
        f, p = self.family, self.problem
        types = _SUMS[f.total] << 4 | _CODES[f.a][1] << 7 | _CODES[f.b][1] << 10
        return types | int(p.turned_a) << 15 | int(not p.turned_b) << 16 | columns // 8 << 17 | LANES // 16 << 24

    def held(self, role: int) -> FragmentLayout:
        """Return where C must be: a thread holds a row of each tile."""
        p, s = self.problem, self.split
        rows = (Digit(s.atoms_m, p.n, "register"), Digit(LANES, 1, "thread"))
        return FragmentLayout((p.m, p.n), (rows, (Digit(p.n, 1, "register"),)), self.threads)

    def __str__(self) -> str:
        by = [f"{x} by descriptor, swizzle {self.swizzle(r)} bytes" for r, x in ((0, "A"), (1, "B"))]
        name = product_name(self.kind)
        return (
            f"{name}, {self.columns} columns of tensor memory; {'; '.join(by)}; uncalibrated: no device has recorded it"
        )


@cache
def tensor_table() -> tuple[Atom, ...]:
    """Return the shapes with the combinations of element types that they are for, as a legality table."""
    atoms = []
    for a, b, total in product(_CODES, _CODES, ("float16", "bfloat16", "float32", "int32", "uint32")):
        chosen = family_of((a, b, total), False)
        if chosen is not None:
            sizes = {"M": LANES, "N": GRAIN, "K": CHUNK * 8 // chosen.bits}
            atoms.append(Atom(sizes, frozenset({(a, b, total)}), (a, b, chosen.total)))
    return tuple(atoms)
