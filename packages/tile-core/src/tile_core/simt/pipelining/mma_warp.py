"""Persistent kernels with an MMA warp: producer, MMA warp and epilogue threads run concurrently.

If matrix units keep the accumulator in tensor memory, the threads of a program are not needed for its
products. One thread of the MMA warp issues them. Their completion releases the slots and hands over the accumulator by
arrivals at barriers, which no thread waits to make::

    the producer:  for tiles: for k: wait until the slot is free; expect bytes; copy
    the MMA warp:  for tiles: wait until the accumulator is free
                              for k: wait until the slot is full; issue the product; its completion frees the slot
                              the completion of all products makes the accumulator ready
    the block:     for tiles: wait until the accumulator is ready; store the results; release the accumulator

With two accumulator buffers, the MMA warp begins a tile while the block stores the tile before. There are two
schedules: that of slots, and that of accumulators, whose iterations are tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import StmtRewriter, substitute
from tile_core.ops.base import OpCall, View, is_op
from tile_core.simt.pipelining.async_products import Product, accumulator_of
from tile_core.simt.pipelining.dependences import top_level, uses
from tile_core.simt.pipelining.grids import GridLoops
from tile_core.simt.pipelining.multicast import mask_of
from tile_core.simt.pipelining.persistent import (
    PRODUCER,
    PersistentGrid,
    PersistentHooks,
    cluster_syncs,
)
from tile_core.simt.pipelining.persistent_writer import PersistentWriter
from tile_core.simt.pipelining.plan import LoopPlan
from tile_core.simt.pipelining.role_slices import RoleSlice
from tile_core.simt.pipelining.schedule import (
    Arrival,
    Arrive,
    Complete,
    Copy,
    CopyGroup,
    Expect,
    Issue,
    PhaseBarrier,
    Ring,
    RoleProgram,
    Schedule,
    Use,
    WaitPhase,
)
from tile_core.simt.pipelining.writers import on_slot
from tile_core.simt.role import Role

MMA_WARP = "the MMA warp"


def mma_warp_reason(grid: GridLoops, product: object, copied: Sequence[BufferVar], binds: Sequence[int]) -> str:
    """Return the reason why an MMA warp cannot issue a loop's products, else empty.

    Parameters
    ----------
    product
        The loop's `Product`, if it has one that completes in the next iteration.
    copied
        The buffers whose copies are prefetched.
    binds
        Positions of bindings in the loop that corners of copies use.
    """
    if not grid.once:
        return "its blocks may execute the loop more or less than once, or with different trip counts"
    if not isinstance(product, Product):
        return "its products complete in their own iteration"
    body, accumulator = top_level(grid.loops[0].body), product.accumulator
    call = OpCall.decode(body[product.position])
    for view in call.args[: accumulator_of(call)]:
        if not any(view.buffer.same_as(b) for b in copied):
            return f"{view.name} is not copied in its loop"
    for at, s in enumerate(body):
        moved = is_op(s) and nodes.is_tile_call(s.value, "copy") and any(uses(s, b) for b in copied)
        if not (moved or at == product.position or at in binds or isinstance(s, (tirx.AllocBuffer, tirx.Bind))):
            return "its loop does more than copy and multiply"
    if any(uses(s, accumulator.buffer) for s in grid.body[: grid.loop]):
        return f"{accumulator.name} is not initialized with zeros"
    return ""


def with_mma_warp(schedule: Schedule, threads: int, persistent: PersistentGrid, name: str) -> Schedule:
    """Return the schedule of slots; ``name`` is that of barriers of free slots."""
    producer, mma_warp = Role(PRODUCER, threads, 1), Role(MMA_WARP, threads + persistent.producers, 1)
    (group,), full, met = schedule.groups, schedule.barriers[0], cluster_syncs(schedule)
    ends = tuple(WaitPhase(name, offset=-n) for n in range(schedule.stages, 0, -1))
    complete = Complete(name, everywhere=schedule.blocks > 1)
    iteration = (WaitPhase(name, lag=1), Expect(full.name, group.bytes), Issue(group.name))
    copies = RoleProgram(producer, met, iteration, (*ends, *met))
    products = RoleProgram(mma_warp, met, (WaitPhase(full.name), Use(in_flight=True), complete), met)
    moved, barriers = replace(group, issuer=producer), (full, PhaseBarrier(name, len(schedule.partners(0))))
    return replace(schedule, trips=None, groups=(moved,), programs=(copies, products), barriers=barriers)


def accumulator_schedule(
    accumulator: View, threads: int, persistent: PersistentGrid, ready: str, free: str
) -> Schedule:
    """Return the schedule of accumulators, whose iterations are the tiles of a block."""
    mma_warp, consumers = Role(MMA_WARP, threads + persistent.producers, 1), Role("the block", 0, threads)
    size = prod(map(int, nodes.shape_of(accumulator.buffer))) * DTYPES[accumulator.dtype].bits // 8
    ring = Ring(accumulator.name, size)
    group = CopyGroup("products", (Copy("products", ring.name, size),), mma_warp, Arrival(ready))
    products = RoleProgram(mma_warp, (), (WaitPhase(free, lag=1), Issue("products")))
    results = RoleProgram(consumers, (), (WaitPhase(ready), Use(), Arrive(free)))
    barriers = (PhaseBarrier(ready, 1), PhaseBarrier(free, threads))
    return Schedule("tiles", persistent.buffers, None, (ring,), (group,), (products, results), barriers)


def write_mma_warp(
    plan: LoopPlan, grid: GridLoops, repeated: RoleSlice, persistent: PersistentGrid, hooks: PersistentHooks,
    threads: int, tiles: Schedule,
) -> Stmt:  # fmt: skip
    """Return the loop over the persistent blocks.

    Parameters
    ----------
    plan, tiles
        With the schedule of `with_mma_warp`; that of `of_tiles`.
    """
    return _MmaWarpWriter(plan, grid, repeated, persistent, hooks, threads, tiles).written()


class _MmaWarpWriter(PersistentWriter):
    def __init__(
        self,
        plan: LoopPlan,
        grid: GridLoops,
        repeated: RoleSlice,
        persistent: PersistentGrid,
        hooks: PersistentHooks,
        threads: int,
        accumulator_schedule: Schedule,
    ) -> None:
        assert isinstance(plan.product, Product)
        self.old = plan.product.accumulator.buffer
        shape = [persistent.buffers, *nodes.shape_of(self.old)]
        kind, scope = nodes.element_type(self.old), nodes.scope_of(self.old)
        #: The accumulators: one buffer, or several.
        self.accumulator = self.old
        if persistent.buffers > 1:
            self.accumulator = tirx.decl_buffer(shape, kind, self.old.name, scope=scope, layout=None)
        body = [self.renamed(s) if isinstance(s, tirx.AllocBuffer) else s for s in grid.body]
        super().__init__([plan], replace(grid, body=body), repeated, persistent, hooks, threads)
        self.accumulator_schedule = accumulator_schedule
        self.ready, self.free = (b.name for b in accumulator_schedule.barriers)

    def renamed(self, s: Stmt) -> Stmt:
        """Return the allocation of all accumulator buffers in place of one."""
        return tirx.AllocBuffer(self.accumulator, None, s.span) if s.buffer.same_as(self.old) else s

    def objects(self) -> tuple[list[Stmt], list[Stmt]]:
        """Return the allocations of all barriers, and their initialisation."""
        made, parts = super().objects()
        for barrier in self.accumulator_schedule.barriers:
            self.barriers[barrier.name], allocate = calls.alloc_barriers(barrier.name, self.persistent.buffers)
            made.append(allocate)
            slots = map(nodes.int_const, range(self.persistent.buffers))
            parts += [calls.barrier_init(self.barriers[barrier.name], slot, barrier.arrivals) for slot in slots]
        return made, parts

    def managed(self) -> list[BufferVar]:
        """Return the buffers that are live while any role runs: rings and barriers."""
        return [*self.plan.rings.values(), *self.barriers.values()]

    def producer_loops(self) -> Stmt:
        """Return the producer's loops and its waits until all products have read their slots."""
        worked = self.tile_count() * nodes.int_const(int(nodes.as_int(self.trips)))
        waits = []
        for n in range(self.stages, 0, -1):
            count = worked - nodes.int_const(n)
            wait = calls.barrier_wait(self.barriers[self.empty], self.slot_of(count), self.parity(count, 0))
            waits.append(tirx.IfThenElse(count >= nodes.int_const(0), wait, None))
        return nodes.seq([super().producer_loops(), *waits])

    def extra_roles(self) -> list[Stmt]:
        """Return the work of the thread that multiplies."""
        tile_iteration, k, slot = (
            nodes.fresh("turn"),
            nodes.fresh(f"{self.loop.loop_var.name}_issued", self.kind),
            self.slot,
        )
        assert isinstance(self.plan.product, Product)
        product = on_slot(self.body[self.plan.product.position], self.plan.rings, slot)
        product = _marked(substitute(self.of_buffer(product, tile_iteration), {self.loop.loop_var: k}))
        count = self.counted(tile_iteration, k)
        blocks = None if self.plan.multicast is None else mask_of(self.blocks, self.schedule.partners(0))
        iteration = [
            tirx.Bind(slot, self.slot_of(count)),
            calls.barrier_wait(self.barriers[self.full], slot, self.parity(count, 0)),
            product,
            calls.barrier_complete(self.barriers[self.empty], slot, blocks),
        ]
        loop = nodes.for_loop(k, self.trips, nodes.seq(iteration), "serial", span=self.loop.span)
        buffer = self.buffer_of(tile_iteration)
        before = calls.barrier_wait(self.barriers[self.free], buffer, self.phase_of(tile_iteration, 1))
        behind = calls.barrier_complete(self.barriers[self.ready], buffer)
        mma_warp = next(p.role for p in self.schedule.programs if p.role.name == MMA_WARP)
        work = self.over_tiles(tile_iteration, [before, loop, behind])
        return [calls.only((mma_warp.name, mma_warp.first, 1), work, self.loop.span)]

    def consumer_loops(self) -> Stmt:
        """Return the loop of the epilogue threads, which release an accumulator after its last use."""
        tile_iteration = nodes.fresh("turn")
        parts = self.tile_coordinates(tile_iteration, {axis: s.loop_var for axis, s in self.grid.axes.items()})
        body = [s for s in self.grid.body if not isinstance(s, tirx.AllocBuffer)]
        at = next(i for i, s in enumerate(body) if s.same_as(self.loop))
        behind = body[at + 1 :]
        last = max((i + 1 for i, s in enumerate(behind) if uses(s, self.old)), default=0)
        behind = [self.of_buffer(s, tile_iteration) for s in behind]
        buffer = self.buffer_of(tile_iteration)
        wait = calls.barrier_wait(self.barriers[self.ready], buffer, self.phase_of(tile_iteration, 0))
        free = calls.barrier_arrive(self.barriers[self.free], buffer)
        return self.over_tiles(tile_iteration, [*parts, *body[:at], wait, *behind[:last], free, *behind[last:]])

    def of_buffer(self, s: Stmt, tile_iteration: Expr) -> Stmt:
        """Return a statement on the accumulator buffer of a tile iteration."""
        return (
            s
            if self.persistent.buffers == 1
            else _OnBuffer(self.old, self.accumulator, self.buffer_of(tile_iteration)).stmt(s)
        )

    def buffer_of(self, tile_iteration: Expr) -> Expr:
        """Return the index of the accumulator buffer of a tile iteration."""
        count = self.persistent.buffers
        return nodes.int_const(0) if count == 1 else tirx.floormod(tile_iteration, nodes.int_const(count))

    def phase_of(self, tile_iteration: Expr, more: int) -> Expr:
        """Return the phase parity of the accumulator barriers in a tile iteration or later phase."""
        phase = tirx.floordiv(tile_iteration, nodes.int_const(self.persistent.buffers)) + nodes.int_const(more)
        return tirx.floormod(phase, nodes.int_const(2))


class _OnBuffer(StmtRewriter):
    """Rewrites ops to use one of several buffers."""

    def __init__(self, old: BufferVar, new: BufferVar, at: Expr) -> None:
        self.old, self.new, self.at = old, new, at

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        call = s.value
        if not is_op(s) or not uses(s, self.old):
            return s
        args = [self.region(a) if hasattr(a, "region") else a for a in call.args]
        return tirx.Evaluate(ir.Call(call.op, args, attrs=call.attrs, ret_ty=call.ty), s.span)

    def region(self, a: Any) -> Any:
        """Return a region of that buffer."""
        view = View.of(a)
        if not view.buffer.same_as(self.old):
            return a
        return nodes.region(self.new, [self.at, *view.mins], [1, *view.extents])


def _marked(s: Stmt) -> Stmt:
    """Return a product that one thread issues."""
    call = s.value
    attrs = {**dict(call.attrs), attributes.ISSUED: 1}
    return tirx.Evaluate(ir.Call(call.op, list(call.args), attrs=attrs, ret_ty=call.ty), s.span)
