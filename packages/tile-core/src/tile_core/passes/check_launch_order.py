"""Check waits for the previous launches: no earlier access to memory that these may use."""

from __future__ import annotations

from tile_core.analysis.flow import Flow
from tile_core.analysis.point import is_grid
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.errors.ops import BadLaunchOrder
from tile_core.ir import nodes
from tile_core.ir.names import as_written
from tile_core.ir.visit import collect
from tile_core.ops.effects import effects

WAIT = "launch_wait"


def check_launch_order(body: Stmt) -> None:
    """Check the waits of a program for the launches before it.

    Raises
    ------
    BadLaunchOrder
        Where one stands in a loop, a branch or a role, and where global memory is accessed before it.
    """
    if not any(nodes.is_tile_call(s.value, WAIT) for s in collect(body, tirx.Evaluate)):
        return
    flow = Flow(body, effects)
    waits = [p for p in flow.points if isinstance(p.stmt, tirx.Evaluate) and nodes.is_tile_call(p.stmt.value, WAIT)]
    for p in waits:
        if not all(map(is_grid, p.path)):
            fix = "write it as a statement of the launch itself, before its first access to a tensor"
            raise BadLaunchOrder(
                found="T.pdl_sync stands in a loop, a branch or T.ws", fix=fix, where=nodes.where_of(p.stmt)
            )
    for a in flow.accesses:
        if nodes.scope_of(flow.root(a.buffer)) == "global" and not any(w.order < a.point.order for w in waits):
            where = nodes.where_of(a.statement)
            found = f"{as_written(str(a.buffer.name), where)} is accessed before T.pdl_sync"
            raise BadLaunchOrder(found=found, fix="move T.pdl_sync before it", where=where)
