"""Products of matrices: computed in a wider type and rounded once to the accumulator's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tile_core.compat.types import Array
from tile_core.dtypes import DTYPES
from tile_core.ir.attributes import BLOCK, GROUP, TRANSPOSE_A, TRANSPOSE_B, TRANSPOSE_E, TYPES
from tile_core.reference.elements import convert, decode
from tile_core.reference.ops.metadata import matrix_dims, refuse_illegal

if TYPE_CHECKING:
    from tile_core.reference.ops.operands import BoundCall
    from tile_core.reference.ops.regions import MemoryRegion

__all__ = ["gemm", "gemm_scaled", "gemm_sp"]


def gemm(call: BoundCall) -> None:
    """``C = (clear ? 0 : C) + A @ B``."""
    a, b, c, clear = call.args
    left = _matrix(a, a.state.flushed(a.read(), a.dtype), bool(call.attrs[TRANSPOSE_A]))
    right = _matrix(b, b.state.flushed(b.read(), b.dtype), bool(call.attrs[TRANSPOSE_B]))
    _accumulate(c, _wide(left, a.dtype), _wide(right, b.dtype), bool(clear))


def gemm_sp(call: BoundCall) -> None:
    """``C = (clear ? 0 : C) + decompress(A, E) @ B``."""
    a, e, b, c, clear = call.args
    left = _matrix(a, a.state.flushed(a.read(), a.dtype), bool(call.attrs[TRANSPOSE_A]))
    codes = _matrix(e, e.read(), bool(call.attrs[TRANSPOSE_E]))
    right = _matrix(b, b.state.flushed(b.read(), b.dtype), bool(call.attrs[TRANSPOSE_B]))
    group, values = int(call.attrs[GROUP]), _wide(left, a.dtype)
    nibbles = _nibbles(codes, DTYPES[e.dtype].bits // 4)
    refuse_illegal(call, codes, nibbles, values, group)
    kept = _kept(nibbles, group)
    dense = np.zeros((left.shape[0], right.shape[0]), values.dtype)
    # Values of a group of zeros may have one place.
    np.add.at(dense, (np.arange(len(dense))[:, None], kept), values)
    _accumulate(c, dense, _wide(right, b.dtype), bool(clear))


def gemm_scaled(call: BoundCall) -> None:
    """Execute a product with block scales: ``C += (A * A_scale) @ (B * B_scale)``."""
    a, a_scale, b, b_scale, c, clear = call.args
    scaled = []
    transposed = bool(call.attrs[TRANSPOSE_A]), not call.attrs[TRANSPOSE_B]
    types = call.attrs[TYPES][0], call.attrs[TYPES][2]
    for x, scale, turned, dtype in zip((a, b), (a_scale, b_scale), transposed, types, strict=True):
        lines = _elements(x, str(dtype), turned)
        factors = c.state.flushed(np.abs(_wide(_matrix(scale, scale.read(), turned), scale.dtype)), "float32")
        wide = np.repeat(factors, int(call.attrs[BLOCK]), axis=1)
        scales_products = c.state.shaker is not None and c.state.shaker.scales_products
        scaled.append(lines * wide if scales_products else c.state.flushed(lines * wide, "float32"))
    _accumulate(c, scaled[0], scaled[1].T, bool(clear))


def _elements(x: MemoryRegion, dtype: str, turned: bool) -> Array:
    """Return the elements of A or B, also from packed 4-bit codes."""
    if x.dtype != "uint8":
        return _wide(_matrix(x, x.read(), turned), x.dtype)
    codes = _matrix(x, x.read(), False)
    if DTYPES[dtype].is_packed:
        codes = np.stack([codes & 15, codes >> 4], axis=-1).reshape(len(codes), -1)
    matrix = np.asarray(decode(codes, dtype)).astype(np.float64)
    return matrix.T if turned else matrix


def _nibbles(words: Array, per: int) -> Array:
    """Return for each group of a row its metadata."""
    shifts = 4 * np.arange(per, dtype=np.int64)
    return (words.astype(np.int64)[:, :, None] >> shifts & 15).reshape(len(words), -1)


def _kept(nibbles: Array, group: int) -> Array:
    """Return for each stored element of a row its column."""
    first = group * np.arange(nibbles.shape[1])
    if group == 2:
        return first + ((nibbles & 3) >> 1)
    return np.stack([first + (nibbles & 3), first + (nibbles >> 2 & 3)], axis=-1).reshape(len(nibbles), -1)


def _matrix(region: MemoryRegion, values: Array, transposed: bool) -> Array:
    """Return a matrix operand as rows and columns (see ``View.matrix_dims``)."""
    rows, cols = matrix_dims(region.extents)
    matrix = values.reshape(region.extents[rows], region.extents[cols])
    return matrix.T if transposed else matrix


def _wide(x: Array, dtype: str) -> Array:
    d = DTYPES[dtype]
    return np.asarray(decode(x, dtype)).astype(np.float64 if d.is_float else np.int64)


def _product(x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        return x @ y
    largest = [max(int(m.max(initial=0)), -int(m.min(initial=0))) for m in (x, y)]
    if largest[0] * largest[1] * x.shape[1] < 2**53:  # exact in float64, and much faster
        return (x.astype(np.float64) @ y.astype(np.float64)).astype(np.int64)
    return x @ y  # wraps at 64 bits, as every narrower type does


def _accumulate(c: MemoryRegion, a: Array, b: Array, clear: bool) -> None:
    product, before = _product(a, b), None
    if not clear:
        before = _wide(_matrix(c, c.state.flushed(c.read(), c.dtype), False), c.dtype)
    if before is not None:
        product = product + before
    shaker = c.state.shaker
    if shaker is not None and product.dtype.kind == "f":
        start = 0.0 if before is None else before
        product = shaker.shaken(product, np.abs(a) @ np.abs(b), c.dtype, start, a.shape[1])
    source = "float64" if product.dtype.kind == "f" else "int64"
    if c.dtype in ("float16", "bfloat16"):
        # The sum is of type float32 and rounded from there, as the meaning of the op has it.
        product, source = product.astype(np.float32), "float32"
    c.write(c.state.flushed(convert(product, source, c.dtype), c.dtype).reshape(c.extents))
