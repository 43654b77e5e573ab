"""Reads and writes of tile calls, and per-thread calls."""

from __future__ import annotations

from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Stmt
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import collect
from tile_core.ops.base import OpCall, View
from tile_core.ops.registry import OPS

#: Calls that each thread executes for itself, even if they do not name a thread.
PER_THREAD_OPS = frozenset({"print", *(op.name for op in OPS.values() if op.per_thread)})


def effects(stmt: Stmt) -> tuple[list[View], list[View]]:
    """Return the views that a tile call reads and writes.

    A call that the core does not define reads and writes all views.
    """
    call = OpCall.decode(stmt)
    op = OPS.get(call.name)
    views = [a for a in call.args if isinstance(a, View)]
    if op is None:
        return views, views
    reads = op.views(call, op.reads)
    if op.name in ("gemm", "reduce") and _starts_fresh(call):
        reads = [v for v in reads if all(v is not w for w in op.views(call, op.writes))]
    return reads, op.views(call, op.writes)


def varies(s: Stmt, varying: Varying) -> bool:
    """Whether a statement uses a value that differs between threads, or is a per-thread op."""
    for mark in collect(s, tirx.AttrStmt):
        if mark.attr_key == attributes.OP_MARK and str(mark.node.value) in PER_THREAD_OPS:
            return True
    if any(str(c.op.name)[5:] in PER_THREAD_OPS for c in collect(s, ir.Call) if nodes.is_tile_call(c)):
        return True
    return varying.stmt(s)


def _starts_fresh(call: OpCall) -> bool:
    """Whether the op ignores the old value of its destination."""
    if call.name == "reduce":
        return bool(call.attrs[attributes.CLEAR])
    clear = call.args[3]
    return bool(getattr(clear, "value", False))
