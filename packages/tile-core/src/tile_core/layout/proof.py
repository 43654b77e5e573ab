"""Deciding whether a layout is one-to-one, and whether it leaves gaps.

Digits decide without trying elements: two elements collide exactly if some non-zero difference of their digits,
each within its extent, adds up to zero on every axis; and a layout that is one-to-one leaves no gap exactly if it has
as many elements as positions. XOR swizzles permute the positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from tile_core.compat.types import Array
from tile_core.errors.layout import LayoutCollision, LayoutTooLarge
from tile_core.layout.base import MAX_ENUMERATION, LayoutMap
from tile_core.layout.digits import unravel
from tile_core.layout.layout import DigitLayout
from tile_core.layout.table import unwrap
from tile_core.records import dataclass

SEARCH_STEPS = 20_000
"""The most steps of the search among digits; after it the elements are enumerated."""


@dataclass(frozen=True)
class Collision:
    """Two elements, as (coordinate, copy), and their common position, an index per axis."""

    first: tuple[tuple[int, ...], int]
    second: tuple[tuple[int, ...], int]
    position: tuple[tuple[str, int], ...]

    def error(self, shape: tuple[int, ...]) -> LayoutCollision:
        """The error that names both."""
        names = [f"{c} copy {r}" if self.first[1] or self.second[1] else f"{c}" for c, r in (self.first, self.second)]
        position = " ".join(f"{axis} {index}" for axis, index in self.position)
        return LayoutCollision(shape=shape, first=names[0], second=names[1], image=position)


@dataclass(frozen=True)
class Proof:
    """Proven properties of a layout.

    Attributes
    ----------
    injective
        No two elements (or copies) share a place.
    bijective
        Also, every place within ``layout.sizes`` is used.
    method
        ``"digits"`` or ``"enumeration"``.
    collision
        Two elements that share a place, if not injective.
    """

    injective: bool
    bijective: bool
    method: str
    collision: Collision | None = None


def prove(layout: LayoutMap, bound: int = MAX_ENUMERATION) -> Proof:
    """Decide whether ``layout`` is injective and bijective.

    Raises
    ------
    LayoutTooLarge
        If the digits do not decide it and there are more than ``bound`` elements.
    """
    layout = unwrap(layout)
    if isinstance(layout, DigitLayout):
        proof = _by_digits(layout, bound)
        if proof is not None:
            return proof
    if layout.numel * layout.replicas > bound:
        raise LayoutTooLarge(what="whether each place is used once", found=layout.numel * layout.replicas, bound=bound)
    return _by_enumeration(layout)


def difference(terms: Sequence[tuple[int, int]], steps: int = SEARCH_STEPS) -> list[int] | None:
    """Return integers e, not all 0, with a zero total of ``e[i] * stride[i]``.

    ``abs(e[i]) < extent[i]`` holds; ``None`` if there are none.

    ``terms`` are (extent, stride). Exact: a depth-first search from the largest stride on, cut by how far the smaller
    strides reach and by their greatest common divisor.

    Raises
    ------
    TimeoutError
        After ``steps`` steps.
    """
    order = sorted(range(len(terms)), key=lambda i: -abs(terms[i][1]))
    reach, common = [0], [0]
    for i in reversed(order):
        extent, stride = terms[i]
        reach.append(reach[-1] + (extent - 1) * abs(stride))
        common.append(gcd(common[-1], stride))
    reach.reverse()
    common.reverse()
    found = [0] * len(terms)
    left = [steps]

    def search(depth: int, total: int, some: bool) -> bool:
        if depth == len(order):
            return some and total == 0
        extent, stride = terms[order[depth]]
        if stride == 0:
            low, high = (0, extent - 1) if total == 0 else (0, 0)
        else:
            ends = sorted(((-reach[depth + 1] - total) // stride, (reach[depth + 1] - total) // stride))
            low, high = max(1 - extent, ends[0]), min(extent - 1, ends[1] + 1)
        # e and -e are equivalent, so the first non-zero difference may be taken positive.
        for value in range(low, high + 1) if some else (*range(1, high + 1), 0):
            rest = total + value * stride
            left[0] -= 1
            if left[0] < 0:
                raise TimeoutError
            if abs(rest) > reach[depth + 1] or (rest % common[depth + 1] if common[depth + 1] else rest):
                continue
            found[order[depth]] = value
            if search(depth + 1, rest, some or value != 0):
                return True
        found[order[depth]] = 0
        return False

    return found if search(0, 0, False) else None


def _by_digits(layout: DigitLayout, bound: int) -> Proof | None:
    every = [*layout.digits, *layout.replica]
    try:
        for axis in layout.axes:
            chosen = [i for i, d in enumerate(every) if d.axis == axis]
            found = difference([(every[i].extent, every[i].stride) for i in chosen])
            if found is not None:
                if layout.padded != layout.shape:
                    return None  # one of the two may be padding
                values = [0] * len(every)
                for i, value in zip(chosen, found, strict=True):
                    values[i] = value
                return Proof(False, False, "digits", _collision_of_digits(layout, values))
    except TimeoutError:
        return None
    count = layout.numel * layout.replicas
    if layout.swizzles and count > bound and not layout.keeps_window():
        plain = DigitLayout(layout.shape, layout.digits, replica=layout.replica, offset=layout.offset)
        if len(layout.swizzles) > 1 or count != prod(plain.sizes.values()):
            raise LayoutTooLarge(what="whether each place is used", found=count, bound=bound)
        return Proof(True, False, "digits")
    return Proof(True, count == prod(layout.sizes.values()), "digits")


def _collision_of_digits(layout: DigitLayout, values: Sequence[int]) -> Collision:
    ends: list[tuple[tuple[int, ...], int]] = []
    count = len(layout.digits)
    for sign in (-1, 1):
        chosen = [max(sign * v, 0) for v in values]
        flat = copy = 0
        for digit, value in zip(layout.digits, chosen[:count], strict=True):
            flat = flat * digit.extent + value
        for digit, value in zip(layout.replica, chosen[count:], strict=True):
            copy = copy * digit.extent + value
        ends.append((unravel(flat, layout.shape), copy))
    ends.sort()
    position = layout.apply(*ends[0][0], replica=ends[0][1])
    return Collision(ends[0], ends[1], tuple(position.items()))


def _by_enumeration(layout: LayoutMap) -> Proof:
    tables = layout.tables()
    sizes = layout.sizes
    rows: list[Array] = list(zip(*(tables[a] for a in layout.axes), strict=True))
    if len(set(rows)) == len(rows):
        return Proof(True, len(rows) == prod(sizes.values()), "enumeration")
    seen: dict[tuple[int, ...], int] = {}
    for position, row in enumerate(rows):
        first = seen.setdefault(row, position)
        if first != position:
            break
    ends = [divmod(p, layout.replicas) for p in (first, position)]
    where = [(unravel(flat, layout.shape), copy) for flat, copy in ends]
    shared = tuple(zip(layout.axes, row, strict=True))
    return Proof(False, False, "enumeration", Collision(where[0], where[1], shared))
