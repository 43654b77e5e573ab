"""The statements of a per-thread program as points between which barriers may be placed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Call, Expr, Stmt
from tile_core.errors.ops import DivergentBarrier
from tile_core.ir import calls, nodes
from tile_core.ir.visit import collect, replace_for, role, statements
from tile_core.simt.barriers.shared_accesses import Accesses, ProgramPlace, SharedAccess, bounds_of, is_unordered
from tile_core.simt.memory.arena import listed


@dataclass(eq=False)
class Point:
    """A statement.

    Attributes
    ----------
    stmt
        The statement.
    kind
        ``plain``, ``sync`` (a barrier), ``break``, ``continue``, ``for``, ``while``, ``if``, ``grid`` or ``mark``.
    reads, writes
        What it reads, then writes; for a compound statement, only in its own expressions.
    parts
        The bodies of a compound statement.
    varying
        Whether control flow may diverge here.
    opaque
        Variables that a loop's body binds to per-iteration values.
    meet, between, end
        Where a barrier was placed: before it, between its reads and its write, at the end of a ``while``'s body.
    """

    stmt: Any
    kind: str = "plain"
    reads: list[SharedAccess] = field(default_factory=list)
    writes: list[SharedAccess] = field(default_factory=list)
    parts: list[list[Point]] = field(default_factory=list)
    varying: bool = False
    opaque: frozenset[Any] = frozenset()
    meet: bool = False
    between: bool = False
    end: bool = False

    def all(self) -> list[Point]:
        """Return the points inside it, at any depth."""
        return [p for part in self.parts for q in part for p in (q, *q.all())]

    @property
    def split(self) -> bool:
        """Whether it contains a barrier."""
        return self.between or self.end or any(p.meet or p.between or p.end or p.kind == "sync" for p in self.all())


class Points:
    """Makes the points of a program.

    Raises
    ------
    DivergentBarrier
        If the program has a barrier in divergent code.
    """

    def __init__(self, body: Stmt, varying: Varying) -> None:
        self.varying = varying
        self.accesses = Accesses(body)
        self.bounds: dict[Any, tuple[int, int]] = {}
        self.divergent: list[str] = []
        self.changed = False

    def of(self, s: Stmt, where: ProgramPlace) -> list[Point]:
        """Return the points of a statement, in order."""
        return [p for x in statements(s) for p in self.one(x, where.at(x))]

    def one(self, s: Stmt, where: ProgramPlace) -> list[Point]:
        """Return the points of one statement."""
        if isinstance(s, tirx.SeqStmt):
            return self.of(s, where)
        if isinstance(s, tirx.For) and not is_unordered(s):
            return self.loop(s, where)
        if isinstance(s, tirx.While):
            return [self.repeat(s, where)]
        if isinstance(s, tirx.IfThenElse):
            return [self.branch(s, where)]
        if isinstance(s, tirx.AttrStmt) and s.attr_key != calls.STEP:
            return [self.mark(s, where)]
        if isinstance(s, (tirx.Break, tirx.Continue)):
            return [Point(s, type(s).__name__.lower())]
        if isinstance(s, tirx.Evaluate) and _is_barrier(s.value):
            if self.divergent:
                raise DivergentBarrier(what=self.divergent[-1], where=nodes.where_of(s))
            return [Point(s, "sync" if nodes.is_tile_call(s.value, "sync_threads") else "plain")]
        return [self.plain(s, where)]

    def plain(self, s: Stmt, where: ProgramPlace) -> Point:
        """Return the point of a statement that cannot contain a barrier."""
        if isinstance(s, tirx.BufferStore):
            reads, writes = self.accesses.of_store(s, where)
            return Point(s, reads=reads, writes=writes)
        found = list(self.accesses.of_step(s, where))
        return Point(s, reads=[a for a in found if not a.write], writes=[a for a in found if a.write])

    def loop(self, s: Stmt, where: ProgramPlace) -> list[Point]:
        """Return the points of a counted loop: its bounds may need one of their own."""
        before: list[Point] = []
        if role(s) != "grid" and (collect(s.min, ir.TensorLoad) or collect(s.extent, ir.TensorLoad)):
            # Evaluated once, even if the body changes the memory it reads.
            start, extent = self.hoisted(s.min, "start", before, where), self.hoisted(s.extent, "count", before, where)
            s, self.changed = replace_for(s, s.body, start=start, extent=extent), True
        bounds = bounds_of(s)
        if bounds is not None:
            self.bounds[s.loop_var] = bounds
        if role(s) == "grid":
            return [Point(s, "grid", parts=[self.of(s.body, where)])]
        varying = self.varying.loop(s)
        parts = [self.inside(s.body, where, varying, "a loop whose threads meet inside")]
        return [*before, Point(s, "for", parts=parts, varying=varying, opaque=self.accesses.opaque(s.body))]

    def hoisted(self, e: Expr, name: str, before: list[Point], where: ProgramPlace) -> Expr:
        """Return a loop's bound; one that reads memory is bound to a variable before the loop."""
        if not collect(e, ir.TensorLoad):
            return e
        var = nodes.fresh(name, nodes.dtype_of(e))
        if self.varying.expr(e):
            self.varying.vars.add(var)
        s = tirx.Bind(var, e)
        before.append(self.plain(s, where.at(s)))
        return var

    def repeat(self, s: Stmt, where: ProgramPlace) -> Point:
        """Return the point of a ``while`` loop."""
        varying = self.varying.loop(s)
        reads = self.accesses.of_expr(s.condition, where)
        parts = [self.inside(s.body, where, varying, "a while loop whose threads meet inside")]
        return Point(s, "while", reads, [], parts, varying, self.accesses.opaque(s.body))

    def branch(self, s: Stmt, where: ProgramPlace) -> Point:
        """Return the point of a branch."""
        varying = self.varying.expr(s.condition)
        reads = self.accesses.of_expr(s.condition, where)
        what = "T.sync_threads()"
        parts = [self.inside(s.then_case, where.under(s.condition), varying, what)]
        if s.else_case is not None:
            parts.append(self.inside(s.else_case, where.under(tirx.Not(s.condition)), varying, what))
        return Point(s, "if", reads, [], parts, varying)

    def inside(self, body: Stmt, where: ProgramPlace, varying: bool, what: str) -> list[Point]:
        """Return the points of a body; ``what`` is refused there if threads may diverge before it."""
        if varying:
            self.divergent.append(what)
        points = self.of(body, where)
        if varying:
            self.divergent.pop()
        return points

    def mark(self, s: Stmt, where: ProgramPlace) -> Point:
        """Return the point of an attribute."""
        if s.attr_key == calls.MANAGED:
            where = where.inside(s, listed(s.node, self.accesses.bases))
        return Point(s, "mark", parts=[self.of(s.body, where)])


def _is_barrier(e: Call) -> bool:
    return nodes.is_tile_call(e, "sync_threads") or nodes.is_tile_call(e, "sync_warp")
