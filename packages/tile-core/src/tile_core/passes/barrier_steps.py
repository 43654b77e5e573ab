"""Execution of a block's barrier calls for given trip counts, see ``check_barriers``.

The blocks of a cluster are executed together, one statement after another: that too is one of the orders in which they
may run.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import prod

from tile_core.analysis.accesses import Access
from tile_core.analysis.index_evaluation import Unknown, evaluate
from tile_core.analysis.periodicity import Advance
from tile_core.analysis.phases import Location, PhaseError, PhaseObject, Phases
from tile_core.analysis.point import Point
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import role
from tile_core.ops.base import COMPLETED, OpCall, View
from tile_core.passes.barrier_block import FULL, WAIT, BlockSteps, Lost, Step

_STEPS = 200_000
_OPERANDS = {"wait": "the parity", "announce": "the bytes", "copy": "the bytes"}
#: Products that a wait can leave in flight, at most.
_MOST_PENDING = 8


class Execution:
    """One execution, for some trip counts.

    Parameters
    ----------
    counts
        Trip counts of loops without constant bounds; of equal bounds for the first of them.

    Attributes
    ----------
    at
        The point that is executed.
    trips
        For each loop around it, the current iteration and the trip count.
    settled
        For each long loop the iteration whose state repeats an earlier one: longer loops behave as shorter ones.
    rank
        The block of the cluster that executes it.
    """

    def __init__(self, block: BlockSteps, counts: Mapping[Point, int]) -> None:
        self.block, self.counts = block, counts
        self.ranks: Sequence[int] = range(prod(block.cluster.cluster))
        objects = [
            ((str(b.name) if len(n) == 1 else f"{b.name}[{i}]") + (f" of block {r}" if r else ""), count)
            for r in self.ranks
            for b, n in block.barriers.items()
            for i, count in enumerate(n)
        ]
        self.phases = Phases(block.teams * len(self.ranks), objects, len(self.ranks))
        starts, total = {}, 0
        for b, n in block.barriers.items():
            starts[b], total = total, total + len(n)
        self.starts, self.objects = starts, total
        self.envs: list[dict[Var, int]] = [{} for _ in self.ranks]
        self.rank = 0
        #: Clocks of the threads that have arrived at the barrier of the cluster.
        self.arrived: list[list[int]] = []
        #: What products read that the program has not waited for, and those of the latest ones.
        self.reads: list[set[str]] = [set() for _ in self.ranks]
        self.latest: list[list[tuple[Sequence[int], tuple[tuple[str, Location], ...]]]] = [[] for _ in self.ranks]
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
            raise Lost("loops with too many different trip counts", p)
        if p in self.block.steps:
            self.step(p, self.block.steps[p])
        elif p.kind == "mark":
            self.all(p.parts[0])
        elif p not in self.block.stepping:
            self.other(p)
        elif p.kind == "for":
            self.loop(p)
        else:
            ranks = self.ranks
            holds = [r for r in self.each() if self.value(p.stmt.condition, p, "the condition")]
            for part, mine in zip(p.parts, (holds, [r for r in ranks if r not in holds]), strict=False):
                self.ranks = mine
                if mine:
                    self.all(part)
            self.ranks = ranks

    def each(self) -> Iterator[int]:
        """Yield the blocks that execute a statement, one after another."""
        for rank in self.ranks:
            self.rank = rank
            yield rank

    @property
    def env(self) -> dict[Var, int]:
        """The values of variables in a block."""
        return self.envs[self.rank]

    @property
    def read(self) -> set[str]:
        """Operands of a block's products in flight."""
        return self.reads[self.rank]

    def teams(self, p: Point) -> list[int]:
        """Return the teams of a block that execute a point."""
        return [t + self.rank * len(self.block.teams) for t in self.block.threads_of(p)]

    def all(self, points: Sequence[Point]) -> None:
        """Execute statements in order."""
        for p in points:
            self.one(p)

    def loop(self, p: Point) -> None:
        """Execute a loop; a long one until its iterations repeat, and then the remainder."""
        first = self.common(p.stmt.min, p, "the first value of the loop")
        if first < 0 or (p.stmt.step is not None and nodes.as_int(p.stmt.step) != 1):
            raise Lost(f"{p.stmt.loop_var} does not count up by one from 0 or more on", p)
        count = self.count(p)
        advance = self.block.advances(p) if p in self.counts or count > FULL else None
        if advance is None and (p in self.counts or count > FULL):
            raise Lost(f"the barrier call order changes with {p.stmt.loop_var}", p)
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
                    raise Lost(f"iterations of {loop} do not repeat their barrier states", p)
            for _ in self.each():
                self.env[p.stmt.loop_var] = first + trip
            self.trips[p] = (trip, count)
            self.all(p.parts[0])
            trip += 1
        self.at = p
        self.trips.pop(p, None)
        for _ in self.each():
            self.env.pop(p.stmt.loop_var, None)

    def count(self, p: Point) -> int:
        """Return the trip count of a loop with barriers."""
        if p in self.counts:
            if len(self.envs) > 1 and not self.block.cluster.same([p.stmt.min, p.stmt.extent], self.ranks):
                raise Lost("the trip count may differ between blocks of a cluster", p)
            return self.counts[p]
        return max(0, self.common(p.stmt.extent, p, "the trip count"))

    def state(self) -> object:
        """Return a key of the state that determines the rest of the execution."""
        values = tuple((str(b.name), env.get(v)) for env in self.envs for b, v in self.block.variables.items())
        latest = tuple(tuple(read for _, read in products) for products in self.latest)
        return self.phases.state(), values, tuple(map(frozenset, self.reads)), latest

    def step(self, p: Point, step: Step) -> None:
        """Execute a call on a barrier object."""
        for _ in self.each():
            teams = self.teams(p)
            operand = 0 if step.operand is None else self.value(step.operand, p, _OPERANDS.get(step.name, "the rank"))
            if step.name == "send":
                self.send(p, step, operand)
            elif step.name == "arrive":
                self.phases.arrive(teams, self.target(p, step, self.rank if step.operand is None else operand))
            elif step.name == "wait":
                self.phases.wait(teams, self.target(p, step, self.rank), operand)
            elif step.name == "complete":
                self.complete(p, self.target(p, step, self.rank))
            elif step.name == "announce" or step.barrier not in self.block.announced:
                self.phases.announce(teams[0], self.target(p, step, self.rank), operand)
        if step.name == "copy":
            for rank in self.each():
                # A copy for several blocks is issued by one of them, or each issues a share.
                ranks = step.ranks if rank in step.ranks else (rank,)
                if step.shares or rank == ranks[0]:
                    self.copy(p, step, ranks)

    def complete(self, p: Point, barrier: PhaseObject) -> None:
        """Execute a product that one thread issues, and that arrives when it is complete."""
        found, call = self.block.flow.accesses_at(p), OpCall.decode(p.stmt)
        # Metadata and scales are what threads read themselves, before they meet.
        mine = {"gemm_sp": call.args[1:2], "gemm_scaled": call.args[1:4:2]}.get(call.name, ())
        own = {v.buffer for v in mine if isinstance(v, View)}
        shared = [a for a in found if not a.write and nodes.scope_of(self.buffer(a)) == "shared"]
        for a in (a for a in shared if a.buffer in own):
            self.phases.access(self.teams(p), self.name(a), self.location(a), False)
        read = [(self.name(a), self.location(a)) for a in shared if a.buffer not in own]
        self.phases.complete(self.teams(p), barrier, read, {self.name(a) for a in found if a.write}, _kind(call))

    def copy(self, p: Point, step: Step, ranks: Sequence[int]) -> None:
        """Execute a copy that a block issues for some blocks."""
        issuer, own = self.teams(p)[0], self.rank
        written = next(a for a in self.block.flow.accesses_at(p) if a.write)
        size = self.value(step.operand, p, "the bytes") // (len(step.ranks) if step.shares and len(ranks) > 1 else 1)
        location = self.location(written)
        for rank in ranks:
            barrier = self.target(p, step, rank)
            self.rank = rank
            buffer = self.name(written)
            if buffer in self.read:
                self.phases.unordered.add(buffer)
            free = self.phases.copy(issuer, barrier, size, buffer, location)
            if rank != own and not (free and buffer not in self.read):
                reason = f"a copy that block {own} issues may write {buffer.partition('@')[0]} while it is still in use"
                raise PhaseError(barrier.name, reason)
            self.rank = own

    def send(self, p: Point, step: Step, rank: int) -> None:
        """Execute a copy to the block of a rank, by one thread or all.

        One thread issues it if a barrier counts it.
        """
        teams, own = self.teams(p), self.rank
        read, written = (next(a for a in self.block.flow.accesses_at(p) if a.write == w) for w in (False, True))
        source, location = (self.name(read), self.location(read)), self.location(written)
        barrier = None if step.barrier is None else self.target(p, step, rank)
        if not 0 <= rank < len(self.envs):
            raise Lost(f"rank {rank} is outside of the cluster's {len(self.envs)} blocks", p)
        self.rank = rank
        to = self.name(written), location
        self.rank = own
        if barrier is None:
            self.phases.store(teams, own, source, to)
        else:
            self.phases.send(teams[0], barrier, step.size, source, to)

    def target(self, p: Point, step: Step, rank: int) -> PhaseObject:
        """Return the object of a call, in the block of a rank."""
        if not 0 <= rank < len(self.envs):
            raise Lost(f"rank {rank} is outside of the cluster's {len(self.envs)} blocks", p)
        assert step.barrier is not None
        index, count = self.value(step.index, p, "the barrier"), len(self.block.barriers[step.barrier])
        if not 0 <= index < count:
            raise Lost(f"{step.barrier.name}[{index}] is outside of its {count} objects", p)
        return self.phases.barriers[rank * self.objects + self.starts[step.barrier] + index]

    def common(self, e: Expr, p: Point, what: str) -> int:
        """Return the value of an expression, the same in all blocks."""
        found = {self.value(e, p, what) for _ in self.each()}
        if len(found) > 1:
            raise Lost(f"{what} differs between the blocks of a cluster", p)
        return found.pop()

    def value(self, e: Expr, p: Point, what: str) -> int:
        """Return the value of an expression."""
        try:
            return int(evaluate(self.block.at(e, self.rank), self.env))
        except Unknown:
            raise Lost(f"{what} is not an expression of constants and loop variables", p) from None

    # Statements without barriers

    def other(self, p: Point) -> None:
        """Execute a statement inside which there are no barriers."""
        s = p.stmt
        if p.kind == "plain" or (p.kind == "for" and role(s) in ("parallel", "vectorized")):
            for _ in self.each():
                self.plain(p)
        elif p.kind in ("for", "while"):
            for _ in range(2):
                self.headed(p)
                self.all(p.parts[0])
            self.forget(p)
        elif p.kind == "if":
            self.headed(p)
            for part in p.parts:
                self.all(part)
            self.forget(p)

    def headed(self, p: Point) -> None:
        """Note what a statement evaluates itself."""
        for _ in self.each():
            self.accesses(p, self.teams(p), whole=False)

    def plain(self, p: Point) -> None:
        """Execute a statement without others inside that have an order, in one block."""
        teams = self.teams(p)
        call = p.stmt.value if isinstance(p.stmt, tirx.Evaluate) else None
        name = "" if call is None else nodes.operator_name(call).removeprefix("tile.")
        if name == "sync_threads":
            self.phases.meet(teams)
        elif name == "sync_part" and call is not None:
            if nodes.as_int(call.args[1]) == sum(self.phases.teams[t] for t in teams):
                self.phases.meet(teams)
        elif name in ("cluster_arrive", "cluster_wait"):
            self.meet(teams, name == "cluster_wait", call is not None and attributes.RELAXED in (call.attrs or {}))
        else:
            self.accesses(p, teams)
            self.assign(p)
            if self.block.waits_for_products:
                self.products(p)

    def meet(self, teams: Sequence[int], waits: bool, relaxed: bool) -> None:
        """Execute an arrival or a wait of a block's threads at the cluster barrier."""
        if not waits:
            self.arrived += [] if relaxed else [self.phases.knowledge(t, self.rank) for t in teams]
            return
        for t in teams:
            self.phases.learn(t, self.arrived)
        if self.rank == self.ranks[-1]:
            self.arrived = []

    def accesses(self, p: Point, teams: Sequence[int], whole: bool = True) -> None:
        """Note the reads, then the writes, of shared memory by a statement.

        With ``itself`` false also of its parts.
        """
        if not self.noting:
            return
        found = [a for q in (p, *(self.block.flow.inside(p) if whole else ())) for a in self.block.flow.accesses_at(q)]
        for a in found:
            barrier = self.phases.adding(teams, self.name(a))
            if barrier is not None:
                reason = f"{self.buffer(a).name} is used while a product that arrives there may still add to it"
                raise PhaseError(barrier.name, reason)
        mine = [a for a in found if nodes.scope_of(self.buffer(a)) == "shared"]
        locations = {(self.name(a), self.location(a), a.write): None for a in mine}
        for write in (False, True):
            for buffer, location, writes in locations:
                if writes == write:
                    self.phases.access(teams, buffer, location, write)
                if writes and buffer in self.read:
                    self.phases.unordered.add(buffer)

    def products(self, p: Point) -> None:
        """Note a product, whose operands are read until a wait, or such a wait."""
        call, latest = p.stmt.value if isinstance(p.stmt, tirx.Evaluate) else None, self.latest[self.rank]
        if call is not None and nodes.is_tile_call(call, "gemm"):
            found = [a for a in self.block.flow.accesses_at(p) if not a.write]
            mine = [a for a in found if nodes.scope_of(self.buffer(a)) == "shared"]
            latest.append((self.teams(p), tuple((self.name(a), self.location(a)) for a in mine)))
            self.read.update(name for name, _ in latest[-1][1])
            for _, read in latest[:-_MOST_PENDING]:
                self.phases.unordered |= {name for name, _ in read}  # too many to follow
            self.latest[self.rank] = latest[-_MOST_PENDING:]
        elif call is not None and nodes.is_tile_call(call, WAIT):
            pending = int(nodes.as_int(call.attrs[attributes.PENDING]))
            ended = latest[: len(latest) - pending]
            self.latest[self.rank] = latest[len(ended) :]
            for teams, read in ended:
                for name, location in read:
                    self.phases.access(teams, name, location, False)
            self.reads[self.rank] = {name for _, read in latest[len(ended) :] for name, _ in read}

    def name(self, a: Access) -> str:
        """Return the name of the accessed buffer, with the block's rank except for the first."""
        return f"{self.buffer(a).name}" + (f"@{self.rank}" if self.rank else "")

    def buffer(self, a: Access) -> BufferVar:
        """Return the buffer whose memory is accessed."""
        return self.block.flow.root(a.buffer)

    def location(self, a: Access) -> Location:
        """Return the accessed part of a buffer, where it is known in each iteration."""
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
            return int(evaluate(self.block.at(index, self.rank), self.env)), extent
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
            self.env[var] = int(evaluate(self.block.at(s.value, self.rank), self.env))
        except Unknown:
            self.env.pop(var, None)

    def forget(self, p: Point) -> None:
        """Forget the values of variables that a statement may have changed."""
        for q in self.block.flow.inside(p):
            if isinstance(q.stmt, tirx.BufferStore) and q.stmt.buffer in self.block.variables:
                for _ in self.each():
                    self.env.pop(self.block.variables[q.stmt.buffer], None)


def _kind(call: OpCall) -> Hashable:
    """Return the properties that let products add in order: instruction and accumulator shape."""
    accumulator, types = call.args[COMPLETED[call.name] - 2], call.attrs[attributes.TYPES]
    scales = (str(types[1]), int(call.attrs[attributes.BLOCK])) if call.name == "gemm_scaled" else ()
    return call.name, DTYPES[str(types[0])].bits, *scales, *map(str, accumulator.extents)


def settled(advance: Advance) -> int:
    """Return the period of states in loops whose phases follow their iterations."""
    return advance.since + 6 * advance.period + 12
