"""Persistent kernels: a producer warp feeds all output tiles of a block.

A grid of blocks with a pipelined loop each is replaced by the number of blocks that the device runs concurrently. Each
block processes one tile after another. Producer threads wait until a slot is free, and copy; consumer threads wait
until a slot is full, and compute. So the copies of the next tile overlap the epilogue of the current one, and the loop
has no block barrier::

    the producer:  for tiles: for k: wait until slot is empty; expect bytes; copy
    the others:    for tiles: before; for k: wait until slot is full; compute; the slot of k - 1 is empty; then after

Persistent blocks may form clusters (``multicast.py``): a cluster then processes adjacent tiles, one per block, and its
blocks multicast shared operands. They synchronize before and after the loop.

Iterations are counted over all tiles: iteration ``k`` of a block's tile ``t`` is number ``t * trips + k``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import calls, nodes
from tile_core.ir.visit import replace_for, substitute
from tile_core.lowering.variant import Reject
from tile_core.ops import request_registers
from tile_core.simt.pipelining.grids import GridLoops
from tile_core.simt.pipelining.late_epilogue import epilogue_of, in_iterations, without_epilogue, written_by
from tile_core.simt.pipelining.multicast import ChosenCluster, arrive_at_peers, in_line, rank_in
from tile_core.simt.pipelining.plan import LoopPlan
from tile_core.simt.pipelining.schedule import (
    Arrive,
    Expect,
    Issue,
    Meet,
    PhaseBarrier,
    RoleProgram,
    Schedule,
    Step,
    Transactions,
    Use,
    WaitPhase,
    WaitUses,
)
from tile_core.simt.pipelining.writers import Around, LoopWriter
from tile_core.simt.role import Role

PRODUCER = "the producer"


@dataclass(frozen=True)
class Shape:
    """Facts about a kernel that may become persistent, for the target's decision.

    Attributes
    ----------
    threads
        Of a block.
    tiles
        Blocks of the grid; ``None`` if they cannot be persistent: a producer warp per block is then still possible.
    trips, stages
        Of its loop; 0 if the trip count is known at run time only.
    ring_bytes, other_bytes
        Of shared memory: of the loop's slots, and of everything else.
    product
        The loop's product, an ``OpCall``.
    subtiles
        Epilogue subtiles that can overlap the main loop of the next tile (``late_epilogue.py``).
    """

    threads: int
    tiles: int | None
    trips: int
    stages: int
    ring_bytes: int
    other_bytes: int
    product: Any
    subtiles: int = 0


@dataclass(frozen=True)
class PersistentGrid:
    """The number of persistent blocks, and the roles of their threads.

    Attributes
    ----------
    blocks
        Number of persistent blocks; 0: one block per tile.
    producers
        Producer threads, besides the program's threads. The first one issues the copies.
    arrivals
        Arrivals that release a slot: ``"warp"``, one thread of each ``width``, if only instructions of whole warps read
        slots; or each ``"thread"``.
    width
        Threads of a warp.
    registers
        Registers per producer thread and per thread of the program; ``None``: the same number for all.
    mma_threads
        Threads of the MMA warp. The first one issues the products; the program's threads only use the accumulator
        (`mma_warp.py`). 0 if the program's threads issue the products.
    buffers
        Accumulator buffers of an MMA warp: products of a tile overlap the epilogue of the preceding tile.
    at_a_time
        Resident blocks of a multiprocessor; 0 if the user requested a number of blocks.
    late_epilogue
        Whether the epilogue overlaps the main loop of the next tile (``late_epilogue.py``).
    immediate
        Whether products complete in their own iteration, which then releases its slot.
    """

    blocks: int
    producers: int
    arrivals: str = "thread"
    width: int = 32
    registers: tuple[int, int] | None = None
    mma_threads: int = 0
    buffers: int = 1
    at_a_time: int = 0
    late_epilogue: bool = False
    immediate: bool = False

    @property
    def extra_threads(self) -> int:
        """Producer and MMA threads, besides the program's threads."""
        return self.producers + self.mma_threads

    def in_clusters(self, chosen: ChosenCluster | None) -> PersistentGrid:
        """Return the same with whole clusters, limited to concurrently resident ones."""
        if chosen is None:
            return self
        count, most = prod(chosen.offer.cluster), chosen.processors * self.at_a_time
        return replace(self, blocks=(min(self.blocks, most) if most else self.blocks) // count * count)


@dataclass(frozen=True)
class PersistentHooks:
    """The target's decision about persistent blocks, and its inputs.

    Attributes
    ----------
    choose
        The target's decision.
    thread
        The variable of a thread's number in the block.
    order
        Of blocks: ``panel`` and ``order`` as of ``T.use_swizzle``, or nothing.
    """

    choose: Callable[[Shape], PersistentGrid | Reject]
    thread: Var
    order: Mapping[str, Any]


def with_producer_role(schedule: Schedule, threads: int, persistent: PersistentGrid, name: str) -> Schedule:
    """Return a loop's schedule with a producer; ``name`` is the barrier of free slots."""
    producer, consumers = Role(PRODUCER, threads, 1), Role("the block", 0, threads)
    (group,), full = schedule.groups, schedule.barriers[0]
    warps = threads // persistent.width if persistent.arrivals == "warp" else threads
    each: Any = persistent.arrivals
    many, met = schedule.blocks > 1, cluster_syncs(schedule)
    moved = replace(group, issuer=producer)
    iteration: tuple[Step, ...] = (WaitPhase(name, lag=1), Expect(full.name, group.bytes), Issue(group.name))
    copies = RoleProgram(producer, met, iteration, met)
    iteration = (WaitPhase(full.name), Use(in_flight=True), WaitUses(1), Arrive(name, each, offset=-1, everywhere=many))
    if persistent.immediate:
        iteration = (WaitPhase(full.name), Use(), Arrive(name, each, everywhere=many))
    uses = RoleProgram(consumers, (*met, WaitUses(0)), iteration, (WaitUses(0), *met))
    barriers = (full, PhaseBarrier(name, warps * len(schedule.partners(0))))
    return replace(schedule, trips=None, groups=(moved,), programs=(copies, uses), barriers=barriers)


def cluster_syncs(schedule: Schedule) -> tuple[Step, ...]:
    """Return the cluster barrier at both ends of each role; none for single blocks."""
    return (Meet(),) if schedule.blocks > 1 else ()


def at_tile_ends(schedule: Schedule) -> Schedule:
    """Return the schedule of a tile's last iteration, which releases its slot itself."""
    copies, uses = schedule.programs
    full, *_, arrive = uses.iteration
    assert isinstance(arrive, Arrive)
    if not arrive.offset:
        return schedule
    iteration = (full, Use(in_flight=True), WaitUses(0), replace(arrive, offset=0))
    return replace(schedule, programs=(copies, replace(uses, iteration=iteration)))


def write_persistent(
    plan: LoopPlan, grid: GridLoops, persistent: PersistentGrid, hooks: PersistentHooks, threads: int
) -> Stmt:
    """Return the loop over the persistent blocks.

    Parameters
    ----------
    plan
        With the schedule of `with_roles`.
    threads
        Of the program.
    """
    return PersistentWriter(plan, grid, persistent, hooks, threads).written()


class PersistentWriter(LoopWriter):
    """Writes the loop over the persistent blocks."""

    def __init__(
        self, plan: LoopPlan, grid: GridLoops, persistent: PersistentGrid, hooks: PersistentHooks, threads: int
    ) -> None:
        super().__init__(plan, Around(busy=False, nested=False))
        self.grid, self.persistent, self.threads = grid, persistent, threads
        self.order, self.thread = hooks.order, hooks.thread
        self.number, self.block = nodes.fresh("number"), nodes.fresh("worker")
        #: Tiles that a cluster processes at a time, by axis, one per block; one without clusters.
        self.each = (1, 1, 1) if plan.multicast is None else plan.multicast.offer.cluster
        self.blocks = in_line(self.each)
        self.tiles, self.clusters = prod(grid.extents.values()) // prod(self.each), persistent.blocks // prod(self.each)
        (group,) = self.schedule.groups
        assert isinstance(group.completion, Transactions)
        self.group, self.full = group, group.completion.barrier
        self.empty = next(b.name for b in self.schedule.barriers if b.name != self.full)
        self.subtiles = epilogue_of(grid) if persistent.late_epilogue else []
        #: Coordinates of the tile before, by axis.
        self.last: dict[int, BufferVar] = {}
        self.held: list[Stmt] = []
        for axis, s in grid.axes.items() if self.subtiles else ():
            kind = nodes.dtype_of(s.loop_var)
            self.last[axis], made = nodes.alloc([1], kind, f"{s.loop_var.name}_before", "local")
            self.held.append(made)

    def written(self) -> Stmt:
        """Return the loop over the persistent blocks."""
        allocated = [s for s in self.grid.body if isinstance(s, tirx.AllocBuffer)]
        made, first = self.objects()
        names, span = (self.thread, self.number), self.loop.span
        consumers = consumer_role(self.persistent, self.threads, names, [self.consumer_loops()], span)
        producer = producer_role(self.persistent, self.threads, self.thread, self.producer_loops(), span)
        met = [] if self.plan.multicast is None else self.met()
        rings = calls.managed(
            self.managed(), nodes.seq([producer, *self.extra_roles(), consumers, *met]), self.loop.span
        )
        outer = self.grid.axes[min(self.grid.axes)]
        notes = {str(k): v for k, v in outer.annotations.items()}
        notes[nodes.THREADS] = [
            nodes.int_const(self.threads + self.persistent.extra_threads),
            *([nodes.int_const(1)] * 2),
        ]
        notes[nodes.AXIS] = nodes.int_const(0)
        body = nodes.seq([*allocated, *self.held, *made, first, *met, rings])
        extent = nodes.int_const(self.persistent.blocks)
        return replace_for(outer, body, loop_var=self.block, extent=extent, annotations=notes)

    def extra_roles(self) -> list[Stmt]:
        """Return the work of further roles."""
        return []

    def managed(self) -> list[BufferVar]:
        """Return the buffers whose accesses the roles order themselves."""
        results = written_by([s for subtile in self.subtiles for s in subtile])  # other tiles' have no order
        met = self.barriers.values() if self.plan.multicast is not None else ()
        return [*self.plan.rings.values(), *met, *results]

    def objects(self) -> tuple[list[Stmt], Stmt]:
        """Return the allocations of the barriers, and their initialisation."""
        made, parts = [], []
        for barrier in self.schedule.barriers:
            buffer, allocate = calls.alloc_barriers(barrier.name, self.stages)
            self.barriers[barrier.name] = buffer
            made.append(allocate)
            slots = map(nodes.int_const, range(self.stages))
            parts += [calls.barrier_init(buffer, slot, barrier.arrivals) for slot in slots]
        return made, calls.only(("the first thread", 0, 1), nodes.seq(parts))

    def producer_loops(self) -> Stmt:
        """Return the loops of the thread that copies."""
        tile_iteration, k = nodes.fresh("turn"), nodes.fresh(f"{self.loop.loop_var.name}_ahead", self.kind)
        coordinates = {s.loop_var: nodes.fresh(str(s.loop_var.name)) for s in self.grid.axes.values()}
        parts = self.tile_coordinates(
            tile_iteration, {axis: coordinates[s.loop_var] for axis, s in self.grid.axes.items()}
        )
        mapping: dict[Any, Any] = {**coordinates, self.loop.loop_var: k}
        outside = self.bound(self.grid.before(), mapping)
        inside = self.bound([self.body[i] for i in self.plan.binds], mapping)
        slot, count = nodes.fresh("slot"), self.counted(tile_iteration, k)
        iteration = [
            tirx.Bind(slot, self.slot_of(count)),
            calls.barrier_wait(self.barriers[self.empty], slot, self.parity(count, 1)),
            calls.barrier_expect(self.barriers[self.full], slot, self.group.bytes),
            *inside,
            *(self.copy(c, self.group, mapping, slot) for c in self.plan.copies[self.group.name]),
        ]
        loop = nodes.for_loop(k, self.trips, nodes.seq(iteration), "serial", span=self.loop.span)
        return self.over_tiles(tile_iteration, [*parts, *outside, loop])

    def consumer_loops(self) -> Stmt:
        """Return the loops of the others."""
        tile_iteration, k = nodes.fresh("turn"), self.loop.loop_var
        parts = self.tile_coordinates(tile_iteration, {axis: s.loop_var for axis, s in self.grid.axes.items()})
        count, before = self.counted(tile_iteration, k), self.counted(tile_iteration, k) - nodes.int_const(1)
        free = [tirx.IfThenElse(k > nodes.int_const(0, self.kind), self.release_slot(before), None)]
        last = [self.release_slot(self.counted(tile_iteration, nodes.int_const(int(nodes.as_int(self.trips)) - 1)))]
        if self.persistent.immediate:
            free, last = [self.release_slot(count)], []
        iteration = [
            tirx.Bind(self.slot, self.slot_of(count)),
            calls.barrier_wait(self.barriers[self.full], self.slot, self.parity(count, 0)),
            *self.computed(),
            *self.late_epilogue_stores(tile_iteration, k),
            *([] if self.persistent.immediate else [self.settled(1)]),
            *free,
        ]
        notes = {str(n): v for n, v in self.loop.annotations.items()} | {nodes.ROLE: "serial"}
        loop = replace_for(self.loop, nodes.seq(iteration), annotations=notes)
        body = [s for s in self.grid.body if not isinstance(s, tirx.AllocBuffer)]
        at = next(i for i, s in enumerate(body) if s.same_as(self.loop))
        behind = without_epilogue(body[at + 1 :], self.subtiles)
        tile = [*parts, *body[:at], self.settled(0), loop, self.settled(0), *last, *behind, *self.keep_coordinates()]
        return nodes.seq([self.over_tiles(tile_iteration, tile), *self.last_epilogue()])

    def late_epilogue_stores(self, tile_iteration: Expr, k: Expr) -> list[Stmt]:
        """Return the epilogue stores of the preceding tile in an iteration."""
        if not self.subtiles:
            return []
        names, mapping = self.last_names()
        subtiles = in_iterations(self.subtiles, int(nodes.as_int(self.trips)), k, mapping)
        return [tirx.IfThenElse(tile_iteration > nodes.int_const(0), nodes.seq([*names, subtiles]), None)]

    def last_epilogue(self) -> list[Stmt]:
        """Return the epilogue stores of the last tile, after all loops."""
        if not self.subtiles:
            return []
        names, mapping = self.last_names()
        return [*names, *(substitute(s, mapping) for subtile in self.subtiles for s in subtile)]

    def keep_coordinates(self) -> list[Stmt]:
        """Keep the coordinates of a tile; recomputing them would delay the next tile's products."""
        return [
            nodes.store(self.last[a], s.loop_var, [nodes.int_const(0)]) for a, s in self.grid.axes.items() if self.last
        ]

    def last_names(self) -> tuple[list[Stmt], dict[Any, Any]]:
        """Return the preceding tile's coordinates, with bindings before the loop and their variables."""
        found: list[Stmt] = []
        mapping: dict[Any, Any] = {}
        for axis, s in self.grid.axes.items():
            mapping[s.loop_var] = nodes.fresh(str(s.loop_var.name), nodes.dtype_of(s.loop_var))
            at = nodes.load(self.last[axis], [nodes.int_const(0)])
            found.append(tirx.Bind(mapping[s.loop_var], self.inside(axis, at, s.loop_var)))
        return [*found, *self.bound(self.grid.before(), mapping)], mapping

    def inside(self, axis: int, at: Expr, name: Var) -> Expr:
        """Clamp a coordinate to provide its bounds to range analysis."""
        kind = nodes.dtype_of(at)
        last = nodes.int_const(self.grid.extents[axis] - 1, kind)
        return nodes.cast(tirx.Max(tirx.Min(at, last), nodes.int_const(0, kind)), nodes.dtype_of(name))

    def over_tiles(self, tile_iteration: Var, parts: Sequence[Stmt]) -> Stmt:
        """Return a loop over the tiles of a block."""
        notes = {nodes.BLOCKS: 1}
        return nodes.for_loop(
            tile_iteration, self.tile_count(), nodes.seq(parts), "serial", annotations=notes, span=self.loop.span
        )

    def tile_count(self) -> Expr:
        """Return the number of tiles of a block."""
        more = nodes.int_const(self.tiles - 1 + self.clusters) - self.number_of_cluster()
        return tirx.floordiv(more, nodes.int_const(self.clusters))

    def number_of_cluster(self) -> Expr:
        """Return the number of a block's cluster; without clusters, its own number."""
        count = prod(self.each)
        return self.block if count == 1 else tirx.floordiv(self.block, nodes.int_const(count))

    def tile_coordinates(self, tile_iteration: Var, names: Mapping[int, Var]) -> list[Stmt]:
        """Bind the coordinates of a block's tile, clamped for range analysis."""
        tile = nodes.fresh("tile")
        extents = {axis: n // self.each[axis] for axis, n in self.grid.extents.items()}
        found: list[Stmt] = [
            tirx.Bind(tile, self.number_of_cluster() + tile_iteration * nodes.int_const(self.clusters))
        ]
        flat: Expr = tile
        values: dict[int, Expr] = {}
        for axis in sorted(extents, reverse=True)[:-2]:
            size = prod(n for a, n in extents.items() if a < axis)
            values[axis] = tirx.floordiv(flat, nodes.int_const(size))
            flat = tirx.floormod(flat, nodes.int_const(size))
        low = sorted(extents)[:2]
        if len(low) == 2 and self.order:
            more, values[low[0]], values[low[1]] = self.panels(flat, [extents[a] for a in low])
            found += more
        elif len(low) == 2:
            values[low[0]] = tirx.floormod(flat, nodes.int_const(extents[low[0]]))
            values[low[1]] = tirx.floordiv(flat, nodes.int_const(extents[low[0]]))
        else:
            values[low[0]] = flat
        for axis, name in names.items():
            found.append(tirx.Bind(name, self.inside(axis, self.in_cluster(axis, values[axis]), name)))
        return found

    def in_cluster(self, axis: int, at: Expr) -> Expr:
        """Return the coordinate of a block's tile, given that of its cluster's tiles."""
        count, step = self.each[axis], prod(self.each[:axis])
        if count == 1:
            return at
        mine = tirx.floordiv(rank_in(self.blocks), nodes.int_const(step))
        return at * nodes.int_const(count) + tirx.floormod(mine, nodes.int_const(count))

    def panels(self, flat: Expr, extents: Sequence[int]) -> tuple[list[Stmt], Expr, Expr]:
        """Return the first two coordinates of a tile in swizzled rasterization."""
        panel, by_rows = int(nodes.as_int(self.order["panel"])), str(self.order["order"]) == "row"
        width, height = extents if by_rows else extents[::-1]
        group, within, rows = (nodes.fresh(n) for n in ("panel", "inside", "rows"))
        size = nodes.int_const(width * panel)
        binds = [
            tirx.Bind(group, tirx.floordiv(flat, size)),
            tirx.Bind(within, tirx.floormod(flat, size)),
            tirx.Bind(rows, tirx.Max(tirx.Min(nodes.int_const(panel), height - group * panel), nodes.int_const(1))),
        ]
        across, down = tirx.floordiv(within, rows), group * panel + tirx.floormod(within, rows)
        return (binds, across, down) if by_rows else (binds, down, across)

    def bound(self, binds: Sequence[Stmt], mapping: dict[Any, Any]) -> list[Stmt]:
        """Return renamed copies of bindings, for another thread."""
        found: list[Stmt] = []
        for s in binds:
            var = nodes.fresh(str(s.var.name), nodes.dtype_of(s.var))
            found.append(tirx.Bind(var, substitute(s.value, mapping), s.span))
            mapping[s.var] = var
        return found

    def release_slot(self, count: Expr) -> Stmt:
        """Arrive at the barrier that releases an iteration's slot."""
        lane = tirx.floormod(self.number, nodes.int_const(self.persistent.width))
        if self.plan.multicast is not None:
            by = lane if self.persistent.arrivals == "warp" else None
            partners, slot = self.schedule.partners(0), self.slot_of(count)
            return arrive_at_peers(self.barriers[self.empty], slot, self.blocks, partners, by, self.loop.span)
        arrive = calls.barrier_arrive(self.barriers[self.empty], self.slot_of(count))
        if self.persistent.arrivals != "warp":
            return arrive
        return tirx.IfThenElse(tirx.EQ(lane, nodes.int_const(0)), arrive, None)

    def counted(self, tile_iteration: Expr, k: Expr) -> Expr:
        """Return the number of an iteration of a tile among all iterations of a block."""
        return tile_iteration * nodes.int_const(int(nodes.as_int(self.trips))) + nodes.cast(k, "int32")

    def slot_of(self, count: Expr) -> Expr:
        """Return the slot of an iteration."""
        return tirx.floormod(count, nodes.int_const(self.stages))

    def parity(self, count: Expr, more: int) -> Expr:
        """Return the parity of an iteration's phase, or of a phase ``more`` later."""
        phase = tirx.floordiv(count, nodes.int_const(self.stages)) + nodes.int_const(more)
        return tirx.floormod(phase, nodes.int_const(2))


def producer_role(persistent: PersistentGrid, threads: int, thread: Var, producer_loops: Stmt, span: Any) -> Stmt:
    """Return the statement of the producer thread.

    Parameters
    ----------
    threads
        Of the program.
    thread
        The variable of a thread's number in the block.
    """
    if persistent.registers is None:
        return calls.only((PRODUCER, threads, 1), producer_loops, span)
    parts = [_registers(persistent.registers[0], False), calls.only((PRODUCER, 0, 1), producer_loops, span)]
    return _role(
        Role("the producer warps", threads, persistent.producers), (thread, nodes.fresh("beside")), parts, span
    )


def consumer_role(
    persistent: PersistentGrid, threads: int, names: tuple[Var, Var], parts: Sequence[Stmt], span: Any
) -> Stmt:  # fmt: skip
    """Return the statements of the program's threads."""
    more = [] if persistent.registers is None else [_registers(persistent.registers[1], True)]
    return _role(Role("the block", 0, threads), names, [*more, *parts], span)


def _role(role: Role, names: tuple[Var, Var], parts: Sequence[Stmt], span: Any) -> Stmt:
    """Return a role's statements, with thread numbers in the block and in the role."""
    thread, number = names
    node = [ir.StringImm(role.name), nodes.int_const(role.first), nodes.int_const(role.count), number]
    inside = nodes.seq([tirx.Bind(number, thread - nodes.int_const(role.first)), *parts])
    return tirx.AttrStmt(node, calls.ONLY, nodes.int_const(0), inside, span)


def _registers(count: int, more: bool) -> Stmt:
    """Return the threads' request for a number of registers each."""
    attrs = {request_registers.COUNT: count, request_registers.MORE: int(more)}
    return tirx.Evaluate(nodes.tile_call(request_registers.OP.name, [], attrs))
