"""Layouts of fragments: the thread and the register of each element of a tile.

A ``FragmentLayout`` describes the iterations of a data-parallel loop as well: an iteration runs on the thread that
would hold the element. Dimensions may be padded, so that every tile size has one. Elements can be *replicated*: by
digits of the thread that do not depend on the coordinate.

>>> from tile_core.layout import Digit, FragmentLayout
>>> rows, columns = (Digit(4, 32, "thread"), Digit(16, 1, "register")), (Digit(32, 1, "thread"),)
>>> FragmentLayout((64, 32), (rows, columns), 128)(17, 3)
(35, 1)
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from math import prod

from tile_core.compat.types import Array, Coordinate, Expr, Var
from tile_core.errors import InternalError
from tile_core.layout.base import linear
from tile_core.layout.digits import Digit, row_major_strides
from tile_core.layout.layout import DigitLayout, decompose
from tile_core.layout.swizzle import PYTHON_OPS, Ops

Digits = tuple[Digit, ...]
_STRIDE = operator.attrgetter("stride")


class FragmentLayout(DigitLayout):
    """A layout onto the threads of a block and their registers.

    Parameters
    ----------
    shape
        Extents of the tile.
    dims
        For each dimension its digits on ``thread`` and ``register``, outermost first; their extents multiply to the
        extent or to more (padding).
    threads
        Threads of the block.
    replica
        Digits of the thread that choose among copies of an element.

    Raises
    ------
    InternalError
        Unless the digits of the thread, those of the copies included, fill 0 … ``size("thread")`` - 1 without gaps, and
        those of the register so, too. Further threads hold nothing.
    """

    #: Each dimension's digits as given: one level of register loops for each.
    dims: tuple[Digits, ...] = ()

    def __init__(self, shape: Sequence[int], dims: Sequence[Digits], threads: int, replica: Digits = ()) -> None:
        # These checks imply the general checks of digits, and many layouts are made.
        self.shape, self.dims, self.threads, self.replica = tuple(shape), tuple(dims), threads, tuple(replica)
        padded = []
        for digits in self.dims:
            extent = 1
            for d in digits:
                extent *= d.extent
            padded.append(extent)
        self.padded, self.digits = tuple(padded), tuple(chain.from_iterable(self.dims))
        self.swizzles, self.offset, self.note, self._axes = (), {}, "", ("thread", "register")
        self.sizes = _reached((*self.digits, *self.replica))
        fits = len(self.padded) == len(self.shape) and all(map(operator.ge, self.padded, self.shape))
        if not fits or not all(self.sizes.values()) or self.sizes["thread"] > threads:
            raise InternalError(stage="layout of a fragment", detail=f"digits do not fit together: {self}")

    @property
    def registers(self) -> int:
        """Elements (padding included) that each thread holds."""
        return self.sizes["register"]

    @property
    def vector(self) -> int:
        """Elements of the last dimension that lie in consecutive registers of a thread."""
        if not self.dims or not self.dims[-1]:
            return 1
        last = self.dims[-1][-1]
        return last.extent if last.axis == "register" and last.stride == 1 else 1

    # From elements to threads and registers

    def register(self, coordinate: Sequence[Expr]) -> Expr:
        """Return the register that an element is in, of ints, arrays or expressions."""
        parts: list[tuple[Digit, Coordinate]] = []
        for index, digits in zip(coordinate, self._groups or (), strict=True):
            parts += decompose(index, digits, _arithmetic(index), "register")
        return linear([value for _, value in parts], [digit.stride for digit, _ in parts], PYTHON_OPS)

    @cached_property
    def thread_table(self) -> Array:
        """The threads of each element by row-major index: an array of shape (elements, copies)."""
        return self.array("thread")

    @cached_property
    def register_table(self) -> Array:
        """The register of each element by row-major index."""
        return self.array("register")[:, 0]

    def same_as(self, other: FragmentLayout) -> bool:
        """Whether every element is in the same threads and registers, whatever the padding."""
        import numpy as np

        return (
            self.shape == other.shape and self.threads == other.threads
            and bool(np.array_equal(np.sort(self.thread_table, 1), np.sort(other.thread_table, 1)))
            and bool(np.array_equal(self.register_table, other.register_table))
        )  # fmt: skip

    # From threads and registers to elements

    def element(self, thread: Coordinate, register: Coordinate) -> list[Coordinate]:
        """Return the coordinate of the element in a thread's register: the inverse map.

        It may lie in the padding.
        """
        position = {"thread": thread, "register": register}
        found = []
        for digits in self.dims:
            weights = row_major_strides([d.extent for d in digits])
            wide = [(d, weight) for d, weight in zip(digits, weights, strict=True) if d.extent > 1]
            values = [self.digit(position[d.axis], d) for d, _ in wide]
            found.append(linear(values, [weight for _, weight in wide], PYTHON_OPS))
        return found

    def digit(self, position: Var, digit: Digit) -> Expr:
        """Return the value of a digit of a thread's or register's index."""
        ops = _arithmetic(position)
        value = position if digit.stride == 1 else ops.floordiv(position, digit.stride)
        size = self.size(digit.axis)
        last = digit.stride * digit.extent >= size and (digit.axis == "register" or size == self.threads)
        return value if last else ops.mod(value, digit.extent)

    def inside(self, coordinate: Sequence[Expr]) -> list[Expr]:
        """Return the conditions under which a coordinate is not in the padding."""
        return [c < n for c, n, p in zip(coordinate, self.shape, self.padded, strict=True) if p != n]

    def holds(self, thread: Var) -> list[Expr]:
        """Return the conditions under which a thread holds anything."""
        return [] if self.size("thread") == self.threads else [thread < self.size("thread")]

    def is_first(self, thread: Var) -> list[Expr]:
        """Return the conditions under which a thread holds the first copy of its elements."""
        equal = _arithmetic(thread).equal
        return [equal(self.digit(thread, d), 0) for d in self.replica if d.extent > 1]

    # Making others from it

    def project(self, *dropped: int) -> FragmentLayout:
        """Return the layout of a tile with some dimensions removed: their threads hold replicas.

        This is where a reduction along these dimensions leaves its result.
        """
        kept = [d for d in range(len(self.shape)) if d not in dropped]
        copies = [g for d in dropped for g in self.dims[d] if g.axis == "thread" and g.extent > 1]
        dims = _renumbered([self.dims[d] for d in kept])
        shape = tuple(self.shape[d] for d in kept)
        return FragmentLayout(shape or (1,), tuple(dims) or ((),), self.threads, (*self.replica, *copies))

    def permute(self, order: Sequence[int]) -> FragmentLayout:
        """Return the layout of the tile with its dimensions in another order."""
        shape = tuple(self.shape[d] for d in order)
        return FragmentLayout(shape, tuple(self.dims[d] for d in order), self.threads, self.replica)

    def insert(self, at: int) -> FragmentLayout:
        """Return the layout of the tile with one more dimension of extent 1."""
        shape, dims = [*self.shape[:at], 1, *self.shape[at:]], [*self.dims[:at], (), *self.dims[at:]]
        return FragmentLayout(tuple(shape), tuple(dims), self.threads, self.replica)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FragmentLayout):
            return super().__eq__(other)
        mine, theirs = (self.shape, self.dims, self.replica), (other.shape, other.dims, other.replica)
        return self.threads == other.threads and (mine == theirs or self._key == other._key)

    def __hash__(self) -> int:
        return super().__hash__()

    def __str__(self) -> str:
        dims = "; ".join(" ".join(f"{d.extent}:{d.stride}@{d.axis}" for d in digits) or "1" for digits in self.dims)
        copies = " x " + " ".join(f"{d.extent}:{d.stride}" for d in self.replica) if self.replica else ""
        return f"{self.shape} on {self.threads} threads: {dims}{copies}"


def spread(shape: Sequence[int], threads: int, vector: int = 1) -> FragmentLayout:
    """Return a fragment's plain layout: rows of adjacent threads with ``vector`` adjacent elements each.

    The last dimension gets a thread per vector (a power of two that divides ``threads``), the other
    dimensions from the last to the first the rest. The remaining threads hold copies.
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
    register = vector if shape and vector > 1 else 1
    for outer, use, step, width in taken:
        inner = (Digit(width, 1, "register"),) if width > 1 else ()
        dims.append((Digit(outer, register, "register"), Digit(use, step, "thread"), *inner))
        register *= outer
    copies = (Digit(left, stride, "thread"),) if left > 1 else ()
    return FragmentLayout(tuple(shape), tuple(reversed(dims)), threads, copies)


def _power_of_two(left: int, most: int) -> int:
    """Return the largest power of two that divides ``left``, up to the one from ``most``."""
    use = 1
    while left % (use * 2) == 0 and use < most:
        use *= 2
    return use


def _renumbered(dims: Sequence[Digits]) -> list[Digits]:
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


def _reached(digits: Sequence[Digit]) -> dict[str, int]:
    """Return how many values the digits of each axis fill; 0 with gaps."""
    reach = {"thread": 1, "register": 1}
    for extent, stride, axis in sorted(digits, key=_STRIDE):
        if extent > 1 and axis in reach:
            reach[axis] = reach[axis] * extent if stride == reach[axis] else 0
    return reach


def _arithmetic(value: Expr) -> Ops:
    """The arithmetic of a number, an array or an expression of the IR."""
    if isinstance(value, int) or hasattr(value, "__array_interface__"):
        return PYTHON_OPS
    from tile_core.layout.expressions import ExprOps

    return ExprOps()
