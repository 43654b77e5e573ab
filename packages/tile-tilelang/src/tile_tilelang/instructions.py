"""Asynchronous copies of a thread, by the names of NVIDIA's instructions.

Each is a copy that is complete where it stands. Arrivals and waits for it therefore keep their meaning on every target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tile_core.language as T
from tile_core.records import dataclass
from tile_core.values.buffer import Buffer, Region
from tile_core.values.value import Value, constant_of
from tile_tilelang.errors import BadCall

__all__ = ["access_ptr", "cp_async_barrier_noinc", "ptx_cp_async"]


@dataclass(frozen=True)
class ElementPointer:
    """The place of an element, for `ptx_cp_async`."""

    buffer: Buffer
    indices: tuple[Any, ...]

    def row(self, offset: Any) -> tuple[Any, ...]:
        """Return the indices of an element further on in the last dimension."""
        return (*self.indices[:-1], self.indices[-1] + offset)


def access_ptr(base: Any, access_type: Any = "r", *extents: Any, offset: Any = 0, **hints: Any) -> ElementPointer:
    """Return the place of an element, or of the first one of a slice.

    Raises
    ------
    BadCall
        For anything else.
    """
    found: tuple[Buffer, Sequence[Any]] | None = getattr(base, "element", None)
    if isinstance(base, Buffer) and base.shape:
        found = base, [0] * len(base.shape)
    elif isinstance(base, Region):
        found = base.buffer, base.mins
    if found is None:
        expected, instead = "an element, a slice or a buffer", "write T.access_ptr(A[i, j], 'r')"
        raise BadCall(function="T.access_ptr", name="base", found=repr(base), expected=expected, instead=instead)
    pointer = ElementPointer(found[0], tuple(found[1]))
    return ElementPointer(pointer.buffer, pointer.row(offset)) if isinstance(offset, Value) or offset else pointer


def ptx_cp_async(dst_access_ptr: Any, src_access_ptr: Any, num_elems: int, predicate: Any = None) -> None:
    """Copy adjacent elements by one thread; zeros where ``predicate`` is false.

    Parameters
    ----------
    dst_access_ptr, src_access_ptr
        Places of `access_ptr`, in shared and in global memory.
    num_elems
        How many. A row of either buffer has a multiple of them.
    predicate
        Whether the source is read.

    Raises
    ------
    BadCall
        For other operands.
    """
    for name, pointer in (("dst_access_ptr", dst_access_ptr), ("src_access_ptr", src_access_ptr)):
        if not isinstance(pointer, ElementPointer):
            raise _bad(name, repr(pointer), "T.access_ptr(...)", "write T.access_ptr(A[i, j], 'r')")
        row = constant_of(pointer.buffer.shape[-1])
        if len(pointer.buffer.shape) > 1 and (row is None or row % num_elems):
            raise _bad(name, f"a row of {row}", f"a multiple of {num_elems} elements", "write T.copy(src, dst)")
    if dst_access_ptr.buffer.dtype != src_access_ptr.buffer.dtype:
        found, expected = str(src_access_ptr.buffer.dtype), str(dst_access_ptr.buffer.dtype)
        raise _bad("src_access_ptr", f"of type {found}", expected, "view one of them with T.view(A, dtype=...)")
    _copied(dst_access_ptr, src_access_ptr, num_elems, predicate)


def cp_async_barrier_noinc(barrier: Any) -> None:
    """Arrive at a barrier: copies of this thread are complete."""
    T.mbarrier_arrive(barrier)


@T.macro
def _copied(dst: Any, src: Any, count: int, predicate: Any) -> None:
    for i in T.vectorized(count):
        if predicate is None:
            dst.buffer[dst.row(i)] = src.buffer[src.row(i)]
        else:
            dst.buffer[dst.row(i)] = T.if_then_else(predicate, src.buffer[src.row(i)], T.cast(0, src.buffer.dtype))


def _bad(name: str, found: str, expected: str, instead: str) -> BadCall:
    return BadCall(function="T.ptx_cp_async", name=name, found=found, expected=expected, instead=instead)
