"""The check of loops whose groups of threads take turns: no barrier of the block stands where only one group can be."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.errors.base import InternalError
from tile_core.ir import nodes
from tile_core.ir.visit import collect, loads_of
from tile_core.simt.pipelining.schedule import Schedule, order_barriers_of


def require_no_shared_barrier(body: Stmt, schedules: Sequence[Schedule]) -> None:
    """Refuse a program whose groups of threads would wait for each other in a turn, and so for ever.

    Parameters
    ----------
    body
        With all barriers.
    schedules
        Of its loops.

    Raises
    ------
    InternalError
        A barrier of the block stands between the wait for a turn and the arrival that gives it.
    """
    names = {name for s in schedules for name in order_barriers_of(s)}
    inside = False
    for s in collect(body, tirx.Evaluate) if names else ():
        if nodes.is_tile_call(s.value, "sync_threads") and inside:
            detail = "groups of threads that take turns would meet at a barrier of the block within a turn"
            raise InternalError(stage="barriers", detail=detail, where=nodes.where_of(s))
        is_order_barrier = any(str(x.source.name) in names for x in loads_of(s.value))
        if is_order_barrier and nodes.is_tile_call(s.value, "barrier_wait"):
            inside = True
        elif is_order_barrier and nodes.is_tile_call(s.value, "barrier_arrive"):
            inside = False
