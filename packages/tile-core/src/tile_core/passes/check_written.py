"""Refuse reads of uninitialized scratch memory.

Scratch memory is uninitialized at first. The program is walked in order: a read is refused if every write of the same
elements comes after it, whichever branches are taken. Where a loop may carry a write of one iteration to a read of
the next, the read counts only if the loop's first iteration certainly reaches it before the write; a conditional write
(in a branch, in a loop that may run zero times) counts as a write. Emulation finds the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tile_core.analysis.accesses import Access, accesses_in, accesses_of
from tile_core.analysis.flow import Flow
from tile_core.analysis.point import Point, is_grid
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.errors.ops import NeverWritten
from tile_core.ir import attributes, nodes
from tile_core.ir.names import as_written
from tile_core.ops.base import COMPLETED, OpCall, View
from tile_core.ops.registry import OPS
from tile_core.records import dataclass

_SCRATCH = ("shared", "local.fragment", "local", "local.var")
_WRITE_FIRST = "write it first, with T.copy, T.clear, T.fill or element by element"
#: Zero-initializing forms of accumulating ops: the op's name and the argument to add.
_AFRESH = {
    "gemm": "clear_accum=True",
    "gemm_sp": "clear_accum=True",
    "gemm_scaled": "clear_accum=True",
    "reduce": "clear=True",
}

_Box = tuple[tuple[int, int], ...] | None
_At = Sequence[tuple[Expr, int]] | None  # corner and extent per dimension; None for the whole buffer


@dataclass(frozen=True)
class _Event:
    """A read or write of scratch memory.

    Attributes
    ----------
    buffer
        The buffer that owns the storage.
    point
        The statement.
    chosen
        Whether a conditional expression decides that it happens.
    box
        First and last index in each dimension, or ``None`` for anything in the buffer.
    order
        Position in program order; a statement reads before it writes.
    what, fix
        For the message: the reader, and the remedy.
    """

    buffer: BufferVar
    point: Point
    chosen: bool
    box: _Box
    order: int
    what: str = ""
    fix: str = ""


def check_written(body: Stmt) -> None:
    """Check all reads of scratch memory of a program.

    Raises
    ------
    NeverWritten
        Naming the first uninitialized read.
    """
    found = _Events(Flow(body))
    written: dict[BufferVar, list[_Event]] = {}
    for event in found.writes:
        written.setdefault(event.buffer, []).append(event)
    for read in found.reads:
        if not any(_may_come_first(found.flow, write, read) for write in written.get(read.buffer, ())):
            where = nodes.where_of(read.point.stmt)
            name = as_written(str(read.buffer.name), where)
            raise NeverWritten(what=read.what, buffer=name, fix=read.fix.format(buffer=name), where=where)


def _may_come_first(flow: Flow, write: _Event, read: _Event) -> bool:
    """Whether a write of the elements may happen before the read."""
    if not _meet(write.box, read.box):
        return False
    if write.order < read.order:
        return True
    if nodes.scope_of(read.buffer) == "shared" and (read.chosen or read.point.conditions):
        return True  # other threads may be elsewhere in the program
    loop = next((p for p in read.point.loops if p in write.point.loops and not is_grid(p)), None)
    return loop is not None and (read.chosen or not flow.always(read.point, loop))


def _meet(a: _Box, b: _Box) -> bool:
    if a is None or b is None:
        return True
    return all(low <= top and bottom <= high for (low, high), (bottom, top) in zip(a, b, strict=True))


class _Events:
    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.reads: list[_Event] = []
        self.writes: list[_Event] = []
        self.count = 0
        for p in flow.walk(lambda p: p.kind != "for" or nodes.as_int(p.stmt.extent) != 0):
            if isinstance(p.stmt, (tirx.Evaluate, tirx.Bind)) and nodes.is_tile_call(p.stmt.value):
                self.call(p)
            else:
                self.plain(p, accesses_of(p))

    def plain(self, p: Point, accesses: Iterable[Access]) -> None:
        """Record reads and writes of elements; escaped addresses count as writes first."""
        for a in accesses:
            if a.how != "element":
                self.write(a.buffer, None, p)
            elif a.write:
                self.write(a.buffer, [(i, 1) for i in a.indices], p)
            else:
                at = [(i, 1) for i in a.indices]
                self.read(a.buffer, at, p, "this statement reads", _WRITE_FIRST, len(a.conditions) > len(p.conditions))

    def call(self, p: Point) -> None:
        """Record a tile call's reads, then its writes; ops of backends may write first."""
        call = OpCall.decode(p.stmt)
        op = OPS.get(call.name)
        for arg in call.args:
            if not isinstance(arg, View):
                self.plain(p, accesses_in(arg, p))
        if op is None:
            for arg in call.args:
                if isinstance(arg, View):
                    self.write(arg.buffer, None, p)
            return
        for view in op.views(call, op.writes) + op.views(call, op.reads):
            for index in view.mins:
                self.plain(p, accesses_in(index, p))
        targets = op.views(call, op.writes)
        for view in op.views(call, op.reads):
            accumulates = any(view is t for t in targets)
            if accumulates and _starts_afresh(call):
                continue
            fix = _WRITE_FIRST
            if accumulates:
                more = f", or {_AFRESH[call.name]}" if call.name in _AFRESH else ""
                fix = f"T.clear({{buffer}}) first{more}"
            does = f"{call.written} {'adds to' if accumulates else 'reads'}"
            self.read(view.buffer, list(zip(view.mins, view.extents, strict=True)), p, does, fix)
        for view in targets:
            self.write(view.buffer, list(zip(view.mins, view.extents, strict=True)), p)

    def read(self, buffer: BufferVar, at: _At, p: Point, what: str, fix: str, chosen: bool = False) -> None:
        if nodes.scope_of(buffer) in _SCRATCH:
            self.reads.append(self.event(buffer, at, p, chosen, what, fix))

    def write(self, buffer: BufferVar, at: _At, p: Point) -> None:
        if nodes.scope_of(buffer) in _SCRATCH:
            self.writes.append(self.event(buffer, at, p))

    def event(
        self, buffer: BufferVar, at: _At, p: Point, chosen: bool = False, what: str = "", fix: str = ""
    ) -> _Event:
        self.count += 1
        root = self.flow.root(buffer)
        box = None if at is None or root is not buffer else _box(at)
        return _Event(root, p, chosen, box, self.count, what, fix)


def _starts_afresh(call: OpCall) -> bool:
    """Whether an accumulating op never, or only sometimes, reads its destination."""
    if call.name == "reduce":
        return bool(call.attrs[attributes.CLEAR])
    if call.name not in ("gemm", "gemm_sp", "gemm_scaled"):
        return False
    clear = (call.args[: COMPLETED[call.name]] if attributes.COMPLETES in call.attrs else call.args)[-1]
    return not (isinstance(clear, tirx.IntImm) and int(clear.value) == 0)


def _box(at: Sequence[tuple[Expr, int]]) -> _Box:
    found = []
    for low, extent in at:
        start, size = nodes.as_int(low), nodes.as_int(extent)
        if not isinstance(start, int) or not isinstance(size, int):
            return None
        found.append((start, start + size - 1))
    return tuple(found)
