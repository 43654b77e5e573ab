"""Check barriers of a part of a block (``T.sync_threads(number, count)``): always the same threads."""

from __future__ import annotations

import numpy as np

from tile_core.analysis.point import Point
from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Array, Stmt
from tile_core.errors.lowering import BarrierUnsupported
from tile_core.errors.ops import BadBarrier
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import annotation, collect, role
from tile_core.ir.warp import WARP
from tile_core.passes.check_warps import LaneVarying
from tile_core.passes.roles import role_of

_AXES = 3


def check_parts(body: Stmt, width: int, target: str) -> None:
    """Check the barriers of parts of blocks.

    Parameters
    ----------
    body
        The program.
    width
        Threads that execute together: a part is made of whole groups of them.
    target
        The target's text.

    Raises
    ------
    BadBarrier
        If a barrier's count differs from the threads at it, if these are unknown, or if two parts have one number.
    BarrierUnsupported
        If the threads are not whole groups of a target whose groups are larger than those of most.
    """
    for launch in collect(body, tirx.For):
        threads = annotation(launch, attributes.THREADS)
        if threads is None or not any(nodes.is_tile_call(s.value, "sync_part") for s in collect(launch, tirx.Evaluate)):
            continue
        sizes = [int(nodes.as_int(t)) for t in threads]
        _check(LaneVarying(launch.body, [*sizes, 1, 1][:_AXES], width), width, target)


def _check(lanes: LaneVarying, width: int, target: str) -> None:
    parts: dict[int, Array] = {}
    varying = Varying(lanes.flow.body)
    apart = {p.order for p in varying.flow.points if varying.parts(p)}
    for p in lanes.flow.points:
        if not (isinstance(p.stmt, tirx.Evaluate) and nodes.is_tile_call(p.stmt.value, "sync_part")):
            continue
        number, count = (int(nodes.as_int(a)) for a in p.stmt.value.args)
        mine = _threads_at(p, lanes, apart)
        if mine is None:
            found = "the threads that execute it are unknown"
        elif int(mine.sum()) != count:
            found = f"{int(mine.sum())} threads execute it"
        elif not _whole(mine, count, min(width, WARP)):
            found = f"its threads are not whole groups of {min(width, WARP)} threads"
        elif not _whole(mine, count, width):
            facts = {"name": f"T.sync_threads({number}, {count})", "target": target}
            raise BarrierUnsupported(**facts, found=f"groups of {width} threads", where=nodes.where_of(p.stmt))
        elif (parts.setdefault(number, mine) != mine).any():
            found = f"other threads wait at the barrier {number} too"
        else:
            found = ""
        if found:
            fix = "let the whole block, a role, or threads chosen by their numbers execute it, with a number of its own"
            where = nodes.where_of(p.stmt)
            raise BadBarrier(found=f"T.sync_threads({number}, {count}): {found}", fix=fix, where=where)


def _whole(mine: Array, count: int, width: int) -> bool:
    """Whether a number of threads of a block consists of whole groups."""
    return not count % width and all(len(set(mine[k : k + width])) == 1 for k in range(0, len(mine), width))


def _threads_at(p: Point, lanes: LaneVarying, apart: set[int]) -> Array | None:
    """Return which threads of a block execute a point together; ``None`` if unknown."""
    mine: Array = np.ones(lanes.count, bool)
    for around in p.path:
        if around.kind == "mark" and around.stmt.attr_key == attributes.ONLY:
            first, count = role_of(p) or (0, lanes.count)
            mine[:first] = False
            mine[first + count :] = False
        elif around.kind == "for" and role(around.stmt) in ("parallel", "vectorized"):
            return None
        elif around.order in apart:
            held = lanes.value(around.stmt.condition) if around.kind == "if" else None
            if held is None:
                return None
            side = np.broadcast_to(held, mine.shape).astype(bool)
            mine = mine & (side if any(q.contains(p) for q in around.parts[0]) else ~side)
    return mine
