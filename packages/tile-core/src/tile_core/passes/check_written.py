"""Refuse reads of uninitialized scratch memory.

Scratch memory is uninitialized at first. The program is walked in order: a read is refused if every write of the same
elements comes after it, whichever branches are taken. Where a loop may carry a write of one iteration to a read of
the next, the read counts only if the loop's first iteration certainly reaches it before the write; a conditional write
(in a branch, in a loop that may run zero times) counts as a write. Emulation finds the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tile_core.analysis.iteration_space import parts_of, sides_of
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.errors.ops import NeverWritten
from tile_core.ir import nodes
from tile_core.ir.names import as_written
from tile_core.ir.visit import collect, role
from tile_core.ops.base import OpCall, View
from tile_core.ops.registry import OPS

_SCRATCH = ("shared", "local.fragment", "local", "local.var")
_WRITE_FIRST = "write it first, with T.copy, T.clear, T.fill or element by element"
#: How an accumulating op says that it starts from zero: the op's name and the argument to add.
_AFRESH = {"gemm": "clear_accum=True", "gemm_sp": "clear_accum=True", "reduce": "clear=True"}

_Box = tuple[tuple[int, int], ...] | None


@dataclass(frozen=True)
class _Event:
    """A read or write of scratch memory.

    Attributes
    ----------
    buffer
        The buffer that owns the storage.
    path
        Branches and loops around it, outermost first, as (statement, side).
    box
        First and last index in each dimension, or ``None`` for anything in the buffer.
    order
        Position in program order; a statement reads before it writes.
    statement, what, fix
        For the message: the statement, the reader, and the remedy.
    """

    buffer: Any
    path: tuple[tuple[Any, Any], ...]
    box: _Box
    order: int
    statement: Any
    what: str = ""
    fix: str = ""


def check_written(body: Stmt) -> None:
    """Check all reads of scratch memory of a program.

    Raises
    ------
    NeverWritten
        Naming the first uninitialized read.
    """
    walk = _WrittenFlow(body)
    walk.stmt(body, ())
    written: dict[Any, list[_Event]] = {}
    for event in walk.writes:
        written.setdefault(event.buffer, []).append(event)
    for read in walk.reads:
        if not any(_may_come_first(write, read) for write in written.get(read.buffer, ())):
            where = nodes.where_of(read.statement)
            name = as_written(str(read.buffer.name), where)
            raise NeverWritten(what=read.what, buffer=name, fix=read.fix.format(buffer=name), where=where)


def _may_come_first(write: _Event, read: _Event) -> bool:
    """Whether a write of the elements may happen before the read."""
    if not _meet(write.box, read.box):
        return False
    if write.order < read.order:
        return True
    if nodes.scope_of(read.buffer) == "shared" and any(isinstance(s, (tirx.IfThenElse, _Choice)) for s, _ in read.path):
        return True  # other threads may be elsewhere in the program
    for depth, ((mine, side), (theirs, other)) in enumerate(zip(read.path, write.path, strict=False)):
        if not (mine is theirs or mine.same_as(theirs)) or side != other:
            return False
        if isinstance(mine, (tirx.For, tirx.While)):
            return not _certain(read.path[depth:])
    return False


def _certain(path: Sequence[tuple[Any, Any]]) -> bool:
    """Whether the first iteration of the outermost of these loops reaches the body of the innermost."""
    for depth, (s, _) in enumerate(path):
        if not isinstance(s, (tirx.For, tirx.While)):
            return False
        if collect(s.body, (tirx.Break, tirx.Continue)):
            return False
        if depth and (isinstance(s, tirx.While) or not _runs(s)):
            return False
    return True


def _runs(loop: Stmt) -> bool:
    extent = nodes.as_int(loop.extent)
    return isinstance(extent, int) and extent > 0


def _meet(a: _Box, b: _Box) -> bool:
    if a is None or b is None:
        return True
    return all(low <= top and bottom <= high for (low, high), (bottom, top) in zip(a, b, strict=True))


class _Choice:
    """One side of a conditional expression, where a path has a branch."""

    def same_as(self, other: object) -> bool:
        return self is other


class _WrittenFlow:
    def __init__(self, body: Stmt) -> None:
        self.reads: list[_Event] = []
        self.writes: list[_Event] = []
        self.bases: dict[Any, Any] = {}
        self.count = 0
        for view in collect(body, tirx.DeclBuffer):
            for var in collect(view.data, tirx.Var):
                self.bases[view.buffer] = self.bases.get(var, var)

    def stmt(self, s: Stmt, path: tuple[tuple[Any, Any], ...]) -> None:
        if isinstance(s, tirx.SeqStmt):
            for x in s.seq:
                self.stmt(x, path)
        elif isinstance(s, tirx.For):
            for part in (s.min, s.extent):
                self.expr(part, path, s)
            if nodes.as_int(s.extent) != 0:
                self.stmt(s.body, path if role(s) == "grid" else (*path, (s, None)))
        elif isinstance(s, tirx.While):
            self.expr(s.condition, path, s)
            self.stmt(s.body, (*path, (s, None)))
        elif isinstance(s, tirx.IfThenElse):
            self.expr(s.condition, path, s)
            self.stmt(s.then_case, (*path, (s, True)))
            if s.else_case is not None:
                self.stmt(s.else_case, (*path, (s, False)))
        elif isinstance(s, tirx.AttrStmt):
            self.stmt(s.body, path)
        elif isinstance(s, tirx.BufferStore):
            for part in (s.value, *s.indices):
                self.expr(part, path, s)
            self.write(s.buffer, [(i, 1) for i in s.indices], path, s)
        elif isinstance(s, (tirx.Evaluate, tirx.Bind)):
            if nodes.is_tile_call(s.value):
                self.call(s, path)
            else:
                self.expr(s.value, path, s)

    def call(self, s: Stmt, path: tuple[tuple[Any, Any], ...]) -> None:
        """Record a tile call's reads, then its writes; an op that the core does not define may write first."""
        call = OpCall.decode(s)
        op = OPS.get(call.name)
        for arg in call.args:
            if not isinstance(arg, View):
                self.expr(arg, path, s)
        if op is None:
            for arg in call.args:
                if isinstance(arg, View):
                    self.write(arg.buffer, None, path, s)
            return
        for view in op.views(call, op.writes) + op.views(call, op.reads):
            for index in view.mins:
                if not isinstance(index, int):
                    self.expr(index, path, s)
        targets = op.views(call, op.writes)
        for view in op.views(call, op.reads):
            accumulates = any(view is t for t in targets)
            if accumulates and _starts_afresh(call):
                continue
            fix = _WRITE_FIRST
            if accumulates:
                more = f", or {_AFRESH[call.name]}" if call.name in _AFRESH else ""
                fix = f"T.clear({{buffer}}) first{more}"
            does = f"T.{_name(call)} {'adds to' if accumulates else 'reads'}"
            self.read(view.buffer, list(zip(view.mins, view.extents, strict=True)), path, s, does, fix)
        for view in targets:
            self.write(view.buffer, list(zip(view.mins, view.extents, strict=True)), path, s)

    def expr(self, e: Expr, path: tuple[tuple[Any, Any], ...], s: Stmt) -> None:
        if not isinstance(e, ir.Expr) or not collect(e, (ir.TensorLoad, ir.Call)):
            return
        if isinstance(e, ir.TensorLoad):
            for index in e.indices:
                self.expr(index, path, s)
            self.read(e.source, [(i, 1) for i in e.indices], path, s, "this statement reads", _WRITE_FIRST)
        elif nodes.is_tile_call(e):
            for part in e.args:
                pointed = isinstance(part, ir.TensorLoad) and nodes.is_tile_call(e, "address")
                if pointed or hasattr(part, "region"):
                    self.write(part.source, None, path, s)
                else:
                    self.expr(part, path, s)
        elif (sides := sides_of(e)) is not None:
            self.expr(sides[0], path, s)
            for side in (x for x in sides[1:] if x is not None):
                self.expr(side, (*path, (_Choice(), None)), s)
        else:
            for part in parts_of(e):
                self.expr(part, path, s)

    def read(self, buffer: BufferVar, at: Any, path: Any, s: Stmt, what: str, fix: str) -> None:
        if nodes.scope_of(buffer) in _SCRATCH:
            self.reads.append(self.event(buffer, at, path, s, what, fix))

    def write(self, buffer: BufferVar, at: Any, path: Any, s: Stmt) -> None:
        if nodes.scope_of(buffer) in _SCRATCH:
            self.writes.append(self.event(buffer, at, path, s))

    def event(self, buffer: BufferVar, at: Any, path: Any, s: Stmt, what: str = "", fix: str = "") -> _Event:
        self.count += 1
        base = self.bases.get(buffer)
        box = None if at is None or base is not None else _box(at)
        return _Event(buffer if base is None else base, path, box, self.count, s, what, fix)


def _name(call: OpCall) -> str:
    kind = str(call.attrs.get("kind", ""))
    return {"reduce": f"reduce_{kind}", "scan": f"cum{kind}", "atomic": f"atomic_{kind}"}.get(call.name, call.name)


def _starts_afresh(call: OpCall) -> bool:
    """Whether an accumulating op never, or only sometimes, reads its destination."""
    if call.name == "reduce":
        return bool(call.attrs["clear"])
    if call.name not in ("gemm", "gemm_sp"):
        return False
    clear = call.args[-1]
    return not (isinstance(clear, tirx.IntImm) and int(clear.value) == 0)


def _box(at: Sequence[tuple[Any, Any]]) -> _Box:
    found = []
    for low, extent in at:
        start, size = nodes.as_int(low), nodes.as_int(extent)
        if not isinstance(start, int) or not isinstance(size, int):
            return None
        found.append((start, start + size - 1))
    return tuple(found)
