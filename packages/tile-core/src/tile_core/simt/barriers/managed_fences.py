"""Fences in pipelined loops whose tiles are read by the asynchronous proxy.

A region that manages its buffers orders the accesses of threads. Writes of threads, or copies on their behalf, are
visible to the asynchronous proxy only after their fence, before the barrier that signals other threads.
"""

from __future__ import annotations

from tile_core.compat.structural import attribute, item, op_name
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Call, Stmt
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import ACCESS, AFTER_READS, MANAGED, PROXY
from tile_core.ir.visit import StmtRewriter, collect, distinct


def fence_managed(body: Stmt) -> Stmt:
    """Return the body with proxy fences before the barriers and arrivals of managed regions."""
    return _Fences().stmt(body)


class _Fences(StmtRewriter):
    def __init__(self) -> None:
        #: The buffers of the region around that need fences, and whether the threads here write them.
        self.fenced: set[BufferVar] = set()
        self.writes = False

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        outer = self.fenced, self.writes
        if s.attr_key == MANAGED and not self.fenced:
            self.fenced, self.writes = _fenced(s.body), True
        new = super().visit_AttrStmt(s)
        self.fenced, self.writes = outer
        return new

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        outer = self.writes
        self.writes = outer and bool(self.fenced & _stored(s))
        new = super().visit_IfThenElse(s)
        self.writes = outer
        return new

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        arrives = self.writes and nodes.is_tile_call(s.value, "barrier_arrive")
        return nodes.seq([calls.fence_proxy(), s]) if self.fenced and (_is_barrier(s.value) or arrives) else s


def _is_barrier(call: Call) -> bool:
    """Whether a call is a barrier after which threads observe earlier writes."""
    if nodes.is_tile_call(call, "sync_threads"):
        return not (call.attrs and call.attrs.get(AFTER_READS))
    return nodes.is_tile_call(call, "sync_part")


def _fenced(body: Stmt) -> set[BufferVar]:
    """Return the buffers that threads write and that asynchronous instructions access."""
    addresses = [c for c in collect(body, ir.Call) if op_name(c) == "tile.address"]
    theirs = [(p, str(attribute(p, ACCESS))) for p in addresses if _proxy(p)]
    read = distinct([_buffer(p) for p, access in theirs if access == "r" and _is_shared(p)])
    written = distinct([_buffer(p) for p, access in theirs if access == "w"])
    return (read - written) | (_stored(body) & (read | written))


def _stored(body: Stmt) -> set[BufferVar]:
    """Return the buffers that threads write themselves."""
    found = [s.buffer for s in collect(body, tirx.BufferStore)]
    for call in collect(body, ir.Call):
        name = op_name(call)
        if name == "tile.move":
            found.append(item(call.args, 0).source)
        elif name == "tile.address" and not _proxy(call) and str(attribute(call, ACCESS)) != "r":
            found.append(_buffer(call))
    return distinct(found)


def _buffer(address: Call) -> BufferVar:
    return item(address.args, 0).source


def _is_shared(address: Call) -> bool:
    return nodes.scope_of(_buffer(address)) == "shared"


def _proxy(address: Call) -> str:
    return str(attribute(address, PROXY, ""))
