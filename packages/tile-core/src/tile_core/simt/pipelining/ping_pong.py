"""Check of ping-pong loops: no block barrier lies between a group's wait and its signal."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.errors.base import InternalError
from tile_core.ir import nodes
from tile_core.ir.visit import collect, loads_of
from tile_core.simt.pipelining.schedule import Schedule, order_barriers_of


def require_no_shared_barrier(body: Stmt, schedules: Sequence[Schedule]) -> None:
    """Refuse a program in which a block barrier would deadlock a ping-pong loop.

    Parameters
    ----------
    body
        With all barriers.
    schedules
        Of its loops.

    Raises
    ------
    InternalError
        A block barrier lies between the wait for a signal and the arrival that signals the next group.
    """
    names = {name for s in schedules for name in order_barriers_of(s)}
    inside = False
    for s in collect(body, tirx.Evaluate) if names else ():
        if nodes.is_tile_call(s.value, "sync_threads") and inside:
            detail = "a block barrier lies between the wait and the signal of a ping-pong group"
            raise InternalError(stage="barriers", detail=detail, where=nodes.where_of(s))
        is_order_barrier = any(str(x.source.name) in names for x in loads_of(s.value))
        if is_order_barrier and nodes.is_tile_call(s.value, "barrier_wait"):
            inside = True
        elif is_order_barrier and nodes.is_tile_call(s.value, "barrier_arrive"):
            inside = False
