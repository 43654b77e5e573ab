"""Recovers the digits of a table, so that a user's function becomes a provable layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_core.compat.types import Array
from tile_core.layout.base import LayoutMap
from tile_core.layout.digits import Digit
from tile_core.layout.layout import DigitLayout
from tile_core.layout.swizzle import Swizzle


def recover(layout: LayoutMap) -> DigitLayout | None:
    """Return the digits and at most one swizzle of the same map, if possible.

    The digits are unique (see ``digits.merge``) and are found in one sweep per digit.
    """
    import numpy as np

    tables = layout.tables()
    copies = layout.replicas
    rows = np.array([tables[a] for a in layout.axes], dtype=np.int64).T
    plain = _digits(rows)
    if plain is not None:
        return _build(layout, plain, rows[0].tolist(), copies, ())
    if layout.axes != ("memory",) or copies > 1:
        return None
    for swizzle in _candidates(tables["memory"]):
        straight = swizzle.apply(rows)
        plain = _digits(straight)
        if plain is not None:
            return _build(layout, plain, straight[0].tolist(), copies, (swizzle,))
    return None


_Steps = list[tuple[int, list[int]]]


def _digits(rows: Array) -> _Steps | None:
    """Return (extent, step per axis), outermost first, if rows add up by digits."""
    found: _Steps = []
    while len(rows) > 1:
        step = rows[1] - rows[0]
        straight = ((rows[1:] - rows[:-1]) == step).all(axis=1)
        run = len(rows) if straight.all() else int(straight.argmin()) + 1
        if len(rows) % run:
            return None
        blocks = rows.reshape(-1, run, rows.shape[1])
        if not ((blocks[:, 1:] - blocks[:, :-1]) == step).all():
            return None
        found.append((run, step.tolist()))
        rows = blocks[:, 0]
    return found[::-1]


def _build(
    layout: LayoutMap, steps: _Steps, origin: Sequence[int], copies: int, swizzles: tuple[Swizzle, ...]
) -> DigitLayout | None:
    """Return digits with one axis each, if possible.

    A step along several axes has none. The innermost ``copies`` positions are copies.
    """
    digits: list[Digit] = []
    for extent, step in steps:
        moving = [(s, a) for s, a in zip(step, layout.axes, strict=True) if s]
        if len(moving) > 1:
            return None
        digits.append(Digit(extent, *(moving[0] if moving else (0, layout.axes[0]))))
    replica: list[Digit] = []
    while copies > 1:
        extent, stride, axis = digits.pop()
        if copies % extent and extent % copies:
            return None
        taken = min(extent, copies)
        replica.insert(0, Digit(taken, stride, axis))
        copies //= taken
        if extent > taken:
            digits.append(Digit(extent // taken, stride * taken, axis))
    kept = [Digit(1, 0, a) for a in layout.axes if a not in {d.axis for d in (*digits, *replica)}]
    options: dict[str, Any] = {"swizzles": swizzles, "replica": replica, "note": layout.note}
    return DigitLayout(layout.shape, [*kept, *digits], offset=dict(zip(layout.axes, origin, strict=True)), **options)


def _candidates(table: Sequence[int]) -> list[Swizzle]:
    """The swizzles worth trying: those that read a bit which the indices have."""
    top = max(table).bit_length()
    return [
        Swizzle(bits, base, shift)
        for bits in range(1, 6)
        for base in range(0, 8)
        for shift in range(bits, 6)
        if base + shift < top
    ]
