"""Rare tile ops in plain Python: gathered rows, convolution windows, scaled products."""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.dtypes import DTYPES
from tile_core.numerics import codecs
from tile_core.testing.plain.memory import Region
from tile_core.testing.plain.numbers import Number, convert
from tile_core.testing.plain.tiles import as_region, values_of, write_values


def gather(src: Any, rows: Any, dst: Any) -> None:
    """Read rows by their numbers; zero for rows outside."""
    to = as_region(dst)
    table = _table(src, to).read()
    made = np.empty(to.extents, object)
    for n, r in enumerate(_rows(rows)):
        made[n] = table[r] if 0 <= r < len(table) else [_nothing(to)] * made.shape[1]
    to.write(made)


def scatter(src: Any, dst: Any, rows: Any) -> None:
    """Write rows by their numbers; those outside are dropped."""
    tile = as_region(src)
    source, to = tile.read(), _table(dst, tile)
    table = to.read()
    for n, r in enumerate(_rows(rows)):
        if 0 <= r < len(table):
            table[r] = source[n]
    to.write(table)


def _table(x: Any, tile: Region) -> Region:
    """Return the region of a table.

    That of a corner has all later rows, and the columns of the tile.
    """
    if not isinstance(x, Number):
        return as_region(x)
    buffer, at = x.element
    columns = list(tile.extents[1:])[1 - len(at) :]
    return Region(buffer, list(at), [buffer.shape[0] - at[0], *([1] * (len(at) - 1 - len(columns))), *columns])


def c2d_im2col(
    img: Any, col: Any, nhw_step: Any, c_step: Any, kernel: int, stride: int, dilation: int, pad: int, **hints: Any
) -> None:
    """Read windows of an image."""
    to, image = as_region(col), as_region(img)
    _, height, width, channels = image.extents
    out_h, out_w = ((e + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for e in (height, width))
    rows, cols = to.extents
    made = np.empty(to.extents, object)
    for i, j in np.ndindex(rows, cols):
        m, k = int(nhw_step) * rows + i, int(c_step) * cols + j
        y = m % (out_h * out_w) // out_w * stride + k // (kernel * channels) * dilation - pad
        x = m % out_w * stride + k // channels % kernel * dilation - pad
        at = (m // (out_h * out_w), y, x, k % channels)
        inside = k < kernel * kernel * channels and all(0 <= b < n for b, n in zip(at, image.extents, strict=True))
        of_buffer = tuple(a + b for a, b in zip(image.low, at, strict=True))
        made[i, j] = image.buffer.read(of_buffer) if inside else _nothing(to)
    to.write(made)


def fp8_scaled_matmul(A: Any, A_scale: Any, B: Any, B_scale: Any, C: Any, transpose_B: bool = False) -> None:
    """Multiply, then scale by one factor, or by a row's and a column's."""
    a, b, p, q = (values_of(x) for x in (A, B, A_scale, B_scale))
    product = a @ (b.T if transpose_B else b)
    p = p.reshape(-1, 1) if p.size > 1 else p.reshape(1, 1)
    write_values(as_region(C), product * p * q.reshape(1, -1))


def gemm_scaled(
    A: Any, A_scale: Any, B: Any, B_scale: Any, C: Any, transpose_A: bool = False, transpose_B: bool = False,
    clear_accum: bool = False, A_format: str = "", B_format: str = "", **hints: Any,
) -> None:  # fmt: skip
    """Multiply the elements by their scales, then multiply matrices and add."""
    from tile_core.testing import oracles

    scaled = []
    for x, scale, turned, dtype in ((A, A_scale, transpose_A, A_format), (B, B_scale, not transpose_B, B_format)):
        matrix, factors = _decoded(x, dtype), np.abs(values_of(scale))
        matrix, factors = (matrix.T, factors.T) if turned else (matrix, factors)
        scaled.append(matrix * np.repeat(factors, matrix.shape[1] // factors.shape[1], axis=1))
    to = as_region(C)
    result = oracles.gemm(scaled[0], scaled[1], values_of(C), transpose_b=True, clear_accum=clear_accum)
    write_values(to, result.reshape(to.extents))


def _decoded(x: Any, dtype: str) -> Any:
    """Return values, decoded from bytes if a type is given.

    A byte holds two values of 4 bits.
    """
    found = values_of(x)
    if not dtype or as_region(x).buffer.dtype != "uint8":
        return found
    codes = found.astype(np.uint8)
    pairs = codecs.unpack4(codes, 2 * codes.shape[-1]) if DTYPES[dtype].is_packed else codes
    return codecs.decode(pairs, dtype).astype(np.float64)


def _nothing(to: Any) -> Any:
    return convert(to.buffer.outside, to.buffer.dtype)


def _rows(rows: Any) -> list[int]:
    return [int(r) for r in (rows if isinstance(rows, (list, tuple)) else as_region(rows).read().reshape(-1))]


OPS: dict[str, Any] = {
    "gather": gather, "scatter": scatter, "c2d_im2col": c2d_im2col, "fp8_scaled_matmul": fp8_scaled_matmul,
    "gemm_scaled": gemm_scaled,
}  # fmt: skip
