"""Cross-thread reduction: butterfly shuffles between the lanes of a group, shared scratch between groups.

The threads that combine their results are given as digits of the thread index. The part of a digit that is a bit field
of the lane index is *near*: its threads exchange registers. The rest is *far*: its results go through shared memory.
Blocks of any number of threads work; threads that hold nothing contribute the neutral element, so all lanes of a group
shuffle together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import calls, nodes
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import FragmentLayout
from tile_core.simt.register_loops import MOST_UNROLLED, Walk, each, loop_role, registers, when

Combine = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class NearAndFar:
    """Digits of the thread index, by how their threads can exchange values.

    Attributes
    ----------
    near
        Single-bit masks of the lane index, ascending.
    far
        Digits that span groups, or are not a bit field.
    """

    near: tuple[int, ...]
    far: tuple[Digit, ...]

    @property
    def groups(self) -> int:
        """Partial results that remain after the near threads have combined theirs."""
        return prod(d.extent for d in self.far)


def split(digits: Sequence[Digit], width: int) -> NearAndFar:
    """Split digits into near and far for groups of ``width`` threads (a power of two)."""
    near: list[int] = []
    far: list[Digit] = []
    for digit in digits:
        extent, stride = digit.extent, digit.stride
        if stride & (stride - 1) == 0:
            while extent % 2 == 0 and stride < width:
                near.append(stride)
                extent, stride = extent // 2, stride * 2
        if extent > 1:
            far.append(Digit(extent, stride, "thread"))
    return NearAndFar(tuple(sorted(near)), tuple(far))


def butterfly(array: BufferVar, masks: Sequence[int], combine: Combine) -> Stmt:
    """Return statements after which all lanes that differ in bits of ``masks`` hold their combined registers."""
    dtype = nodes.element_type(array)
    parts = []
    for mask in masks:

        def exchange(r: Expr, mask: int = mask) -> Stmt:
            other = nodes.fresh("other", dtype)
            arguments = [array[r], nodes.int_const(mask), nodes.int_const(0)]
            value = nodes.tile_call("shfl_xor", arguments, ret=dtype)
            return nodes.seq([tirx.Bind(other, value), nodes.store(array, combine(array[r], other), [r])])

        parts.append(each(registers(array), exchange))
    return nodes.seq(parts)


class Crossing:
    """Partial results of far threads in shared scratch.

    Parameters
    ----------
    dist
        The distribution of the results; the combined digits are among its copies.
    thread
        Index of the thread.
    others
        Digits of copies that are not combined: their threads hold equal values.
    parts
        The combined digits.
    array
        One register per register of ``dist``.
    """

    def __init__(
        self, dist: FragmentLayout, thread: Var, others: Sequence[Digit], parts: NearAndFar, array: BufferVar
    ) -> None:
        self.dist, self.thread, self.others, self.parts, self.array = dist, thread, others, parts, array
        self.size = prod(dist.padded)
        self.scratch, self.allocate = nodes.alloc(
            [self.size * parts.groups], nodes.element_type(array), "partial", "shared"
        )

    def write(self) -> Stmt:
        """Return the statement in which one of each set of near threads stores its partial results."""
        walk = Walk(self.dist, self.thread)
        first: list[Any] = [_is_zero(self.dist.digit(self.thread, d)) for d in self.others if d.extent > 1]
        mask = sum(self.parts.near)
        if mask:
            first.append(_is_zero(tirx.bitwise_and(self.thread, nodes.int_const(mask))))
        place = self._group() * nodes.int_const(self.size) + _element(walk)
        store = nodes.store(self.scratch, self.array[walk.register()], [place])
        return when([*self.dist.holds(self.thread), *first], walk.wrap(store))

    def read(self, neutral: Expr, combine: Combine) -> Stmt:
        """Return the statement after which every thread holds the whole results."""
        walk = Walk(self.dist, self.thread)
        register, groups, g = walk.register(), self.parts.groups, nodes.fresh("g")
        other = self.scratch[g * nodes.int_const(self.size) + _element(walk)]
        step = nodes.store(self.array, combine(self.array[register], other), [register])
        role = loop_role(groups) if self.dist.registers * groups <= MOST_UNROLLED else "serial"
        loop = nodes.for_loop(g, groups, step, role)
        return walk.wrap(nodes.seq([nodes.store(self.array, neutral, [register]), loop]))

    def _group(self) -> Expr:
        total: Any = nodes.int_const(0)
        for digit in self.parts.far:
            part = tirx.floordiv(self.thread, nodes.int_const(digit.stride))
            total = total * nodes.int_const(digit.extent) + tirx.floormod(part, nodes.int_const(digit.extent))
        return total


def combine_threads(
    dist: FragmentLayout,
    thread: Var,
    digits: Sequence[Digit],
    width: int,
    array: BufferVar,
    neutral: Expr,
    combine: Combine,
) -> tuple[Any, Any, Any]:
    """Combine the registers of all threads that differ in some digits.

    Parameters
    ----------
    dist
        The distribution of the results; ``digits`` are among its copies.
    thread
        Index of the thread.
    digits
        The digits whose threads hold partial results.
    width
        Threads of a group that can shuffle.
    array
        One register per register of ``dist``: partial results, the neutral element where a thread has none.

    Returns
    -------
    tuple
        The allocation, the rest of the first step, and a second step; the first and last may be ``None``.
    """
    parts = split(digits, width)
    near = butterfly(array, parts.near, combine)
    if not parts.far:
        return None, near, None
    others = [d for d in dist.replica if d not in digits]
    crossing = Crossing(dist, thread, others, parts, array)
    return crossing.allocate, nodes.seq([near, crossing.write()]), calls.step(crossing.read(neutral, combine))


def _element(walk: Walk) -> Expr:
    total: Any = nodes.int_const(0)
    for c, extent in zip(walk.coordinates(), walk.dist.padded, strict=True):
        total = total * nodes.int_const(extent) + c
    return total


def _is_zero(value: Expr) -> Expr:
    return tirx.EQ(value, nodes.int_const(0))
