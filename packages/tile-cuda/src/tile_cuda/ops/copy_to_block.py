"""Copies to the shared memory of another block of the cluster: bulk or stores.

If a barrier counts a copy, one thread arrives there, expects the bytes, and issues a copy for each run of bytes that
is contiguous on both sides. Otherwise each thread stores elements to the mapped address. PTX ISA, "cp.async.bulk",
"mapa" and "st".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import calls, nodes
from tile_core.layout.base import LayoutMap
from tile_core.lowering.variant import Accept, Reject, Withdrawn
from tile_core.ops import copy_to_block
from tile_core.ops.base import View
from tile_core.simt.memory.alignment import factor
from tile_core.simt.ops.atomics import bits
from tile_core.simt.variant import SimtCall, SimtVariant
from tile_cuda.ops.boxes import CHUNK
from tile_cuda.ops.copy_async import dealt
from tile_cuda.ptx.bulk import SEND_BYTES, SEND_EXPECT, store_to_block
from tile_cuda.vocabulary.block_copies import VARIANT

if TYPE_CHECKING:
    from tile_core.context import Context

_MOST_RUNS = 64
"""Bulk copies of one tile: one thread issues all of them."""
MOST_BYTES = 2**20 - CHUNK
"""Bytes that a barrier counts in one phase."""


class CopyToBlock(SimtVariant):
    """A copy to another block."""

    name = VARIANT
    op = copy_to_block.NAME
    priority = 10

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Take tiles of whole bytes; those that a barrier counts are runs of 16 bytes."""
        src, dst = call.args[:2]
        if DTYPES[src.dtype].bits < 8:
            return Reject(f"elements of {src.dtype} are parts of bytes")
        if len(call.args) <= copy_to_block.BARRIER:
            return Accept("stores of threads, which the barrier of the cluster makes known")
        for reason in _reasons(src, dst):
            return Reject(reason)
        counts, run = _runs(src, dst)
        size = prod(src.shape) * DTYPES[src.dtype].bits // 8
        return Accept(f"{prod(counts)} bulk copies of {size // prod(counts)} bytes" if run else "")

    def layouts(self, call: SimtCall, ctx: Context) -> Mapping[int, LayoutMap]:
        """Use one layout for both tiles, so that their bytes have one order."""
        known = [call.placement.layouts.get(view.buffer) for view in call.args[:2]]
        whole = all(tuple(nodes.shape_of(view.buffer)) == tuple(view.extents) for view in call.args[:2])
        counted = len(call.args) > copy_to_block.BARRIER
        found = known[0] or known[1]
        if not (whole and counted) or call.args[0].extents != call.args[1].extents or found is None:
            return {}
        return {at: found for at, layout in enumerate(known) if layout is None}

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the copies, which one thread issues, or the stores of all threads."""
        src, dst = call.args[:2]
        for view in (src, dst):
            _require_inside(call, view)
        if len(call.args) <= copy_to_block.BARRIER:
            return self.stored(call, src, dst)
        begins = self.begins(call, src, dst)
        barrier, rank = call.args[copy_to_block.BARRIER], call.ranges.simplify(call.args[copy_to_block.RANK])
        done = calls.address(barrier.buffer, list(barrier.mins), "a", calls.ASYNC_PROXY)
        counts, run = _runs(src, dst)
        size = run * DTYPES[src.dtype].bits // 8
        whole = nodes.int_const(prod(counts) * size)
        # No barrier, which a fence would precede, stands between what a thread alone has written and its copy.
        parts = [calls.fence_proxy()] if call.block.count == 1 else []
        parts.append(calls.execute(SEND_EXPECT, [done, rank, whole], call.span))
        for at in product(*map(range, counts)):
            corner = begins or [*at, *[0] * (len(src.shape) - len(at))]
            source, to = self.address(src, corner, "r"), self.address(dst, corner, "w")
            parts.append(calls.execute(SEND_BYTES, [to, source, nodes.int_const(size), done, rank], call.span))
        body = nodes.seq(parts)
        if call.block.count > 1:
            body = tirx.IfThenElse(tirx.EQ(call.block.thread, nodes.int_const(0)), body, None, call.span)
        return calls.step(body, call.span)

    def begins(self, call: SimtCall, src: View, dst: View) -> list[int]:
        """Return the first elements of two tiles with one swizzle; empty for plain order.

        Raises
        ------
        Withdrawn
            If they are not in the same order.
        """
        layouts = [call.placement.layouts.get(view.buffer) for view in (src, dst)]
        if all(layout is None or _is_plain(layout) for layout in layouts):
            return []
        orders = [_order(view, layout) for view, layout in zip((src, dst), layouts, strict=True)]
        if orders[0] is None or orders[0] != orders[1] or src.shape != dst.shape:
            shown = " and ".join(f"{v.name} in {f or 'plain order'}" for v, f in zip((src, dst), layouts, strict=True))
            raise Withdrawn(f"the bytes of its tiles are not in the same order: {shown}")
        return [int(i) for i in np.unravel_index(orders[0].index(0), src.shape)]

    def address(self, view: View, corner: Sequence[int], access: str) -> Expr:
        """Return the address of a run of bytes."""
        at = [nodes.int_const(0) + i for i in view.spread(list(corner))]
        return calls.address(view.buffer, at, access, calls.ASYNC_PROXY, align=CHUNK, between_blocks=True)

    def stored(self, call: SimtCall, src: View, dst: View) -> Stmt:
        """Return the stores, an element at a time."""
        rank, width = call.ranges.simplify(call.args[copy_to_block.RANK]), DTYPES[src.dtype].bits

        def one(at: Sequence[Expr]) -> Stmt:
            to = calls.address(dst.buffer, dst.spread(list(at)), "w", between_blocks=True)
            value = nodes.load(src.buffer, src.spread(list(at)))
            value = nodes.cast(value, "uint8") if src.dtype == "bool" else bits(value, f"uint{width}")
            return calls.execute(store_to_block(width), [to, rank, value], call.span)

        return calls.step(dealt(call, src.shape, one), call.span)


def _reasons(src: View, dst: View) -> Iterator[str]:
    """Yield reasons against runs of 16 bytes; later ones assume the earlier conditions."""
    size = DTYPES[src.dtype].bits // 8
    counts, run = _runs(src, dst)
    if run * size % CHUNK:
        yield f"{run * size} bytes are contiguous in {src.name} and {dst.name}; bulk copies take multiples of {CHUNK}"
    if prod(counts) > _MOST_RUNS:
        yield f"it takes {prod(counts)} bulk copies of {run * size} bytes; {_MOST_RUNS} at most"
    if prod(src.shape) * size > MOST_BYTES:
        yield f"it has {prod(src.shape) * size} bytes; a barrier counts at most {MOST_BYTES} in a phase"
    for view in (src, dst):
        steps = _strides(view)
        found = [factor(nodes.int_const(0) + low, {}) * step * size for low, step in zip(view.mins, steps, strict=True)]
        kept = [d for d, n in enumerate(view.extents) if n != 1][: len(counts)]
        if any(n % CHUNK for n in (*found, *(steps[d] * size for d in kept))):
            yield f"it does not begin at multiples of {CHUNK} bytes of {view.name}"


def _runs(src: View, dst: View) -> tuple[tuple[int, ...], int]:
    """Return the extents of dimensions that separate runs, and the elements of a run."""
    shape = src.shape
    inner = min(_contiguous(src), _contiguous(dst))
    outer = len(shape) - inner
    return tuple(shape[:outer]), prod(shape[outer:])


def _contiguous(view: View) -> int:
    """Return how many of the last dimensions of a tile lie together in plain order."""
    step, found = 1, 0
    for n, stride in reversed(list(zip(view.extents, _strides(view), strict=True))):
        if n == 1:
            continue
        if stride != step:
            return found
        step, found = step * n, found + 1
    return max(found, 1) if view.shape == (1,) else found


def _strides(view: View) -> list[int]:
    shape = [int(n) for n in nodes.shape_of(view.buffer)]
    return [prod(shape[d + 1 :]) for d in range(len(shape))]


def _order(view: View, layout: LayoutMap | None) -> list[int] | None:
    """Return the elements of a contiguous tile in memory order, or ``None``."""
    shape = [int(n) for n in nodes.shape_of(view.buffer)]
    slots = shape[0] if len(shape) > 1 and view.extents[0] == 1 else 1
    if prod(view.extents) * slots != prod(shape):
        return None
    table = list(range(prod(shape))) if layout is None else list(layout.tables()["memory"])
    size = len(table) // slots
    first = table[:size]
    same = all(table[k * size + i] == k * size + p for k in range(slots) for i, p in enumerate(first))
    return first if same and sorted(first) == list(range(size)) else None


def _is_plain(layout: LayoutMap) -> bool:
    addresses = list(layout.tables()["memory"])
    return addresses == list(range(len(addresses)))


def _require_inside(call: SimtCall, view: View) -> None:
    """Withdraw from a tile that is not known to be inside of its buffer."""
    for low, n, whole in zip(view.mins, view.extents, nodes.shape_of(view.buffer), strict=True):
        first = nodes.int_const(0) + low
        if not (call.ranges.can_prove(first >= 0) and call.ranges.can_prove(first + n <= whole)):
            raise Withdrawn(f"the tile is not known to be inside of {view.name}")
