"""Blocks that stay: one thread copies for all others, from one tile of the result to the next.

A grid of blocks, each of which runs a pipelined loop, becomes as many blocks as the device runs at a time. Each takes
one tile after another. Threads beside those of the program wait until a slot is free, and copy; the program's own wait
until a slot is full, and compute. So the copies of the next tile run while the results of this one are written, and no
barrier of a block stands in the loop::

    the copier:    for tiles: for k: wait until slot is empty; announce bytes; copy
    the others:    for tiles: before; for k: wait until slot is full; compute; the slot of k - 1 is empty; then after

Trips are counted over all tiles: trip ``k`` of a block's tile ``t`` is number ``t * trips + k`` of the schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import calls, nodes
from tile_core.ir.visit import annotation, collect, replace_for, role, substitute
from tile_core.lowering.variant import Reject
from tile_core.ops import request_registers
from tile_core.simt.pipelining.dependences import Candidate, top_level
from tile_core.simt.pipelining.plan import LoopPlan
from tile_core.simt.pipelining.schedule import (
    Arrive,
    Expect,
    Issue,
    PhaseBarrier,
    RoleProgram,
    Schedule,
    Transactions,
    Use,
    WaitPhase,
    WaitUses,
)
from tile_core.simt.pipelining.writers import Around, LoopWriter
from tile_core.simt.role import Role

#: Calls of a program that say what threads or blocks do: it is then left as it is.
_OWN = ("sync", "barrier", "cluster", "async", "store_", "warp", "lane", "thread", "block_index", "grid", "wait")


COPIER = "the copier"


@dataclass(frozen=True)
class Shape:
    """What a target is told about a kernel whose blocks may stay.

    Attributes
    ----------
    threads
        Of a block.
    tiles
        Blocks of the grid; ``None`` if blocks cannot share them: then others may copy for each.
    trips, stages
        Of its loop; 0 trips if they are counted at run time.
    ring_bytes, other_bytes
        Of shared memory: of the loop's slots, and of everything else.
    product
        The loop's product, an ``OpCall``.
    """

    threads: int
    tiles: int | None
    trips: int
    stages: int
    ring_bytes: int
    other_bytes: int
    product: Any


@dataclass(frozen=True)
class Workers:
    """How many blocks stay, and of what they are made.

    Attributes
    ----------
    blocks
        That share the tiles; 0: each tile has a block of its own.
    copiers
        Threads beside those of the program, of which the first one copies.
    arrivals
        Who says that a slot is free: ``"warp"``, one thread of each ``width``, where only instructions of whole warps
        read slots; or each ``"thread"``.
    width
        Threads of a warp.
    registers
        That each of the copiers asks for, and each thread of the program; ``None``: all have equally many.
    issuers
        Threads beside these, of which the first one issues products for those of the program, which only use the sums
        (`issuers.py`); 0 if they issue their products themselves.
    buffers
        Of sums, if there are issuers: products of a tile begin while the sums of the one before are used.
    """

    blocks: int
    copiers: int
    arrivals: str = "thread"
    width: int = 32
    registers: tuple[int, int] | None = None
    issuers: int = 0
    buffers: int = 1

    @property
    def others(self) -> int:
        """Threads beside those of the program."""
        return self.copiers + self.issuers


@dataclass(frozen=True)
class Sharing:
    """What is needed to let the blocks of a program stay.

    Attributes
    ----------
    choose
        The target's decision.
    thread
        The variable of a thread's number in the block.
    order
        Of blocks: ``panel`` and ``order`` as of ``T.use_swizzle``, or nothing.
    """

    choose: Callable[[Shape], Workers | Reject]
    thread: Var
    order: Mapping[str, Any]


@dataclass(frozen=True)
class GridLoops:
    """The loops over blocks, by axis, and the statements of a block.

    Attributes
    ----------
    axes
        The loops.
    body
        The statements.
    loop
        The place of the pipelined one among them.
    """

    axes: Mapping[int, Stmt]
    body: Sequence[Stmt]
    loop: int

    @property
    def extents(self) -> dict[int, int]:
        """Blocks along each axis."""
        return {axis: int(nodes.as_int(s.extent)) for axis, s in self.axes.items()}

    def before(self) -> list[Stmt]:
        """Return the statements before the loop that only name values."""
        found = self.body[: self.loop]
        return [s for s in found if isinstance(s, tirx.Bind) and not collect(s.value, (ir.Call, ir.TensorLoad))]


def grid_of(s: Stmt, fixed: bool = True) -> GridLoops | str:
    """Return the grid of a program for which other threads can copy, as far as its statements say, or why they cannot.

    Parameters
    ----------
    fixed
        Whether blocks are to stay: their tiles and trips are counted by constants then.
    """
    axes: dict[int, Stmt] = {}
    while isinstance(s, tirx.For) and role(s) == "grid":
        axes[int(annotation(s, nodes.AXIS))] = s
        s = s.body
    body = top_level(s)
    loops = [x for x in collect(s, tirx.For) if role(x) == "pipelined"]
    at = next((i for i, x in enumerate(body) if isinstance(x, tirx.For) and role(x) == "pipelined"), None)
    if len(loops) != 1 or at is None:
        return "its block has several pipelined loops, or one inside of other statements"
    for loop in (*axes.values(), loops[0]) if fixed else ():
        if not isinstance(nodes.as_int(loop.extent), int) or nodes.as_int(loop.min) != 0:
            return "the number of its blocks or iterations is not known at compile time"
    if collect(s, (tirx.Break, tirx.Continue, tirx.Return, tirx.DeclBuffer, tirx.While)):
        return "its block has jumps or views"
    if collect(s, tirx.AttrStmt):
        return "its block has roles of its own"
    for call in collect(s, ir.Call):
        name = str(getattr(call.op, "name", ""))
        if name.startswith("tile.") and name[5:].startswith(_OWN):
            return f"it calls {name[5:]}"
    threads = next((t for t in (annotation(x, nodes.THREADS) for x in axes.values()) if t is not None), None)
    if threads is None or any(int(nodes.as_int(t)) != 1 for t in list(threads)[1:]):
        return "its threads have several dimensions"
    return GridLoops(axes, body, at)


def corner_reason(
    grid: GridLoops, copies: Sequence[Candidate], binds: Sequence[int], sizes: Collection[Var] = ()
) -> str:
    """Return why the corners of copies are not known to another thread; empty if they are.

    Parameters
    ----------
    binds
        Positions of bindings in the loop that they use.
    sizes
        Variables that have one value in a launch.
    """
    loop = grid.body[grid.loop]
    inside = top_level(loop.body)
    known = {s.loop_var for s in grid.axes.values()} | {s.var for s in grid.before()} | {loop.loop_var}
    known |= {inside[i].var for i in binds} | set(sizes)
    parts = [loop.min, loop.extent, *(m for c in copies for m in c.call.args[0].mins)]
    parts += [inside[i].value for i in binds] + [s.value for s in grid.before()]
    for part in parts:
        value = nodes.int_const(0) + part
        if collect(value, ir.TensorLoad) or any(v not in known for v in collect(value, tirx.Var)):
            return "what its copies read depends on values of the block"
    return ""


def with_roles(schedule: Schedule, threads: int, workers: Workers, name: str) -> Schedule:
    """Return the schedule of a loop whose copies another thread makes; ``name`` is that of barriers of free slots."""
    copier, users = Role(COPIER, threads, 1), Role("the block", 0, threads)
    (group,) = schedule.groups
    (full,) = schedule.barriers
    warps = threads // workers.width if workers.arrivals == "warp" else threads
    each: Any = workers.arrivals
    moved = replace(group, issuer=copier)
    copies = RoleProgram(copier, (), (WaitPhase(name, lag=1), Expect(full.name, group.bytes), Issue(group.name)))
    trip = (WaitPhase(full.name), Use(lasts=True), WaitUses(1), Arrive(name, each, ahead=-1))
    uses = RoleProgram(users, (WaitUses(0),), trip, (WaitUses(0),))
    barriers = (full, PhaseBarrier(name, warps))
    return replace(schedule, trips=None, groups=(moved,), programs=(copies, uses), barriers=barriers)


def at_ends(schedule: Schedule) -> Schedule:
    """Return the schedule of the last trip of a tile: its slot is free when its use has ended, in the same trip."""
    copies, uses = schedule.programs
    full, _, _, arrive = uses.trip
    assert isinstance(arrive, Arrive)
    trip = (full, Use(lasts=True), WaitUses(0), replace(arrive, ahead=0))
    return replace(schedule, programs=(copies, replace(uses, trip=trip)))


def write_workers(plan: LoopPlan, grid: GridLoops, workers: Workers, sharing: Sharing, threads: int) -> Stmt:
    """Return the loop over the blocks that stay.

    Parameters
    ----------
    plan
        With the schedule of `with_roles`.
    threads
        Of the program.
    """
    return WorkersWriter(plan, grid, workers, sharing, threads).written()


class WorkersWriter(LoopWriter):
    """Writes the loop over the blocks that stay."""

    def __init__(self, plan: LoopPlan, grid: GridLoops, workers: Workers, sharing: Sharing, threads: int) -> None:
        super().__init__(plan, Around(busy=False, nested=False))
        self.grid, self.workers, self.threads = grid, workers, threads
        self.order, self.thread = sharing.order, sharing.thread
        self.number, self.worker = nodes.fresh("number"), nodes.fresh("worker")
        self.tiles = prod(grid.extents.values())
        (group,) = self.schedule.groups
        assert isinstance(group.completion, Transactions)
        self.group, self.full = group, group.completion.barrier
        self.empty = next(b.name for b in self.schedule.barriers if b.name != self.full)

    def written(self) -> Stmt:
        """Return the loop over workers."""
        allocated = [s for s in self.grid.body if isinstance(s, tirx.AllocBuffer)]
        made, first = self.objects()
        names, span = (self.thread, self.number), self.loop.span
        users = computing(self.workers, self.threads, names, [self.computing()], span)
        copier = beside(self.workers, self.threads, self.thread, self.copying(), span)
        rings = calls.managed(self.managed(), nodes.seq([copier, *self.others(), users]), self.loop.span)
        outer = self.grid.axes[min(self.grid.axes)]
        notes = {str(k): v for k, v in outer.annotations.items()}
        notes[nodes.THREADS] = [nodes.int_const(self.threads + self.workers.others), *([nodes.int_const(1)] * 2)]
        notes[nodes.AXIS] = nodes.int_const(0)
        body = nodes.seq([*allocated, *made, first, rings])
        extent = nodes.int_const(self.workers.blocks)
        return replace_for(outer, body, loop_var=self.worker, extent=extent, annotations=notes)

    def others(self) -> list[Stmt]:
        """Return the work of further roles."""
        return []

    def managed(self) -> list[BufferVar]:
        """Return the buffers whose accesses the roles order."""
        return list(self.plan.rings.values())

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

    def copying(self) -> Stmt:
        """Return the loops of the thread that copies."""
        turn, k = nodes.fresh("turn"), nodes.fresh(f"{self.loop.loop_var.name}_ahead", self.kind)
        places = {s.loop_var: nodes.fresh(str(s.loop_var.name)) for s in self.grid.axes.values()}
        parts = self.place(turn, {axis: places[s.loop_var] for axis, s in self.grid.axes.items()})
        mapping: dict[Any, Any] = {**places, self.loop.loop_var: k}
        outside = self.bound(self.grid.before(), mapping)
        inside = self.bound([self.body[i] for i in self.plan.binds], mapping)
        slot, count = nodes.fresh("slot"), self.counted(turn, k)
        trip = [
            tirx.Bind(slot, self.slot_of(count)),
            calls.barrier_wait(self.barriers[self.empty], slot, self.parity(count, 1)),
            calls.barrier_expect(self.barriers[self.full], slot, self.group.bytes),
            *inside,
            *(self.copy(c, self.group, mapping, slot) for c in self.plan.copies[self.group.name]),
        ]
        loop = nodes.for_loop(k, self.trips, nodes.seq(trip), "serial", span=self.loop.span)
        return self.over_tiles(turn, [*parts, *outside, loop])

    def computing(self) -> Stmt:
        """Return the loops of the others."""
        turn, k = nodes.fresh("turn"), self.loop.loop_var
        parts = self.place(turn, {axis: s.loop_var for axis, s in self.grid.axes.items()})
        count, before = self.counted(turn, k), self.counted(turn, k) - nodes.int_const(1)
        free = tirx.IfThenElse(k > nodes.int_const(0, self.kind), self.arrived(before), None)
        trip = [
            tirx.Bind(self.slot, self.slot_of(count)),
            calls.barrier_wait(self.barriers[self.full], self.slot, self.parity(count, 0)),
            *self.computed(),
            self.settled(1),
            free,
        ]
        notes = {str(n): v for n, v in self.loop.annotations.items()} | {nodes.ROLE: "serial"}
        loop = replace_for(self.loop, nodes.seq(trip), annotations=notes)
        last = self.arrived(self.counted(turn, nodes.int_const(int(nodes.as_int(self.trips)) - 1)))
        body = [s for s in self.grid.body if not isinstance(s, tirx.AllocBuffer)]
        at = next(i for i, s in enumerate(body) if s.same_as(self.loop))
        return self.over_tiles(
            turn, [*parts, *body[:at], self.settled(0), loop, self.settled(0), last, *body[at + 1 :]]
        )

    def over_tiles(self, turn: Var, parts: Sequence[Stmt]) -> Stmt:
        """Return a loop over the tiles of a worker."""
        return nodes.for_loop(turn, self.turns(), nodes.seq(parts), "serial", span=self.loop.span)

    def turns(self) -> Expr:
        """Return how many tiles a worker has."""
        more = nodes.int_const(self.tiles - 1 + self.workers.blocks) - self.worker
        return tirx.floordiv(more, nodes.int_const(self.workers.blocks))

    def place(self, turn: Var, names: Mapping[int, Var]) -> list[Stmt]:
        """Bind the coordinates of a worker's tile; bounds that are always kept tell proofs so."""
        extents, tile = self.grid.extents, nodes.fresh("tile")
        found: list[Stmt] = [tirx.Bind(tile, self.worker + turn * nodes.int_const(self.workers.blocks))]
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
            inside = tirx.Max(tirx.Min(values[axis], nodes.int_const(extents[axis] - 1)), nodes.int_const(0))
            found.append(tirx.Bind(name, nodes.cast(inside, nodes.dtype_of(name))))
        return found

    def panels(self, flat: Expr, extents: Sequence[int]) -> tuple[list[Stmt], Expr, Expr]:
        """Return the coordinates along the first two axes of a tile that is numbered along panels."""
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
        """Return bindings anew, for another thread."""
        found: list[Stmt] = []
        for s in binds:
            var = nodes.fresh(str(s.var.name), nodes.dtype_of(s.var))
            found.append(tirx.Bind(var, substitute(s.value, mapping), s.span))
            mapping[s.var] = var
        return found

    def arrived(self, count: Expr) -> Stmt:
        """Say that the slot of a trip is free."""
        arrive = calls.barrier_arrive(self.barriers[self.empty], self.slot_of(count))
        if self.workers.arrivals != "warp":
            return arrive
        lane = tirx.floormod(self.number, nodes.int_const(self.workers.width))
        return tirx.IfThenElse(tirx.EQ(lane, nodes.int_const(0)), arrive, None)

    def counted(self, turn: Expr, k: Expr) -> Expr:
        """Return the number of a trip of a turn among all trips of a worker."""
        return turn * nodes.int_const(int(nodes.as_int(self.trips))) + nodes.cast(k, "int32")

    def slot_of(self, count: Expr) -> Expr:
        """Return the slot of a trip."""
        return tirx.floormod(count, nodes.int_const(self.stages))

    def parity(self, count: Expr, more: int) -> Expr:
        """Return the parity of a trip's phase, or of so many later."""
        phase = tirx.floordiv(count, nodes.int_const(self.stages)) + nodes.int_const(more)
        return tirx.floormod(phase, nodes.int_const(2))


def beside(workers: Workers, threads: int, thread: Var, copying: Stmt, span: Any) -> Stmt:
    """Return the statement of the thread that copies, among those beside the program's.

    Parameters
    ----------
    threads
        Of the program.
    thread
        The variable of a thread's number in the block.
    """
    if workers.registers is None:
        return calls.only((COPIER, threads, 1), copying, span)
    parts = [_registers(workers.registers[0], False), calls.only((COPIER, 0, 1), copying, span)]
    return _role(Role("the threads that copy", threads, workers.copiers), (thread, nodes.fresh("beside")), parts, span)


def computing(
    workers: Workers, threads: int, names: tuple[Var, Var], parts: Sequence[Stmt], span: Any
) -> Stmt:  # fmt: skip
    """Return the statements of the program's threads; their number in the block has two names, there and here."""
    more = [] if workers.registers is None else [_registers(workers.registers[1], True)]
    return _role(Role("the block", 0, threads), names, [*more, *parts], span)


def _role(role: Role, names: tuple[Var, Var], parts: Sequence[Stmt], span: Any) -> Stmt:
    """Return statements that some threads share, by the names of a thread's number in the block and in the role."""
    thread, number = names
    node = [ir.StringImm(role.name), nodes.int_const(role.first), nodes.int_const(role.count), number]
    inside = nodes.seq([tirx.Bind(number, thread - nodes.int_const(role.first)), *parts])
    return tirx.AttrStmt(node, calls.ONLY, nodes.int_const(0), inside, span)


def _registers(count: int, more: bool) -> Stmt:
    """Return the request of threads for so many registers each."""
    attrs = {request_registers.COUNT: count, request_registers.MORE: int(more)}
    return tirx.Evaluate(nodes.tile_call(request_registers.OP.name, [], attrs))
