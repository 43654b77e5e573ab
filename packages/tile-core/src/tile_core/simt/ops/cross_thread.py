"""Cross-thread reduction by a group instruction or butterfly shuffles, and shared scratch between groups.

The threads that combine their results are given as digits of the thread index. The part of a digit that is a bit field
of the lane index is *near*: its threads exchange registers. The rest is *far*: its results go through shared memory.
Blocks may have any number of threads; threads without elements contribute the neutral element, so all lanes of a group
execute the shuffles.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import attributes, calls, nodes
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import FragmentLayout
from tile_core.records import dataclass
from tile_core.simt.ops.combination import Combination, Joining, Lanes
from tile_core.simt.register_loops import MOST_UNROLLED, Walk, each, loop_role, registers, when

#: Number of groups up to which every thread reads the results of all groups. More results are combined by the first
#: group, if that is one instruction, or by the lanes of every group, one result per lane.
_READ_BY_ALL = 4


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


def exchange_lanes(arrays: Sequence[BufferVar], masks: Sequence[int], combine: Joining, lanes: Lanes) -> Stmt:
    """Return statements that combine the registers of lanes that differ in ``masks``."""
    if sum(masks) == lanes.width - 1 and isinstance(combine, Combination) and combine.is_native(lanes):
        array = arrays[0]
        return each(registers(array), lambda r: nodes.store(array, combine.across(array[r]), [r]))
    parts = []
    for mask in masks:

        def exchange(r: Expr, mask: int = mask) -> Stmt:
            others, binds = [], []
            for array in arrays:
                dtype = nodes.element_type(array)
                others.append(nodes.fresh("other", dtype))
                arguments = [array[r], nodes.int_const(mask), nodes.int_const(0)]
                binds.append(tirx.Bind(others[-1], nodes.tile_call("shfl_xor", arguments, ret=dtype)))
            return nodes.seq([*binds, combine.step(arrays, r, others)])

        parts.append(each(registers(arrays[0]), exchange))
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
    arrays
        Per value of a state, one register per register of ``dist``.
    is_relayed
        Whether scratch memory also holds the complete results behind the partial ones, see ``relay``.
    """

    def __init__(
        self, dist: FragmentLayout, thread: Var, others: Sequence[Digit], parts: NearAndFar,
        arrays: Sequence[BufferVar], is_relayed: bool,
    ) -> None:  # fmt: skip
        self.dist, self.thread, self.others, self.parts, self.arrays = dist, thread, others, parts, arrays
        self.size = prod(dist.padded)
        count = self.size * (parts.groups + is_relayed)
        self.scratch = [nodes.alloc([count], nodes.element_type(a), "partial", "shared")[0] for a in arrays]
        # Complete results behind partial ones are read while the next op writes its partial ones.
        notes = {} if is_relayed else {attributes.APART: nodes.int_const(1)}
        self.allocate = nodes.seq([tirx.AllocBuffer(b, notes) for b in self.scratch])

    def write(self) -> Stmt:
        """Return the store of partial results by one of each set of near threads."""
        walk = Walk(self.dist, self.thread)
        first: list[Expr] = [_is_zero(self.dist.digit(self.thread, d)) for d in self.others if d.extent > 1]
        mask = sum(self.parts.near)
        if mask:
            first.append(_is_zero(tirx.bitwise_and(self.thread, nodes.int_const(mask))))
        position = self._group() * nodes.int_const(self.size) + _element(walk)
        register = walk.register()
        stores = [nodes.store(s, a[register], [position]) for s, a in zip(self.scratch, self.arrays, strict=True)]
        return when([*self.dist.holds(self.thread), *first], walk.wrap(nodes.seq(stores)))

    def read(self, combine: Joining) -> Stmt:
        """Return the statement after which every thread holds the whole results: each combines all parts."""
        walk = Walk(self.dist, self.thread)
        register, groups, g = walk.register(), self.parts.groups, nodes.fresh("g")
        position = g * nodes.int_const(self.size) + _element(walk)
        step = combine.step(self.arrays, register, [s[position] for s in self.scratch])
        role = loop_role(groups) if self.dist.registers * groups <= MOST_UNROLLED else "serial"
        loop = nodes.for_loop(g, groups, step, role)
        return walk.wrap(nodes.seq([combine.start(self.arrays, register), loop]))

    def exchange(self, combine: Joining, lanes: Lanes) -> Stmt:
        """Combine the parts by one load per lane and shuffles in the group.

        The number of parts is a power of two, at most the number of lanes, and all threads read them.
        """
        walk = Walk(self.dist, self.thread)
        part = tirx.floormod(self.thread, nodes.int_const(self.parts.groups))
        position = part * nodes.int_const(self.size) + _element(walk)
        register = walk.register()
        loads = [nodes.store(a, s[position], [register]) for s, a in zip(self.scratch, self.arrays, strict=True)]
        masks = [1 << bit for bit in range(self.parts.groups.bit_length() - 1)]
        return nodes.seq([walk.wrap(nodes.seq(loads)), exchange_lanes(self.arrays, masks, combine, lanes)])

    def relay(self, combine: Combination, width: int, readers: Sequence[Expr]) -> Stmt:
        """Combine the parts in the first group, then load the result in all readers."""
        walk = Walk(self.dist, self.thread)
        lane, parts = nodes.fresh("lane"), self.parts.groups
        scratch, array = self.scratch[0], self.arrays[0]
        own = scratch[tirx.min(lane, nodes.int_const(parts - 1)) * nodes.int_const(self.size) + _element(walk)]
        value = own if parts == width else tirx.Select(lane < nodes.int_const(parts), own, combine.neutral)
        mine = nodes.fresh("part", nodes.element_type(array))
        whole = nodes.fresh("whole", nodes.element_type(array))
        position = nodes.int_const(self.size * parts) + _element(walk)
        store = when([tirx.EQ(lane, nodes.int_const(0))], nodes.store(scratch, whole, [position]))
        combined = nodes.seq([tirx.Bind(mine, value), tirx.Bind(whole, combine.across(mine)), store])
        first = nodes.seq([tirx.Bind(lane, self.thread), walk.wrap(combined)])
        again = Walk(self.dist, self.thread)
        position = nodes.int_const(self.size * parts) + _element(again)
        end = when(readers, again.wrap(nodes.store(array, scratch[position], [again.register()])))
        return nodes.seq([calls.step(when([self.thread < width], first)), calls.step(end)])

    def _group(self) -> Expr:
        total: Expr = nodes.int_const(0)
        for digit in self.parts.far:
            part = tirx.floordiv(self.thread, nodes.int_const(digit.stride))
            total = total * nodes.int_const(digit.extent) + tirx.floormod(part, nodes.int_const(digit.extent))
        return total


def combine_threads(
    dist: FragmentLayout,
    thread: Var,
    digits: Sequence[Digit],
    lanes: Lanes,
    arrays: Sequence[BufferVar],
    combine: Joining,
    readers: Sequence[Expr] = (),
) -> tuple[Stmt | None, Stmt, Stmt | None]:
    """Combine the registers of all threads that differ in some digits.

    Parameters
    ----------
    dist
        The distribution of the results; ``digits`` are among its copies.
    thread
        Index of the thread.
    digits
        The digits whose threads hold partial results.
    lanes
        How threads exchange values.
    arrays
        Per value of a state, one register per register of ``dist``: partial results, the neutral element where a thread
        has none.
    combine
        The reduction.
    readers
        Conditions under which a thread needs the results; all threads may have them.

    Returns
    -------
    tuple
        The allocation, the rest of the first step, and a second step; the first and last may be ``None``.
    """
    parts = split(digits, lanes.width)
    near = exchange_lanes(arrays, parts.near, combine, lanes)
    if not parts.far:
        return None, near, None
    others = [d for d in dist.replica if d not in digits]
    everywhere = dist.replicas == dist.threads and not any(d.extent > 1 for d in others)
    native = isinstance(combine, Combination) and combine.is_native(lanes)
    relayed = everywhere and _READ_BY_ALL < parts.groups <= lanes.width and native
    crossing = Crossing(dist, thread, others, parts, arrays, relayed)
    whole = dist.threads % lanes.width == 0 and lanes.width % parts.groups == 0
    if relayed and isinstance(combine, Combination):
        end = crossing.relay(combine, lanes.width, readers)
    elif everywhere and whole and parts.groups > _READ_BY_ALL:
        end = calls.step(crossing.exchange(combine, lanes))
    else:
        end = calls.step(when(readers, crossing.read(combine)))
    return crossing.allocate, nodes.seq([near, crossing.write()]), end


def _element(walk: Walk) -> Expr:
    total: Expr = nodes.int_const(0)
    for c, extent in zip(walk.coordinates(), walk.dist.padded, strict=True):
        total = total * nodes.int_const(extent) + c
    return total


def _is_zero(value: Expr) -> Expr:
    return tirx.EQ(value, nodes.int_const(0))
