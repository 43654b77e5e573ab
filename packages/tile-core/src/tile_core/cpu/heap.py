"""Allocation of a kernel's own buffers by the C library in place of TVM's runtime."""

from __future__ import annotations

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Call, Expr, Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect, map_expr

_ALIGNMENT = 64


def use_heap(body: Stmt) -> Stmt:
    """Return a statement whose allocations and releases of memory are calls of the C library."""
    return _UseHeap().stmt(body)


class _UseHeap(StmtRewriter):
    def expr(self, e: Expr) -> Expr:
        return map_expr(e, _allocated, ir.Call)

    def visit_DeclBuffer(self, s: Stmt) -> Stmt:
        return tirx.DeclBuffer(s.buffer, data=self.expr(s.data), span=s.span)

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        released = [c for c in collect(s.condition, ir.Call) if nodes.operator_name(c) == "TVMBackendFreeWorkspace"]
        if released:  # the C library's release has no result
            return tirx.Evaluate(tirx.call_extern("int32", "free", released[0].args[2]))
        return super().visit_IfThenElse(s)


def _allocated(call: Call) -> Expr:
    if nodes.operator_name(call) != "TVMBackendAllocWorkspace":
        return call
    size = nodes.cast(call.args[2], "uint64")
    whole = (size + nodes.const(_ALIGNMENT - 1, "uint64")) // nodes.const(_ALIGNMENT, "uint64")
    return tirx.call_extern(
        "handle", "aligned_alloc", nodes.const(_ALIGNMENT, "uint64"), whole * nodes.const(_ALIGNMENT, "uint64")
    )
