"""Digits: mixed-radix decompositions of a row-major index, with a stride on an axis each.

``(4,8):(8@lane,1@register)`` splits 0 … 31 into a digit of extent 4 (outer) and one of extent 8 (inner); the first
counts lanes by eights, the second registers by ones. Extents need not be powers of two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

from tile_core.errors.layout import BadDigits, BadLayoutShape

AXES = ("memory", "thread", "warp", "lane", "register")
"""The axes of layouts: an index in memory; a flat thread, or a warp and a lane in it; a register of a thread."""

_SHORT = {"mem": "memory", "reg": "register"}


class Digit(NamedTuple):
    """``extent`` values, each ``stride`` further on ``axis``."""

    extent: int
    stride: int
    axis: str = "memory"


def as_shape(shape: Any) -> tuple[int, ...]:
    """Return ``shape`` (an integer or a sequence) as a tuple of positive ints.

    Raises
    ------
    BadLayoutShape
        If an extent is not a positive compile-time integer.
    """
    try:
        items = tuple(shape)
    except TypeError:
        items = (shape,)
    try:
        extents = tuple(n.__index__() if hasattr(n, "__index__") else int(n) for n in items)
    except (TypeError, ValueError, OverflowError):
        extents = (0,)
    if any(n < 1 for n in extents) or any(isinstance(n, (bool, float, str)) for n in items):
        raise BadLayoutShape(found=tuple(items))
    return extents


def as_digits(digits: str | Iterable[Digit | tuple[int, int, str]], shape: Sequence[int]) -> tuple[Digit, ...]:
    """Return ``digits`` checked against ``shape``.

    Parameters
    ----------
    digits
        Text such as ``"(4,8):(8@lane,1@register)"``, or (extent, stride[, axis]) tuples, outermost first. An axis
        that is left out is ``"memory"``.
    shape
        The shape whose row-major index they decompose.

    Raises
    ------
    BadDigits
        If they cannot be read or their extents do not multiply to the size of ``shape``.
    """
    try:
        found = parse(digits, shape) if isinstance(digits, str) else tuple(Digit(*d) for d in digits)
    except TypeError:
        text = f"an object of type {type(digits).__name__}"
        reason = "expected text or (extent, stride, axis) tuples"
        raise BadDigits(digits=text, shape=tuple(shape), reason=reason, axes=", ".join(AXES)) from None
    reason = ""
    for digit in found:
        if digit.extent < 1:
            reason = f"extent {digit.extent} is not positive"
        elif digit.axis not in AXES:
            reason = f"unknown axis {digit.axis!r}"
    if not reason and prod(d.extent for d in found) != prod(shape):
        reason = f"the extents multiply to {prod(d.extent for d in found)}, expected {prod(shape)}"
    if reason:
        raise BadDigits(digits=format_digits(found), shape=tuple(shape), reason=reason, axes=", ".join(AXES))
    return found


def parse(text: str, shape: Sequence[int] = ()) -> tuple[Digit, ...]:
    """Read ``"(4,8):(8@lane,1@register)"``; the short axis names ``mem`` and ``reg`` are accepted."""
    match = re.fullmatch(r"\(([\d,\s]*)\)\s*:\s*\(([-\w@,\s]*)\)", text.strip())
    if match is not None:
        extents = [e for e in re.split(r"[,\s]+", match[1].strip()) if e]
        strides = [p for p in re.split(r"[,\s]+", match[2].strip()) if p]
        if len(extents) == len(strides) and all(re.fullmatch(r"-?\d+(@\w+)?", p) for p in strides):
            pairs = [(int(e), *p.partition("@")[::2]) for e, p in zip(extents, strides, strict=True)]
            return tuple(Digit(e, int(s), _SHORT.get(axis, axis) or "memory") for e, s, axis in pairs)
    reason = "expected '(n,…):(stride@axis,…)'"
    raise BadDigits(digits=repr(text), shape=tuple(shape), reason=reason, axes=", ".join(AXES))


def format_digits(digits: Sequence[Digit]) -> str:
    """The text of ``digits``; ``parse`` reads it back."""
    extents = ",".join(str(d.extent) for d in digits)
    return f"({extents}):({','.join(f'{d.stride}@{d.axis}' for d in digits)})"


def row_major_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The row-major stride of each dimension."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def unravel(index: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The coordinate of row-major ``index``."""
    return tuple(index // s % n for n, s in zip(shape, row_major_strides(shape), strict=True))


def merge(digits: Iterable[Digit]) -> tuple[Digit, ...]:
    """The canonical digits of the same map: extents of 1 dropped, contiguous neighbours merged.

    It is unique: the innermost extent is the length of the first run of equal steps, and so on outwards.
    """
    out: list[Digit] = []
    for digit in digits:
        if digit.extent == 1:
            continue
        if out and out[-1].axis == digit.axis and out[-1].stride == digit.extent * digit.stride:
            digit = Digit(out.pop().extent * digit.extent, digit.stride, digit.axis)
        out.append(digit)
    return tuple(out)


def group_by_dims(digits: Sequence[Digit], shape: Sequence[int]) -> tuple[tuple[Digit, ...], ...] | None:
    """Split digits at the boundaries of the dimensions of ``shape``, as tuples per dimension.

    Returns ``None`` if a boundary falls inside a digit that it does not divide, as of shape (4, 3) and extents (3, 4).
    """
    pending = [d for d in digits if d.extent > 1]
    groups: list[tuple[Digit, ...]] = []
    for extent in reversed(shape):
        group: list[Digit] = []
        while extent > 1:
            digit = pending.pop()
            if extent % digit.extent == 0:
                group.append(digit)
                extent //= digit.extent
            elif digit.extent % extent == 0:
                group.append(Digit(extent, digit.stride, digit.axis))
                pending.append(Digit(digit.extent // extent, digit.stride * extent, digit.axis))
                extent = 1
            else:
                return None
        groups.append(tuple(reversed(group)))
    return tuple(reversed(groups))
