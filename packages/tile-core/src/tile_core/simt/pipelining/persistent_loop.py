"""The pipelined loop of persistent blocks, as its producer and its consumers execute it."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import replace_for
from tile_core.simt.pipelining.iteration_counts import IterationCount, KeptCount, of_tiles
from tile_core.simt.pipelining.multicast import arrive_at_peers, in_line
from tile_core.simt.pipelining.persistent import PersistentGrid
from tile_core.simt.pipelining.plan import LoopPlan
from tile_core.simt.pipelining.schedule import Transactions
from tile_core.simt.pipelining.writers import Around, LoopWriter


class PersistentLoop(LoopWriter):
    """Writes a loop for both roles.

    Parameters
    ----------
    plan
        With the schedule of `with_producer_role`.
    once
        Whether each tile executes the loop once, with the same trip count.

    Attributes
    ----------
    number
        The variable of a thread's number in its role.
    each
        Tiles that a cluster processes at a time, by axis, one per block; one without clusters.
    """

    def __init__(self, plan: LoopPlan, persistent: PersistentGrid, once: bool) -> None:
        super().__init__(plan, Around(busy=False, nested=False))
        self.persistent, self.once = persistent, once
        self.number = nodes.fresh("number")
        self.each = (1, 1, 1) if plan.multicast is None else plan.multicast.offer.cluster
        self.blocks = in_line(self.each)
        (group,) = self.schedule.groups
        assert isinstance(group.completion, Transactions)
        self.group, self.full = group, group.completion.barrier
        self.empty = next(b.name for b in self.schedule.barriers if b.name != self.full)

    # Roles

    def counts(self, name: str, tile_iteration: Expr, kept: dict[str, KeptCount]) -> IterationCount:
        """Return the count of a role in a tile.

        Parameters
        ----------
        kept
            Counts of the role, by the barrier of full slots: loops that share slots share their count.
        """
        if self.once:
            return of_tiles(tile_iteration, int(nodes.as_int(self.trips)))
        if self.full not in kept:
            kept[self.full] = KeptCount(f"{self.loop.loop_var.name}_{name}", self.stages)
        return kept[self.full].of(self.trips)

    def copying(self, count: IterationCount) -> list[Stmt]:
        """Return the loop of the thread that copies."""
        k, slot = nodes.fresh(f"{self.loop.loop_var.name}_ahead", self.kind), nodes.fresh("slot")
        at = k if nodes.as_int(self.loop.min) == 0 else self.loop.min + k
        mapping = {self.loop.loop_var: at}
        inside = []
        for bind in (self.body[i] for i in self.plan.binds):
            var = nodes.fresh(str(bind.var.name), nodes.dtype_of(bind.var))
            inside.append(tirx.Bind(var, self.at(bind.value, mapping), bind.span))
            mapping[bind.var] = var
        number = count.of(k)
        iteration = [
            tirx.Bind(slot, self.slot_of(number)),
            calls.barrier_wait(self.barriers[self.empty], slot, self.parity(number, 1)),
            calls.barrier_expect(self.barriers[self.full], slot, self.group.bytes),
            *inside,
            *(self.copy(c, self.group, mapping, slot) for c in self.plan.copies[self.group.name]),
        ]
        loop = nodes.for_loop(k, self.trips, nodes.seq(iteration), "serial", span=self.loop.span)
        return [*self.before, *count.made, loop, *count.advanced]

    def computing(self, count: IterationCount, during: Sequence[Stmt]) -> list[Stmt]:
        """Return the loop of the others.

        Parameters
        ----------
        during
            Statements of each iteration after its product is issued.
        """
        k, zero, one = self.loop.loop_var, nodes.int_const(0, self.kind), nodes.int_const(1)
        iteration = k if nodes.as_int(self.loop.min) == 0 else k - self.loop.min
        number = count.of(iteration)
        started, last = list[Stmt](), list[Stmt]()
        if self.persistent.immediate:
            free = [self.release_slot(number), *during]
        else:
            started = [self.settled(0)]
            free = [*during, self.settled(1), tirx.IfThenElse(iteration > zero, self.release_slot(number - one), None)]
            trips = nodes.as_int(self.trips)
            made = self.release_slot(count.of(self.trips) - one)
            if isinstance(trips, int):
                made = self.release_slot(count.of(nodes.int_const(trips - 1)))
            made = made if isinstance(trips, int) else tirx.IfThenElse(self.trips > zero, made, None)
            last = [self.settled(0), made]
        reads, rest = self.reads_and_rest()
        parts = [
            tirx.Bind(self.slot, self.slot_of(number)),
            calls.barrier_wait(self.barriers[self.full], self.slot, self.parity(number, 0)),
            *reads,
            *free,
            *rest,
        ]
        notes = {str(n): v for n, v in self.loop.annotations.items()} | {attributes.ROLE: "serial"}
        loop = replace_for(self.loop, nodes.seq(parts), annotations=notes)
        return [*self.before, *count.made, *started, loop, *last, *count.advanced]

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

    def slot_of(self, count: Expr) -> Expr:
        """Return the slot of an iteration."""
        return tirx.floormod(count, nodes.int_const(self.stages))

    def parity(self, count: Expr, more: int) -> Expr:
        """Return the parity of an iteration's phase, or of a phase ``more`` later."""
        phase = tirx.floordiv(count, nodes.int_const(self.stages)) + nodes.int_const(more)
        return tirx.floormod(phase, nodes.int_const(2))
