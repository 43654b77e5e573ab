"""Fences in pipelined loops whose tiles are read by the asynchronous proxy.

A region that orders its buffers itself does so for threads. What threads have written there, or had copied on their
behalf, is visible to the other proxy only after a fence of theirs, before the barrier that tells others.
"""

from __future__ import annotations

from tile_core.compat.tvm import ir
from tile_core.compat.types import BufferVar, Call, Stmt
from tile_core.ir import calls, nodes
from tile_core.ir.visit import StmtRewriter, collect


def fence_managed(body: Stmt) -> Stmt:
    """Return the body with a fence before each barrier of such a region."""
    return _Fences().stmt(body)


class _Fences(StmtRewriter):
    def __init__(self) -> None:
        self.inside = False

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        outer = self.inside
        self.inside = outer or (s.attr_key == calls.MANAGED and _needs_fences(s.body))
        new = super().visit_AttrStmt(s)
        self.inside = outer
        return new

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if self.inside and _is_barrier(s.value):
            return nodes.seq([calls.fence_proxy(), s])
        return s


def _is_barrier(call: Call) -> bool:
    """Whether a call is a barrier behind which threads or others see what threads have written."""
    if nodes.is_tile_call(call, "sync_threads"):
        return not (call.attrs and call.attrs.get(calls.AFTER_READS))
    return nodes.is_tile_call(call, "sync_part")


def _needs_fences(body: Stmt) -> bool:
    """Whether the asynchronous proxy reads what threads write."""
    places = [c for c in collect(body, ir.Call) if nodes.is_tile_call(c, "address")]
    read = {_buffer(p) for p in places if _proxy(p) and str(p.attrs["access"]) == "r" and _is_shared(p)}
    written = {_buffer(p) for p in places if _proxy(p) and str(p.attrs["access"]) == "w"}
    return bool(read - written)


def _buffer(place: Call) -> BufferVar:
    return place.args[0].source


def _is_shared(place: Call) -> bool:
    return nodes.scope_of(_buffer(place)) == "shared"


def _proxy(place: Call) -> str:
    return str(place.attrs.get("proxy", ""))
