"""``T.transpose(src, dst)``: exchange the last two dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.compat.types import Expr, Stmt
from tile_core.errors.ops import ShapesDiffer
from tile_core.ir import nodes
from tile_core.ir.attributes import DST_DIMS, SRC_DIMS, Attrs
from tile_core.ops import operands
from tile_core.ops.base import OpCall, TileOp, View
from tile_core.ops.copy import convert

if TYPE_CHECKING:
    from tile_core.values.value import Tile


def transpose(src: Tile, dst: Tile) -> None:
    """Transpose the last two dimensions: ``dst[..., j, i] = src[..., i, j]``.

    Parameters
    ----------
    src, dst
        Tiles of at least two dimensions; leading dimensions are batches and must be equal.

    Raises
    ------
    ShapesDiffer
        If the shapes do not fit. Extents of 1 count here.

    Examples
    --------
    >>> T.transpose(S, F)
    """
    source = operands.as_region("transpose", "src", src)
    to = operands.as_region("transpose", "dst", dst)
    operands.static_shape("transpose", "src", source)
    operands.static_shape("transpose", "dst", to)
    shape, out = source.shape, to.shape
    if len(shape) < 2 or len(shape) != len(out) or (*shape[:-2], shape[-1], shape[-2]) != tuple(out):
        raise ShapesDiffer(
            op="transpose", a="src transposed", b="dst", shape_a=(*shape[:-2], *shape[:-3:-1]), shape_b=out
        )
    operands.moves_exactly("transpose", source, to)
    source = operands.apart("transpose", source, to, aligned=False)
    attrs: Attrs = {SRC_DIMS: list(source.kept), DST_DIMS: list(to.kept)}
    operands.emit("transpose", [source, to], [to], attrs)


def meaning(call: OpCall) -> Stmt:
    """For every index: load, convert, store with the last two indices exchanged."""
    src, dst = call.args
    src_dims, dst_dims = list(call.attrs[SRC_DIMS]), list(call.attrs[DST_DIMS])
    extents = [dst.extents[d] for d in dst_dims]

    def body(*indices: Expr) -> Stmt:
        swapped = (*indices[:-2], indices[-1], indices[-2])
        value = nodes.load(src.buffer, _coordinates(src, src_dims, swapped))
        return nodes.store(dst.buffer, convert(value, dst.dtype), _coordinates(dst, dst_dims, indices), call.span)

    return nodes.nest(extents, body, "parallel", span=call.span)


def _coordinates(view: View, dims: list[int], indices: tuple[Expr, ...]) -> list[Expr]:
    full: list[Expr] = [0] * len(view.extents)
    for d, i in zip(dims, indices, strict=True):
        full[d] = i
    return view.at(full)


OP = TileOp("transpose", reads=(0,), writes=(1,), meaning=meaning, slots=(0,))
