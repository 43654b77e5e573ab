"""Whether two regions of memory share elements."""

from __future__ import annotations

from tile_core.ir import nodes
from tile_core.values.buffer import Buffer, Region, to_index
from tile_core.values.scalar import Index, simplify


def root_of(buffer: Buffer) -> Buffer:
    """Return the buffer that owns this memory, which for a view is another one."""
    base: Buffer | None = getattr(buffer, "base", None)
    return buffer if base is None else base


def disjoint(a: Region, b: Region) -> bool:
    """Whether two regions provably share no element."""
    if root_of(a.buffer) is not root_of(b.buffer):
        return True
    if not a.buffer.var.same_as(b.buffer.var):
        return False
    for low_a, size_a, low_b, size_b in zip(a.mins, a.extents, b.mins, b.extents, strict=True):
        distance = difference(low_b, low_a)
        known = distance is not None and isinstance(size_a, int) and isinstance(size_b, int)
        if known and (distance >= size_a or -distance >= size_b):  # type: ignore[operator]
            return True
    return False


def same_elements(a: Region, b: Region) -> bool:
    """Whether two regions provably are the same elements in the same order."""
    if not a.buffer.var.same_as(b.buffer.var) or a.kept != b.kept:
        return False
    pairs = [*zip(a.mins, b.mins, strict=True), *zip(a.extents, b.extents, strict=True)]
    return all(difference(x, y) == 0 for x, y in pairs)


def difference(a: Index, b: Index) -> int | None:
    """Return ``a - b`` if it is a known number."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    found = nodes.as_int(simplify(to_index(a) - to_index(b)))
    return found if isinstance(found, int) else None
