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
from tile_core.compat.types import Stmt, Var
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import COUNT, MORE, ONLY
from tile_core.lowering.variant import Reject
from tile_core.ops import request_registers
from tile_core.simt.pipelining.multicast import ChosenCluster
from tile_core.simt.pipelining.schedule import (
    Arrive,
    Expect,
    Issue,
    Meet,
    PhaseBarrier,
    RoleProgram,
    Schedule,
    Step,
    Use,
    WaitPhase,
    WaitUses,
)
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
    once
        Whether each tile executes the loop once: otherwise threads hold its bounds and their count of iterations.
    immediate
        Whether products complete in the iteration that issues them.
    overlaps
        Whether several products of the loop overlap between iterations.
    products
        Products of an iteration.
    registers
        Registers of a thread for the fragments that are live at a time.
    """

    threads: int
    tiles: int | None
    trips: int
    stages: int
    ring_bytes: int
    other_bytes: int
    product: Any
    subtiles: int = 0
    once: bool = True
    immediate: bool = False
    overlaps: bool = False
    products: int = 1
    registers: int = 0


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
    return nodes.mark(ONLY, node, inside, span)


def _registers(count: int, more: bool) -> Stmt:
    """Return the threads' request for a number of registers each."""
    return tirx.Evaluate(nodes.tile_call(request_registers.OP.name, [], {COUNT: count, MORE: int(more)}))
