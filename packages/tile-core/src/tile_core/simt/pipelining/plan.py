"""Plans of pipelined loops: the prefetched copies and the schedule."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from math import prod
from typing import Any

from tile_core.analysis.flow import jumps_of
from tile_core.compat.structural import identity
from tile_core.compat.types import BufferVar, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.attributes import ALIGN, COMPLETION, LAYOUT, NUM_STAGES, Attrs
from tile_core.ir.visit import annotation
from tile_core.layout.base import LayoutMap
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall
from tile_core.records import dataclass
from tile_core.simt.pipelining.async_products import Product
from tile_core.simt.pipelining.dependences import Analysis, Candidate, top_level
from tile_core.simt.pipelining.loop_note import LoopNote
from tile_core.simt.pipelining.multicast import ChosenCluster, sets_of
from tile_core.simt.pipelining.overlap import OverlapPlan
from tile_core.simt.pipelining.programs import (
    PingPongGroup,
    TimedGroup,
    asynchronous,
    in_cluster,
    overlapping,
    ping_pong,
    uniform,
)
from tile_core.simt.pipelining.schedule import (
    Copy,
    CopyGroup,
    CountedGroups,
    Immediate,
    PhaseBarrier,
    Ring,
    RoleProgram,
    Schedule,
    Transactions,
)
from tile_core.simt.role import Role
from tile_core.simt.variant import SimtCall

CanCopy = Callable[[OpCall], "Accept | Reject | bool"]

GROUP, TRANSACTIONS, IMMEDIATE, REGISTERS = "group", "transactions", "place", "registers"

_PLANNED = (COMPLETION, LAYOUT, ALIGN)

_BARRIER, _FREE = "arrived", "free"


@dataclass(frozen=True)
class LoopPlan:
    """A loop that will be pipelined.

    Attributes
    ----------
    loop
        The loop.
    schedule
        What is copied, and what waits for it.
    copies
        The copies by the name of their group.
    binds
        Positions of bindings that the corners of copies use.
    rings
        By buffer the new buffer with one slot per stage.
    facts
        By buffer the attributes of its copy.
    slots
        By ring the layout of a slot, where a copy needs one.
    product
        The asynchronous product, if there is one.
    overlap
        How its iterations overlap, if they do.
    multicast
        The multicast of its copies in a cluster, if there is one.
    thread
        The variable of a thread's number in the block, which is needed then.
    """

    loop: Any
    schedule: Schedule
    copies: Mapping[str, Sequence[Candidate]]
    binds: Sequence[int]
    rings: Mapping[Any, BufferVar]
    facts: Mapping[Any, Attrs]
    slots: Mapping[Any, LayoutMap] = field(default_factory=dict)
    product: Product | None = None
    overlap: OverlapPlan | None = None
    multicast: ChosenCluster | None = None
    thread: Any = None

    @property
    def moved(self) -> set[int]:
        """Positions of the copies in the loop's body."""
        return {c.position for group in self.copies.values() for c in group}


@dataclass(frozen=True)
class Prefetched:
    """The prefetched copies of a loop.

    Attributes
    ----------
    chosen
        Those, in order.
    kept
        Other copies from global to shared memory: (name of the buffer, why it is not moved).
    facts
        By buffer the facts from the target's answer.
    notes
        Notes of the target on prefetched copies.
    """

    chosen: Sequence[Candidate]
    kept: tuple[tuple[str, str], ...]
    facts: Mapping[Any, Attrs]
    notes: tuple[LoopNote, ...] = ()


def choose(
    analysis: Analysis, original: Stmt, loop: Stmt, can_copy: CanCopy, safe_values: Collection[str]
) -> Prefetched:
    """Return the prefetched copies of a loop, and why others are not prefetched.

    Parameters
    ----------
    original
        The loop as it was when the program was analysed.
    """
    key = identity(original), identity(loop)
    if key not in analysis.choices:
        analysis.choices[key] = _chosen(analysis, original, loop, can_copy, safe_values), original, loop
    found: Prefetched = analysis.choices[key][0]
    return found


def _chosen(
    analysis: Analysis, original: Stmt, loop: Stmt, can_copy: CanCopy, safe_values: Collection[str]
) -> Prefetched:
    chosen: list[Candidate] = []
    kept: list[tuple[str, str]] = []
    ranges = analysis.ranges(original)
    facts: dict[Any, Attrs] = {}
    notes: list[LoopNote] = []
    for candidate in analysis.candidates(loop):
        reason = candidate.reason or analysis.keeps(candidate.buffer, original)
        read = (candidate.call.args[0], *candidate.call.args[2:])
        unsafe = next((str(v.name) for v in read if v.name in safe_values), "")
        if not reason and unsafe:
            reason = f"reads outside of {unsafe} do not give zero"
        if not reason:
            call = candidate.call
            answer = can_copy(SimtCall(call.name, call.args, call.attrs, call.where, call.span, ranges=ranges))
            if isinstance(answer, Accept):
                facts[candidate.buffer] = answer.facts
                notes += [LoopNote(str(candidate.buffer.name), answer.note)] if answer.note else []
            elif isinstance(answer, Reject):
                reason = answer.reason
            elif not answer:
                reason = "the target cannot make it asynchronous"
        if reason and candidate.call.name == "gather":
            notes.append(LoopNote(str(candidate.buffer.name), f"its rows are gathered where the call stands: {reason}"))
        elif reason:
            kept.append((str(candidate.buffer.name), reason))
        else:
            chosen.append(candidate)
    kept += [(name, "it is nested in a condition or an inner loop") for name in analysis.elsewhere(loop)]
    return Prefetched(chosen, tuple(kept), facts, tuple(notes))


def plan_loop(
    loop: Stmt,
    choice: Prefetched,
    binds: Sequence[int],
    rings: Mapping[Any, BufferVar],
    threads: int,
    name: Callable[[str], str],
    product: Product | OverlapPlan | None = None,
    multicast: ChosenCluster | None = None,
) -> LoopPlan:
    """Return the plan of a loop whose copies are chosen.

    Parameters
    ----------
    binds
        Positions of bindings that the corners of copies use.
    rings
        By buffer the new buffer with one slot per stage.
    threads
        Of the block.
    name
        Makes a name that the program does not have.
    product
        The asynchronous product, or how iterations overlap, if any.
    multicast
        The multicast of the copies in a cluster, if there is one.
    """
    block = Role("the block", 0, threads)
    overlap = product if isinstance(product, OverlapPlan) else None
    stages, trips = stages_of(loop), nodes.as_int(loop.extent)
    made = {str(b.name): Ring(str(r.name), bytes_of(r) // max(stages, 1)) for b, r in rings.items()}
    consumers = _ping_pong_groups(loop, choice, overlap, threads, name)
    issuer = consumers[-1].role.leader if consumers else block.leader
    groups, copies, barriers = _groups(loop, choice, overlap, made, (block, issuer), name)
    plain = tuple(g.group for g in groups)
    shares = multicast is not None and not multicast.halves
    blocks = prod(multicast.offer.cluster) if multicast is not None and shares else 1
    programs: tuple[RoleProgram, ...]
    if multicast is not None and shares:
        free = name(f"{loop.loop_var.name}_{_FREE}")
        programs = (in_cluster(block, stages, plain, free, multicast.each),)
    elif consumers:
        programs = ping_pong(consumers, stages, groups)
        barriers += [PhaseBarrier(t.barrier, t.arrivals) for t in consumers]
    elif overlap is not None and overlap.tails:
        programs = (overlapping(block, stages, groups),)
    else:
        programs = ((asynchronous if isinstance(product, Product) else uniform)(block, stages, plain),)
    number = trips if isinstance(trips, int) else None
    facts = (str(loop.loop_var.name), stages, number, tuple(made.values()), plain, programs, tuple(barriers), blocks)
    schedule = Schedule(*facts)
    if multicast is not None and shares:
        arriving = threads if multicast.each == "thread" else threads // multicast.width
        freed = PhaseBarrier(free, arriving * len(schedule.partners(0)))
        schedule = replace(schedule, barriers=(*schedule.barriers, freed))
    attributes = {b: {k: v for k, v in f.items() if k not in _PLANNED} for b, f in choice.facts.items()}
    slots = {rings[b]: f[LAYOUT] for b, f in choice.facts.items() if LAYOUT in f}
    product_in_flight = None if isinstance(product, OverlapPlan) else product
    return LoopPlan(loop, schedule, copies, binds, rings, attributes, slots, product_in_flight, overlap, multicast)


def _ping_pong_groups(
    loop: Stmt, choice: Prefetched, overlap: OverlapPlan | None, threads: int, name: Callable[[str], str]
) -> list[PingPongGroup]:
    """Return the ping-pong groups; none if the loop has none."""
    kinds = {choice.facts.get(c.buffer, {}).get(COMPLETION, GROUP) for c in choice.chosen}
    if overlap is None or not overlap.group_threads or kinds != {TRANSACTIONS}:
        return []
    count = threads // overlap.group_threads
    roles = [Role(f"group {i}", i * overlap.group_threads, overlap.group_threads) for i in range(count)]
    if count < 2:
        return []
    size = overlap.group_threads
    return [PingPongGroup(r, name(f"{loop.loop_var.name}_turn"), size * (1 + (r is roles[-1]))) for r in roles]


def _groups(
    loop: Stmt, choice: Prefetched, overlap: OverlapPlan | None, made: Mapping[str, Ring], issuers: tuple[Role, Role],
    name: Callable[[str], str],
) -> tuple[list[TimedGroup], dict[str, list[Candidate]], list[PhaseBarrier]]:  # fmt: skip
    """Return the groups of copies, the copies of each, and the barriers of transactions."""
    buffers = {c.buffer for c in choice.chosen}
    late, soon = (set(), buffers) if overlap is None else overlap.rings(top_level(loop.body), buffers)
    members: dict[tuple[str, bool, bool], list[Candidate]] = {}
    for c in choice.chosen:
        kind = str(choice.facts.get(c.buffer, {}).get(COMPLETION, GROUP))
        members.setdefault((kind, c.buffer in late, c.buffer in soon or c.buffer not in late), []).append(c)
    block, leader = issuers
    barriers: list[PhaseBarrier] = []
    groups: list[TimedGroup] = []
    copies: dict[str, list[Candidate]] = {}
    for (kind, is_late, is_soon), of in members.items():
        moved = tuple(
            Copy(
                c.source_name,
                made[str(c.buffer.name)].name,
                _bytes(c.call.args[1].dtype, c.call.args[1].extents),
                sets_of(c.call)[1],
            )
            for c in of
        )
        called = f"{kind} of the tail{' too' * is_soon}" if is_late else kind
        copies[called] = of
        if kind == TRANSACTIONS:
            barriers.append(PhaseBarrier(name(f"{loop.loop_var.name}_{_BARRIER}"), 1))
            group = CopyGroup(called, moved, leader, Transactions(barriers[-1].name))
        else:
            group = CopyGroup(called, moved, block, Immediate() if kind == IMMEDIATE else CountedGroups())
        groups.append(TimedGroup(group, is_late, is_soon))
    return groups, copies, barriers


def stages_of(loop: Stmt) -> int:
    """Return the number of slots of a loop: requested stages, limited by the trip count."""
    trips, stages = nodes.as_int(loop.extent), int(annotation(loop, NUM_STAGES))
    return min(stages, trips) if isinstance(trips, int) else stages


def not_pipelined(loop: Stmt) -> str:
    """Return the reason why a loop cannot be pipelined; empty if it can."""
    stages, trips = annotation(loop, NUM_STAGES, 0), nodes.as_int(loop.extent)
    if stages < 2:
        return f"num_stages is {stages}"
    if isinstance(trips, int) and trips < 2:
        return f"it has {trips} iterations"
    if loop.step is not None and nodes.as_int(loop.step) != 1:
        return "its step is not 1"
    return "it is left by a jump" if jumps_of(loop.body) else ""


def bytes_of(buffer: BufferVar) -> int:
    """Return the bytes of a buffer; 0 if its extents are not known."""
    return _bytes(nodes.element_type(buffer), nodes.shape_of(buffer))


def _bytes(dtype: str, extents: Sequence[Any]) -> int:
    """Return the bytes of elements; 0 for unknown extents, which transactions exclude."""
    counts = [nodes.as_int(n) for n in extents]
    return prod(counts) * DTYPES[dtype].bits // 8 if all(isinstance(n, int) for n in counts) else 0
