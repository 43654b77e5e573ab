"""The statements of a per-thread program as points between which barriers may be placed."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from tile_core.analysis.point import Point, is_grid
from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Call, Expr, Stmt
from tile_core.errors.ops import DivergentBarrier
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, loads_of, replace_for, role
from tile_core.records import dataclass
from tile_core.simt.barriers.shared_accesses import Accesses, Awaited, SharedAccess, bounds_of, is_unordered

FENCE_INIT, FENCE_PROXY, FENCE_GLOBAL = "init", "proxy", "global"
"""Kinds of fences: after barrier objects are initialised, and after any other write of a thread."""


@dataclass(eq=False)
class ProgramPoint:
    """A statement.

    Attributes
    ----------
    stmt
        The statement.
    kind
        ``plain``, ``sync`` (a barrier), ``break``, ``continue``, ``for``, ``while``, ``if``, ``grid``, ``mark`` or
        ``role``, a mark whose threads share the work inside.
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
    fences
        Kinds of fences before the barrier that it is, or that was placed before it.
    drains
        Threads that wait for their copies out of shared memory before its barrier, or at the end of a grid's body: by
        number, whether for what they have stored too.
    waits
        Which accesses end with it.
    collective
        Whether all threads wait for them.
    commits
        Whether it ends a group of copies.
    role
        The mark of the role around it: its barriers are those of the role's threads.
    clear
        Pending accesses that need no barrier before it: outside of divergent loops, and inside of one.
    """

    stmt: Any
    kind: str = "plain"
    reads: list[SharedAccess] = field(default_factory=list)
    writes: list[SharedAccess] = field(default_factory=list)
    parts: list[list[ProgramPoint]] = field(default_factory=list)
    varying: bool = False
    opaque: frozenset[Any] = frozenset()
    meet: bool = False
    between: bool = False
    end: bool = False
    fences: list[str] = field(default_factory=list)
    drains: dict[int, bool] = field(default_factory=dict)
    waits: Awaited | None = None
    collective: bool = False
    commits: bool = False
    role: Any = None
    clear: tuple[set[SharedAccess], set[SharedAccess]] = field(default_factory=lambda: (set(), set()))

    def passed(self, state: frozenset[SharedAccess]) -> frozenset[SharedAccess]:
        """Return the pending accesses after its waits or its end of a group."""
        if self.commits:
            return frozenset([a if a.until is None else a.committed() for a in state])
        if self.waits is None:
            return state
        name = self.waits.name
        of = [(a, a.until is not None and a.until.name == name) for a in state]
        return frozenset([a.waited(self.waits, self.collective) if ends else a for a, ends in of])

    def all(self) -> list[ProgramPoint]:
        """Return the points inside it, at any depth."""
        return [p for part in self.parts for q in part for p in (q, *q.all())]

    @property
    def split(self) -> bool:
        """Whether it contains a barrier."""
        return self.between or self.end or any(p.meet or p.between or p.end or p.kind == "sync" for p in self.all())


class Points:
    """Makes the points of a program.

    Parameters
    ----------
    varying
        What differs between threads, and the program's flow.

    Raises
    ------
    DivergentBarrier
        If the program has a barrier in divergent code.
    """

    def __init__(self, varying: Varying) -> None:
        self.varying = varying
        self.accesses = Accesses(varying.flow)
        self.bounds: dict[Any, tuple[int, int]] = {}

    def of(self, points: list[Point]) -> list[ProgramPoint]:
        """Return the program points of a sequence of statements, in order."""
        return [self.one(p) for p in points]

    def one(self, p: Point) -> ProgramPoint:
        """Return the program point of a statement."""
        found = self.made(p)
        found.role = p.role
        return found

    def made(self, p: Point) -> ProgramPoint:
        """Return the same, without the role."""
        s = p.stmt
        if p.kind in ("break", "continue"):
            return ProgramPoint(s, p.kind)
        if type(s) is tirx.Evaluate and _is_barrier(s.value):
            apart = [q for q in p.path if self.varying.parts(q)]
            if apart:
                raise DivergentBarrier(what=_WHAT.get(apart[-1].kind, "T.sync_threads()"), where=nodes.where_of(s))
            return ProgramPoint(s, "plain" if nodes.is_tile_call(s.value, "sync_warp") else "sync")
        if p.kind == "plain" or p.is_step() or (p.kind == "for" and is_unordered(s)):
            found = self.accesses.of_whole(p)
            reads, writes = [a for a in found if not a.write], [a for a in found if a.write]
            waits = self.accesses.waits(s) if p.kind == "plain" or not found else None
            collective = waits is not None and not any(self.varying.parts(q) for q in p.path)
            commits = type(s) is tirx.Evaluate and nodes.is_tile_call(s.value, "async_commit")
            return ProgramPoint(s, reads=reads, writes=writes, waits=waits, collective=collective, commits=commits)
        return self.compound(p)

    def compound(self, p: Point) -> ProgramPoint:
        """Return the point of a loop, a branch or a mark."""
        kind = "grid" if is_grid(p) else p.kind
        if (bounds := bounds_of(p.stmt)) is not None:
            self.bounds[p.stmt.loop_var] = bounds
        parts = [self.of(part) for part in p.parts]
        if kind in ("grid", "mark"):
            return ProgramPoint(p.stmt, "role" if p.is_role() else kind, parts=parts)
        reads = [] if kind == "for" else self.accesses.of(p)
        opaque = frozenset[Any]() if kind == "if" else self.accesses.opaque(p)
        return ProgramPoint(p.stmt, kind, reads, [], parts, self.varying.parts(p), opaque)


def with_bounds_bound(body: Stmt) -> Stmt:
    """Bind the bounds of loops that read memory to variables before the loops.

    They are evaluated once, even if the loop's body changes the memory.
    """
    return _BindBounds().stmt(body)


class _BindBounds(StmtRewriter):
    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        return s if s.attr_key == attributes.STEP else super().visit_AttrStmt(s)

    def visit_For(self, s: Stmt) -> Stmt:
        if is_unordered(s):
            return s
        s = super().visit_For(s)
        if role(s) == "grid" or not (loads_of(s.min) or loads_of(s.extent)):
            return s
        before: list[Stmt] = []
        start, extent = self.bound(s.min, "start", before), self.bound(s.extent, "count", before)
        return nodes.seq([*before, replace_for(s, s.body, start=start, extent=extent)])

    def bound(self, e: Expr, name: str, before: list[Stmt]) -> Expr:
        if not loads_of(e):
            return e
        var = nodes.fresh(name, nodes.dtype_of(e))
        before.append(tirx.Bind(var, e))
        return var


_WHAT = {"for": "a loop whose threads meet inside", "while": "a while loop whose threads meet inside"}


def _is_barrier(e: Call) -> bool:
    if nodes.is_tile_call(e, "cluster_arrive"):
        return bool(e.attrs and e.attrs.get(attributes.MEETS))
    return nodes.is_tile_call(e, "sync_threads") or nodes.is_tile_call(e, "sync_warp")
