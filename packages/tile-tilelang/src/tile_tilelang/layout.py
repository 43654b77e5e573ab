"""Layouts by TileLang's names; those of one architecture's instructions are tile's own choice, or tile-cuda's."""

from __future__ import annotations

from typing import Any

from tile_core.layout import Fragment, Layout
from tile_core.layout import make_swizzled_layout as _make_swizzled_layout
from tile_tilelang.errors import BadCall

__all__ = [
    "Fragment",
    "Layout",
    "make_full_bank_swizzled_layout",
    "make_half_bank_swizzled_layout",
    "make_linear_layout",
    "make_quarter_bank_swizzled_layout",
    "make_swizzled_layout",
]


def make_swizzled_layout(buffer: Any, k_major: bool = True, allow_pad: bool = True) -> Layout:
    """Return a layout of a shared tile that spreads rows and columns over the banks.

    ``k_major`` and ``allow_pad`` are hints: the pattern follows the last dimension, and is never padded.
    """
    return _make_swizzled_layout(buffer)


def make_full_bank_swizzled_layout(buffer: Any, *sizes: int) -> Layout:
    """Return the layout with the pattern of 128 bytes."""
    return _banked("make_full_bank_swizzled_layout", buffer, sizes, 128)


def make_half_bank_swizzled_layout(buffer: Any, *sizes: int) -> Layout:
    """Return the layout with the pattern of 64 bytes."""
    return _banked("make_half_bank_swizzled_layout", buffer, sizes, 64)


def make_quarter_bank_swizzled_layout(buffer: Any, *sizes: int) -> Layout:
    """Return the layout with the pattern of 32 bytes."""
    return _banked("make_quarter_bank_swizzled_layout", buffer, sizes, 32)


def make_linear_layout(buffer: Any) -> Layout:
    """Return the row-major layout."""
    shape = tuple(getattr(buffer, "shape", buffer))
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return Layout(shape, lambda *i: sum(a * s for a, s in zip(i, strides, strict=True)))


def _banked(name: str, buffer: Any, sizes: tuple[int, ...], width: int) -> Layout:
    if sizes:
        instead = "give the tile of T.alloc_shared, whose shape and type count"
        raise BadCall(function=name, name="sizes", found=repr(sizes), expected="a tile alone", instead=instead)
    return _make_swizzled_layout(buffer, bank_bytes=width)
