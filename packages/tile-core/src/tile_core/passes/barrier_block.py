"""A block's calls on its own barriers, and facts common to all executions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from math import prod

from tile_core.analysis.cluster_uniform import InCluster
from tile_core.analysis.flow import Flow
from tile_core.analysis.periodicity import Advance, advance_of, common
from tile_core.analysis.point import Point
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ops import copy_to_block
from tile_core.ops.base import COMPLETED, COUNTED
from tile_core.passes.roles import role_of
from tile_core.records import dataclass

#: Longer loops are executed only until their iterations repeat.
FULL = 48
WAIT = "wait_uses"


class Lost(Exception):
    """A statement that cannot be analyzed, with the reason."""

    def __init__(self, what: str, point: Point) -> None:
        super().__init__(what)
        self.what, self.point = what, point


@dataclass(frozen=True)
class Step:
    """A call on a barrier object.

    Attributes
    ----------
    name
        ``"arrive"``, ``"wait"``, ``"announce"``, ``"copy"``, ``"complete"`` for a product that arrives, or ``"send"``
        for a copy to another block.
    barrier, index
        The object; no barrier for a copy to another block that only the barrier of the cluster orders.
    operand
        The parity, the bytes, or the rank of the block at whose object a thread arrives, or to which it sends.
    ranks
        The blocks of the cluster that a copy fills the same place of; empty for a copy of each block for itself.
    shares
        Whether each of them issues a share of it, or the first of them all.
    size
        The bytes that are sent to another block.
    """

    name: str
    barrier: BufferVar | None
    index: Expr
    operand: Expr | None = None
    ranks: tuple[int, ...] = ()
    shares: bool = False
    size: int = 0


def step_of(s: Stmt) -> Step | None:
    """Return the barrier call of a statement, if it is one."""
    call = s.value if isinstance(s, tirx.Evaluate) else None
    if call is None or not nodes.is_tile_call(call):
        return None
    name = str(call.op.name).removeprefix("tile.")
    if name in ("barrier_arrive", "barrier_wait", "barrier_announce"):
        element = call.args[0].args[0]
        operand = call.args[1] if len(call.args) > 1 else None
        return Step(name.removeprefix("barrier_"), element.source, element.indices[0], operand)
    if attributes.COMPLETES in (call.attrs or {}):
        at = call.args[COMPLETED[name]]
        return Step("complete", at.source, at.region[0].min)
    if name == copy_to_block.NAME:
        object_ = call.args[copy_to_block.BARRIER] if len(call.args) > copy_to_block.BARRIER else None
        barrier, index = (None, nodes.int_const(0)) if object_ is None else (object_.source, object_.region[0].min)
        return Step("send", barrier, index, call.args[copy_to_block.RANK], size=_bytes(call.args[1]))
    counted = COUNTED.get(name)
    if counted is not None and len(call.args) > counted:
        to, at = call.args[counted - 1], call.args[counted]
        mask, shares = (int(n) for n in list((call.attrs or {}).get(attributes.RANKS, (0, 1)))[:2])
        ranks = tuple(r for r in range(mask.bit_length()) if mask >> r & 1)
        return Step("copy", at.source, at.region[0].min, nodes.int_const(_bytes(to)), ranks, shares > 1)
    return None


def _bytes(region: Expr) -> int:
    count = prod(int(nodes.as_int(r.extent)) for r in region.region)
    return count * DTYPES[nodes.element_type(region.source)].bits // 8


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
    cluster
        The blocks of its cluster.
    steps
        The calls on barrier objects.
    loops
        The points of loops around them.
    """

    flow: Flow
    points: Sequence[Point]
    threads: int
    barriers: Mapping[BufferVar, tuple[int, ...]]
    cluster: InCluster
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
        if any(s.name == "send" for s in self.steps.values()):
            self.span = range(len(self.points))  # other blocks write here at any time
        cuts = {0, self.threads}
        for p in self.every:
            if p.kind == "mark" and p.stmt.attr_key == attributes.ONLY:
                first, count = (int(nodes.as_int(n)) for n in list(p.stmt.node)[1:3])
                cuts |= {first, first + count}
        edges = sorted(cuts)
        self.cuts = sorted(cuts | {e + 1 for e in edges[:-1]})
        self.teams = [b - a for a, b in zip(self.cuts, self.cuts[1:], strict=False)]
        self.variables = {b: nodes.fresh(str(b.name), nodes.element_type(b)) for b in self._scalars()}
        self._same: dict[tuple[Expr, Point], bool] = {}
        self._at: dict[tuple[Expr, int], Expr] = {}

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
        """Return an expression with variables for the contents of ``T.alloc_var``."""

        def load(node: Expr) -> Expr:
            return self.variables.get(node.source, node)

        return structural.mapped(e, ir.TensorLoad, load) if self.variables else e

    def at(self, e: Expr, rank: int) -> Expr:
        """Return an expression for the block of a rank, without variables of ``T.alloc_var``."""
        if prod(self.cluster.cluster) == 1:
            return self.plain(e)
        if (e, rank) not in self._at:
            self._at[e, rank] = self.cluster.at(self.plain(e), rank)
        return self._at[e, rank]

    def advances(self, loop: Point) -> Advance | None:
        """Return the number of iterations after which a loop's barrier state repeats, if known."""
        found = [self.advance(e, loop) for e in self.deciding(loop)]
        known = [a for a in found if a is not None and a.repeats]
        return common(known) if len(known) == len(found) else None

    def advance(self, e: Expr, loop: Point) -> Advance | None:
        """Return the advance of an expression with a loop, counted from its first iteration."""
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
        return self.plain(self.cluster.expanded(e))

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
