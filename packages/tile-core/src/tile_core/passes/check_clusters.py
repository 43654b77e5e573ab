"""Check cluster barriers: all threads of all blocks alternate arrivals and waits, equally often."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tile_core.analysis.cluster_uniform import InCluster
from tile_core.analysis.flow import Flow
from tile_core.analysis.point import Point, is_grid
from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.errors.ops import BadCluster
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import annotation, collect, role

_CALLS = ("cluster_arrive", "cluster_wait")


def check_clusters(body: Stmt, cluster: Sequence[int]) -> None:
    """Check the barriers of a cluster.

    Raises
    ------
    BadCluster
        Where some threads or blocks may not come, or where arrivals and waits do not alternate.
    """
    if not any(_name(s) for s in collect(body, tirx.Evaluate)):
        return
    varying = Varying(body)
    flow, known = varying.flow, InCluster(cluster)
    for p in flow.points:
        if is_grid(p):
            known.axes[int(annotation(p.stmt, attributes.AXIS))] = p.stmt.loop_var
    known.binds |= {v: e for v, e in flow.binds.items() if not nodes.is_tile_call(e)}
    for p in flow.points:
        name = _name(p.stmt)
        if name:
            reason = next((found for around in p.path if (found := _apart(around, flow, varying, known))), "")
            if reason:
                raise _bad(p, f"T.{name} stands where {reason}", "write it where all threads of all blocks come")
    for p in flow.points:
        for part in p.parts:
            _check_alternation(part)


def _check_alternation(points: Sequence[Point]) -> None:
    """Refuse a list of statements whose cluster arrivals and waits do not alternate."""
    open_: Point | None = None
    for p in points:
        name = _name(p.stmt)
        inside = next((s for s in collect(p.stmt, tirx.Evaluate) if not name and _name(s)), None)
        if open_ is not None and (name == _CALLS[0] or inside is not None):
            break
        if name == _CALLS[1] and open_ is None:
            raise _bad(p, "T.cluster_wait has no T.cluster_arrive before it", "let each thread arrive before it waits")
        if name:
            open_ = p if name == _CALLS[0] else None
    if open_ is not None:
        fix = "write T.cluster_wait behind it in the same list of statements, before the next one"
        raise _bad(open_, "T.cluster_arrive has no T.cluster_wait of its own", fix)


def _apart(around: Point, flow: Flow, varying: Varying, known: InCluster) -> str:
    """Return the threads or blocks that may skip the inside of a statement, in words."""
    s, ranks = around.stmt, range(prod(known.cluster))
    if around.kind == "mark":
        return "only the threads of a role reach it" if s.attr_key == attributes.ONLY else ""
    if is_grid(around):
        return ""
    if around.kind == "for" and role(s) in ("parallel", "vectorized", "pipelined"):
        return "the iterations around it are unordered"
    if around.kind in ("for", "while") and flow.jumps(around):
        return "a break or continue leaves the loop"
    if varying.parts(around):
        return "threads of a block may diverge"
    decides = [s.min, s.extent] if around.kind == "for" else [s.condition] if around.kind in ("if", "while") else []
    return "" if known.same(decides, ranks) else "blocks of a cluster may reach it a different number of times"


def _name(s: Stmt) -> str:
    name = nodes.operator_name(s.value).removeprefix("tile.") if isinstance(s, tirx.Evaluate) else ""
    return name if name in _CALLS else ""


def _bad(p: Point, found: str, fix: str) -> BadCluster:
    return BadCluster(found=found, fix=fix, where=nodes.where_of(p.stmt))
