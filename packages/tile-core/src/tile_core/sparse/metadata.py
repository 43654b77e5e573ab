"""Metadata on its own: reading its indices, and exact conversion between layouts and element types."""

from __future__ import annotations

import numpy as np

from tile_core.compat.types import Array, DTypeLike
from tile_core.dtypes import dtype as to_dtype
from tile_core.sparse.format import E_FACTOR_MAP, NATURAL, check_extent, operand_type
from tile_core.sparse.host import read_metadata
from tile_core.sparse.layouts import layout_meta_type, make_metadata_layout, reorder, restore


def decode_metadata(E: Array) -> Array:
    """Return the indices that natural-order metadata holds, two per group.

    Parameters
    ----------
    E
        Metadata ``(..., C)`` of int8, int16, int32 or their unsigned counterparts, row-major.

    Returns
    -------
    array
        Indices 0 … 3 of the type and the library of ``E``, shape ``(..., C * bits // 2)``: for each row the two
        indices of its first group, then those of the next.
    """
    bits, source = read_metadata(E, rank=None)
    width = 8 * bits.itemsize
    shifts = np.arange(0, width, 2, dtype=bits.dtype)
    indices = (bits[..., None] >> shifts) & bits.dtype.type(3)
    return source.give(indices.reshape(*bits.shape[:-1], bits.shape[-1] * len(shifts)))


def convert(
    E: Array,
    from_: str,
    to: str,
    *,
    dtype: DTypeLike = "float16",
    meta_dtype: DTypeLike = None,
    block_k: int | None = None,
    from_block_k: int | None = None,
) -> Array:
    """Return metadata in another layout or element type, with every bit kept.

    ``convert(convert(E, a, b), b, a)`` is ``E`` if it has the default element type of ``a``; give ``meta_dtype``
    otherwise.

    Parameters
    ----------
    E
        Metadata in the order of ``from_``.
    from_, to
        Layouts, of ``layouts.KINDS``.
    dtype
        Operand type.
    meta_dtype
        Type of the elements of the result; by default that of ``compress`` for ``to``.
    block_k
        K of the kernel's tile, for layouts that depend on it.
    from_block_k
        The same for ``from_``, if it differs.

    Raises
    ------
    TileError
        What ``make_metadata_layout`` raises for either side, ``BadSparseExtent`` if K does not fill elements of the
        new type.
    """
    bits, source = read_metadata(E)
    operand = operand_type(dtype)
    old = layout_meta_type(from_, operand, source.element)
    new = layout_meta_type(to, operand, meta_dtype)
    extent = bits.shape[1] * E_FACTOR_MAP[operand][old]
    check_extent(extent, operand, new)
    natural = np.ascontiguousarray(bits)
    if from_ != NATURAL and natural.size:
        held = block_k if from_block_k is None else from_block_k
        natural = restore(natural, make_metadata_layout(bits.shape, old, from_, operand, held))
    shape = (bits.shape[0], extent // E_FACTOR_MAP[operand][new])
    out = natural.reshape(-1).view(f"uint{to_dtype(new).bits}").reshape(shape)
    if to != NATURAL and out.size:
        out = reorder(out, make_metadata_layout(shape, new, to, operand, block_k))
    return source.give(out.copy() if np.may_share_memory(out, bits) else out, str(new))
