"""The reads and writes of tile calls."""

from __future__ import annotations

from tile_core.compat.types import Stmt
from tile_core.ops.base import OpCall, View
from tile_core.ops.registry import OPS


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


def _starts_fresh(call: OpCall) -> bool:
    """Whether the op ignores the old value of its destination."""
    if call.name == "reduce":
        return bool(call.attrs["clear"])
    clear = call.args[3]
    return bool(getattr(clear, "value", False))
