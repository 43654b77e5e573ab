"""``T.c2d_im2col``: a tile of the matrix that expresses a 2-D convolution as a product."""

from __future__ import annotations

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.errors.ops import BadAttribute
from tile_core.ir import nodes
from tile_core.ir.attributes import DILATION, KERNEL, PAD, STRIDE, Attrs
from tile_core.ops import operands
from tile_core.ops.base import OpCall, TileOp
from tile_core.ops.copy import convert
from tile_core.values import checks
from tile_core.values.value import Index, Scalar, Tile, Value, as_value


def c2d_im2col(
    img: Tile,
    col: Tile,
    nhw_step: Index,
    c_step: Index,
    kernel: int,
    stride: int,
    dilation: int,
    pad: int,
    **hints: object,
) -> None:
    """Gather a tile of convolution windows.

    ``col[i, j]`` is the input that output pixel ``m = nhw_step * rows + i`` multiplies with filter element
    ``k = c_step * cols + j``, where (rows, cols) is the shape of ``col``, output pixels are numbered in (n, oh, ow)
    order and filter elements in (kh, kw, c) order; zero outside the image.

    Parameters
    ----------
    img
        Input of shape (N, H, W, C).
    col
        Tile of two dimensions.
    nhw_step, c_step
        Tile coordinates, ints or runtime ints.
    kernel, stride, dilation, pad
        Of a square filter, in pixels.

    Raises
    ------
    BadAttribute
        If the parameters do not describe a convolution.

    Examples
    --------
    >>> T.c2d_im2col(image, S, 0, 0, kernel=2, stride=1, dilation=1, pad=0)
    """
    checks.hints("c2d_im2col", hints, ("eviction_policy", "annotations"))
    source = operands.as_region("c2d_im2col", "img", img)
    to = operands.as_region("c2d_im2col", "col", col)
    operands.static_shape("c2d_im2col", "col", to)
    if len(source.extents) != 4 or len(to.extents) != 2:
        raise BadAttribute(op="c2d_im2col", name="ranks", found=(len(source.extents), len(to.extents)), legal="(4, 2)")
    for name, x, low in (("kernel", kernel, 1), ("stride", stride, 1), ("dilation", dilation, 1), ("pad", pad, 0)):
        operands.integer("c2d_im2col", name, x, low)
    operands.moves_exactly("c2d_im2col", source, to)
    source = operands.apart("c2d_im2col", source, to, aligned=False)
    attrs: Attrs = {KERNEL: kernel, STRIDE: stride, DILATION: dilation, PAD: pad}
    operands.emit("c2d_im2col", [source, to, _step("nhw_step", nhw_step), _step("c_step", c_step)], [to], attrs)


def _step(name: str, x: Scalar) -> Value:
    value = as_value(x)
    if not value.dtype.is_integer:
        found = operands.named(x) if not isinstance(x, Value) else f"a {value.dtype} value"
        raise BadAttribute(op="c2d_im2col", name=name, found=found, legal="an integer")
    return value


def meaning(call: OpCall) -> Stmt:
    """Return the reference semantics: load each pixel of a filter element, 0 outside."""
    img, col, nhw_step, c_step = call.args
    kernel, stride, dilation, pad = (int(call.attrs[k]) for k in (KERNEL, STRIDE, DILATION, PAD))
    _, height, width, channels = img.extents
    reach = dilation * (kernel - 1) + 1
    out_h = tirx.floordiv(nodes.int_const(0) + height + 2 * pad - reach, stride) + 1
    out_w = tirx.floordiv(nodes.int_const(0) + width + 2 * pad - reach, stride) + 1
    rows, cols = col.extents

    def body(i: Expr, j: Var) -> Stmt:
        m, k = nhw_step * rows + i, c_step * cols + j
        h = tirx.floordiv(tirx.floormod(m, out_h * out_w), out_w) * stride
        h = h + tirx.floordiv(k, kernel * channels) * dilation - pad
        w = tirx.floormod(m, out_w) * stride + tirx.floormod(tirx.floordiv(k, channels), kernel) * dilation - pad
        inside = tirx.all(h >= 0, h < height, w >= 0, w < width, k < kernel * kernel * channels)
        n = tirx.floordiv(m, out_h * out_w)
        value = convert(img.load([n, h, w, tirx.floormod(k, channels)]), col.dtype)
        return col.store(tirx.if_then_else(inside, value, nodes.zero(col.dtype)), [i, j])

    return nodes.nest([rows, cols], body, "parallel", span=call.span)


OP = TileOp("c2d_im2col", reads=(0,), writes=(1,), meaning=meaning)
