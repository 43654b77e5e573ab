"""The barrier ledger: proves that a schedule balances, for every trip count.

A schedule is executed for trip counts 0, 1, 2, ... with two threads of each role (the first one, and one for all
others) and copies that complete either at once or as late as possible. What happened before what is kept for every
event, as a set of events (L. Lamport, *Time, Clocks, and the Ordering of Events*): a fact that follows from this order
holds in every interleaving, not only in the executed one. Checked are

- arrivals and bytes: each goes to the phase of its iteration, and a phase ends with exactly those that belong to it;
- waits: when a wait for phase ``p`` begins, phase ``p - 1`` has ended, and phase ``p + 1`` does not end before the wait
  passes. Then a wait by parity neither passes early nor waits for ever;
- clusters: the blocks run side by side, each with objects and slots of its own; what one multicasts to another arrives
  in the phase of its iteration, and before the other one ends;
- slots: a slot holds its iteration's copies, complete and visible to the reading thread, and is not refilled before all
  reads of it;
- the end: no phase is begun, and no copy in flight.

Longer loops: if the state of all threads, barriers and slots at some iteration equals the state ``stages`` iterations
later, or a multiple of it, renumbered, then a loop with a larger trip count repeats what was executed.
"""

from __future__ import annotations

from functools import lru_cache

from tile_core.errors import Where
from tile_core.errors.ops import UnbalancedSchedule
from tile_core.records import dataclass
from tile_core.simt.pipelining.ledger_run import Run
from tile_core.simt.pipelining.ledger_state import Unbalanced
from tile_core.simt.pipelining.schedule import Arrive, Copy, Expect, Issue, Schedule, Use, WaitPhase


@dataclass(frozen=True)
class Imbalance:
    """Why a schedule is refused.

    Attributes
    ----------
    what
        The barrier, ring or group.
    trips
        The trip count at which it shows.
    reason
        What happens.
    """

    what: str
    trips: int
    reason: str


def require_balanced(schedule: Schedule, where: Where | None = None) -> None:
    """Refuse a schedule that does not balance.

    Raises
    ------
    UnbalancedSchedule
        With the barrier or ring and the trip count.
    """
    found = imbalance_of(schedule)
    if found is not None:
        facts = {"loop": schedule.loop, "what": found.what, "trips": found.trips, "reason": found.reason}
        raise UnbalancedSchedule(**facts, where=where)


@lru_cache(maxsize=256)
def imbalance_of(schedule: Schedule) -> Imbalance | None:
    """Return the imbalance at the least trip count; ``None`` if the schedule balances."""
    unknown = _unknown(schedule)
    if unknown is not None:
        return unknown
    depth = _most_in_flight(schedule)
    enough = 2 * schedule.stages + depth + 2
    longest = enough + _late(schedule)
    constant = schedule.trips
    counts = range(longest + 1) if constant is None or constant > longest else (constant,)
    # Only copies of transactions complete without a thread.
    orders = (True, False) if schedule.barriers else (True,)
    repeats = dict.fromkeys(orders, False)
    for trips in counts:
        for late in orders:
            keeps = trips >= enough and (longest - trips) % schedule.stages == 0 and len(counts) > 1
            try:
                run = Run(schedule, trips, late, keeps)
                run.go()
            except Unbalanced as found:
                return Imbalance(found.what, trips, found.reason)
            repeats[late] = keeps and _repeats(run, schedule.stages, trips - depth)
        if all(repeats.values()):
            return None
        if trips == longest and len(counts) > 1:
            return Imbalance(schedule.loop, trips, "its iterations do not repeat, so longer loops are not proven")
    return None


def _repeats(run: Run, stages: int, last: int) -> bool:
    """Whether two iterations ``stages`` apart have the same state, away from the loop's ends."""
    return any(
        run.states[t] == run.states[t + more] for more in range(stages, last, stages) for t in range(1, last - more)
    )


def _late(schedule: Schedule) -> int:
    """Return how many more iterations may pass before their state repeats.

    Slots become free an iteration later than possible, or when other blocks arrive too. A role is then at most
    ``stages - 1`` iterations in front of the others. The period of the pattern is the product of both numbers.
    """
    steps = [s for p in schedule.programs for s in p.iteration]
    late = schedule.blocks > 1 or any(isinstance(s, Arrive) and s.offset < 0 for s in steps)
    late = late and len(schedule.programs) > 1
    return schedule.stages * (schedule.stages - 1) if late else 0


def _most_in_flight(schedule: Schedule) -> int:
    """Return the maximum distance in iterations between a step and the last role."""
    if len(schedule.programs) > 1 or schedule.blocks > 1:
        return schedule.stages
    steps = [s for p in schedule.programs for s in p.iteration]
    return max((s.offset for s in steps if isinstance(s, (Issue, Expect, WaitPhase, Use))), default=0)


def _unknown(schedule: Schedule) -> Imbalance | None:
    """Return an undeclared name of a step, or a contradictory declaration."""
    groups, barriers = {g.name for g in schedule.groups}, {b.name for b in schedule.barriers}
    rings = {r.name for r in schedule.rings}
    roles = [p.role for p in schedule.programs]
    for i, role in enumerate(roles):
        for other in roles[:i]:
            if role.overlaps(other):
                return Imbalance(role.name, 0, f"it has threads of {other.name}")
    for group in schedule.groups:
        apart = next((c for c in group.copies if c.multicast and not _covers(c, schedule.blocks)), None)
        if apart is not None:
            return Imbalance(apart.ring, 0, "its multicast sets do not partition the cluster")
        missing = {c.ring for c in group.copies} - rings
        if missing:
            return Imbalance(min(missing), 0, f"{group.name} copies to it, which is not a ring")
        barrier = getattr(group.completion, "barrier", None)
        if barrier is not None and barrier not in barriers:
            return Imbalance(barrier, 0, f"{group.name} completes at it, which is not a barrier")
    for program in schedule.programs:
        for step in (*program.before, *program.iteration, *program.after):
            name = getattr(step, "barrier", None)
            if name is not None and name not in barriers:
                return Imbalance(name, 0, "it is named, which is not a barrier")
            if isinstance(step, Issue) and step.group not in groups:
                return Imbalance(step.group, 0, "it is issued, which is not a group")
    return None


def _covers(copy: Copy, blocks: int) -> bool:
    """Whether each block of the cluster is in one set and multicasts an equal share."""
    found = sorted(block for of in copy.multicast for block in of)
    return found == list(range(blocks)) and all(copy.bytes % len(of) == 0 for of in copy.multicast)
