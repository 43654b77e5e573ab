"""Where the threads of a block must wait for each other.

A per-thread program has the semantics of lock step: a statement sees the effects of all threads before it. Two accesses
to one byte by different threads, at least one of them a write, need a barrier between them; atomic updates of a buffer
need none among themselves. Barriers are placed as late as possible, before the statement that needs them, and before a
loop or branch rather than inside it where that suffices. Global memory is ordered where all threads pass; in divergent
code each thread orders only its own accesses. Tiles of one persistent block are not ordered there.

A divergent branch cannot contain a barrier. It is split: its condition is saved, and the parts before and after the
barrier are each guarded by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.errors import Where
from tile_core.errors.ops import DivergentBarrier, NotWaitedFor
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import annotation
from tile_core.records import dataclass
from tile_core.simt.barriers.branch_splitting import BarrierWriter
from tile_core.simt.barriers.disjointness import Owners
from tile_core.simt.barriers.program_points import (
    FENCE_GLOBAL,
    FENCE_INIT,
    FENCE_PROXY,
    Points,
    ProgramPoint,
    with_bounds_bound,
)
from tile_core.simt.barriers.shared_accesses import ByteRange, SharedAccess
from tile_core.simt.role_threads import role_of
from tile_core.simt.variant import Block

State = frozenset[SharedAccess]
_NOTHING: State = frozenset()


@dataclass(frozen=True)
class PlacedBarrier:
    """A barrier that was placed.

    Attributes
    ----------
    source, sink
        The buffers of the accesses that it orders.
    hazard
        ``"write, read"``, ``"read, write"`` or ``"write, write"``: the accesses before and after it.
    where
        The line of the statement that it precedes.
    after
        The line of the earlier access.
    role
        The name of the threads that wait, if they are a part of the block's.
    """

    source: str
    sink: str
    hazard: str
    where: Where | None = None
    after: Where | None = None
    role: str = ""


def insert_barriers(body: Stmt, block: Block | None = None) -> tuple[Any, tuple[PlacedBarrier, ...]]:
    """Return the body with the required barriers, and the reason for each.

    Parameters
    ----------
    body
        The per-thread program. Shared buffers that overlap in the arena (``tile.offset``) depend on each other.
    block
        The threads; if given, a thread that accesses its own elements again needs no barrier.

    Raises
    ------
    DivergentBarrier
        If a barrier would be needed where not all threads arrive, or where they arrive a different number of times.
    """
    seeds = [] if block is None or block.thread is None else [block.thread]
    bound = with_bounds_bound(body)
    varying = Varying(bound, seeds)
    points = Points(varying)
    program = points.of(varying.flow.top)
    accesses = points.accesses
    flow = _Flow(Owners(block, varying, points.bounds), accesses.asynchronous, [*accesses.memory.values()])
    flow.run(program, _NOTHING)
    roles = [p for p in varying.flow.points if p.kind == "mark" and p.is_role()]
    if not flow.count and bound.same_as(body) and not roles:
        return body, ()
    return BarrierWriter(block).whole(program), tuple(flow.report)


class _Flow:
    """Data-flow analysis of the accesses since the last barrier (the pending set), which places barriers.

    The pending set only grows between barriers, and barriers are never removed, so iterating over a loop reaches a
    fixed point.
    """

    def __init__(self, owners: Owners, asynchronous: bool, ranges: Sequence[ByteRange]) -> None:
        self.owners, self.asynchronous, self.ranges = owners, asynchronous, ranges
        self.near: dict[int, set[int]] = {}
        self.count = 0
        self.report: list[PlacedBarrier] = []
        self.known: dict[tuple[int, int, bool], bool] = {}
        self.objects: dict[int, bool] = {}
        self.kept: list[SharedAccess] = []
        self.left: list[list[State]] = []
        self.again: list[list[tuple[ProgramPoint, State]]] = []
        self.parted = 0

    # Conflicts

    def conflict(
        self, pending: Iterable[SharedAccess], mine: Iterable[SharedAccess]
    ) -> tuple[SharedAccess, SharedAccess] | None:
        """Return a pair of accesses that need a barrier between them."""
        close = [(b, self.near.get(id(b.memory)) or self.overlapping(b.memory)) for b in mine]
        if not close:
            return None
        if self.asynchronous:
            # What is in flight comes first: a barrier, which any other pair requires, does not end it.
            pending = list(pending)
            pending = [a for a in pending if a.until is not None] + [a for a in pending if a.until is None]
        for a in pending:
            must, memory = a.write and not a.seen, id(a.memory)
            for b, near in close:
                if not (must or b.write) or memory not in near:
                    continue
                depends = self.known.get((id(a), id(b), self.parted > 0))
                if self.depend(a, b) if depends is None else depends:
                    if a.until is not None and a.store is None:
                        raise _in_flight(a, b)
                    if a.store is not None or (a.synced is None and not a.settled):
                        return a, b
        return None

    def conflict_at(self, p: ProgramPoint, state: State) -> tuple[SharedAccess, SharedAccess] | None:
        """Return a pending access and one of a point that need a barrier between them."""
        clear = p.clear[self.parted > 0]
        fresh = state - clear
        pair = self.conflict(fresh, [*p.reads, *p.writes]) if fresh else None
        if pair is None:
            clear |= fresh
        return pair

    def fence(self, state: State, mine: Iterable[SharedAccess]) -> None:
        """Insert proxy fences between writes of threads and asynchronous accesses after a barrier."""
        theirs = [b for b in mine if b.proxy]
        if not theirs:
            return
        for a in state:
            if a.synced is None:
                continue
            near = self.overlapping(a.memory)
            for b in theirs:
                depends = id(b.memory) in near and self.known.get((id(a), id(b), self.parted > 0))
                if not (self.depend(a, b) if depends is None else depends):
                    continue
                # Where the memory of objects is another tile's by now, no fence of objects makes their end known.
                objects = b.atomic and self.on_objects(a)
                kind = FENCE_INIT if objects else FENCE_PROXY if a.shared else FENCE_GLOBAL
                if kind not in a.synced.fences:
                    a.synced.fences.append(kind)
                    self.count += 1

    def on_objects(self, a: SharedAccess) -> bool:
        """Whether an access writes barrier objects; a dropped one is initialized before its next use."""
        if id(a) not in self.objects:
            name = nodes.operator_name(a.stmt.value) if type(a.stmt) is tirx.Evaluate else ""
            self.objects[id(a)] = name in ("tile.barrier_init", "tile.barrier_drop")
            self.kept.append(a)
        return self.objects[id(a)]

    def drain(self, p: ProgramPoint, a: SharedAccess) -> None:
        """Insert a thread's wait for its copies out of shared memory before a barrier."""
        if a.store is not None:
            stored = a.store.name == calls.UNTIL_STORED
            if p.drains.get(a.store.issuer) not in (stored, True):
                p.drains[a.store.issuer] = stored
                self.count += 1

    def drain_all(self, state: State, p: ProgramPoint, mine: Iterable[SharedAccess]) -> None:
        """Insert the waits before an existing barrier; refuse accesses without a wait."""
        mine = list(mine)
        for a in state:
            if a.until is not None and self.conflict([a], mine) is not None:
                self.drain(p, a)

    def met(self, state: State, p: ProgramPoint | None) -> State:
        """Return the accesses pending after a barrier: those in flight, and unfenced writes of threads.

        After a barrier of a role all of them, for the other threads.
        """
        if p is not None and p.drains:
            state = frozenset(a.drained(p.drains) for a in state)
        if p is not None and p.role is not None:
            return frozenset(a.met_in_role(p, self.asynchronous) for a in state)
        if not self.asynchronous:
            return _NOTHING
        left = (a.met(p) if p is not None or a.until is not None else None for a in state)
        return frozenset(a for a in left if a is not None)

    def overlapping(self, memory: ByteRange) -> set[int]:
        """Return the identities of the byte ranges that overlap one."""
        found = self.near.get(id(memory))
        if found is None:
            found = self.near[id(memory)] = {id(other) for other in self.ranges if memory.overlaps(other)}
        return found

    def depend(self, a: SharedAccess, b: SharedAccess) -> bool:
        key = (id(a), id(b), self.parted > 0)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._depend(a, b)
            self.kept += [a, b]
        return found

    def _depend(self, a: SharedAccess, b: SharedAccess) -> bool:
        if a.atomic and b.atomic and a.buffer.same_as(b.buffer):
            return False
        if a.region is not None and b.region is not None and a.region.same_as(b.region):
            return False
        if a.beside(b):
            return False
        if self.parted and (not (a.shared or b.shared) or (a.write and b.write and a.stmt.same_as(b.stmt))):
            return False
        return not self.owners.apart(a, b)

    def insert(self, p: ProgramPoint, pair: tuple[SharedAccess, SharedAccess], field: str = "meet") -> None:
        """Insert a barrier at a point."""
        where = nodes.where_of(p.stmt)
        if self.parted:
            raise DivergentBarrier(what="a loop whose threads meet inside", where=where)
        setattr(p, field, True)
        self.drain(p, pair[0])
        self.count += 1
        hazard = ", ".join("write" if a.write else "read" for a in pair)
        after = nodes.where_of(pair[0].stmt)
        source, sink = (str(a.buffer.name) for a in pair)
        role = "" if p.role is None else role_of(p.role).name
        self.report.append(PlacedBarrier(source, sink, hazard, where, after, role))

    # Points in order

    def run(self, points: list[ProgramPoint], state: State) -> State:
        """Return the pending accesses after the points."""
        for p in points:
            state = self.step(p, state)
        return state

    def step(self, p: ProgramPoint, state: State) -> State:
        if p.kind == "sync":
            return self.met(state, p)
        if p.kind in ("break", "continue"):
            return self.jump(p, state)
        if p.kind == "grid":
            for a in self.run(p.parts[0], _NOTHING):
                if a.store is not None and a.store.name == calls.UNTIL_READ:
                    self.drain(p, a)  # shared memory lasts as long as the block
                if a.until is not None and a.until.name == calls.UNTIL_GROUP:
                    raise _in_flight(a, a, "given up at the end of the block")
            return _NOTHING
        if p.meet or p.reads or p.writes:
            state = self.arrive(p, state)
        if p.kind == "mark":
            inside = self.run(p.parts[0], state)
            return frozenset(a.outside(p.stmt) for a in inside)
        if p.kind == "role":
            state = self.enter(p, state)
            if self.asynchronous:
                self.fence(state, [a for q in p.all() for a in (*q.reads, *q.writes)])
            return state | {a.left_role() for a in self.run(p.parts[0], _NOTHING)}
        if p.kind == "for":
            return self.loop(p, state)
        if p.kind == "while":
            return self.around(p, state, self.rounds)[0]
        if p.kind == "if":
            return self.branch(p, state)
        return self.plain(p, state)

    def arrive(self, p: ProgramPoint, state: State) -> State:
        """Return the pending accesses at the start of a point, after any barrier before it."""
        if not p.meet:
            pair = self.conflict_at(p, state) if p.kind != "while" else None
            if pair is not None:
                self.insert(p, pair)
        if p.meet:
            self.drain_all(state, p, [*p.reads, *p.writes])
            state = self.met(state, p)
        if self.asynchronous:
            self.fence(state, [*p.reads, *p.writes])
        return state

    def plain(self, p: ProgramPoint, state: State) -> State:
        if not p.between and p.reads and _can_split(p.stmt):
            pair = self.conflict([a for a in p.reads if a.shared], [a for a in p.writes if a.shared])
            if pair is not None:
                self.insert(p, pair, "between")
        if p.between:
            return self.met(state, p if p.role is not None else None) | frozenset(p.writes)
        if p.waits is not None or p.commits:
            state = p.passed(state)
        return state | frozenset(p.reads) | frozenset(p.writes)

    def jump(self, p: ProgramPoint, state: State) -> State:
        if p.kind == "continue":
            if p.meet:
                state = self.met(state, p)
            self.again[-1].append((p, state))
        else:
            self.left[-1].append(state)
        return _NOTHING

    def branch(self, p: ProgramPoint, state: State) -> State:
        reads = frozenset(p.reads)
        if not p.varying:
            sides = [self.run(part, state | reads) for part in p.parts]
            return frozenset().union(*sides, *([state | reads] if len(sides) == 1 else []))
        # Threads on one side run before those on the other.
        self.sides(p, reads)
        state = self.enter(p, state)
        return self.sides(p, state | reads)

    def sides(self, p: ProgramPoint, state: State) -> State:
        for part in p.parts:
            state = state | self.run(part, state) if not _meets(part) else self.run(part, state)
        return state

    def loop(self, p: ProgramPoint, state: State) -> State:
        after, state = self.around(p, state, self.circle)
        return after if _at_least_once(p.stmt) else after | state

    def around(self, p: ProgramPoint, state: State, go: Callable[[ProgramPoint, State], State]) -> tuple[State, State]:
        """Insert the barriers in and before a loop; return the accesses pending after it."""
        self.parted += p.varying
        go(p, _NOTHING)
        self.parted -= p.varying
        state = self.enter(p, state)
        self.parted += p.varying
        after = go(p, state)
        self.parted -= p.varying
        return after, state

    def circle(self, p: ProgramPoint, state: State) -> State:
        """Return the pending set of a loop, iterated to its fixed point."""
        bounds = self.owners.bounds.get(p.stmt.loop_var)
        carried: State = _NOTHING
        while True:
            count = self.count
            out, left, again = self.body(p, state | carried)
            ends = [out, *(s for _, s in again)]
            new = _past(frozenset().union(*ends), p, bounds)
            after = frozenset([a for a in new if a.shared]) if annotation(p.stmt, attributes.OVER_BLOCKS) else new
            if self.count != count:
                carried = _NOTHING
            elif after <= carried:
                return frozenset().union(new, *(_past(s, p, bounds) for s in left))
            else:
                carried |= after

    def body(self, p: ProgramPoint, state: State) -> tuple[State, list[State], list[tuple[ProgramPoint, State]]]:
        self.left.append([])
        self.again.append([])
        out = self.run(p.parts[0], state)
        return out, self.left.pop(), self.again.pop()

    def rounds(self, p: ProgramPoint, state: State) -> State:
        """Iterate over a ``while`` loop to the fixed point of the pending set."""
        reads, carried = frozenset(p.reads), _NOTHING
        while True:
            count = self.count
            out, left, again = self.body(p, state | carried | reads)
            for q, pending in [*again, (p, _NOTHING if p.end else out)]:
                pair = self.conflict(_past(pending, p, None), p.reads)
                if pair is not None:
                    self.insert(q, pair, "end" if q is p else "meet")
            new = _past(frozenset().union(_NOTHING if p.end else out, *(s for _, s in again)), p, None)
            if self.count != count:
                carried = _NOTHING
            elif new <= carried:
                return frozenset().union(state, carried, reads, *(_past(s, p, None) for s in left))
            else:
                carried |= new

    # Accesses pending from outside

    def enter(self, p: ProgramPoint, state: State) -> State:
        """Return the pending accesses on entry to a compound statement, after its barrier, if any."""
        own = p.reads if p.kind == "while" else []
        inside = [p] if p.kind == "role" else [q for part in p.parts for q in part]

        def needs(state: State) -> tuple[SharedAccess, SharedAccess] | None:
            return self.conflict(state, own) or self.probe(inside, state)[0]

        if not p.meet:
            pair = needs(state)
            if pair is None:
                return state
            self.insert(p, pair)
        for a in state:
            if a.store is not None and needs(frozenset([a])) is not None:
                self.drain(p, a)
        return self.met(state, p)

    def probe(self, points: list[ProgramPoint], state: State) -> tuple[tuple[SharedAccess, SharedAccess] | None, State]:
        """Return a conflict of a pending access inside a statement, and the remaining pending set."""
        for p in points:
            if not state:
                break
            if p.kind == "role":
                pair = self.conflict(state, [a for q in p.all() for a in (*q.reads, *q.writes)])
                if pair is not None:
                    return pair, state
                continue
            if p.kind == "sync" or p.meet:
                state = self.met(state, p)
                continue
            pair = self.conflict_at(p, state) if p.reads or p.writes else None
            if pair is not None:
                return pair, state
            if p.between:
                state = self.met(state, p if p.role is not None else None)
            if p.waits is not None or p.commits:
                state = p.passed(state)
            ends = []
            for part in p.parts:
                pair, end = self.probe(part, state)
                if pair is not None:
                    return pair, state
                ends.append(end)
                if p.kind == "if" and p.varying:
                    state = end
            if p.kind == "if" and not p.varying and len(ends) == 2:
                state = ends[0] | ends[1]
            elif p.kind in ("mark", "grid") or (p.kind == "for" and _at_least_once(p.stmt)):
                state = ends[0]
        return None, state


def _past(state: State, p: ProgramPoint, bounds: tuple[int, int] | None) -> State:
    """Return the pending set without an iteration's values, as seen after it."""
    var = p.stmt.loop_var if p.kind == "for" else p
    return frozenset([a.moved.get(p) or a.past(p, var, bounds, p.opaque) for a in state])


def _in_flight(a: SharedAccess, b: SharedAccess, action: str = "") -> NotWaitedFor:
    line = nodes.where_of(a.stmt)
    return NotWaitedFor(
        buffer=str(b.buffer.name), action=action or ("written here" if b.write else "read here"),
        flight="write" if a.write else "read", line="?" if line is None else line.line, where=nodes.where_of(b.stmt),
    )  # fmt: skip


def _can_split(s: Stmt) -> bool:
    return type(s) is tirx.BufferStore or (type(s) is tirx.Evaluate and nodes.is_tile_call(s.value, "move"))


def _meets(part: list[ProgramPoint]) -> bool:
    return any(p.meet or p.between or p.kind == "sync" or p.split for p in part)


def _at_least_once(s: Stmt) -> bool:
    extent = nodes.as_int(s.extent)
    return isinstance(extent, int) and extent > 0
