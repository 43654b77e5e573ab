"""The control flow of a program as data: order, conditions and accesses of statements.

Passes and checks query this analysis instead of walking through loops and branches by themselves. A program of the IR
is structured, so that its control-flow graph is a tree: a *point* for each statement, whose parts are the bodies of a
loop, a branch or a mark. Points have numbers in program order, and those inside of a point are consecutive.

The questions are the usual ones of data-flow analysis (A. Aho et al., *Compilers*, chapter 9): what precedes what on
some path (``precedes``), what is on every path (``dominates``, ``always``), where a buffer is live (``lifetimes``),
what a point reads and writes (``accesses``). All answers hold for every execution: "may" is never too small, "must"
never too large. ``analysis.uniformity``, built on the same points, computes which values differ between threads.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any
from weakref import ref

from tile_core.analysis.accesses import Access, Effects, accesses_of
from tile_core.analysis.point import KINDS, Conditions, Parts, Point, is_grid, may_repeat, runs
from tile_core.compat import structural
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Node, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import bodies_of, collect, distinct, with_bodies

_NO_ACCESSES: frozenset[Any] = frozenset((tirx.AllocBuffer, tirx.AttrStmt, tirx.Break, tirx.Continue))
_DECLARATIONS: frozenset[Any] = frozenset((tirx.AllocBuffer, tirx.DeclBuffer))
_WITH_PARTS = frozenset(("for", "while", "if", "mark"))


class Flow:
    """The control flow of a program, or of a part of one.

    Parameters
    ----------
    body
        A statement.
    effects
        What tile ops read and write; without it each reads and writes all of its tiles.

    Attributes
    ----------
    points
        All points, in program order.
    top
        Those that are in no other.
    """

    def __init__(self, body: Stmt, effects: Effects | None = None) -> None:
        self.body, self.effects = body, effects
        self.points: list[Point] = []
        self._parts: list[Parts] = []
        self.top = self._points(body, (), None, 0, (), ())

    def _points(
        self, body: Stmt, path: tuple[Point, ...], role: Stmt | None, side: int, loops: tuple[Point, ...],
        conditions: Conditions,
    ) -> list[Point]:  # fmt: skip
        found, points = [], self.points
        for s in structural.items(body.seq) if type(body) is tirx.SeqStmt else (body,):
            kind = KINDS.get(type(s), "plain")
            p = Point(s, kind, path, role, side, len(points), len(points), None, loops, conditions)
            found.append(p)
            points.append(p)
            if kind not in _WITH_PARTS:
                continue
            inside = (*loops, p) if kind in ("for", "while") else loops
            within = s if kind == "mark" and p.is_role() else role
            parts = Parts()
            self._parts.append(parts)
            p.bodies = ref(parts)
            for k, part in enumerate([s.body] if kind != "if" else bodies_of(s)):
                under = (*conditions, (s.condition, k == 0)) if kind == "if" else conditions
                parts.append(self._points(part, (*path, p), within, k, inside, under))
            p.last = len(points) - 1
        return found

    def walk(self, enter: Callable[[Point], bool] | None = None) -> Iterator[Point]:
        """Yield the points in program order, with the parts of points that ``enter`` accepts."""
        at = 0
        while at < len(self.points):
            p = self.points[at]
            yield p
            at = at + 1 if enter is None or enter(p) else p.last + 1

    def inside(self, p: Point) -> list[Point]:
        """Return the points inside of one, at any depth, in program order."""
        return self.points[p.order + 1 : p.last + 1]

    def replaced(self, new: Mapping[Point, Stmt | None]) -> Stmt:
        """Return the program with other statements, or none, at some of its points."""
        return self._whole(self.top, self.body, new)

    def _whole(self, points: Sequence[Point], old: Stmt, new: Mapping[Point, Stmt | None]) -> Stmt:
        found = [new[p] if p in new else self.rebuilt(p, new) for p in points]
        same = all(s is not None and s.same_as(p.stmt) for s, p in zip(found, points, strict=True))
        return old if same else nodes.seq(found)

    def rebuilt(self, p: Point, new: Mapping[Point, Stmt | None]) -> Stmt:
        """Return a point's statement with other statements, or none, at points inside."""
        if p.bodies is None:
            return p.stmt
        parts = zip(p.parts, bodies_of(p.stmt), strict=True)
        return with_bodies(p.stmt, [self._whole(inside, body, new) for inside, body in parts])

    # What a point accesses

    @cached_property
    def accesses(self) -> list[Access]:
        """All reads and writes, in program order."""
        numbers = itertools.count()
        points = [p for p in self.points if type(p.stmt) not in _NO_ACCESSES]
        return [a for p in points for a in accesses_of(p, self.effects, numbers)]

    @cached_property
    def _accesses_at(self) -> dict[Point, list[Access]]:
        found: dict[Point, list[Access]] = {}
        for a in self.accesses:
            found.setdefault(a.point, []).append(a)
        return found

    def accesses_at(self, p: Point) -> list[Access]:
        """Return the accesses of a point itself, without its parts, in order."""
        return self._accesses_at.get(p, [])

    @cached_property
    def binds(self) -> dict[Var, Expr]:
        """The values that variables are bound to."""
        return {p.stmt.var: p.stmt.value for p in self.points if type(p.stmt) is tirx.Bind}

    @cached_property
    def roots(self) -> dict[BufferVar, BufferVar]:
        """From each view to the buffer that it aliases."""
        found: dict[BufferVar, BufferVar] = {}
        for view in collect(self.body, tirx.DeclBuffer):
            for var in collect(view.data, tirx.Var):
                if tirx.is_buffer_var(var):
                    found[view.buffer] = found.get(var, var)
        return found

    def root(self, buffer: BufferVar) -> BufferVar:
        """Return the buffer that a view aliases; any other buffer itself."""
        return self.roots.get(buffer, buffer)

    # What runs before what

    def jumps(self, loop: Point | None) -> list[Point]:
        """Return the points that leave a loop or end its iteration.

        ``None`` stands for a loop around the whole.
        """
        if not self._leaving:
            return []
        return [p for p in self._leaving if (p.loops[-1] if p.loops else None) is loop]

    @cached_property
    def _leaving(self) -> list[Point]:
        return [p for p in self.points if p.kind in ("break", "continue")]

    def exclusive(self, a: Point, b: Point) -> bool:
        """Whether two points are on different sides of one branch: each execution reaches only one."""
        p, q = _common(a, b)
        return p is not None and q is not None and p.around is not None and p.side != q.side

    def apart(self, a: Point, b: Point) -> list[Point]:
        """Return the points around ``a`` that are not around ``b``, outermost first."""
        return [p for p in a.path if not p.contains(b)]

    def repeats(self, a: Point, b: Point) -> Point | None:
        """Return the outermost repeating loop whose iterations evaluate both points, if there is one."""
        return next((p for p in _iterating_loops(a) if p in _iterating_loops(b) and may_repeat(p)), None)

    def precedes(self, a: Point, b: Point) -> bool:
        """Whether an execution of ``a`` may come before one of ``b``, by the same threads."""
        if self.repeats(a, b) is not None:
            return True
        return a.order < b.order and not self.exclusive(a, b)

    def dominates(self, a: Point, b: Point) -> bool:
        """Whether each execution of ``b`` comes after one of ``a`` in the same iteration.

        What a point evaluates itself, as a loop its bounds, comes before what is inside of it.
        """
        if a.order >= b.order or self.exclusive(a, b):
            return False
        return a.contains(b) or self._certain(self.apart(a, b))

    def always(self, p: Point, within: Point | None) -> bool:
        """Whether the first iteration of ``within`` (of the whole for ``None``) certainly executes ``p``.

        It does so under no condition, for all threads, inside of loops that run at least once, and where no iteration
        ends early.
        """
        inside = p.within(within)
        return self._certain(inside) and not any(map(self.jumps, [] if within is None else [within]))

    def _certain(self, inside: Sequence[Point]) -> bool:
        """Whether the parts of all these nested points are executed whenever the first is reached."""
        loops = [x for x in inside if x.kind in ("for", "while")]
        if any(x.kind == "if" or x.is_part() for x in inside) or not all(map(runs, loops)):
            return False
        return not any(map(self.jumps, loops))

    # Where buffers are live

    def lifetimes(self, buffers: Iterable[BufferVar], region: Callable[[Point], set[BufferVar]]) -> Lifetimes:
        """Return when some buffers are used, see ``Lifetimes``.

        Parameters
        ----------
        buffers
            The buffers; uses of their views count.
        region
            The buffers that are live throughout a mark if they are used in it.
        """
        return Lifetimes(self, set(buffers), region)


class Lifetimes:
    """Liveness of buffers: first and last use; a step counts as one time.

    A buffer allocated outside a loop that uses it is live throughout the loop. The sides of a branch may run one after
    the other, so a buffer used in one is live in both; and roles that follow each other may run at the same time.

    Attributes
    ----------
    spans
        First and last time, by buffer; times count from 1.
    points
        The point of each time; nothing at time 0.
    """

    def __init__(self, flow: Flow, buffers: set[BufferVar], region: Callable[[Point], set[BufferVar]]) -> None:
        self.flow, self.buffers, self.region = flow, buffers, region
        self.spans: dict[BufferVar, tuple[int, int]] = {}
        self.points: list[Point | None] = [None]
        self._visit(flow.top)

    @property
    def now(self) -> int:
        """The latest time."""
        return len(self.points) - 1

    def _visit(self, points: Sequence[Point]) -> None:
        begun: int | None = None
        for p in points:
            if type(p.stmt) in _DECLARATIONS:
                continue  # runs nothing, also between two roles
            before = self.now
            begun = (before if begun is None else begun) if p.is_role() else None
            if p.kind == "mark" and not p.is_step():
                self._visit(p.parts[0])
                self._extend(self._since(before) & self.region(p), before + 1)
                if begun is not None:
                    self._extend(self._since(begun), begun + 1)
            else:
                self._use(p, p.own if not p.is_step() else [p.stmt])
                for part in p.parts if not p.is_step() else ():
                    self._visit(part)
                self._throughout(p, before)

    def _throughout(self, p: Point, before: int) -> None:
        if p.kind in ("for", "while") and not is_grid(p):
            inside = {a.stmt.buffer for a in self.flow.inside(p) if type(a.stmt) is tirx.AllocBuffer}
            self._extend(self._since(before) - inside, before + 1)
        elif len(p.parts) == 2:
            self._extend(self._since(before), before + 1)

    def _use(self, p: Point, parts: list[Node]) -> None:
        self.points.append(p)
        roots = self.flow.roots
        used = {roots.get(v, v) for part in parts for v in names_of(part)} & self.buffers
        for b in used:
            self.spans[b] = (self.spans.get(b, (self.now, 0))[0], self.now)

    def _since(self, first: int) -> set[BufferVar]:
        return {b for b, span in self.spans.items() if span[1] > first}

    def _extend(self, buffers: Iterable[BufferVar], first: int) -> None:
        for b in buffers:
            self.spans[b] = (min(self.spans[b][0], first), self.now)


def jumps_of(s: Stmt) -> list[Point]:
    """Return the points of a statement that leave its loop or end an iteration."""
    return Flow(s).jumps(None) if collect(s, (tirx.Break, tirx.Continue)) else []


def names_of(node: Node) -> set[Var]:
    """Return the variables and buffers that a node names; an allocation names nothing."""
    if type(node) is tirx.AllocBuffer:
        return set()
    found = collect(node, (tirx.Var, tirx.BufferStore))
    return distinct([x.buffer if type(x) is tirx.BufferStore else x for x in found])


def _iterating_loops(p: Point) -> tuple[Point, ...]:
    """Return the loops that may evaluate a point in each of their iterations, outermost first."""
    return (*p.loops, p) if p.kind == "while" else p.loops


def _common(a: Point, b: Point) -> tuple[Point | None, Point | None]:
    """Return the outermost points around (or equal to) each of two where their paths part."""
    for p, q in zip((*a.path, a), (*b.path, b), strict=False):
        if p is not q:
            return p, q
    return None, None
