"""Copy large arrays that are mostly untouched, without the untouched pages.

A tensor of more elements than 32-bit offsets count has gigabytes. A program that is emulated touches some of its pages.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

LARGE = 1 << 28
"""Bytes from which on an array is copied page by page."""

_PAGE = mmap.PAGESIZE
_CHUNK = 1 << 20
#: Linux counts memory when it is touched, whatever its policy; Python names the flag since 3.13.
_NORESERVE = 0x4000 if sys.platform == "linux" else 0


def assign(target: Array, source: Array, *, empty: bool = False) -> None:
    """Copy an array to another one; skip parts of large arrays that are zero.

    Parameters
    ----------
    target
        The array to change.
    source
        The values.
    empty
        Whether the target is zero.
    """
    if source.nbytes < LARGE or not (source.flags.c_contiguous and target.flags.c_contiguous):
        target[...] = source
        return
    to, values = (np.frombuffer(a.reshape(-1).view(np.uint8).data, np.uint8) for a in (target, source))
    for start, end in sorted({*_touched(source), *(() if empty else _touched(target))}):
        if not np.array_equal(to[start:end], values[start:end]):
            to[start:end] = values[start:end]


def extents(file: int, first: int, size: int) -> list[tuple[int, int]]:
    """Return the parts of a file section that hold data, as relative offsets."""
    found, at, end = [], first, first + size
    while at < end:
        try:
            start = os.lseek(file, at, os.SEEK_DATA)
        except OSError:  # a hole up to the end
            break
        if start >= end:
            break
        at = min(os.lseek(file, start, os.SEEK_HOLE), end)
        found.append((start - first, at - first))
    return found


def zeros(size: int) -> mmap.mmap:
    """Return bytes that take no memory before they are written."""
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)


def _touched(array: Array) -> Iterator[tuple[int, int]]:
    """Yield chunks of an array that may be nonzero, as byte ranges."""
    address, size = int(array.__array_interface__["data"][0]), array.nbytes
    present = _present(address, size)
    chunks = range(0, size, _CHUNK)
    if present is None:
        data = np.frombuffer(array.reshape(-1).view(np.uint8).data, np.uint8)
        yield from ((n, min(n + _CHUNK, size)) for n in chunks if data[n : n + _CHUNK].any())
        return
    base = address // _PAGE * _PAGE
    for n in sorted({(page * _PAGE + base - address + d) // _CHUNK for page in present for d in (0, _PAGE - 1)}):
        if 0 <= n * _CHUNK < size:
            yield n * _CHUNK, min((n + 1) * _CHUNK, size)


def _present(address: int, size: int) -> list[int] | None:
    """Return the numbers of touched pages of anonymous memory; ``None`` if unknown."""
    first, last = address // _PAGE, (address + size - 1) // _PAGE
    try:
        if not _is_anonymous(first * _PAGE, (last + 1) * _PAGE):
            return None
        with open("/proc/self/pagemap", "rb", buffering=0) as file:
            words = np.frombuffer(os.pread(file.fileno(), (last + 1 - first) * 8, first * 8), np.uint64)
    except OSError:
        return None
    if len(words) != last + 1 - first:
        return None
    return [int(n) for n in np.flatnonzero(words >> np.uint64(62))]  # in memory, or swapped out


def _is_anonymous(low: int, high: int) -> bool:
    """Whether a range of addresses belongs to no file."""
    at = low
    with open("/proc/self/maps") as file:
        for line in file:
            span, _, _, _, inode, *_ = line.split()
            start, end = (int(n, 16) for n in span.split("-"))
            if start <= at < end:
                if inode != "0":
                    return False
                at = end
            if at >= high:
                return True
    return False
