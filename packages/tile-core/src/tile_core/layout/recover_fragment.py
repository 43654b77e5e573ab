"""Recovers a user's layout onto threads and registers as a ``FragmentLayout``, or explains why not."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tile_core.compat.types import Array
from tile_core.layout.base import LayoutMap
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import Digits, FragmentLayout
from tile_core.layout.table import unwrap

#: Lanes per warp of layouts without ``Fragment(width=)``.
WIDTH = 32
#: The axes of the two columns: thread, register.
_AXES = ("thread", "register")
_NO_SUM = "thread or register is not a sum of terms of one index each"


def fragment_of(layout: LayoutMap, threads: int) -> FragmentLayout | str:
    """Return a layout's digits per dimension on a block of threads, or a rejection reason.

    Dimensions are padded where that gives them digits: the last elements of a row of 33 on 32 threads are alone in
    their register.

    Parameters
    ----------
    layout
        A layout onto threads (or warps and lanes) and registers that is one-to-one.
    threads
        Threads of the block.
    """
    positions = _positions(layout)
    top = int(positions[..., 0].max()) + 1
    if top > threads:
        return f"the layout needs {top} threads; the block has {threads}"
    if (positions[..., :1, 1] != positions[..., 1]).any():
        return "copies of an element lie in different registers"
    rank = len(layout.shape)
    origin = positions[(0,) * (rank + 1)]
    if origin.any():
        positions = " and ".join(f"{axis} {at}" for axis, at in zip(_AXES, origin, strict=True) if at)
        return f"its first element lies in {positions}, not in 0"
    total: Array | int = 0
    groups: list[Digits] = []
    for d in range(rank + 1):  # the last dimension is that of the copies
        line = positions[(0,) * d + (slice(None),) + (0,) * (rank - d)]
        total = total + line.reshape((1,) * d + (-1,) + (1,) * (rank - d) + (2,))
        digits = _digits(line)
        if digits is None:
            return _NO_SUM
        groups.append(digits)
    if (total != positions).any():
        return _NO_SUM
    filled = _filled(groups[:-1], groups[-1])
    if filled is None or prod(d.extent for d in groups[-1]) != layout.replicas:
        return "gaps between its threads or registers"
    dims, copies = filled
    return FragmentLayout(tuple(layout.shape), dims, threads, copies)


def _positions(layout: LayoutMap) -> Array:
    """Thread and register of each element and copy: an array of shape (*shape, copies, 2)."""
    import numpy as np

    width = getattr(layout, "width", WIDTH)
    tables = {axis: np.asarray(table, np.int64) for axis, table in unwrap(layout).tables().items()}
    nowhere = np.zeros(layout.numel * layout.replicas, np.int64)
    thread = sum(tables.get(axis, nowhere) * step for axis, step in (("thread", 1), ("warp", width), ("lane", 1)))
    both = np.stack([thread, tables.get("register", nowhere)], axis=-1)
    return both.reshape(*layout.shape, layout.replicas, 2)


def _digits(line: Array) -> Digits | None:
    """Return the digits of one index, outermost first, from the positions along it.

    The last one may end early.
    """
    found: list[Digit] = []
    while len(line) > 1:
        step = line[1] - line[0]
        if (step == 0).sum() != 1:
            return None
        even = ((line[1:] - line[:-1]) == step).all(axis=1)
        run = len(line) if even.all() else int(even.argmin()) + 1
        starts = line[::run].repeat(run, axis=0)[: len(line)]
        counts = _counted(len(line), run)
        if (line != starts + counts * step).any():
            return None
        axis = int(step.argmax()) if step.max() > 0 else int(step.argmin())
        found.append(Digit(run, int(step[axis]), _AXES[axis]))
        line = line[::run]
    return tuple(reversed(found))


def _counted(count: int, run: int) -> Array:
    import numpy as np

    return (np.arange(count) % run)[:, None]


def _filled(groups: Sequence[Digits], copies: Digits) -> tuple[tuple[Digits, ...], Digits] | None:
    """Close gaps between digits by padding the dimension whose outermost digit ends before one."""
    dims = [list(group) for group in groups]
    for axis in _AXES:
        on_axis = [(digit, d) for d, group in enumerate(dims) for digit in group if digit.axis == axis]
        on_axis += [(digit, -1) for digit in copies if digit.axis == axis]
        reach, before = 1, None
        for digit, d in sorted(on_axis, key=lambda pair: pair[0].stride):
            if digit.stride != reach:
                if before is None or digit.stride % before[0].stride or digit.stride < reach:
                    return None
                last, at = before
                if at < 0 or dims[at][0] is not last:
                    return None
                dims[at][0] = last._replace(extent=digit.stride // last.stride)
                reach = digit.stride
            reach *= digit.extent
            before = (digit, d)
    return tuple(map(tuple, dims)), copies
