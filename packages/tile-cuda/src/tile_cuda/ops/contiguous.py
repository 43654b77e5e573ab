"""Contiguous tiles of a tensor: bulk copies of bytes, without a tensor map.

They serve what boxes cannot: rows whose length is no multiple of 16 bytes, more than five dimensions, long rows.
Nothing outside of a tensor is filled or left out, so that a tile has to be inside. PTX ISA, "cp.async.bulk".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.types import Expr
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.attributes import ALIGN, ASKED_LAYOUT, COMPLETION, LAYOUT, ROUND
from tile_core.layout import Layout
from tile_core.layout.base import LayoutMap
from tile_core.layout.layout import row_major
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall, View
from tile_core.simt.memory.alignment import Aligned, factor, strides_of
from tile_core.simt.pipelining.plan import TRANSACTIONS
from tile_cuda.attributes import BULK_BYTES, SLOT, SWIZZLE
from tile_cuda.ops.boxes import CHUNK, row_lengths, same_layout

MOST_BYTES = 2**20 - CHUNK
"""Bytes that a barrier counts in one phase."""


def can_copy_bytes(call: OpCall, tile: View, tensor: View, aligned: Aligned, ranges: Analyzer) -> Accept | Reject:
    """Decide whether a copy between shared and global memory is a bulk copy of bytes.

    Parameters
    ----------
    call
        The copy, with the attributes ``ASKED_LAYOUT`` and ``SLOT`` as for copies of boxes.
    tile, tensor
        Its sides.
    aligned
        Guarantees of the launch about addresses and symbols.
    ranges
        Bounds of the variables around it.
    """
    for reason in _reasons(call, tile, tensor, aligned, ranges):
        return Reject(f"no bulk copy of bytes: {reason}")
    shape = _shape(call, tile)
    layout = Layout(shape, row_major(shape), note="plain order for bulk copies of bytes")
    facts = {COMPLETION: TRANSACTIONS, LAYOUT: layout, ALIGN: CHUNK, SWIZZLE: 0, BULK_BYTES: _size(tile)}
    return Accept(f"{_size(tile)} bytes", facts=facts)


def _reasons(call: OpCall, tile: View, tensor: View, aligned: Aligned, ranges: Analyzer) -> Iterator[str]:
    """Yield reasons against a copy of bytes; later ones assume the earlier conditions."""
    if call.name != "copy":
        yield "it is not a copy"
    if tile.dtype != tensor.dtype or call.attrs.get(ROUND) is not None:
        yield "it converts"
    if DTYPES[tile.dtype].bits < 8:
        yield "its elements are parts of bytes"
    if not all(isinstance(n, int) for v in (tensor, tile) for n in v.extents):
        yield "its extents are not known"
    whole = list(zip(tile.mins, tile.extents, nodes.shape_of(tile.buffer), strict=True))[bool(call.attrs.get(SLOT)) :]
    if any(nodes.as_int(low) != 0 or n != all_ for low, n, all_ in whole):
        yield f"it takes a part of {tile.name}"
    if _long(tile.extents) != _long(tensor.extents):
        yield "its sides differ in shape"
    asked: LayoutMap | None = call.attrs.get(ASKED_LAYOUT)
    if asked is not None and not same_layout(asked, row_major(_shape(call, tile))):
        yield f"{tile.name} is not in plain order"
    if 0 not in row_lengths(call, tile):
        yield f"products read {tile.name}, which no descriptor describes in plain order"
    if _size(tile) % CHUNK or _size(tile) > MOST_BYTES:
        yield f"{_size(tile)} bytes are not a multiple of {CHUNK} up to {MOST_BYTES}"
    if tensor.buffer not in aligned.addresses or aligned.addresses[tensor.buffer] % CHUNK:
        yield f"{tensor.name} is not known to begin at a multiple of {CHUNK} bytes"
    if not _is_contiguous(tensor):
        yield f"the tile's rows do not lie one after another in {tensor.name}"
    begins = [factor(low, aligned.divisors) * factor(step, aligned.divisors) for low, step in _steps(tensor)]
    if any(n * DTYPES[tile.dtype].bits // 8 % CHUNK for n in begins):
        yield f"it is not known to begin at a multiple of {CHUNK} bytes of {tensor.name}"
    for low, n, extent in zip(tensor.mins, tensor.extents, nodes.shape_of(tensor.buffer), strict=True):
        first = nodes.int_const(0) + low
        if not (ranges.can_prove(first >= 0) and ranges.can_prove(first + n <= extent)):
            yield f"it is not known to be inside of {tensor.name}"


def _is_contiguous(tensor: View) -> bool:
    """Whether a part of a tensor is contiguous: one cut dimension before whole rows."""
    step = 1
    for n, stride in reversed(list(zip(tensor.extents, strides_of(tensor.buffer), strict=True))):
        if n != 1:
            if nodes.as_int(stride) != step:
                return False
            step *= int(n)
    return True


def _steps(tensor: View) -> Iterator[tuple[Expr, Expr]]:
    for low, step in zip(tensor.mins, strides_of(tensor.buffer), strict=True):
        yield nodes.int_const(0) + low, nodes.int_const(0) + step


def _shape(call: OpCall, tile: View) -> tuple[int, ...]:
    return tuple(tile.extents[1:] if call.attrs.get(SLOT) else tile.extents)


def _long(extents: Sequence[int]) -> list[int]:
    return [n for n in extents if n != 1]


def _size(tile: View) -> int:
    total = DTYPES[tile.dtype].bits
    for n in tile.extents:
        total *= int(n)
    return total // 8
