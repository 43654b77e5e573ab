"""Rasterization along panels of the result, so that concurrent blocks share operands in L2.

A grid fixes which blocks there are, not their order, so a compiler may number them freely. Concurrent blocks read the
rows of A and columns of B of all their result tiles: a square reads the least.

Where all blocks run at a time, the same holds of neighbours, whose loads of one tile become one. On an H200 linear
layers of bfloat16 took this part of the time in the order of the grid: 256 x 6144 x 4096 by tiles of 128 x 96 0.84,
256 x 8192 x 8192 by 128 x 128 0.88, 256 x 10240 x 8192 by 128 x 160 0.88, 128 x 8192 x 8192 by 64 x 128 0.65,
512 x 4096 x 4096 by 128 x 128 0.95, 128 x 4096 x 14336 by 64 x 64 0.72; none took longer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from tile_core.analysis.flow import names_of
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import attributes, nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.program import cluster_of
from tile_core.ir.visit import annotation, collect, role
from tile_core.ops.base import OpCall, is_op
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.launch.longest_first import longest_first
from tile_cuda.machine import machine_of
from tile_cuda.ops.store_nests import store_nests

if TYPE_CHECKING:
    from tile_core.context import Context

_PANELS = (1, 2, 4, 8, 16, 32)
_NEIGHBOURS = 16
"""Blocks whose loads become one: as many as a cluster of multiprocessors of an H100 or H200 runs."""
_GAIN = 0.9
"""Part of the operands of the given order that panels may read at most, to be worth their divisions."""


def choose_order(plan: KernelPlan, ctx: Context, accumulators: Collection[BufferVar]) -> KernelPlan:
    """Note the rasterization order, if panels are known and worth it.

    Parameters
    ----------
    accumulators
        Accumulators of products: the largest part of a tensor that one of them, or a fragment computed from them, is
        copied to is a block's result.
    """
    if ctx.options.rasterization == "never" or not accumulators or plan.order:
        return plan
    if cluster_of(plan.program.attrs) != (1, 1, 1):
        return plan  # the program chooses which blocks share operands
    axes = {int(annotation(s, attributes.AXIS)): s for s in collect(plan.body, tirx.For) if role(s) == "grid"}
    tile = _result(plan.body, _computed_from(plan.body, accumulators))
    if tile is None or 0 not in axes or 1 not in axes or len(tile[1]) < 2:
        return plan
    values: dict[Var, list[Expr]] = {}
    for s in collect(plan.body, (tirx.Bind, tirx.BufferStore)):
        if type(s) is tirx.BufferStore and nodes.scope_of(s.buffer) in PRIVATE:
            values.setdefault(s.buffer, []).append(s.value)
        elif type(s) is tirx.Bind and not nodes.is_tile_call(s.value):
            values[s.var] = [s.value]
    rows, columns = (_axis(at, axes, values) for at in tile[0][-2:])
    if rows is None or columns is None or {rows, columns} != {0, 1}:
        return plan
    extent = int(tile[1][-2]), int(tile[1][-1])
    blocks = machine_of(ctx.target.arch).processors  # one of each at a time
    panel = min(_PANELS, key=lambda p: _read(p, *extent, blocks))
    given = [nodes.as_int(axes[axis].extent) for axis in (rows, columns)]
    if ctx.options.rasterization == "auto" and all(isinstance(n, int) for n in given):
        first = 1 if columns == 0 else 0  # blocks along x are numbered first
        if prod(given) <= blocks:
            blocks = _NEIGHBOURS
            panel = min(_PANELS, key=lambda p: _read(p, *extent, blocks))
        panel = min(panel, given[0])  # few rows: all blocks of a column read it at a time
        if _read(panel, *extent, blocks) > _GAIN * _read_in_order(given, extent, first, blocks):
            return plan
    return plan.replace(order={"panel": panel, "order": "row" if rows == 1 else "column"})


def begin_longest(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Let the blocks with the largest trip counts begin first, see `tile_core.simt.launch.longest_first`.

    Causal attention on an H200, relative to cuDNN, bfloat16, the fastest of six tiles, and before: 32 heads and 8 key
    heads of 128, 1,024 positions 1.80 (1.31), 4,096 1.07 (0.93), 16,384 1.03 (0.97); 16 heads of 64, 4,096 positions
    1.09 (0.87); 32 heads of 256, 2,048 positions 1.08 (0.86).
    """
    is_given = ctx.options.rasterization == "never" or plan.order or cluster_of(plan.program.attrs) != (1, 1, 1)
    processors = 1 if ctx.options.rasterization == "always" else machine_of(ctx.target.arch).processors
    order = None if is_given else longest_first(plan.body, processors)
    return plan if order is None else plan.replace(order=order)


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
