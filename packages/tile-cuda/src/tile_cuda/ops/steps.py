"""The order of a warp's operand loads and instructions along K.

A step is what one instruction covers of K, for all tiles of the warp.
"""

from __future__ import annotations

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.calls import address, execute, part
from tile_core.records import dataclass
from tile_core.simt.register_loops import unrolled
from tile_core.simt.variant import SimtCall
from tile_cuda.ops.metadata import MmaMetadata
from tile_cuda.ops.operand import MmaLoader, words
from tile_cuda.ops.plan import KStep, MmaPlan

#: Registers of accumulators and fragments beyond which those of the next step are not prefetched. Architectures without
#: units for 8-bit floats convert them in registers of their own.
_PREFETCH, _PREFETCH_FP8 = 232, 176


@dataclass(frozen=True)
class Work:
    """A product: plan, call, operand readers, accumulators, and metadata of a sparse A."""

    plan: MmaPlan
    call: SimtCall
    a: MmaLoader
    b: MmaLoader
    totals: BufferVar
    metadata: MmaMetadata | None

    @property
    def sizes(self) -> tuple[int, int]:
        """Registers of a tile of A and of one of B."""
        big = self.plan.family.shapes[0]
        return words(big, self.a.operand), words(big * self.plan.family.dense_blocks, self.b.operand)

    def read_a(self, step: KStep, slot: Expr, first: Expr = 0, tiles: int | None = None) -> list[Stmt]:
        """Return the reads of tiles of A for a step."""
        return self.a.load(step.first, step.of_a, slot, first, tiles)

    def read_b(self, step: KStep, slot: Expr, first: Expr = 0, tiles: int | None = None) -> list[Stmt]:
        """Return the reads of tiles of B for a step."""
        dense = self.plan.family.dense_blocks
        return self.b.load(step.first * dense, step.of_b(dense), slot, first, tiles)

    def instruction(self, i: Expr, j: Expr, a_at: Expr, b_at: Expr, step: KStep) -> Stmt:
        """Return the instruction for tile row ``i`` and column ``j``, with operand registers."""
        f, s = self.plan.family, self.plan.split
        to = (i * s.atoms_n + j) * (2 * f.halves)
        args = [
            address(self.totals, [to], "rw"),
            address(self.a.registers, [a_at]),
            address(self.b.registers, [b_at]),
            address(self.totals, [to]),
        ]
        selector = 0
        if self.metadata is not None:
            word, selector = self.metadata.word(i, step)
            args.append(word)
        return execute(f.name(step.blocks, selector), args, self.call.span)


class StepByStep:
    """Dense products: operands are prefetched one step ahead if registers allow it."""

    def __init__(self, work: Work, steps: list[KStep]) -> None:
        self.work, self.steps = work, steps
        s, f = work.plan.split, work.plan.family
        self.sizes = (s.atoms_m * work.sizes[0], s.atoms_n * work.sizes[1])
        held = s.atoms_m * s.atoms_n * 2 * f.halves + 2 * sum(self.sizes)
        self.slots = 2 if len(steps) > 1 and held <= (_PREFETCH_FP8 if f.is_fp8 else _PREFETCH) else 1
        self.new = [work.a.alloc(self.slots * self.sizes[0]), work.b.alloc(self.slots * self.sizes[1])]

    @property
    def can_rotate(self) -> bool:
        """Whether the last and the first step use different operand registers."""
        return self.slots == 2 and len(self.steps) % 2 == 0

    def plain(self) -> list[Stmt]:
        """Return the steps."""
        first = self._load(0) if self.slots > 1 else []
        body = [*first, *(x for n in range(len(self.steps)) for x in self._step(n))]
        return [*self._setup(), *body]

    def in_parts(self, head: list[Stmt]) -> list[Stmt]:
        """Return the steps with marks on movable parts between the iterations of a loop."""
        last = len(self.steps) - 1
        first = part("first", self._load(0))
        middle = [x for n in range(last) for x in self._step(n)]
        final = part("last", [self._multiply(last)])
        return [part("setup", [*head, *self._setup()]), first, *middle, final]

    def _setup(self) -> list[Stmt]:
        return [*self.new, *self.work.a.prepared(), *self.work.b.prepared()]

    def _step(self, number: int) -> list[Stmt]:
        if self.slots == 1:
            return [*self._load(number), self._multiply(number)]
        prefetched = self._load(number + 1) if number + 1 < len(self.steps) else []
        return [*prefetched, self._multiply(number)]

    def _load(self, number: int) -> list[Stmt]:
        step, slot = self.steps[number], number % self.slots
        return self.work.read_a(step, slot * self.sizes[0]) + self.work.read_b(step, slot * self.sizes[1])

    def _multiply(self, number: int) -> Stmt:
        slot = number % self.slots
        return all_tiles(self.work, self.steps[number], (slot * self.sizes[0], slot * self.sizes[1]))


class RowByRow:
    """Sparse products: prefetch A by one row tile, B tiles after their last uses.

    B of a sparse product is twice as large as that of a dense one, so that two whole steps leave no registers for the
    next iteration of a loop. On an H200 this order takes 4 percent off float16 in tiles of 128 x 128 x 64.
    """

    def __init__(self, work: Work, steps: list[KStep]) -> None:
        assert work.metadata is not None
        self.work, self.steps, self.metadata = work, steps, work.metadata
        self.metadata.begin()
        s = work.plan.split
        self.rows, self.columns = s.atoms_m, s.atoms_n
        self.new = [work.a.alloc(2 * work.sizes[0]), work.b.alloc(self.columns * work.sizes[1])]

    @property
    def can_rotate(self) -> bool:
        """Whether rows alternate across iterations, and tiles of B keep their registers.

        With two tiles of B or more, one's instruction comes before the next iteration's reads (operand prefetch).
        """
        alike = len({s.blocks for s in self.steps}) == 1
        return alike and self.columns > 1 and len(self.steps) * self.rows % 2 == 0

    def plain(self) -> list[Stmt]:
        """Return the steps."""
        last = len(self.steps) - 1
        begin = [*self._begin(0), *self.work.read_b(self.steps[0], 0)]
        body = [*begin, *(x for n in range(last + 1) for x in self._step(n)), self._row(last, self.rows - 1)]
        return [*self._setup(), *body]

    def in_parts(self, head: list[Stmt]) -> list[Stmt]:
        """Return the steps with marks on movable parts between the iterations of a loop."""
        last = len(self.steps) - 1
        reads = [self._read_b(0, j) for j in range(self.columns)]
        first = [part("first", x) for x in ([*self._begin(0), *reads[0]], *reads[1:])]
        middle = part("middle", [x for n in range(last + 1) for x in self._step(n)])
        final = [part("last", [self._tile(last, self.rows - 1, j)]) for j in range(self.columns)]
        return [part("setup", [*head, *self._setup()]), part("ring", []), *first, middle, *final]

    def _setup(self) -> list[Stmt]:
        return [*self.new, *self.work.a.prepared(), *self.work.b.prepared(), *self.metadata.prepared()]

    def _step(self, number: int) -> list[Stmt]:
        """Return a step with the loads of the next one, and optionally its last row."""

        def row(i: Expr) -> Stmt:
            return nodes.seq([*self._read_a(number, i + 1), self._row(number, i)])

        def column(j: Var) -> Stmt:
            return nodes.seq([self._tile(number, self.rows - 1, j), *self._read_b(number + 1, j)])

        out = list(self.metadata.ready(self.steps[number]))
        if self.rows > 1:
            out.append(unrolled("row_tile", self.rows - 1, row))
        if number + 1 < len(self.steps):
            out += [*self._begin(number + 1), unrolled("column_tile", self.columns, column)]
        return out

    def _begin(self, number: int) -> list[Stmt]:
        """Return the reads that come before the last row of the previous step."""
        return [*self.metadata.load(self.steps[number]), *self._read_a(number, 0)]

    def _read_a(self, number: int, i: Expr) -> list[Stmt]:
        return self.work.read_a(self.steps[number], self._slot(number, i), i, 1)

    def _read_b(self, number: int, j: Expr) -> list[Stmt]:
        return self.work.read_b(self.steps[number], j * self._each(number), j, 1)

    def _row(self, number: int, i: Expr) -> Stmt:
        return unrolled("column_tile", self.columns, lambda j: self._tile(number, i, j))

    def _tile(self, number: int, i: Expr, j: Expr) -> Stmt:
        at = j * self._each(number)
        return self.work.instruction(i, j, self._slot(number, i), at, self.steps[number])

    def _each(self, number: int) -> int:
        return words(self.steps[number].blocks * self.work.plan.family.dense_blocks, self.work.b.operand)

    def _slot(self, number: int, i: Expr) -> Expr:
        """Return where the row's tile of A is: two rows alternate."""
        row = i + number * self.rows
        return (row % 2 if isinstance(row, int) else tirx.floormod(row, 2)) * self.work.sizes[0]


def rolled(work: Work, steps: list[KStep]) -> list[Stmt]:
    """Return a dense product's steps: a loop over equal ones, then the others."""
    big = work.plan.family.shapes[0]
    whole = min(x.operand.depth // x.operand.family.block for x in (work.a, work.b)) // big
    new = [work.a.alloc(work.plan.split.atoms_m * work.sizes[0]), work.b.alloc(work.plan.split.atoms_n * work.sizes[1])]
    var = nodes.fresh("k_step")

    def one(step: KStep) -> list[Stmt]:
        return [*work.read_a(step, 0), *work.read_b(step, 0), all_tiles(work, step, (0, 0))]

    # Registers are not indexed by variables: with a fragment among the operands the loop is unrolled.
    role = "unroll" if any(x.way == "fragment" for x in (work.a, work.b)) else "serial"
    body = [nodes.for_loop(var, whole, nodes.seq(one(KStep(var * big, big))), role)] if whole else []
    for step in steps[whole:]:
        body += one(step)
    return [*new, *work.a.prepared(), *work.b.prepared(), *body]


def all_tiles(work: Work, step: KStep, slots: tuple[int, int]) -> Stmt:
    """Return the instructions of one step for all tiles of the warp.

    They go down one column of tiles and up the next: each instruction has A or B in common with the one before it. On
    an H200 that takes 2 to 6 percent off products of float16 in tiles of 128 x 128 x 64 and 256 x 128 x 64.
    """
    s, blocks = work.plan.split, step.blocks
    each_a = words(blocks, work.a.operand)
    each_b = words(blocks * work.plan.family.dense_blocks, work.b.operand)

    def column(j: Var) -> Stmt:
        def tile(i: Expr) -> Stmt:
            row = _there_and_back(i, s.atoms_m, j)
            return work.instruction(row, j, slots[0] + row * each_a, slots[1] + j * each_b, step)

        return unrolled("row_tile", s.atoms_m, tile)

    return unrolled("column_tile", s.atoms_n, column)


def _there_and_back(i: Expr, count: int, iteration: Var) -> Expr:
    """Return ``i``, counted from the end in every second iteration."""
    if count == 1 or isinstance(nodes.as_int(iteration), int):  # a single row, or a single iteration
        return i
    return tirx.Select(tirx.floormod(iteration, 2) == 0, i, count - 1 - i)
