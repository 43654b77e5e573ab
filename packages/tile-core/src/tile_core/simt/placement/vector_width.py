"""Vector widths of threads, so that accesses of memory are wide and coalesced."""

from __future__ import annotations

from math import gcd, prod
from typing import NamedTuple

from tile_core.analysis.affine import linear_form
from tile_core.compat.types import BufferVar
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.simt.memory.alignment import WIDEST, Aligned, factor
from tile_core.simt.placement.tile_uses import Nest, TileAccess

#: Bytes of the threads of a warp that one request of memory serves, for each thread.
_SERVED = 4


def widest(shape: tuple[int, ...], size: int, threads: int) -> int:
    """Return the vector width, up to ``WIDEST`` bytes, that divides rows."""
    vector = max(1, WIDEST // size)
    while vector > 1 and (not shape or shape[-1] % vector or prod(shape) // vector < threads):
        vector //= 2
    return vector


def coalesced(vector: int, nest: Nest, aligned: Aligned) -> int:
    """Return the vector width, at most ``vector``, with the fewest requests.

    Where rows are not aligned (an odd number of columns), a thread accesses adjacent elements one by one. Threads of
    a warp then access addresses that are ``vector`` elements apart, so each access takes as many requests as one of
    all elements between them; a store writes parts of sectors besides.
    """
    accesses = [
        _Width(_bytes(a), _covered(a, nest, aligned), a.is_store, nodes.scope_of(a.buffer) == "global")
        for a in nest.accesses
        if in_memory(a.buffer) and is_contiguous(a, nest)
    ]
    if all(a.covered >= min(vector, WIDEST / a.size) for a in accesses if a.outside):
        return vector
    best = vector = min([vector, *(a.covered for a in accesses if a.outside and a.is_store)])
    while vector > 1:
        vector //= 2
        if _requests(vector, accesses) < _requests(best, accesses):
            best = vector
    return best


class _Width(NamedTuple):
    """Bytes and number of an access's elements; whether it stores, and to global memory."""

    size: float
    covered: int
    is_store: bool
    outside: bool


def _requests(vector: int, accesses: list[_Width]) -> float:
    """Return the requests of a warp for each element of a thread."""
    return sum(max(1.0, vector * a.size / _SERVED) / min(a.covered, vector) for a in accesses)


def _covered(a: TileAccess, nest: Nest, aligned: Aligned) -> int:
    """Return the elements of one access.

    It begins at an iteration of the last loop that is a multiple of ``WIDEST``.
    """
    if nodes.scope_of(a.buffer) != "global":
        return int(WIDEST / _bytes(a))
    step = gcd(WIDEST, factor(nodes.int_const(0) + nest.starts[-1], {}))
    return max(1, int(aligned.of(a.buffer, a.indices, {nest.variables[-1]: step}) / _bytes(a)))


def _bytes(a: TileAccess) -> float:
    return DTYPES[nodes.element_type(a.buffer)].bits / 8


def is_contiguous(a: TileAccess, nest: Nest) -> bool:
    """Whether the last loop runs over adjacent elements of the buffer."""
    if not a.indices:
        return False
    form = linear_form(a.indices[-1], [nest.variables[-1]])
    return form is not None and form.steps == (1,)


def in_memory(buffer: BufferVar) -> bool:
    """Whether a buffer is in global or shared memory."""
    return nodes.scope_of(buffer) in ("global", "shared")


def size_of(buffer: BufferVar) -> int:
    """Return the bytes of an element, 1 for a part of a byte."""
    return max(8, DTYPES[nodes.element_type(buffer)].bits) // 8
