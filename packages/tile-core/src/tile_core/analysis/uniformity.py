"""Uniformity analysis: which values of a kernel differ between the threads of a block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tile_core.analysis.accesses import Access
from tile_core.analysis.flow import Flow, jumps_of
from tile_core.analysis.point import Point
from tile_core.compat import structural
from tile_core.compat.structural import identity
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Node, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import collect, distinct, role
from tile_core.ir.warp import WARP_CALLS

#: Calls whose result differs between threads.
VARYING_CALLS = frozenset({"thread_index", "lane_index", "warp_index", "per_thread", "instruction", *WARP_CALLS})


_DEFINING = frozenset((tirx.For, tirx.Bind))


class Varying:
    """The varying variables and private buffers of a block's body, as a fixed point.

    Parameters
    ----------
    body
        The program of the block, or of one of its threads.
    seeds
        Variables that differ between threads although the body does not show it.

    Attributes
    ----------
    vars, buffers
        Those that may differ between threads.
    loops
        Induction variables of loops that some threads may leave before others.
    flow
        The flow of the body.
    """

    def __init__(self, body: Stmt, seeds: Iterable[Var] = ()) -> None:
        self._named: dict[int, tuple[set[Var] | None, Node]] = {}
        #: One object for each variable: sets compare other objects slowly.
        self._objects: dict[int, Var] = {}
        self.vars: set[Var] = set(seeds)
        self.buffers: set[BufferVar] = set()
        self.loops: set[Stmt] = set()
        self.flow = Flow(body)
        # Private buffers of a data-parallel loop belong to an iteration, not to a thread.
        points, end = [], 0
        for p in self.flow.points:
            if p.order >= end:
                points.append(p)
                end = p.last + 1 if p.kind == "for" and role(p.stmt) == "parallel" else end
        stores: dict[Point, list[Access]] = {}
        for a in self.flow.accesses:
            if a.write and _is_own(a):
                stores.setdefault(a.point, []).append(a)
        points = [p for p in points if p in stores or type(p.stmt) in _DEFINING]
        self._jumps = bool(collect(body, (tirx.Break, tirx.Continue)))
        size = -1
        while size != len(self.vars) + len(self.buffers) + len(self.loops):
            size = len(self.vars) + len(self.buffers) + len(self.loops)
            self._inside: dict[Point | None, bool] = {None: False}
            points = [p for p in points if not self._note(p, stores.get(p, ()))]

    def expr(self, e: Node) -> bool:
        """Whether an expression may differ between threads."""
        if type(e) is tirx.IntImm:
            return False
        known = self._named.get(identity(e))
        if known is None:
            found = _named(e)
            known = self._named[identity(e)] = found if found is None else set(map(self._own, found)), e
        named = known[0]
        return named is None or not (self.vars.isdisjoint(named) and self.buffers.isdisjoint(named))

    def stmt(self, s: Stmt) -> bool:
        """Whether a statement uses a value that differs between threads."""
        return self.expr(s) or any(st.buffer in self.buffers for st in collect(s, tirx.BufferStore))

    def loop(self, s: Stmt) -> bool:
        """Whether the trip count of a ``For`` or ``While`` may differ between threads."""
        if type(s) is tirx.While:
            return self.expr(s.condition) or self._leaves(s.body)
        return self.expr(s.extent) or self.expr(s.min) or s.loop_var in self.loops

    def divergent(self, p: Point) -> bool:
        """Whether some threads may execute a point of ``flow`` where others do not."""
        around = p.path[-1] if p.path else None
        if around not in self._inside:
            assert around is not None
            self._inside[around] = self.divergent(around) or self.parts(around)
        return self._inside[around]

    def parts(self, p: Point) -> bool:
        """Whether not all threads may be inside of a point together."""
        if p.kind == "if":
            return self.expr(p.stmt.condition)
        return self.loop(p.stmt) if p.kind in ("for", "while") else p.is_part()

    def _note(self, p: Point, stores: Sequence[Access]) -> bool:
        """Record what a statement makes varying; return whether nothing more can follow."""
        s, divergent = p.stmt, bool(stores) and self.divergent(p)
        if type(s) is tirx.For:
            if self.expr(s.extent) or self.expr(s.min):
                self.vars.add(self._own(s.loop_var))
            if role(s) != "parallel" and self._leaves(s.body):
                self.loops.add(s.loop_var)
        elif type(s) is tirx.Bind and self.expr(s.value):
            self.vars.add(self._own(s.var))
            return not stores
        final = bool(stores)
        for a in stores:
            source = a.value if a.call is None else a.call.args[1] if a.how == "move" else None
            if divergent or source is None or self.expr(source) or any(map(self.expr, a.indices)):
                self.buffers.add(self._own(a.buffer))
            else:
                final = False
        return final

    def _own(self, var: Var) -> Var:
        return self._objects.setdefault(identity(var), var)

    def _leaves(self, body: Stmt) -> bool:
        """Whether some threads may leave a loop, or end its iteration, before others."""
        return self._jumps and any(self.parts(p) for jump in jumps_of(body) for p in jump.path)


def _named(e: Node) -> set[Var] | None:
    """Return the variables and buffers in an expression; nothing if a call in it varies."""
    found = collect(e, (ir.Call, tirx.Var))
    if any(nodes.is_tile_call(x) and structural.op_name(x)[5:] in VARYING_CALLS for x in found if type(x) is ir.Call):
        return None
    return distinct([x for x in found if type(x) is not ir.Call])


def _is_own(a: Access) -> bool:
    """Whether a call of a per-thread program, or a store, accesses a private buffer."""
    return a.how in ("element", "move", "address") and nodes.scope_of(a.buffer) in PRIVATE


#: Calls that name a block's threads.
THREAD_CALLS = frozenset({"sync_threads", "sync_warp", *VARYING_CALLS} - {"per_thread", "instruction"})


def uses_threads(body: Stmt) -> bool:
    """Whether a program names its threads."""
    return any(nodes.is_tile_call(c) and structural.op_name(c)[5:] in THREAD_CALLS for c in collect(body, ir.Call))
