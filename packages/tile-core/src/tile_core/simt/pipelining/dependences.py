"""Dependence analysis: the copies of a loop that may be prefetched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tile_core.analysis.analyzer import Analyzer
from tile_core.analysis.flow import Flow, names_of
from tile_core.analysis.point import Point
from tile_core.compat.structural import identity
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.ir import attributes, nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import bodies_of, collect, distinct, loads_of, role, statements
from tile_core.ops.base import OpCall, View, is_op
from tile_core.ops.effects import effects
from tile_core.ops.registry import OPS
from tile_core.records import dataclass


def is_uniform_call(call: Expr) -> bool:
    """Whether a call without effects has the same value in all threads of a block."""
    return nodes.is_tile_call(call, "block_index") or str(call.op.name).startswith(nodes.WRAPPING_PREFIX)


@dataclass(frozen=True)
class Candidate:
    """A copy from global to shared memory at the top of a loop's body.

    Attributes
    ----------
    position
        Its index among the statements of the body.
    stmt, call
        The statement, and the call as `load_of` returns it.
    buffer
        The shared buffer.
    reason
        Why it cannot be prefetched; empty if it can.
    """

    position: int
    stmt: Any
    call: OpCall
    buffer: Any
    reason: str

    @property
    def source_name(self) -> str:
        """Name of the buffer that is read."""
        return str(self.call.args[0].name)


def top_level(body: Stmt) -> list[Stmt]:
    """Return the statements of a loop's body."""
    return [x for s in statements(body) for x in (top_level(s) if type(s) is tirx.SeqStmt else [s])]


def uses(s: Stmt, buffer: BufferVar) -> bool:
    """Whether a statement uses a buffer other than to allocate it."""
    # Most statements do not name the buffer; for one without nested statements, this decides.
    if buffer not in names_of(s):
        return False
    return not (bodies_of(s) or type(s) is tirx.SeqStmt) or any(
        buffer in names_of(part) for p in Flow(s).points for part in p.own
    )


def without_dead(body: Sequence[Stmt], moved: set[int], recomputed: Sequence[int]) -> list[Stmt]:
    """Return the body without the moved copies and without recomputed bindings that became unused."""
    kept: list[Any] = []
    used: set[Any] = set()
    for i, s in reversed(list(enumerate(body))):
        if i in moved or (i in recomputed and s.var not in used):
            continue
        used |= set(collect(s.value if isinstance(s, tirx.Bind) else s, tirx.Var))
        kept.append(s)
    return kept[::-1]


class Analysis:
    """Uses of the buffers of a program.

    Parameters
    ----------
    body
        The program before any loop is changed.
    """

    def __init__(self, body: Stmt) -> None:
        self.flow = Flow(body)
        self.root = self.flow.root
        self.viewed = set(self.flow.roots.values())
        #: The pipelined loops around each use, by buffer.
        self.use_loops: dict[Any, list[tuple[Any, ...]]] = {}
        for p in self.flow.points:
            loops = tuple(x.stmt for x in p.loops if _is_pipelined(x))
            for var in {v for part in p.own for v in names_of(part) if tirx.is_buffer_var(v)}:
                self.use_loops.setdefault(var, []).append(loops)
        self._closed: dict[tuple[Any, Any], bool] = {}
        self._candidates: dict[int, tuple[list[Candidate], Stmt]] = {}
        #: Results of ``plan.choose`` by loop.
        self.choices: dict[tuple[int, int], tuple[Any, Stmt, Stmt]] = {}

    # Buffers

    def keeps(self, buffer: BufferVar, loop: Stmt) -> str:
        """Return the reason why a buffer is live outside a loop, else empty.

        Other pipelined loops may use it too, if each of their iterations writes it before it reads it.
        """
        for loops in self.use_loops.get(buffer, ()):
            if any(x.loop_var.same_as(loop.loop_var) for x in loops):
                continue
            if not any(self._closed_in(buffer, x) for x in loops):
                return f"{buffer.name} is used outside of the loop too"
        return ""

    def only_in(self, buffer: BufferVar, loops: Sequence[Stmt]) -> bool:
        """Whether all uses of a buffer are inside some pipelined loops."""
        inside = {s.loop_var for s in loops}
        return all(any(x.loop_var in inside for x in around) for around in self.use_loops.get(buffer, ()))

    def _closed_in(self, buffer: BufferVar, loop: Stmt) -> bool:
        key = (buffer, loop.loop_var)
        if key not in self._closed:
            found = [c for c in self._copies(loop) if c[2].args[1].buffer.same_as(buffer)]
            self._closed[key] = any(not self._isolation(c, top_level(loop.body)) for c in found)
        return self._closed[key]

    # Copies of a loop

    def candidates(self, loop: Stmt) -> list[Candidate]:
        """Return the global-to-shared copies at the top level of a loop's body."""
        known = self._candidates.get(identity(loop))
        if known is not None:
            return known[0]
        body = top_level(loop.body)
        written = self.written(loop.body)
        found = []
        for position, stmt, call in self._copies(loop):
            reason = self._isolation((position, stmt, call), body) or self._source(position, call, body, written)
            if not reason and any(r.scope == "shared" for r in call.args[2:]) and self._is_in_role(loop):
                reason = "another role may write its row numbers"
            found.append(Candidate(position, stmt, call, call.args[1].buffer, reason))
        self._candidates[identity(loop)] = found, loop
        return found

    def _is_in_role(self, loop: Stmt) -> bool:
        return any(p.stmt.same_as(loop) and p.role is not None for p in self.flow.points)

    def ranges(self, loop: Stmt) -> Analyzer:
        """Return the ranges of the variables of a loop and its surrounding loops and grid."""
        found = Analyzer()
        point = next((p for p in self.flow.points if p.stmt.same_as(loop)), None)
        for p in () if point is None else point.path:
            if p.kind == "for":
                found.bind(p.stmt.loop_var, ir.Range.from_min_extent(p.stmt.min, p.stmt.extent))
        found.bind(loop.loop_var, ir.Range.from_min_extent(loop.min, loop.extent))
        return found

    def elsewhere(self, loop: Stmt) -> list[str]:
        """Return the names of shared buffers that nested copies in a loop's body write."""
        flow = Flow(loop.body)
        inside = flow.walk(lambda p: not _is_pipelined(p) and not (p.kind == "mark" and _is_managed(p.stmt)))
        found = (load_of(p.stmt) for p in inside if p.around is not None)
        return [call.args[1].name for call in found if call is not None and call.name == "copy"]

    def recomputed(self, loop: Stmt, chosen: Sequence[Candidate]) -> list[int]:
        """Return the positions of the bindings used by the corners of copies."""
        body = top_level(loop.body)
        defined = {s.var: i for i, s in enumerate(body) if isinstance(s, tirx.Bind)}
        needed: set[int] = set()
        open_parts = [m for c in chosen for m in _corner(c.call)]
        while open_parts:
            for var in names_of(open_parts.pop()):
                at = defined.get(var)
                if at is not None and at not in needed:
                    needed.add(at)
                    open_parts.append(body[at].value)
        return sorted(needed)

    def _copies(self, loop: Stmt) -> list[tuple[int, Any, OpCall]]:
        found = [(i, s, load_of(s)) for i, s in enumerate(top_level(loop.body))]
        return [(i, s, call) for i, s, call in found if call is not None]

    def _isolation(self, copy: tuple[int, Any, OpCall], body: Sequence[Stmt]) -> str:
        """Return the reason why an iteration reads elements outside of the copy, else empty."""
        position, _, call = copy
        dst = call.args[1]
        if dst.buffer in self.viewed or dst.buffer in self.flow.roots:
            return "another view shares its storage"
        inside = all(
            isinstance(m, int) and isinstance(n, int) and isinstance(e, int) and m >= 0 and m + e <= n
            for m, e, n in zip(dst.mins, dst.extents, nodes.shape_of(dst.buffer), strict=True)
        )
        if not inside:
            return "the part of the buffer that it writes changes"
        if any(dst.buffer in names_of(m) for m in call.args[0].mins):
            return "its corner depends on what it copies"
        for i, s in enumerate(body):
            if i == position or not uses(s, dst.buffer):
                continue
            reason = _misuse(s, dst.buffer)
            if reason:
                return reason
            if i < position:
                return "it is read before it is copied, so the value of the iteration before is needed"
        return ""

    def _source(self, position: int, call: OpCall, body: Sequence[Stmt], written: set[BufferVar]) -> str:
        """Return the reason why earlier iterations cannot read a copy's source, else empty."""
        src = call.args[0]
        local = {a.buffer for s in body for a in collect(s, tirx.AllocBuffer)}
        if self.root(src.buffer) in written:
            return f"the loop writes {src.name}"
        for rows in call.args[2:]:
            if self.root(rows.buffer) in written or rows.buffer in local:
                return f"the loop writes its row numbers, {rows.name}"
        defined = {s.var: (i, s.value) for i, s in enumerate(body) if isinstance(s, tirx.Bind)}
        open_parts, seen = _corner(call), set()
        while open_parts:
            part = open_parts.pop()
            for load in loads_of(part):
                if self.root(load.source) in written or load.source in local:
                    return f"its corner depends on {load.source.name}, which the loop writes"
                if nodes.scope_of(load.source) not in ("global", *PRIVATE):
                    return f"its corner depends on {load.source.name}, which is {nodes.scope_of(load.source)}"
            if any(nodes.is_tile_call(c) and not is_uniform_call(c) for c in collect(part, ir.Call)):
                return "its corner depends on a call"
            for var in names_of(part):
                if var in defined and var not in seen:
                    at, value = defined[var]
                    if at > position:
                        return "its corner is computed after it"
                    seen.add(var)
                    open_parts.append(value)
        return ""

    def written(self, s: Stmt) -> set[BufferVar]:
        """Return the buffers that a statement writes, with views replaced by their bases."""
        found = {self.root(b) for b in distinct(x.buffer for x in collect(s, tirx.BufferStore))}
        for x in collect(s, (tirx.Evaluate, tirx.Bind)):
            if nodes.is_tile_call(x.value):
                found |= {self.root(v.buffer) for v in effects(x)[1]}
        return found


def _is_managed(s: Stmt) -> bool:
    return isinstance(s, tirx.AttrStmt) and bool(s.attr_key == attributes.MANAGED)


def load_of(s: Stmt) -> OpCall | None:
    """Return a copy or gather from global to shared memory, else ``None``.

    Its operands are the source, the tile, and the row numbers of a gather.
    """
    name = next((n for n in ("copy", "gather") if is_op(s) and nodes.is_tile_call(s.value, n)), None)
    if name is None:
        return None
    call = OpCall.decode(s)
    if attributes.ASYNC in call.attrs or (name == "gather" and len(call.args) > 3):  # with a barrier of the program
        return None
    source, *rows, tile = call.args if name == "gather" else call.args[:2]
    if source.scope != "global" or tile.scope != "shared":
        return None
    return call if name == "copy" else replace(call, args=(source, tile, *rows))


def _misuse(s: Stmt, buffer: BufferVar) -> str:
    """Return a use of a buffer other than reads of its elements, else empty."""
    if any(x.buffer.same_as(buffer) for x in collect(s, tirx.BufferStore)):
        return "another statement writes it"
    for x in collect(s, (tirx.Evaluate, tirx.Bind)):
        if not nodes.is_tile_call(x.value):
            continue
        call = OpCall.decode(x)
        if any(v.buffer.same_as(buffer) for v in effects(x)[1]):
            return "another statement writes it"
        legal = OPS[call.name].slots if call.name in OPS else ()
        for position, a in enumerate(call.args):
            if isinstance(a, View) and a.buffer.same_as(buffer) and position not in legal:
                return f"{call.name} takes whole buffers"
    for c in collect(s, ir.Call):
        if any(isinstance(a, tirx.Var) and a.same_as(buffer) for a in c.args):
            return "its address is taken"
        if nodes.is_tile_call(c, "address") and any(x.source.same_as(buffer) for x in loads_of(c)):
            return "its address is taken"
    return ""


def _corner(call: OpCall) -> list[Expr]:
    return [nodes.int_const(0) + m for of in (call.args[0], *call.args[2:]) for m in of.mins]


def _is_pipelined(p: Point) -> bool:
    return p.kind == "for" and role(p.stmt) == "pipelined"
