"""The plan of a product in tensor memory: one issuing thread, 128 accumulator threads.

PTX ISA, "tcgen05.mma", shapes of ``cta_group::1`` with 128 rows: row i of a tile of C is in lane i of tensor memory,
and a column of 32 bits holds one of its columns. Thread i of the four warps moves lane i.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

from tile_core.ir import attributes, nodes
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.legality import Atom
from tile_core.lowering.variant import Reject
from tile_core.records import dataclass
from tile_core.simt.ops.gemm_problem import Problem
from tile_core.simt.ops.products.instruction import Lifetime, MatrixInstruction, MatrixOperand, OperandKind
from tile_core.simt.ops.products.plan import PlanT, nearest, no_instruction, refused, too_few_threads
from tile_core.simt.ops.warp_partition import WarpPartition
from tile_core.simt.variant import SimtCall
from tile_cuda.attributes import WHOLE
from tile_cuda.ops.accumulator_marks import MATRIX
from tile_cuda.ops.warpgroup_plan import WARPGROUP, WarpgroupPlan, family_of, readable_by_all, steps_of
from tile_cuda.ptx.tensor import product_name

LANES, GRAIN = 128, 16
"""Rows of an instruction, and what its columns are a multiple of."""
MOST_COLUMNS, ALL_COLUMNS, LEAST_ALLOCATED = 256, 512, 32
"""Columns of an instruction at most; those of tensor memory; the smallest allocation."""
WIDTH = 32
"""What columns are a multiple of where one instruction has not enough: several of one width share them."""
MOST_REGISTERS = 208
"""Accumulators of a fragment that a thread can hold."""
#: Kind of the instructions, and code of the type in an instruction descriptor, of an element type: Table 42.
_CODES = {
    "float16": ("f16", 0), "bfloat16": ("f16", 1), "tfloat32": ("tf32", 2), "float8_e4m3fn": ("f8f6f4", 0),
    "float8_e5m2": ("f8f6f4", 1), "uint8": ("i8", 0), "int8": ("i8", 1),
}  # fmt: skip
_ACCUMULATOR_CODES = {"float32": 1, "int32": 2}


@dataclass(frozen=True)
class TensorPlan(WarpgroupPlan):
    """The plan: tiles of 128 rows, each by instructions of up to 256 columns.

    Attributes
    ----------
    cluster
        With pairs of blocks, the cluster along x, y and z: instructions have 256
        rows, 128 of each block, and B has half of its columns in each.
    """

    cluster: tuple[int, ...] = ()

    @classmethod
    def facts(cls, call: SimtCall, problem: Problem) -> tuple[Hashable, ...]:
        """Return the obstacle of its threads, the sparsity of A, and the cluster."""
        return other_threads(call), call.name == "gemm_sp", tuple(int(n) for n in call.attrs.get(attributes.HALVES, ()))

    @classmethod
    def candidates(cls, problem: Problem, threads: int, *facts: Any) -> Sequence[Any] | Reject:
        """Return the plan of whole instructions, fitting or not, or the rejection."""
        others, sparse, cluster = facts
        chosen = family_of(problem.types, sparse)
        if chosen is None:
            return no_instruction(problem, tensor_table(sparse))
        wrong = others or "; ".join(Atom(steps_of(chosen, LANES, GRAIN)).misfits(problem.sizes))
        if wrong:
            return Reject(wrong)
        return [cls(problem, partition(problem), WARPGROUP, chosen, cluster=cluster)]

    @classmethod
    def decide(cls: type[PlanT], call: SimtCall, *given: Any) -> PlanT | Reject:
        """Return the plan of a call if it fits, else the rejection."""
        found: Any = super(WarpgroupPlan, cls).decide(call, *given)
        if isinstance(found, Reject):
            return found
        found = replace(found, readable=readable_by_all(call, found.problem))
        return found.refusal(str(call.attrs.get(WHOLE, ""))) or found

    def refusal(self, whole: str) -> Reject | None:
        """Return why the plan is not legal; ``None`` if it is.

        Parameters
        ----------
        whole
            Why the accumulator is not divided, if that is known.
        """
        if self.unequal:
            return Reject(self.unequal)
        steps = steps_of(self.family, LANES, GRAIN)
        reason = self.lacks(whole)
        if reason:
            return refused(reason, nearest(self.problem, steps, self.is_legal))
        for role in (0, 1):
            reason, axis = self.unreadable(role), self.problem.axes[role][1]
            if reason:
                return refused(reason, nearest(self.problem, {axis: steps[axis]}, self.is_legal, above=True))
        return None

    @property
    def unequal(self) -> str:
        """Why no instructions of one width share the columns; empty if some do."""
        n = self.problem.n
        if n <= MOST_COLUMNS or n % WIDTH == 0:
            return ""
        legal = f"{n // WIDTH * WIDTH} and {-(-n // WIDTH) * WIDTH}"
        return f"{n} columns are not a multiple of {WIDTH}, as more than {MOST_COLUMNS} have to be: {legal} are"

    def lacks(self, whole: str = "") -> str:
        """Return which columns or registers there are not, see ``refusal``; empty if all are there."""
        p = self.problem
        if self.columns > ALL_COLUMNS:
            return f"{p.m} x {p.n} accumulator needs {self.columns} columns of tensor memory, which has {ALL_COLUMNS}"
        if self.taken > ALL_COLUMNS:
            return f"it needs {self.needs}; tensor memory has {ALL_COLUMNS}"
        if self.columns > MOST_REGISTERS and p.c.scope != MATRIX:
            because = f", and it is not subtiled: {whole}" if whole else ""
            return f"{p.m} x {p.n} accumulator needs more than {MOST_REGISTERS} registers of each thread{because}"
        return ""

    def is_legal(self, problem: Problem) -> bool:
        """Whether tensor memory fits another product of whole instructions like this one."""
        other = replace(self, problem=problem, split=partition(problem))
        return not (other.unequal or other.lacks()) and not any(other.unreadable(role) for role in (0, 1))

    @property
    def blocks(self) -> int:
        """Blocks that compute it."""
        return 2 if self.cluster else 1

    @property
    def columns(self) -> int:
        """Columns of tensor memory of the accumulator."""
        return self.split.atoms_m * self.problem.n

    @property
    def allocated(self) -> int:
        """Columns of tensor memory of the accumulator, in all buffers."""
        shape = nodes.shape_of(self.problem.c.buffer)
        return self.columns * (int(shape[0]) if self.problem.c.scope == MATRIX and len(shape) == 3 else 1)

    @property
    def can_stay(self) -> bool:
        """Whether C is whole and has the accumulator's type: else each product rounds it."""
        c = self.problem.c
        shape = tuple(nodes.shape_of(c.buffer))
        whole = tuple(c.extents) == shape or (c.scope == MATRIX and tuple(c.extents)[-2:] == shape[-2:])
        return bool(c.scope in ("local.fragment", MATRIX) and c.dtype == self.total and whole)

    @property
    def holds_a(self) -> bool:
        """Whether A is a fragment, which threads move to tensor memory."""
        return bool(self.problem.a.scope == "local.fragment")

    @property
    def described(self) -> tuple[int, ...]:
        """Operands that descriptors describe: A (0) and B (1), or B."""
        return (1,) if self.holds_a else (0, 1)

    @property
    def row_metadata(self) -> int:
        """Columns of metadata of a row tile, or of A itself, an even number.

        0 if A is dense, and not moved.
        """
        if self.holds_a:
            return self.problem.k * self.family.bits // 32
        if not self.family.sparse:
            return 0
        return -(-self.problem.k // (32 if self.family.bits == 32 else 64)) * 2

    @property
    def metadata(self) -> int:
        """Columns of tensor memory for metadata of a sparse A, or for A itself."""
        return self.split.atoms_m * self.row_metadata

    @property
    def taken(self) -> int:
        """All columns: of the accumulator, and of two sets of metadata or A."""
        return self.columns + 2 * self.metadata

    @property
    def beside(self) -> str:
        """Content of the columns beside the accumulator."""
        return "A" if self.holds_a else "metadata"

    @property
    def needs(self) -> str:
        """The columns in words."""
        more = f" and two sets of {self.metadata} of {self.beside}" if self.metadata else ""
        return f"{self.columns} accumulator columns{more}"

    @property
    def instruction(self) -> MatrixInstruction:
        """The instruction for 16 columns."""
        shared = MatrixOperand(OperandKind.DESCRIPTOR, Lifetime.WAITED)
        held = MatrixOperand(OperandKind.REGISTERS, Lifetime.WAITED)
        metadata = MatrixOperand(OperandKind.TENSOR_MEMORY, Lifetime.WAITED) if self.family.sparse else None
        a = held if self.holds_a else shared
        return MatrixInstruction(LANES, GRAIN, self.step, WARPGROUP, a, shared, held, metadata)

    @property
    def kind(self) -> str:
        """The instructions' kind."""
        return _CODES[self.family.a][0]

    def column_runs(self) -> Iterator[tuple[int, int]]:
        """Yield first column and number of columns of each instruction of a row tile.

        All have the same number: the order of products that add to the same columns is only guaranteed for those of one
        shape that follow each other (PTX ISA, "Pipelined tcgen05 instructions").
        """
        n = self.problem.n
        each = next(count for count in range(min(n, MOST_COLUMNS), 0, -GRAIN) if n % count == 0)
        for at in range(0, n, each):
            yield at, each

    def metadata_column(self, step: int) -> tuple[int, int]:
        """Return a K step's metadata: an even column of its row, and the selector.

        An instruction takes one column of 16- and 32-bit types, of two with an even number; the selector chooses one.
        Of 8-bit types it takes both.
        """
        return (2 * step, 0) if self.family.bits == 8 else (step // 2 * 2, step % 2)

    def descriptor(self, columns: int, selector: int = 0) -> int:
        """Return the instruction descriptor: Table 42 of the PTX ISA."""
        f, p = self.family, self.problem
        types = (
            _ACCUMULATOR_CODES[f.total] << 4
            | _CODES[f.a][1] << 7
            | _CODES[f.b][1] << 10
            | int(f.sparse) << 2
            | selector
        )
        return (
            types
            | int(p.turned_a) << 15
            | int(not p.turned_b) << 16
            | columns // 8 << 17
            | self.blocks * LANES // 16 << 24
        )

    def held(self, role: int) -> FragmentLayout:
        """Return where C, or A, must be: a thread holds a row of each tile."""
        p, s = self.problem, self.split
        width = p.n if role == 2 else p.k
        rows = (Digit(s.atoms_m, width, "register"), Digit(LANES, 1, "thread"))
        return FragmentLayout((p.m, width), (rows, (Digit(width, 1, "register"),)), self.threads)

    def __str__(self) -> str:
        by = [f"{'AB'[r]} by descriptor, swizzle {self.swizzle(r)} bytes" for r in self.described]
        if self.holds_a:
            by.insert(0, f"A by registers (tcgen05.st) in {self.metadata} more columns in each of two sets")
        if self.family.sparse:
            by.append(f"metadata by registers (tcgen05.st) in {self.metadata} more columns in each of two sets")
        by += ["256 rows: half of these and half of the columns of B in each of two blocks"] if self.cluster else []
        name = product_name(self.kind, self.family.sparse, self.holds_a, self.blocks)
        return (
            f"{name}, {self.columns} columns of tensor memory; {'; '.join(by)}; uncalibrated: no device has recorded it"
        )


def other_threads(call: SimtCall) -> str:
    """Return why the threads of a call cannot move its accumulator; empty if they can."""
    if attributes.ISSUED in call.attrs:
        return ""
    if call.block.count != WARPGROUP:
        few = too_few_threads(call.block.count, WARPGROUP)
        return few or f"{call.block.count} threads execute it; blocks of {WARPGROUP} move accumulators"
    begins = call.block.begins + call.block.first
    return f"its threads begin at {begins}; warpgroups begin at multiples of {WARPGROUP}" if begins % WARPGROUP else ""


def partition(problem: Problem) -> WarpPartition:
    """Return the tiles of a product."""
    return WarpPartition(1, 1, problem.m // LANES, problem.n // GRAIN)


def allocated_columns(wanted: int) -> int:
    """Return the columns that a block allocates: a power of two above the minimum."""
    return max(LEAST_ALLOCATED, 1 << (wanted - 1).bit_length())


@cache
def tensor_table(sparse: bool = False) -> tuple[Atom, ...]:
    """Return the shapes and their element types as a legality table."""
    atoms = []
    for a, b, total in product(_CODES, _CODES, ("float16", "bfloat16", "float32", "int32", "uint32")):
        chosen = family_of((a, b, total), sparse)
        if chosen is not None:
            atoms.append(Atom(steps_of(chosen, LANES, GRAIN), frozenset({(a, b, total)}), (a, b, chosen.total)))
    return tuple(atoms)
