"""Rasterization along panels of the result, so that concurrent blocks share operands in L2.

A grid fixes which blocks there are, not their order, so a compiler may number them freely. Concurrent blocks read the
rows of A and columns of B of all their result tiles: a square reads the least.

Where all blocks run at a time, the same holds of neighbours, whose loads of one tile become one. On an H200 linear
layers of bfloat16 took this part of the time in the order of the grid: 256 x 6144 x 4096 by tiles of 128 x 96 0.84,
256 x 8192 x 8192 by 128 x 128 0.88, 256 x 10240 x 8192 by 128 x 160 0.88, 128 x 8192 x 8192 by 64 x 128 0.65,
512 x 4096 x 4096 by 128 x 128 0.95, 128 x 4096 x 14336 by 64 x 64 0.72; none took longer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from typing import Any

from tile_core.analysis.flow import names_of
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import attributes, nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import annotation, collect, role
from tile_core.ops.base import OpCall, is_op
from tile_core.simt.launch.store_nests import store_nests
from tile_core.simt.pipelining.async_products import accumulator_of, products_of

_PANELS = (1, 2, 4, 8, 16, 32)
_GAIN = 0.9
"""Time of panels relative to the given order, at most, to be worth their divisions."""


def panels(
    body: Stmt, blocks: int, neighbours: int, time: Callable[[float, int], float] | None = None, always: bool = False
) -> Mapping[str, Any]:
    """Return the rasterization order of a grid, or none without panels that save time.

    The largest part of a tensor to which accumulators, or fragments computed from them, are copied is a block's result.

    Parameters
    ----------
    body
        The program.
    blocks
        Blocks that run at a time.
    neighbours
        Blocks whose loads become one where all blocks run at a time; 0 if the order does not matter then.
    time
        Returns the estimated time of a step along K, given the rows and columns that concurrent blocks read for it,
        and the elements of their results. By default it is proportional to these rows and columns, and unknown grids
        have panels; given a time, there are as many blocks along their axes as run at a time.
    always
        Whether panels are worth it wherever they are known.
    """
    calls = list(map(OpCall.decode, products_of(body)))
    accumulators = [call.args[accumulator_of(call)].buffer for call in calls]
    axes = {int(annotation(s, attributes.AXIS)): s for s in collect(body, tirx.For) if role(s) == "grid"}
    tile = _result(body, _computed_from(body, accumulators)) if accumulators else None
    if tile is None or 0 not in axes or 1 not in axes or len(tile[1]) < 2:
        return {}
    values: dict[Var, list[Expr]] = {}
    for s in collect(body, (tirx.Bind, tirx.BufferStore)):
        if type(s) is tirx.BufferStore and nodes.scope_of(s.buffer) in PRIVATE:
            values.setdefault(s.buffer, []).append(s.value)
        elif type(s) is tirx.Bind and not nodes.is_tile_call(s.value):
            values[s.var] = [s.value]
    rows, columns = (_axis(at, axes, values) for at in tile[0][-2:])
    if rows is None or columns is None or {rows, columns} != {0, 1}:
        return {}
    extent = int(tile[1][-2]), int(tile[1][-1])
    panel = min(_PANELS, key=lambda p: _read(p, *extent, blocks))
    given = [nodes.as_int(axes[axis].extent) for axis in (rows, columns)]
    if time is not None:
        given = [n if isinstance(n, int) else blocks for n in given]
    if not always and all(isinstance(n, int) for n in given):
        first = 1 if columns == 0 else 0  # blocks along x are numbered first
        if prod(given) <= blocks:
            if not neighbours:
                return {}
            blocks = neighbours
            panel = min(_PANELS, key=lambda p: _read(p, *extent, blocks))
        panel = min(panel, given[0])  # few rows: all blocks of a column read it at a time
        read, before = _read(panel, *extent, blocks), _read_in_order(given, extent, first, blocks)
        if time is not None:
            read, before = (time(lines, blocks * prod(extent)) for lines in (read, before))
        if read > _GAIN * before:
            return {}
    return {"panel": panel, "order": "row" if rows == 1 else "column"}


def _computed_from(body: Stmt, accumulators: Collection[BufferVar]) -> list[BufferVar]:
    """Return accumulators, and the fragments of their shapes that are computed from them."""
    found = list(accumulators)
    stores = [s for s in collect(body, tirx.BufferStore) if nodes.scope_of(s.buffer) == "local.fragment"]
    for s in stores:
        read = [e.source for e in collect(s.value, ir.TensorLoad)]
        is_result = any(b.same_as(x) and nodes.shape_of(b) == nodes.shape_of(s.buffer) for b in read for x in found)
        if is_result and not any(s.buffer.same_as(x) for x in found):
            found.append(s.buffer)
    return found


def _result(body: Stmt, accumulators: Collection[BufferVar]) -> tuple[Sequence[Expr], Sequence[int]] | None:
    """Return corner and extents of the largest store of accumulators."""
    found: list[tuple[Sequence[Expr], Sequence[int]]] = []
    for s in collect(body, (tirx.Evaluate, tirx.For)):
        nests = store_nests(s, accumulators) if type(s) is tirx.For else []
        found += [(nest.corner, nest.extents) for nest in nests]
        call = OpCall.decode(s) if is_op(s) and nodes.is_tile_call(s.value, "copy") else None
        if (
            call is not None
            and call.args[1].scope == "global"
            and any(call.args[0].buffer.same_as(b) for b in accumulators)
        ):
            found.append((call.args[1].mins, call.args[1].extents))
    return max(found, key=lambda part: prod(part[1]), default=None)


def _axis(at: Expr, axes: Mapping[int, Stmt], values: Mapping[Var, Sequence[Expr]]) -> int | None:
    """Return the one axis of the grid that a coordinate depends on."""
    open_parts, seen = [nodes.int_const(0) + at], set[Var]()
    while open_parts:
        more = names_of(open_parts.pop()) - seen
        seen |= more
        open_parts += [e for v in more for e in values.get(v, ())]
    found = [axis for axis, loop in axes.items() if loop.loop_var in seen]
    return found[0] if len(found) == 1 else None


def _read(panel: int, m: int, n: int, blocks: int) -> float:
    """Return the rows and columns that concurrent blocks read, along panels of this width."""
    return panel * m + -(-blocks // panel) * n


def _read_in_order(given: list[Any], extent: tuple[int, int], first: int, blocks: int) -> float:
    """Return the same for the order of the grid."""
    along, across = (given[1], given[0]) if first == 1 else (given[0], given[1])
    wide = min(along, blocks)
    high = min(across, -(-blocks // wide))
    return float(wide * extent[first] + high * extent[1 - first])
