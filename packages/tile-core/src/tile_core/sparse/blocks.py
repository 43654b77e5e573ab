"""The arithmetic of the format on blocks of contiguous elements that stay in cache.

NumPy makes one pass over a block per operation, so the cost is the number and width of passes: a group is
one integer, the choice of slots is two shifts by amounts that the zero flags give, and metadata comes from a table of
all flags of four groups.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from tile_core.compat.types import Array, DTypeLike
from tile_core.dtypes import DType
from tile_core.sparse.format import GROUPS, group_code, zero_mask

BLOCK_BYTES = 1 << 19
"""Bytes of dense elements in a block: it stays in cache with its temporaries, and hides the cost of NumPy's calls."""

EQUAL_CODES = np.array([code & 3 == code >> 2 for code in range(16)])
"""Whether the two indices of a metadata code are the same."""

_THREADED_BYTES = 1 << 20

Work = Callable[[int, int], None]


@cache
def code_table(group: int, bits: int) -> Array:
    """Return metadata of all groups in ``bits`` zero flags; 0 with too many non-zeros."""
    count, full = bits // group, (1 << group) - 1
    flags = np.arange(1 << bits, dtype=np.uint32)
    codes = np.array([group_code(~zeros & full, group) for zeros in range(1 << group)], np.uint32)
    total, legal = np.zeros_like(flags), np.ones(flags.shape, bool)
    for slot in range(count):
        code = codes[flags >> (slot * group) & full]
        total |= code << (4 * slot)
        legal &= code != 0
    return np.where(legal, total, 0).astype(f"uint{max(8, 4 * count)}")


class BlockCompressor:
    """Compresses blocks with scratch memory of its own, which one thread uses.

    Parameters
    ----------
    operand
        Type of the elements.
    elements
        The most elements that a block has.
    """

    def __init__(self, operand: DType, elements: int) -> None:
        self.operand, self.group = operand, GROUPS[operand]
        self.element: np.dtype[Any] = np.dtype(f"uint{operand.bits}")
        self.signed_zero = zero_mask(operand) != np.iinfo(self.element).max
        count = elements // self.group
        self.zero = np.empty(elements, bool)
        self.words = np.empty(count, f"uint{operand.bits * self.group}")
        self.low, self.high, self.down, self.up = (np.empty(count, np.uint32) for _ in range(4))

    def __call__(self, dense: Array, values: Array, stream: Array) -> None:
        """Compress one block.

        Parameters
        ----------
        dense
            Unsigned bits, contiguous, whole groups.
        values
            Contiguous, half the elements, of the same width; receives the kept values.
        stream
            Receives the metadata, as bytes. It holds a 0 exactly where a group has too many non-zeros; the values of
            that group mean nothing.
        """
        dense = self.without_negative_zero(dense)
        zero = np.equal(dense, self.element.type(0), out=self.zero[: dense.size])
        flags = np.packbits(zero, bitorder="little")
        if dense.size % 8:  # 32-bit types only: the groups that fill up the last byte are zeros
            flags[-1] |= 0xFF << dense.size % 8 & 0xFF
        if self.group == 4 and flags.size % 2 == 0:
            codes = np.take(code_table(4, 16), flags.view(np.uint16), mode="clip")
        else:
            codes = np.take(code_table(self.group, 8), flags, mode="clip")
        stream[...] = codes.view(np.uint8)[: stream.size]
        if self.group == 2:
            words = np.right_shift(dense.view(np.uint64), np.uint64(32), out=self.words[: values.size])
            words |= dense.view(np.uint64)
            np.copyto(values, words, casting="unsafe")
        else:
            self.two_of_four(dense, zero.view(np.uint32), values)

    def without_negative_zero(self, dense: Array) -> Array:
        """The block itself, or a copy if it has some."""
        return positive_zeros(dense) if self.signed_zero else dense

    def two_of_four(self, dense: Array, zero: Array, values: Array) -> None:
        """Write ``slot 0 | slot 1 << bits`` for every group.

        With ``low = lane 0 | lane 1 << bits`` and ``high`` likewise of lanes 2 and 3, and no more than two non-zeros:
        ``low`` moves down if lane 0 is zero; lane 2 goes to slot 0 if lanes 0 and 1 are zero and to slot 1 otherwise;
        lane 3 always goes to slot 1.

        ``zero`` holds the four flags of a group in the lowest bits of its bytes.
        """
        bits, count = self.operand.bits, zero.size
        low, high, down, up = (a[:count] for a in (self.low, self.high, self.down, self.up))
        self.halves(dense, low, high)
        u32, shift = np.uint32, bits.bit_length() - 1
        np.left_shift(zero, u32(shift), out=down)
        np.right_shift(zero, u32(8 - shift), out=up)
        up &= down
        up &= u32(bits)  # how far lane 2 moves back down: ``bits`` if lanes 0 and 1 are zero
        down &= u32(bits)
        low >>= down
        np.left_shift(high, u32(bits), out=down)
        down >>= up
        low |= down
        high &= u32(((1 << bits) - 1) << bits)
        if bits == 16:
            np.bitwise_or(low, high, out=values.view(u32))
        else:
            low |= high
            np.copyto(values.view(np.uint16), low, casting="unsafe")

    def halves(self, dense: Array, low: Array, high: Array) -> None:
        """Split groups into lanes 0 and 1, and lanes 2 and 3."""
        if self.operand.bits == 8:
            np.bitwise_and(dense.view(np.uint32), np.uint32(0xFFFF), out=low)
            np.right_shift(dense.view(np.uint32), np.uint32(16), out=high)
        else:
            groups = dense.view(np.uint64)
            np.copyto(low, groups, casting="unsafe")
            np.copyto(high, np.right_shift(groups, np.uint64(32), out=self.words[: low.size]), casting="unsafe")


def compress_lanes(lanes: list[Array], operand: DType, values: list[Array]) -> Array:
    """Compress groups whose lanes are matrices of their own; see ``BlockCompressor``.

    Parameters
    ----------
    lanes
        Per lane its bits, ``(groups, M)``.
    operand
        Type of the elements.
    values
        Per slot ``(groups, M)``; receives the kept values.

    Returns
    -------
    array
        Metadata bytes, ``(groups // 2, M)``, 0 exactly where one of the two groups has too many non-zeros.
    """
    if zero_mask(operand) != np.iinfo(lanes[0].dtype).max:
        lanes = [positive_zeros(lane) for lane in lanes]
    zeros = [lane == 0 for lane in lanes]
    flags = zeros[0].view(np.uint8)
    for slot, zero in enumerate(zeros[1:], 1):
        flags = flags | (zero.view(np.uint8) << slot)
    if len(lanes) == 2:
        np.bitwise_or(lanes[0], lanes[1], out=values[0])
    else:
        first_of_1 = lanes[1] & _filled(zeros[0], lanes[0].dtype)
        first_of_2 = lanes[2] & _filled(zeros[0] & zeros[1], lanes[0].dtype)
        np.bitwise_or(lanes[0] | first_of_1, first_of_2, out=values[0])
        first_of_1 ^= lanes[1]
        first_of_2 ^= lanes[2]
        first_of_1 |= first_of_2
        np.bitwise_or(first_of_1, lanes[3], out=values[1])
    pairs = flags[0::2] | (flags[1::2] << len(lanes))
    return np.take(code_table(len(lanes), 2 * len(lanes)), pairs, mode="clip")


def positive_zeros(bits: Array) -> Array:
    """Return the bits of floats with -0.0 as +0.0: it is the smallest signed integer."""
    signed = bits.view(f"int{8 * bits.itemsize}")
    limits = np.iinfo(signed.dtype)
    if signed.min() != limits.min:
        return bits
    # Without its sign bit, an element that is not zero carries into that bit, which is then copied to all others.
    kept = bits & bits.dtype.type(limits.max)
    kept += bits.dtype.type(limits.max)
    copied = kept.view(signed.dtype)
    copied >>= signed.dtype.type(limits.bits - 1)
    kept &= bits
    return kept


def decompress_block(values: Array, codes: Array, operand: DType, dense: Array) -> None:
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
        Twice the elements of ``values``, of the same width; receives the dense elements.
    """
    bits, group = operand.bits, GROUPS[operand]
    word: np.dtype[Any] = np.dtype(f"uint{bits * group}")
    out = dense.view(word)
    if group == 2:
        np.left_shift(values.astype(word), (codes >> 3).astype(word) * word.type(bits), out=out)
        return
    first, second = values[0::2].astype(word), values[1::2].astype(word)
    equal = EQUAL_CODES[codes]
    if equal.any():  # the zero of such a pair may be -0.0, and must not be combined with the other value
        zero = values.dtype.type(zero_mask(operand))
        first[equal & (values[0::2] & zero == 0)] = 0
        second[equal & (values[1::2] & zero == 0)] = 0
    positions = np.arange(16, dtype=word)
    first <<= ((positions & word.type(3)) * word.type(bits))[codes]
    second <<= ((positions >> word.type(2)) * word.type(bits))[codes]
    np.bitwise_or(first, second, out=out)


def nibbles(stream: Array) -> Array:
    """The 4-bit codes of metadata bytes, low end first."""
    out = np.empty((stream.size, 2), np.uint8)
    np.bitwise_and(stream, 15, out=out[:, 0])
    np.right_shift(stream, 4, out=out[:, 1])
    return out.reshape(-1)


def row_blocks(rows: int, row_bytes: int, multiple: int = 2) -> list[tuple[int, int]]:
    """Return row ranges of about ``BLOCK_BYTES``, multiples of a row count except the last."""
    step = max(multiple, BLOCK_BYTES // max(1, row_bytes) // multiple * multiple)
    return [(start, min(start + step, rows)) for start in range(0, rows, step)]


def over_blocks(prepare: Callable[[int], Work], rows: int, row_bytes: int, multiple: int = 2) -> None:
    """Call ``work(start, stop)`` for ranges of rows, on several threads if worthwhile.

    NumPy lets other threads run while it works on a block.

    Parameters
    ----------
    prepare
        Returns the function for one thread, given the most rows of a range.
    rows, row_bytes
        How many rows there are, and the bytes of one.
    multiple
        All ranges but the last have a multiple of it.
    """
    blocks = row_blocks(rows, row_bytes, multiple)
    threads = min(_cores(), len(blocks)) if rows * row_bytes >= _THREADED_BYTES else 1

    def run(share: list[tuple[int, int]]) -> None:
        work = prepare(max(stop - start for start, stop in share))
        for start, stop in share:
            work(start, stop)

    if threads < 2:
        run(blocks)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(run, (blocks[at::threads] for at in range(threads))):
            pass


def group_counts(flags: Array, group: int) -> Array:
    """Count the set flags of each ``group`` along the last axis of contiguous bools."""
    word: np.dtype[Any] = np.dtype(f"uint{8 * group}")
    ones = word.type(0x01010101 & np.iinfo(word).max)
    total = flags.view(word) * ones  # the highest byte is the sum of all
    total >>= word.type(8 * (group - 1))
    return total


def _filled(flags: Array, dtype: DTypeLike) -> Array:
    """All bits of an element set where the flag is."""
    wide = flags.astype(dtype)
    return np.negative(wide, out=wide)


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
