"""Kernels that name their threads, on a processor that runs one block at a time.

The block's threads run one after another between synchronization points: a barrier, a warp operation or a tile op.
Control flow around such points must be uniform; it stays outside, and each region between them becomes a loop over the
threads. Values that are live across regions (local arrays, variables, bindings) get one slot per thread.
"""

from __future__ import annotations

from tile_core.analysis.uniformity import uses_threads
from tile_core.compat.tvm import ir
from tile_core.compat.types import Call, Expr, Stmt, Var
from tile_core.cpu.debug import name_threads
from tile_core.cpu.grid import threads_of
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, annotation, map_expr, role


def run_threads(body: Stmt) -> Stmt:
    """Return the body without thread indices, barriers and warp operations."""
    body = name_threads(_BlockIndices().stmt(body))
    if not uses_threads(body):
        return _Unmark().stmt(body)
    from tile_core.cpu.fission import distribute

    return distribute(body, threads_of(body))


class _Unmark(StmtRewriter):
    """Drops the marks of tile ops, which only matter where threads are distinguished."""

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        return self.stmt(s.body) if s.attr_key == attributes.OP_MARK else super().visit_AttrStmt(s)

    def expr(self, e: Expr) -> Expr:
        return map_expr(e, lambda c: c.args[0] if nodes.is_tile_call(c, "per_thread") else c, ir.Call)


class _BlockIndices(StmtRewriter):
    """Replaces ``T.get_block_binding`` by the grid's loop variables; 0 for absent axes."""

    def __init__(self) -> None:
        self.axes: dict[int, Var] = {}

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) == "grid":
            self.axes[int(annotation(s, attributes.AXIS))] = s.loop_var
        return super().visit_For(s)

    def expr(self, e: Expr) -> Expr:
        return map_expr(e, self.index, ir.Call)

    def index(self, call: Call) -> Call:
        if not nodes.is_tile_call(call, "block_index"):
            return call
        return self.axes.get(int(nodes.as_int(call.args[0])), nodes.int_const(0))
