"""The layout of a shared operand whose rows are read 16 bytes at a time."""

from __future__ import annotations

from functools import cache

from tile_core.layout import DigitLayout, Layout, LayoutMap, Swizzle, make_swizzled_layout, row_major


@cache
def swizzled(shape: tuple[int, ...], bits: int) -> LayoutMap | None:
    """Return a layout without bank conflicts for 8 rows or 8 vectors of a row.

    ``None`` if row-major order is as good: rows of an odd number of 16 bytes have none, others cannot be read by rows.
    """
    row = shape[-1] * bits
    if row % 256 or 128 % bits:
        return None
    if row % 1024 == 0 or row & (row - 1) == 0:
        return make_swizzled_layout(shape, bits)
    # Panels as of make_swizzled_layout would put vectors along a row in the same banks. In plain order, 16 bytes are
    # XORed with the number of their 128 bytes: rows that begin in the same bank differ in it.
    chunks, base = row // 128, (128 // bits).bit_length() - 1
    exponent = min(3, (chunks & -chunks).bit_length() - 1)
    plain = row_major(shape)
    return Layout(shape, DigitLayout(shape, plain.digits, swizzles=(Swizzle(exponent, base, 3),)), note="swizzled rows")
