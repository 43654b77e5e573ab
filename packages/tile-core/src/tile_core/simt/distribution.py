"""Which thread holds which element of a tile, and in which of its registers.

A ``Distribution`` describes a fragment, and equally the iterations of a data-parallel loop: an iteration runs on the
thread that would hold the element. It is written in digits (``layout.digits.Digit``) of each dimension, on the axes
``thread`` and ``register``. Dimensions may be padded, so that every tile size has one; padding holds nothing. Elements
can be *replicated*: digits of the thread that no coordinate chooses.

>>> Distribution((64, 48), ((Digit(4, 32, "thread"), Digit(16, 4, "register")), (Digit(16, 1, "thread"),), 128)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from tile_core.compat.tvm import tirx, tvm
from tile_core.errors import InternalError
from tile_core.ir import nodes
from tile_core.layout.digits import Digit

Digits = tuple[Digit, ...]


@dataclass(frozen=True)
class Distribution:
    """A tile's elements on the threads of a block.

    Parameters
    ----------
    shape
        Extents of the tile.
    dims
        For each dimension its digits, outermost first; their extents multiply to the extent or to more (padding).
    threads
        Threads of the block.
    replica
        Digits of the thread that choose among copies of an element.

    Notes
    -----
    The digits of the thread, those of the copies included, fill ``0 … span - 1`` without gaps, and so do the digits of
    the register. Threads from ``span`` on hold nothing.
    """

    shape: tuple[int, ...]
    dims: tuple[Digits, ...]
    threads: int
    replica: Digits = ()

    def __post_init__(self) -> None:
        fits = len(self.dims) == len(self.shape) and all(p >= n for p, n in zip(self.padded, self.shape, strict=True))
        if not fits or not self._dense("thread") or not self._dense("register") or self.span > self.threads:
            raise InternalError(stage="distribution", detail=f"digits do not fit together: {self}")

    @cached_property
    def padded(self) -> tuple[int, ...]:
        """Extents with padding."""
        return tuple(prod(d.extent for d in digits) for digits in self.dims)

    @cached_property
    def span(self) -> int:
        """Threads that hold something, or copies of it."""
        return prod(d.extent for d in (*self._all, *self.replica) if d.axis == "thread")

    @cached_property
    def registers(self) -> int:
        """Elements (padding included) that each thread holds."""
        return prod(d.extent for d in self._all if d.axis == "register")

    @cached_property
    def replicas(self) -> int:
        """Copies of each element."""
        return prod(d.extent for d in self.replica)

    @cached_property
    def _all(self) -> Digits:
        return tuple(d for digits in self.dims for d in digits)

    def _dense(self, axis: str) -> bool:
        reach = 1
        for digit in sorted((d for d in (*self._all, *self.replica) if d.axis == axis), key=lambda d: d.stride):
            if digit.extent == 1:
                continue
            if digit.stride != reach:
                return False
            reach *= digit.extent
        return True

    # From elements to places

    def thread(self, coordinates: Sequence[Any], replica: Any = 0) -> Any:
        """Return the thread that holds (a copy of) an element, of ints, arrays or expressions."""
        return self._place(coordinates, "thread") + _spread(replica, self.replica)

    def register(self, coordinates: Sequence[Any]) -> Any:
        """Return the register that an element is in."""
        return self._place(coordinates, "register")

    def _place(self, coordinates: Sequence[Any], axis: str) -> Any:
        total: Any = 0
        for value, digits in zip(coordinates, self.dims, strict=True):
            weight = prod(d.extent for d in digits)
            outermost = True
            for digit in digits:
                weight //= digit.extent
                if digit.axis == axis and digit.extent > 1:
                    part = _div(value, weight)
                    total = _add(total, _times(part if outermost else _mod(part, digit.extent), digit.stride))
                outermost = outermost and digit.extent == 1
        return total

    # From places to elements

    def coordinates(self, thread: Any, register: Any) -> list[Any]:
        """Return the element's coordinates (possibly in the padding) at a place."""
        return [self._coordinate(digits, {"thread": thread, "register": register}) for digits in self.dims]

    def _coordinate(self, digits: Digits, place: dict[str, Any]) -> Any:
        total: Any = 0
        weight = prod(d.extent for d in digits)
        for digit in digits:
            weight //= digit.extent
            if digit.extent > 1:
                total = _add(total, _times(self.digit(place[digit.axis], digit), weight))
        return total

    def digit(self, place: Any, digit: Digit) -> Any:
        """Return the value of a digit of a thread's (or register's) number, which is below the span."""
        value = _div(place, digit.stride)
        last = digit.stride * digit.extent >= (self.span if digit.axis == "thread" else self.registers)
        return value if last and (digit.axis == "register" or self.span == self.threads) else _mod(value, digit.extent)

    def inside(self, coordinates: Sequence[Any]) -> list[Any]:
        """Return the conditions under which coordinates are not in the padding."""
        return [c < n for c, n, p in zip(coordinates, self.shape, self.padded, strict=True) if p != n]

    def holds(self, thread: Any) -> list[Any]:
        """Return the conditions under which a thread holds anything."""
        return [] if self.span == self.threads else [thread < self.span]

    def is_first(self, thread: Any) -> list[Any]:
        """Return the conditions under which a thread holds the first copy of its elements."""
        return [tirx.EQ(self.digit(thread, d), nodes.int_const(0)) for d in self.replica if d.extent > 1]

    # Tables, for proofs

    @cached_property
    def thread_table(self) -> Any:
        """The threads of each element by row-major index: an array of shape (elements, copies)."""
        grid = np.indices(self.shape).reshape(len(self.shape), -1)
        first = np.zeros(grid.shape[1:] or (1,), dtype=np.int64) + self._place(list(grid), "thread")
        copies = _spread(np.arange(self.replicas), self.replica) + np.zeros(self.replicas, dtype=np.int64)
        return first[:, None] + copies[None, :]

    @cached_property
    def register_table(self) -> Any:
        """The register of each element by row-major index."""
        grid = np.indices(self.shape).reshape(len(self.shape), -1)
        return np.zeros(grid.shape[1:] or (1,), dtype=np.int64) + self._place(list(grid), "register")

    # Making others from it

    def project(self, *dropped: int) -> Distribution:
        """Return the distribution of a tile without some dimensions: what was along them is replicated.

        This is where a reduction along these dimensions leaves its result.
        """
        kept = [d for d in range(len(self.shape)) if d not in dropped]
        copies = [g for d in dropped for g in self.dims[d] if g.axis == "thread" and g.extent > 1]
        dims = _renumber([self.dims[d] for d in kept])
        shape = tuple(self.shape[d] for d in kept)
        return Distribution(shape or (1,), tuple(dims) or ((),), self.threads, (*self.replica, *copies))

    def permute(self, order: Sequence[int]) -> Distribution:
        """Return the distribution of the tile with its dimensions in another order."""
        shape = tuple(self.shape[d] for d in order)
        return Distribution(shape, tuple(self.dims[d] for d in order), self.threads, self.replica)

    def insert(self, at: int) -> Distribution:
        """Return the distribution of the tile with one more dimension of extent 1."""
        shape, dims = [*self.shape[:at], 1, *self.shape[at:]], [*self.dims[:at], (), *self.dims[at:]]
        return Distribution(tuple(shape), tuple(dims), self.threads, self.replica)

    @property
    def vector(self) -> int:
        """Elements of the last dimension that lie in consecutive registers of a thread."""
        if not self.dims or not self.dims[-1]:
            return 1
        last = self.dims[-1][-1]
        return last.extent if last.axis == "register" and last.stride == 1 else 1

    def same_as(self, other: Distribution) -> bool:
        """Whether every element is in the same threads and registers."""
        return (
            self.shape == other.shape and self.threads == other.threads
            and bool(np.array_equal(np.sort(self.thread_table, 1), np.sort(other.thread_table, 1)))
            and bool(np.array_equal(self.register_table, other.register_table))
        )  # fmt: skip

    def __str__(self) -> str:
        dims = "; ".join(" ".join(f"{d.extent}:{d.stride}@{d.axis}" for d in digits) or "1" for digits in self.dims)
        copies = " x " + " ".join(f"{d.extent}:{d.stride}" for d in self.replica) if self.replica else ""
        return f"{self.shape} on {self.threads} threads: {dims}{copies}"


def spread(shape: Sequence[int], threads: int, vector: int = 1) -> Distribution:
    """Return the plain distribution of a tile: rows of neighbouring threads, each with ``vector`` neighbours.

    The last dimension gets as many threads (a power of two that divides ``threads``) as it has vectors, the other
    dimensions from the last to the first the rest. What is left of the threads holds copies.
    """
    dims: list[Digits] = []
    stride, left = 1, threads
    outermost = next((d for d, n in enumerate(shape) if n > 1), 0)
    taken: list[tuple[int, int, int, int]] = []  # extent of registers outside, threads, their stride, vector
    for d in reversed(range(len(shape))):
        width = vector if d == len(shape) - 1 else 1
        count = -(-shape[d] // width)
        use = left if d == outermost and count >= left else _power_of_two(left, count)
        taken.append((-(-count // use), use, stride, width))
        stride, left = stride * use, left // use
    register = 1
    for outer, use, step, width in taken:
        digits: list[Digit] = [Digit(use, step, "thread")]
        if width > 1:
            digits.append(Digit(width, 1, "register"))
            register *= width
        dims.append((Digit(outer, 0, "register"), *digits))
    register = vector if shape and vector > 1 else 1
    final: list[Digits] = []
    for digits_of in dims:
        outer = digits_of[0].extent
        final.append((Digit(outer, register, "register"), *digits_of[1:]))
        register *= outer
    copies = (Digit(left, stride, "thread"),) if left > 1 else ()
    return Distribution(tuple(shape), tuple(reversed(final)), threads, copies)


def _power_of_two(left: int, most: int) -> int:
    """Return the largest power of two that divides ``left`` and is not above the next one from ``most``."""
    use = 1
    while left % (use * 2) == 0 and use < most:
        use *= 2
    return use


def _renumber(dims: Sequence[Digits]) -> list[Digits]:
    """Close the gaps between the registers' digits that dropped dimensions leave."""
    strides = sorted({d.stride for digits in dims for d in digits if d.axis == "register" and d.extent > 1})
    new: dict[int, int] = {}
    reach = 1
    for stride in strides:
        new[stride] = reach
        reach *= prod(d.extent for g in dims for d in g if d.axis == "register" and d.stride == stride)
    return [
        tuple(d._replace(stride=new.get(d.stride, 1)) if d.axis == "register" else d for d in digits) for digits in dims
    ]


_analyzer = tvm.sym.Analyzer


def _spread(replica: Any, digits: Digits) -> Any:
    total: Any = 0
    weight = prod(d.extent for d in digits)
    for digit in digits:
        weight //= digit.extent
        if digit.extent > 1:
            total = _add(total, _times(_mod(_div(replica, weight), digit.extent), digit.stride))
    return total


def _is_expr(value: Any) -> bool:
    return not isinstance(value, (int, np.ndarray, np.integer))


def _div(value: Any, by: int) -> Any:
    if by == 1:
        return value
    return tirx.floordiv(value, nodes.int_const(by)) if _is_expr(value) else value // by


def _mod(value: Any, by: int) -> Any:
    if by == 1:
        return 0
    return tirx.floormod(value, nodes.int_const(by)) if _is_expr(value) else value % by


def _times(value: Any, by: int) -> Any:
    return value if by == 1 else value * by


def _add(a: Any, b: Any) -> Any:
    return b if isinstance(a, int) and a == 0 else a + b
