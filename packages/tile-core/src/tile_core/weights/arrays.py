"""Conversion of host arrays of 4-bit weights to packed order and back."""

from __future__ import annotations

import numpy as np

from tile_core.abi.adapter import HOST_DEVICE
from tile_core.compat.types import Array
from tile_core.errors.language import BadWeights
from tile_core.sparse.host import Source
from tile_core.weights.order import GROUP, RUNS, WORD
from tile_runtime.calls.arrays import Unreadable, device_text, facts_of, numpy_alias

__all__ = ["pack_weights", "unpack_weights"]

#: The axes of the bits of an element's number in its group, the highest first.
_BITS = (2,) * (GROUP.bit_length() - 1)
#: By bit of a place, the highest first, the axis of the bit of the element's number.
_ORDER = tuple(
    len(_BITS) - first - i for first, count, _ in sorted(RUNS, key=lambda run: -run[2]) for i in reversed(range(count))
)
_SHIFTS = np.arange(0, 4 * WORD, 4, dtype="uint32")


def pack_weights(codes: Array) -> Array:
    """Return 4-bit weights in packed order.

    Parameters
    ----------
    codes
        An array of ``uint8`` of any library in host memory, two elements of the last axis (K) in each byte, the first
        in the lower half; K is a multiple of 32.

    Returns
    -------
    Array
        ``uint32``, with eight elements in each word; torch and JAX get arrays of their own, others NumPy arrays. It is
        the argument of a parameter that ``with_packed_weights`` names.

    Raises
    ------
    BadWeights
        If it is another array.

    See Also
    --------
    unpack_weights : The inverse.
    """
    raw, source = _read("tile.pack_weights", codes, "uint8", GROUP // 2)
    nibbles = np.stack([raw & 15, raw >> 4], -1).reshape(raw.size * 2 // GROUP, *_BITS)
    placed = nibbles.transpose(0, *_ORDER).reshape(*raw.shape[:-1], raw.shape[-1] * 2 // WORD, WORD)
    return source.give(np.bitwise_or.reduce(placed.astype("uint32") << _SHIFTS, -1), "uint32")


def unpack_weights(packed: Array) -> Array:
    """Return weights in packed order as ``uint8``, two elements in each byte.

    Parameters
    ----------
    packed
        An array that ``pack_weights`` returned, in host memory.

    Raises
    ------
    BadWeights
        If it is another array.
    """
    raw, source = _read("tile.unpack_weights", packed, "uint32", GROUP // WORD)
    placed = (raw[..., None] >> _SHIFTS & 15).astype("uint8").reshape(raw.size * WORD // GROUP, *_BITS)
    nibbles = placed.transpose(0, *(1 + np.argsort(_ORDER))).reshape(*raw.shape[:-1], raw.shape[-1] * WORD // 2, 2)
    return source.give(nibbles[..., 0] | nibbles[..., 1] << 4, "uint8")


def _read(function: str, value: Array, dtype: str, multiple: int) -> tuple[Array, Source]:
    """Return an array of one type as NumPy's."""
    expected = f"{dtype} with a multiple of {multiple} elements along the last axis"
    try:
        facts = facts_of(value)
    except Unreadable as error:
        raise BadWeights(function=function, expected=expected, found=str(error)) from error
    shape = tuple(facts.shape)
    if facts.device[0] != HOST_DEVICE:
        raise BadWeights(function=function, expected=expected, found=f"an array on {device_text(facts.device)}")
    if facts.dtype != dtype or not shape or shape[-1] % multiple:
        raise BadWeights(function=function, expected=expected, found=f"{facts.dtype} of shape {shape}")
    return np.ascontiguousarray(numpy_alias(facts, value)), Source(facts.library, facts.dtype)
