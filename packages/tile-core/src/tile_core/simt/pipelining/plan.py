"""Plans of pipelined loops: which copies run ahead, and the schedule that results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from tile_core.compat.types import BufferVar, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import annotation
from tile_core.layout.base import LayoutMap
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall
from tile_core.simt.pipelining.dependences import Analysis, Candidate
from tile_core.simt.pipelining.lasting import Product
from tile_core.simt.pipelining.schedule import (
    Commit,
    Copy,
    CopyGroup,
    CountedGroups,
    Expect,
    InPlace,
    Issue,
    PhaseBarrier,
    Ring,
    RoleProgram,
    Schedule,
    Step,
    Sync,
    Transactions,
    Use,
    WaitGroups,
    WaitPhase,
    WaitUses,
)
from tile_core.simt.role import Role

CanCopy = Callable[[OpCall], "Accept | Reject | bool"]

#: Fact of an accepted copy: how it completes, ``GROUP`` (by default), ``TRANSACTIONS``, ``PLACE``, or, if all copies of
#: a loop can go through registers (``staging.py``), ``REGISTERS``.
COMPLETION = "completion"
GROUP, TRANSACTIONS, PLACE, REGISTERS = "group", "transactions", "place", "registers"
#: Facts of an accepted copy: the layout that it needs of its buffer, and the alignment of its slots in bytes.
LAYOUT, ALIGN = "layout", "align"
#: Attribute of the copy that ``can_copy`` is asked about: the layout that the user annotated its buffer with, if any.
ASKED_LAYOUT = "asked_layout"

_PLANNED = (COMPLETION, LAYOUT, ALIGN)

_BARRIER = "arrived"


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
        The product that lasts beyond its trip, if one does.
    """

    loop: Any
    schedule: Schedule
    copies: Mapping[str, Sequence[Candidate]]
    binds: Sequence[int]
    rings: Mapping[Any, BufferVar]
    facts: Mapping[Any, Mapping[str, Any]]
    slots: Mapping[Any, LayoutMap] = field(default_factory=dict)
    product: Product | None = None

    @property
    def moved(self) -> set[int]:
        """Positions of the copies in the loop's body."""
        return {c.position for group in self.copies.values() for c in group}


@dataclass(frozen=True)
class CopiesAhead:
    """Which copies of a loop run ahead.

    Attributes
    ----------
    chosen
        Those, in order.
    kept
        Other copies from global to shared memory: (name of the buffer, why it is not moved).
    facts
        By buffer what the target says about its copy.
    notes
        What it says about the way of a copy that runs ahead: (name of the buffer, note).
    """

    chosen: Sequence[Candidate]
    kept: tuple[tuple[str, str], ...]
    facts: Mapping[Any, Mapping[str, Any]]
    notes: tuple[tuple[str, str], ...] = ()


def choose(
    analysis: Analysis, original: Stmt, loop: Stmt, can_copy: CanCopy, safe_values: Collection[str]
) -> CopiesAhead:
    """Return which copies of a loop run ahead, and why others do not.

    Parameters
    ----------
    original
        The loop as it was when the program was analysed.
    """
    chosen: list[Candidate] = []
    kept: list[tuple[str, str]] = []
    facts: dict[Any, Mapping[str, Any]] = {}
    notes: list[tuple[str, str]] = []
    for candidate in analysis.candidates(loop):
        reason = candidate.reason or analysis.keeps(candidate.buffer, original)
        if not reason and candidate.source_name in safe_values:
            reason = f"reads outside of {candidate.source_name} do not give zero"
        if not reason:
            answer = can_copy(candidate.call)
            if isinstance(answer, Accept):
                facts[candidate.buffer] = answer.facts
                notes += [(str(candidate.buffer.name), answer.note)] if answer.note else []
            elif isinstance(answer, Reject):
                reason = answer.reason
            elif not answer:
                reason = "the target cannot make it asynchronous"
        if reason:
            kept.append((str(candidate.buffer.name), reason))
        else:
            chosen.append(candidate)
    kept += [(name, "it stands under a condition or in an inner loop") for name in analysis.elsewhere(loop)]
    return CopiesAhead(chosen, tuple(kept), facts, tuple(notes))


def plan_loop(
    loop: Stmt,
    choice: CopiesAhead,
    binds: Sequence[int],
    rings: Mapping[Any, BufferVar],
    threads: int,
    name: Callable[[str], str],
    product: Product | None = None,
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
        The product that lasts beyond its trip, if one does.
    """
    block = Role("the block", 0, threads)
    copies: dict[str, list[Candidate]] = {}
    for candidate in choice.chosen:
        kind = str(choice.facts.get(candidate.buffer, {}).get(COMPLETION, GROUP))
        copies.setdefault(kind, []).append(candidate)
    stages, trips = stages_of(loop), nodes.as_int(loop.extent)
    made = {str(b.name): Ring(str(r.name), _bytes(nodes.element_type(b), nodes.shape_of(b))) for b, r in rings.items()}
    barrier = PhaseBarrier(name(f"{loop.loop_var.name}_{_BARRIER}"), 1) if TRANSACTIONS in copies else None
    barriers = () if barrier is None else (barrier,)
    groups = []
    for kind, members in copies.items():
        moved = tuple(
            Copy(c.source_name, made[str(c.buffer.name)].name, _bytes(c.call.args[1].dtype, c.call.args[1].extents))
            for c in members
        )
        if kind == TRANSACTIONS and barrier is not None:
            groups.append(CopyGroup(kind, moved, block.leader, Transactions(barrier.name)))
        else:
            groups.append(CopyGroup(kind, moved, block, InPlace() if kind == PLACE else CountedGroups()))
    program = (_uniform if product is None else _lasting)(block, stages, tuple(groups))
    number = trips if isinstance(trips, int) else None
    facts = (str(loop.loop_var.name), stages, number, tuple(made.values()), tuple(groups), (program,), barriers)
    attributes = {b: {k: v for k, v in f.items() if k not in _PLANNED} for b, f in choice.facts.items()}
    slots = {rings[b]: f[LAYOUT] for b, f in choice.facts.items() if LAYOUT in f}
    return LoopPlan(loop, Schedule(*facts), copies, binds, rings, attributes, slots, product)


def stages_of(loop: Stmt) -> int:
    """Return the slots of a loop: as many as the program asks for, and no more than it has trips."""
    trips, stages = nodes.as_int(loop.extent), int(annotation(loop, nodes.STAGES))
    return min(stages, trips) if isinstance(trips, int) else stages


def _uniform(block: Role, stages: int, groups: tuple[CopyGroup, ...]) -> RoleProgram:
    """Return the steps of a block whose threads do all things together.

    The copies of trip ``stages - 1`` ahead go to the slot of the trip before: the barrier of the block after the waits
    says both that all threads' copies are there and that nobody reads that slot any more.
    """
    before = tuple(step for turn in range(stages - 1) for step in _issue(groups, turn))
    after: tuple[Step, ...] = (WaitGroups(0), Sync()) if _counted(groups) else (Sync(),)
    return RoleProgram(block, before, (*_waits(groups, stages), Sync(), *_issue(groups, stages - 1), Use()), after)


def _lasting(block: Role, stages: int, groups: tuple[CopyGroup, ...]) -> RoleProgram:
    """Return the steps of such a block if the use of a trip lasts until that of the next trip has begun.

    A trip begins its use before it waits for the one before: the units that compute always have work. Only then is the
    slot of the trip before free, and the barrier of the block behind that wait says so to all threads.
    """
    before = tuple(step for turn in range(stages - 1) for step in _issue(groups, turn))
    arrived = () if all(isinstance(g.completion, Transactions) for g in groups) else (Sync(),)
    trip = (*_waits(groups, stages), *arrived, Use(lasts=True), WaitUses(1), Sync(), *_issue(groups, stages - 1))
    rest: tuple[Step, ...] = (WaitGroups(0), Sync()) if _counted(groups) else (Sync(),)
    return RoleProgram(block, (*before, WaitUses(0)), trip, (WaitUses(0), *rest))


def _issue(groups: tuple[CopyGroup, ...], ahead: int) -> tuple[Step, ...]:
    """Return the steps that begin the copies of a trip."""
    steps: list[Step] = []
    for group in groups:
        if isinstance(group.completion, Transactions):
            steps.append(Expect(group.completion.barrier, group.bytes, ahead))
        steps.append(Issue(group.name, ahead))
    return (*steps, Commit()) if _counted(groups) else tuple(steps)


def _waits(groups: tuple[CopyGroup, ...], stages: int) -> tuple[Step, ...]:
    """Return the steps that wait for the copies of the current trip."""
    counted = (WaitGroups(stages - 2),) if _counted(groups) else ()
    return (*counted, *(WaitPhase(g.completion.barrier) for g in groups if isinstance(g.completion, Transactions)))


def _counted(groups: tuple[CopyGroup, ...]) -> bool:
    return any(isinstance(g.completion, CountedGroups) for g in groups)


def _bytes(dtype: str, extents: Sequence[Any]) -> int:
    """Return the bytes of elements; of unknown extents, which no transaction has, 0."""
    counts = [nodes.as_int(n) for n in extents]
    return prod(counts) * DTYPES[dtype].bits // 8 if all(isinstance(n, int) for n in counts) else 0
