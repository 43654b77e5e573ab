"""The arithmetic of the format on blocks of contiguous elements that stay in cache.

A group of four elements is handled as one integer with four lanes: ``uint64`` for 16-bit types, ``uint32`` for 8-bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from tile_core.dtypes import DType
from tile_core.sparse.format import GROUPS, group_code, zero_mask

BLOCK_BYTES = 1 << 18
"""Bytes of dense elements in a block: a handful of temporaries of this size stay in a second-level cache."""

_THREADED_BYTES = 1 << 20

EQUAL_CODES = np.array([code & 3 == code >> 2 for code in range(16)])
"""Whether the two indices of a metadata code are the same."""


@cache
def code_table(group: int, bits: int) -> Any:
    """Metadata of all groups at once, by ``bits`` non-zero flags; 0 if any of the groups has too many non-zeros."""
    count = bits // group
    masks = np.arange(1 << bits, dtype=np.uint32)
    codes = np.array([group_code(mask, group) for mask in range(1 << group)], np.uint32)
    total = np.zeros_like(masks)
    legal = np.ones(masks.shape, bool)
    for place in range(count):
        code = codes[masks >> (place * group) & ((1 << group) - 1)]
        total |= code << (4 * place)
        legal &= code != 0
    return np.where(legal, total, 0).astype(f"uint{max(8, 4 * count)}")


def compress_block(dense: Any, operand: DType, values: Any, flags: Any) -> None:
    """Write the kept values of contiguous elements, and one bit per element that says whether it is not zero.

    Parameters
    ----------
    dense
        Unsigned bits, one-dimensional and contiguous, whole groups.
    operand
        Type of the elements.
    values
        Half as many elements of the same width; receives the values. They mean nothing for a group with too many.
    flags
        Bytes, one per eight elements, rounded up.
    """
    lane = dense.dtype.type
    significant = dense if zero_mask(operand) == np.iinfo(lane).max else dense & lane(zero_mask(operand))
    nonzero = significant != 0
    flags[...] = np.packbits(nonzero, bitorder="little")
    kept = _spread(significant, nonzero, lane)  # all bits of a lane that is not zero
    if GROUPS[operand] == 2:
        pairs = (dense & kept).reshape(-1, 2)
        np.bitwise_or(pairs[:, 0], pairs[:, 1], out=values)
    else:
        _two_of_four(dense, kept, values)


def flag_codes(flags: Any, operand: DType) -> Any:
    """Return the metadata, as bytes, of packed flags; a 0 byte (or two for 32-bit types) marks too many non-zeros."""
    group = GROUPS[operand]
    if group == 4 and flags.size % 2 == 0:
        return np.take(code_table(4, 16), flags.view(np.uint16), mode="clip").view(np.uint8)
    return np.take(code_table(group, 8), flags, mode="clip").view(np.uint8)


def decompress_block(values: Any, codes: Any, operand: DType, dense: Any) -> None:
    """Write the dense elements of groups.

    Parameters
    ----------
    values
        Kept values, contiguous.
    codes
        One metadata code per group. Codes with equal indices need at least one value that is zero.
    operand
        Type of the elements.
    dense
        Twice as many elements of the same width as ``values``; receives the dense elements.
    """
    bits, group = 8 * values.itemsize, GROUPS[operand]
    word = np.dtype(f"uint{bits * group}")
    out = dense.view(word)
    if group == 2:
        np.left_shift(values.astype(word), (codes >> 3).astype(word) * word.type(bits), out=out)
        return
    first, second = values[0::2].astype(word), values[1::2].astype(word)
    equal = EQUAL_CODES[codes]
    if equal.any():  # the zero of such a pair may be -0.0, and must not meet the other value
        zero = values.dtype.type(zero_mask(operand))
        first[equal & (values[0::2] & zero == 0)] = 0
        second[equal & (values[1::2] & zero == 0)] = 0
    places = np.arange(16, dtype=word)
    first <<= ((places & word.type(3)) * word.type(bits))[codes]
    second <<= ((places >> word.type(2)) * word.type(bits))[codes]
    np.bitwise_or(first, second, out=out)


def nibbles(stream: Any) -> Any:
    """The 4-bit codes of metadata bytes, low end first."""
    out = np.empty((stream.size, 2), np.uint8)
    np.bitwise_and(stream, 15, out=out[:, 0])
    np.right_shift(stream, 4, out=out[:, 1])
    return out.reshape(-1)


def row_blocks(rows: int, row_bytes: int) -> list[tuple[int, int]]:
    """Ranges of rows of about ``BLOCK_BYTES``; all but the last have an even number of rows."""
    step = max(2, BLOCK_BYTES // max(1, row_bytes) // 2 * 2)
    return [(start, min(start + step, rows)) for start in range(0, rows, step)]


def over_blocks(work: Callable[[int, int], None], rows: int, row_bytes: int) -> None:
    """Call ``work(start, stop)`` for ranges of rows, on several threads where there is enough to do.

    NumPy lets other threads run while it works on a block.
    """
    blocks = row_blocks(rows, row_bytes)
    workers = min(_cores(), len(blocks))
    if workers < 2 or rows * row_bytes < _THREADED_BYTES:
        for start, stop in blocks:
            work(start, stop)
        return
    shares = [blocks[at::workers] for at in range(workers)]

    def run(share: list[tuple[int, int]]) -> None:
        for start, stop in share:
            work(start, stop)

    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(run, shares):
            pass


def _spread(significant: Any, nonzero: Any, lane: Any) -> Any:
    signed = np.dtype(f"int{8 * np.dtype(lane).itemsize}")
    if signed.itemsize == 1:
        return np.negative(nonzero.view(np.int8)).view(lane)
    largest = lane(np.iinfo(signed).max)
    # Without its sign bit, an element that is not zero carries into the sign bit, which is then copied to all others.
    carried = np.add(significant, largest).view(signed)
    return np.right_shift(carried, signed.type(8 * signed.itemsize - 1), out=carried).view(lane)


def _two_of_four(dense: Any, kept: Any, values: Any) -> None:
    """Slot 1 gets the last lane, and lanes 1 and 2 behind a lane that is not zero; slot 0 gets what is left.

    At most one lane is left for each slot, so that a product with ones at the distances of the lanes brings it to one
    place without carries.
    """
    bits = 8 * dense.itemsize
    word = np.dtype(f"uint{4 * bits}").type
    mask = kept.view(word)
    cleaned = dense.view(word) & mask
    behind = mask << word(bits)
    mask <<= word(2 * bits)
    behind |= mask
    behind |= word(((1 << bits) - 1) << (3 * bits))
    behind &= cleaned
    cleaned ^= behind
    together = word(1 | 1 << bits | 1 << 2 * bits)
    behind *= together
    cleaned *= together
    lanes = values.reshape(-1, 2)
    lanes[:, 0] = cleaned.view(dense.dtype)[2::4]
    lanes[:, 1] = behind.view(dense.dtype)[3::4]


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
