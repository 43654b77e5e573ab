"""Execution of a block's barriers, see ``check_barriers``: who does what in which order, for some trip counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from tile_core.analysis.accesses import Access
from tile_core.analysis.flow import Flow
from tile_core.analysis.index_evaluation import Unknown, evaluate
from tile_core.analysis.periodicity import Advance, advance_of, common
from tile_core.analysis.phases import PhaseObject, Phases, Place
from tile_core.analysis.point import Point
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import calls, nodes
from tile_core.ir.visit import collect, role, substitute
from tile_core.ops.base import COUNTED
from tile_core.ops.wait_uses import PENDING
from tile_core.passes.roles import role_of

#: Loops of more trips are executed for as many as decide what follows.
FULL = 48
_STEPS = 200_000
#: Products that a wait can leave in flight, at most.
_MOST_PENDING = 8
WAIT = "wait_uses"


class Lost(Exception):
    """What a statement names cannot be followed: what it is."""

    def __init__(self, what: str, point: Point) -> None:
        super().__init__(what)
        self.what, self.point = what, point


@dataclass(frozen=True)
class Step:
    """A call on a barrier object.

    Attributes
    ----------
    name
        ``"arrive"``, ``"wait"``, ``"announce"`` or ``"copy"``.
    barrier, index
        The object.
    operand
        The parity or the bytes.
    """

    name: str
    barrier: BufferVar
    index: Expr
    operand: Expr | None = None


def step_of(s: Stmt) -> Step | None:
    """Return the call on a barrier object that a statement of a program is, if it is one."""
    call = s.value if isinstance(s, tirx.Evaluate) else None
    if call is None or not nodes.is_tile_call(call):
        return None
    name = str(call.op.name).removeprefix("tile.")
    if name in ("barrier_arrive", "barrier_wait", "barrier_announce"):
        place = call.args[0].args[0]
        operand = call.args[1] if len(call.args) > 1 else None
        return Step(name.removeprefix("barrier_"), place.source, place.indices[0], operand)
    counted = COUNTED.get(name)
    if counted is not None and len(call.args) > counted:
        to, at = call.args[counted - 1], call.args[counted]
        size = prod(int(nodes.as_int(r.extent)) for r in to.region) * DTYPES[nodes.element_type(to.source)].bits // 8
        return Step("copy", at.source, at.region[0].min, nodes.int_const(size))
    return None


@dataclass
class BlockSteps:
    """The statements of a block, and what about them is the same in each execution.

    Attributes
    ----------
    flow
        The program's flow, with the effects of tile ops.
    points
        The statements.
    threads
        Of the block.
    barriers
        Arrivals of the objects of each barrier.
    steps
        The calls on barrier objects.
    loops
        The points of loops around them.
    """

    flow: Flow
    points: Sequence[Point]
    threads: int
    barriers: Mapping[BufferVar, tuple[int, ...]]
    steps: dict[Point, Step] = field(default_factory=dict)
    loops: set[Point] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.every = [q for p in self.points for q in (p, *self.flow.inside(p))]
        for p in self.every:
            step = step_of(p.stmt)
            if step is not None:
                self.steps[p] = step
                self.loops.update(x for x in p.loops if any(x is q for q in self.every))
        self.announced = {s.barrier for s in self.steps.values() if s.name == "announce"}
        self.waits_for_products = any(
            nodes.is_tile_call(p.stmt.value, WAIT) for p in self.every if isinstance(p.stmt, tirx.Evaluate)
        )
        self.stepping = {q for p in self.steps for q in (p, *p.path)}
        with_steps = [n for n, p in enumerate(self.points) if p in self.stepping]
        self.span = range(with_steps[0], with_steps[-1] + 1) if with_steps else range(0)
        cuts = {0, self.threads}
        for p in self.every:
            if p.kind == "mark" and p.stmt.attr_key == calls.ONLY:
                first, count = (int(nodes.as_int(n)) for n in list(p.stmt.node)[1:3])
                cuts |= {first, first + count}
        edges = sorted(cuts)
        self.cuts = sorted(cuts | {e + 1 for e in edges[:-1]})
        self.teams = [b - a for a, b in zip(self.cuts, self.cuts[1:], strict=False)]
        self.variables = {b: nodes.fresh(str(b.name), nodes.element_type(b)) for b in self._scalars()}
        self.binds = {v: e for v, e in self.flow.binds.items() if not nodes.is_tile_call(e)}
        self._same: dict[tuple[Expr, Point], bool] = {}

    def _scalars(self) -> Iterator[BufferVar]:
        for p in self.every:
            if isinstance(p.stmt, tirx.AllocBuffer) and nodes.scope_of(p.stmt.buffer) == "local.var":
                yield p.stmt.buffer

    def threads_of(self, p: Point) -> list[int]:
        """Return the teams that execute a point."""
        found = role_of(p)
        first, count = (0, self.threads) if found is None else found
        return [n for n, cut in enumerate(self.cuts[:-1]) if first <= cut < first + count]

    def plain(self, e: Expr) -> Expr:
        """Return an expression with variables instead of what ``T.alloc_var`` holds."""

        def load(node: Expr) -> Expr:
            return self.variables.get(node.source, node)

        return structural.mapped(e, ir.TensorLoad, load) if self.variables else e

    def advances(self, loop: Point) -> Advance | None:
        """Return after how many trips of a loop all that decides about barriers repeats; ``None`` if unknown."""
        found = [self.advance(e, loop) for e in self.deciding(loop)]
        known = [a for a in found if a is not None and a.repeats]
        return common(known) if len(known) == len(found) else None

    def advance(self, e: Expr, loop: Point) -> Advance | None:
        """Return how an expression advances with a loop; loop variables begin at 0 or at another constant."""
        return advance_of(self.expanded(e), loop.stmt.loop_var)

    def same_each_period(self, e: Expr, loop: Point) -> bool:
        """Whether an expression repeats when a loop's barriers do."""
        key = (e, loop)
        if key not in self._same:
            found, whole = self.advance(e, loop), self.advances(loop)
            same = found is not None and found.repeats and whole is not None
            self._same[key] = bool(same and found and whole and whole.period % found.period == 0)
        return self._same[key]

    def expanded(self, e: Expr) -> Expr:
        """Return an expression with the values of bound variables."""
        for _ in range(len(self.binds)):
            used = {v: self.binds[v] for v in set(collect(e, tirx.Var)) if v in self.binds}
            if not used:
                break
            e = substitute(e, used)
        return self.plain(e)

    def deciding(self, loop: Point) -> Iterator[Expr]:
        """Yield the expressions in a loop that decide about barriers."""
        for p in self.flow.inside(loop):
            if p in self.steps:
                step = self.steps[p]
                yield from (step.index, *([] if step.operand is None else [step.operand]))
            elif p in self.stepping and p.kind in ("if", "for"):
                yield from p.own
            elif isinstance(p.stmt, tirx.BufferStore) and p.stmt.buffer in self.variables:
                yield p.stmt.value


class Execution:
    """One execution, for some trip counts.

    Parameters
    ----------
    counts
        Trip counts of loops whose bounds are no constants; of equal bounds for the first of them.

    Attributes
    ----------
    at
        The point that is executed.
    trips
        For each loop around it, the current trip and the count.
    settled
        For each long loop the trip that begins as an earlier one did: longer loops behave as shorter ones.
    """

    def __init__(self, block: BlockSteps, counts: Mapping[Point, int]) -> None:
        self.block, self.counts = block, counts
        objects = [
            (str(b.name) if len(n) == 1 else f"{b.name}[{i}]", count)
            for b, n in block.barriers.items()
            for i, count in enumerate(n)
        ]
        self.phases = Phases(block.teams, objects)
        starts, total = {}, 0
        for b, n in block.barriers.items():
            starts[b], total = total, total + len(n)
        self.starts = starts
        self.env: dict[Var, int] = {}
        #: What products read that the program has not waited for, and those of the latest ones.
        self.read: set[str] = set()
        self.latest: list[tuple[Point, tuple[tuple[str, Place], ...]]] = []
        self.at: Point | None = None
        self.trips: dict[Point, tuple[int, int]] = {}
        self.settled: dict[Point, int] = {}
        self.steps = 0

    def run(self) -> None:
        """Execute the block.

        Raises
        ------
        phases.PhaseError, Lost
            If a check fails; if what a statement names cannot be followed.
        """
        self.noting = False
        for n, p in enumerate(self.block.points):
            self.noting = n in self.block.span
            self.one(p)
        self.phases.finish()

    def one(self, p: Point) -> None:
        """Execute a statement."""
        self.at, self.steps = p, self.steps + 1
        if self.steps > _STEPS:
            raise Lost("these loops have too many different trip counts", p)
        if p in self.block.steps:
            self.step(p, self.block.steps[p])
        elif p.kind == "mark":
            self.all(p.parts[0])
        elif p not in self.block.stepping:
            self.other(p)
        elif p.kind == "for":
            self.loop(p)
        else:
            holds = self.value(p.stmt.condition, p, "the condition")
            for part in p.parts[:1] if holds else p.parts[1:]:
                self.all(part)

    def all(self, points: Sequence[Point]) -> None:
        """Execute statements in order."""
        for p in points:
            self.one(p)

    def loop(self, p: Point) -> None:
        """Execute a loop; where it is long, only until its trips repeat what has been, and then what is left over."""
        first = self.value(p.stmt.min, p, "the first value of the loop")
        if first < 0 or (p.stmt.step is not None and nodes.as_int(p.stmt.step) != 1):
            raise Lost(f"{p.stmt.loop_var} does not count up by one from 0 or more on", p)
        count = self.count(p)
        advance = self.block.advances(p) if p in self.counts or count > FULL else None
        if advance is None and (p in self.counts or count > FULL):
            raise Lost(f"what it does about barriers changes with {p.stmt.loop_var}", p)
        seen: dict[object, int] = {}
        trip, end = 0, count
        while trip < end:
            if advance is not None and trip >= advance.since:
                again = seen.setdefault((trip % advance.period, self.state()), trip)
                if again < trip:
                    end, advance = trip + (end - trip) % (trip - again), None
                    self.settled[p] = max(self.settled.get(p, 0), trip)
                    continue
                if trip > settled(advance):
                    loop = f"the loop {p.stmt.loop_var}"
                    raise Lost(f"trips of {loop} do not come to repeat what they do about barriers", p)
            self.env[p.stmt.loop_var] = first + trip
            self.trips[p] = (trip, count)
            self.all(p.parts[0])
            trip += 1
        self.at = p
        self.trips.pop(p, None)
        self.env.pop(p.stmt.loop_var, None)

    def count(self, p: Point) -> int:
        """Return the trip count of a loop with barriers."""
        if p in self.counts:
            return self.counts[p]
        return max(0, self.value(p.stmt.extent, p, "the trip count"))

    def state(self) -> object:
        """Return what decides what follows."""
        values = tuple((str(b.name), self.env.get(v)) for b, v in self.block.variables.items())
        return self.phases.state(), values, frozenset(self.read), tuple(read for _, read in self.latest)

    def step(self, p: Point, step: Step) -> None:
        """Execute a call on a barrier object."""
        teams, barrier = self.block.threads_of(p), self.target(p, step)
        operand = 0 if step.operand is None else self.value(step.operand, p, "the parity")
        if step.name == "arrive":
            self.phases.arrive(teams, barrier)
        elif step.name == "wait":
            self.phases.wait(teams, barrier, operand)
        elif step.name == "announce":
            self.phases.announce(teams[0], barrier, operand)
        else:
            written = next(a for a in self.block.flow.accesses_at(p) if a.write)
            if str(self.buffer(written).name) in self.read:
                self.phases.unordered.add(str(self.buffer(written).name))
            if step.barrier not in self.block.announced:
                self.phases.announce(teams[0], barrier, operand)
            self.phases.copy(teams[0], barrier, operand, str(self.buffer(written).name), self.place(written))

    def target(self, p: Point, step: Step) -> PhaseObject:
        """Return the object of a call."""
        index, count = self.value(step.index, p, "the barrier"), len(self.block.barriers[step.barrier])
        if not 0 <= index < count:
            raise Lost(f"{step.barrier.name}[{index}] is none of its {count} objects", p)
        return self.phases.barriers[self.starts[step.barrier] + index]

    def value(self, e: Expr, p: Point, what: str) -> int:
        """Return the value of an expression."""
        try:
            return int(evaluate(self.block.plain(e), self.env))
        except Unknown:
            raise Lost(f"{what} is no arithmetic on constants and loop variables", p) from None

    # Statements without barriers

    def other(self, p: Point) -> None:
        """Execute a statement inside which there are no barriers."""
        s, teams = p.stmt, self.block.threads_of(p)
        if isinstance(s, tirx.Evaluate) and nodes.is_tile_call(s.value, "sync_threads"):
            self.phases.meet(teams)
        elif isinstance(s, tirx.Evaluate) and nodes.is_tile_call(s.value, "sync_part"):
            if nodes.as_int(s.value.args[1]) == sum(self.block.teams[t] for t in teams):
                self.phases.meet(teams)
        elif p.kind == "plain" or (p.kind == "for" and role(s) in ("parallel", "vectorized")):
            self.accesses(p, teams)
            self.assign(p)
            if self.block.waits_for_products:
                self.products(p)
        elif p.kind in ("for", "while"):
            for _ in range(2):
                self.accesses(p, teams, whole=False)
                self.all(p.parts[0])
            self.forget(p)
        elif p.kind == "if":
            self.accesses(p, teams, whole=False)
            for part in p.parts:
                self.all(part)
            self.forget(p)

    def accesses(self, p: Point, teams: Sequence[int], whole: bool = True) -> None:
        """Note what a statement, or only what it evaluates itself, reads and then writes of shared memory."""
        if not self.noting:
            return
        found = [a for q in (p, *(self.block.flow.inside(p) if whole else ())) for a in self.block.flow.accesses_at(q)]
        mine = [a for a in found if nodes.scope_of(self.buffer(a)) == "shared"]
        places = {(str(self.buffer(a).name), self.place(a), a.write): None for a in mine}
        for write in (False, True):
            for buffer, place, writes in places:
                if writes == write:
                    self.phases.access(teams, buffer, place, write)
                if writes and buffer in self.read:
                    self.phases.unordered.add(buffer)

    def products(self, p: Point) -> None:
        """Note a product, which may go on until the program waits for it, or such a wait: products read until then."""
        call = p.stmt.value if isinstance(p.stmt, tirx.Evaluate) else None
        if call is not None and nodes.is_tile_call(call, "gemm"):
            found = [a for a in self.block.flow.accesses_at(p) if not a.write]
            mine = [a for a in found if nodes.scope_of(self.buffer(a)) == "shared"]
            self.latest.append((p, tuple((str(self.buffer(a).name), self.place(a)) for a in mine)))
            self.read |= {name for name, _ in self.latest[-1][1]}
            for _, read in self.latest[:-_MOST_PENDING]:
                self.phases.unordered |= {name for name, _ in read}  # too many to follow
            self.latest = self.latest[-_MOST_PENDING:]
        elif call is not None and nodes.is_tile_call(call, WAIT):
            pending = int(nodes.as_int(call.attrs[PENDING]))
            ended = self.latest[: len(self.latest) - pending]
            self.latest = self.latest[len(ended) :]
            for product, read in ended:
                for name, place in read:
                    self.phases.access(self.block.threads_of(product), name, place, False)
            self.read = {name for _, read in self.latest for name, _ in read}

    def buffer(self, a: Access) -> BufferVar:
        """Return the buffer whose memory is accessed."""
        return self.block.flow.root(a.buffer)

    def place(self, a: Access) -> Place:
        """Return which part of a buffer is accessed, where that is known in each trip."""
        if a.buffer is not self.buffer(a) and not a.buffer.same_as(self.buffer(a)):
            return ()
        extents = [1] * len(a.indices) if a.extents is None else list(a.extents)
        return tuple(self.side(a, i, n) for i, n in zip(a.indices, extents, strict=True))

    def side(self, a: Access, index: Expr, extent: object) -> tuple[int, int] | None:
        """Return first element and extent in one dimension."""
        if not isinstance(extent, int):
            return None
        long = (loop for loop in self.trips if loop in self.counts or self.trips[loop][1] > FULL)
        if not all(self.block.same_each_period(index, loop) for loop in long):
            return None
        try:
            return int(evaluate(self.block.plain(index), self.env)), extent
        except Unknown:
            return None

    def assign(self, p: Point) -> None:
        """Note the value of a variable."""
        s = p.stmt
        var = s.var if isinstance(s, tirx.Bind) else None
        if isinstance(s, tirx.BufferStore):
            var = self.block.variables.get(s.buffer)
        if var is None:
            return
        try:
            self.env[var] = int(evaluate(self.block.plain(s.value), self.env))
        except Unknown:
            self.env.pop(var, None)

    def forget(self, p: Point) -> None:
        """Forget the values of variables that a statement may have changed."""
        for q in self.block.flow.inside(p):
            if isinstance(q.stmt, tirx.BufferStore) and q.stmt.buffer in self.block.variables:
                self.env.pop(self.block.variables[q.stmt.buffer], None)


def settled(advance: Advance) -> int:
    """Return the number of trips after which states have come again, in loops whose phases follow their trips."""
    return advance.since + 6 * advance.period + 12
