"""Layouts of shared tiles: choosing a swizzle and counting bank conflicts."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from math import prod
from typing import Any

from tile_core.errors.layout import LayoutMismatch
from tile_core.layout.base import LayoutMap
from tile_core.layout.digits import Digit, as_shape
from tile_core.layout.layout import DigitLayout, row_major
from tile_core.layout.swizzle import Swizzle, log2_ratio
from tile_core.layout.table import unwrap
from tile_core.layout.user import Layout

CHUNK_BYTES = 16
"""The unit that a swizzle keeps contiguous: the widest access of one thread."""

# Byte addresses: the 16-byte chunk within 128 bytes is XORed with the number of the 128-byte line. Each pattern stays
# inside its panel width, so that any number of rows is a bijection.
_PATTERNS = {128: Swizzle(3, 4, 3), 64: Swizzle(2, 4, 3), 32: Swizzle(1, 4, 3)}


def make_swizzled_layout(shape_or_buffer: Any, element_bits: int | None = None, bank_bytes: int = 128) -> Layout:
    """Return a layout of a shared tile that spreads rows and columns over the banks.

    The tile is cut along its last dimension into panels as wide as the widest pattern of 128, 64 and 32 bytes that
    divides a row; a panel is stored row after row, and 16-byte chunks are XORed with the number of the 128-byte line.
    The memory has to start at a multiple of the pattern's period (``layout.map.swizzles[0].period`` elements).

    Parameters
    ----------
    shape_or_buffer
        A shape, or anything with ``shape`` and ``dtype``.
    element_bits
        Width of an element; taken from the buffer's dtype by default.
    bank_bytes
        The widest pattern to use, in bytes.

    Returns
    -------
    Layout
        A bijection for every shape. Where no pattern fits it is row-major; ``note`` states the choice and its reason.

    Raises
    ------
    LayoutMismatch
        If no element width is given.
    """
    shape = as_shape(getattr(shape_or_buffer, "shape", shape_or_buffer))
    if element_bits is None:
        found = getattr(shape_or_buffer, "dtype", None)
        if found is None:
            expected = "element_bits=, or a buffer with a dtype"
            raise LayoutMismatch(operation="make_swizzled_layout", found="a shape alone", expected=expected)
        from tile_core.dtypes import dtype

        element_bits = dtype(found).bits
    return _swizzled(shape, element_bits, bank_bytes)


@functools.lru_cache(maxsize=512)
def _swizzled(shape: tuple[int, ...], element_bits: int, bank_bytes: int) -> Layout:
    columns = shape[-1] if shape else 1
    row_bits = columns * element_bits
    width, reason = _pattern(row_bits, prod(shape) // columns, element_bits, bank_bytes)
    if not width:
        return Layout(shape, row_major(shape), note=f"row-major: {reason}")
    panel = width * 8 // element_bits
    rows = shape[-2]
    digits, size = [Digit(rows, panel), Digit(columns // panel, rows * panel), Digit(panel, 1)], rows * columns
    for extent in reversed(shape[:-2]):
        digits.insert(0, Digit(extent, size))
        size *= extent
    swizzle = _PATTERNS[width].recast(8, element_bits)
    assert swizzle is not None
    digits = [d for d in digits if d.extent > 1]
    return Layout(shape, DigitLayout(shape, digits, swizzles=(swizzle,)), note=f"{width}-byte swizzle{reason}")


def _pattern(row_bits: int, rows: int, element_bits: int, bank_bytes: int) -> tuple[int, str]:
    """The pattern's width in bytes, or 0, and why it is not the widest."""
    move = log2_ratio(8 * CHUNK_BYTES, element_bits)
    if move is None or move < 0:
        return 0, f"elements of {element_bits} bits do not divide {CHUNK_BYTES} bytes"
    if rows == 1:
        return 0, "there is one row only"
    row = f"a row has {row_bits // 8} bytes" if row_bits % 8 == 0 else f"a row has {row_bits} bits"
    for width in _PATTERNS:
        if width <= bank_bytes and row_bits % (8 * width) == 0:
            larger = min((w for w in _PATTERNS if w > width), default=0)
            why = f": {row}, no multiple of {larger}" if larger <= bank_bytes else f": at most {bank_bytes} requested"
            return width, why if larger else ""
    return 0, f"{row}, no multiple of 32" if bank_bytes >= 32 else f"no pattern of at most {bank_bytes} bytes"


def bank_conflicts(
    layout: LayoutMap,
    accesses: Iterable[object],
    element_bits: int = 32,
    vector: int = 1,
    banks: int = 32,
    word_bytes: int = 4,
) -> int:
    """Count the extra cycles of simultaneous accesses to different words of one bank.

    Parameters
    ----------
    layout
        A layout onto memory that starts at a multiple of all banks.
    accesses
        One coordinate (a tuple, or a row-major index) per thread, in the order of the threads.
    element_bits
        Width of an element.
    vector
        Consecutive elements of memory per access. Accesses of more than one word are made in groups of neighbouring
        threads that together read at most one word of each bank.
    banks, word_bytes
        The memory's banks.

    Returns
    -------
    int
        0 if every bank serves at most one word at a time.
    """
    layout = unwrap(layout)
    word_bits = 8 * word_bytes
    words = max(1, vector * element_bits // word_bits)
    size = max(1, banks // words)
    starts = [_memory_index(layout, access) * element_bits for access in accesses]
    extra = 0
    for begin in range(0, len(starts), size):
        wanted: dict[int, set[int]] = {}
        for bit in starts[begin : begin + size]:
            for word in range(bit // word_bits, (bit + vector * element_bits - 1) // word_bits + 1):
                wanted.setdefault(word % banks, set()).add(word)
        extra += max(len(found) for found in wanted.values()) - 1
    return extra


def _memory_index(layout: LayoutMap, access: Any) -> int:
    position = layout.apply(*access) if isinstance(access, (tuple, list)) else layout.at(access)
    index = position["memory"]
    assert isinstance(index, int)
    return index
