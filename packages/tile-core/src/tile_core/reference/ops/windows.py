"""``T.c2d_im2col``: windows of a convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tile_core.ir.attributes import DILATION, KERNEL, PAD, STRIDE
from tile_core.reference.elements import nothing

if TYPE_CHECKING:
    from tile_core.reference.ops.operands import BoundCall

__all__ = ["im2col"]


def im2col(call: BoundCall) -> None:
    """Execute im2col: ``col[i, j]`` is a pixel's input for a filter element, zero outside."""
    img, col, first_pixel, first_element = call.args
    kernel, stride, dilation, pad = (int(call.attrs[k]) for k in (KERNEL, STRIDE, DILATION, PAD))
    _, height, width, channels = img.extents
    reach = dilation * (kernel - 1) + 1
    out_h, out_w = (height + 2 * pad - reach) // stride + 1, (width + 2 * pad - reach) // stride + 1
    rows, cols = col.extents
    m = int(first_pixel) * rows + np.arange(rows)[:, None]
    k = int(first_element) * cols + np.arange(cols)[None, :]
    # A quotient and a remainder by zero are 0, as everywhere in the language.
    h = np.floor_divide(np.remainder(m, out_h * out_w), out_w) * stride + k // (kernel * channels) * dilation - pad
    w = np.remainder(m, out_w) * stride + k // channels % kernel * dilation - pad
    n, c = np.broadcast_arrays(np.floor_divide(m, out_h * out_w), k % channels)
    inside = (h >= 0) & (h < height) & (w >= 0) & (w < width) & (k < kernel * kernel * channels)
    values = col.state.converted(img.pick((n, h, w, c), inside), img.dtype, col.dtype)
    col.write(np.where(inside, values, nothing(col.dtype)))
