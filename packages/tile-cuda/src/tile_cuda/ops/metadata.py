"""The metadata operand of sparse matrix instructions: which lane holds the nibbles of which row and part of K.

For elements of 16 and 32 bits, a block of A (16 bytes of kept values) has 16 bits of metadata. Lane ``4 g + t`` holds
those of rows ``g`` (low half) and ``g + 8`` (high half) for block ``t`` of four, so one register serves all
instructions over four blocks: their selectors name the lanes. For elements of 8 bits a block has 32 bits, and lane
``4 g + t`` holds row ``g + 8 (t % 2)`` of block ``t / 2`` of two.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.layout import DigitLayout, Layout, LayoutMap, Swizzle, row_major
from tile_core.ops.base import View
from tile_core.ops.gemm import matrix
from tile_core.simt.ops import runs
from tile_core.simt.ops.walk import choose, unrolled
from tile_cuda.ops.operand import Lanes
from tile_cuda.ops.product import Plan

#: Nibbles that keep elements 0 and 1: what stands beyond the tile, where the kept values are zero.
_BEYOND = 0x44444444


class Metadata:
    """Reads metadata to registers, ahead of the steps that need it.

    What is read ahead is kept as it is and made fit for the instructions in front of the first ones that take it: a
    warp issues in order, so arithmetic on what has not arrived yet would hold up the instructions behind it.

    Parameters
    ----------
    plan
        The product.
    view
        The tile of metadata, row-major elements of 8, 16 or 32 bits at the places that its buffer's layout gives.
    turned
        Whether its rows are along K.
    lanes
        The lane's variables.
    first
        The warp's first row.
    ranges
        An analyzer that knows the variables of the tile's corner.
    """

    def __init__(self, plan: Plan, view: View, turned: bool, lanes: Lanes, first: Any, ranges: Any) -> None:
        self.ranges = ranges
        self.plan, self.view, self.turned, self.lanes, self.first = plan, view, turned, lanes, first
        rows, columns = view.matrix_dims()
        self.columns = view.extents[rows if turned else columns]
        self.wide = plan.family.bits == 8
        #: Blocks that one register describes, and their bits.
        self.group, self.bits = (2, 32) if self.wide else (4, 16)
        self.width = DTYPES[view.dtype].bits
        self.ahead: Any = None
        self.registers: Any = None
        self.loaded = -1

    def prepare(self) -> list[Any]:
        """Return the allocations: of what is read ahead, and of what instructions take."""
        self.loaded = -1
        rows = self.plan.split.atoms_m
        self.ahead, new = nodes.alloc([rows], "uint32", "metadata_ahead", "local")
        self.registers, also = nodes.alloc([rows], "uint32", "metadata", "local")
        return [new, also]

    def load(self, start: int) -> list[Any]:
        """Return the statements that read ahead what the step from block ``start`` on needs, unless it is there."""
        group = start // self.group
        if group == self.loaded:
            return []
        self.loaded = group

        def one(i: Any) -> Any:
            return nodes.store(self.ahead, self._register(i, group), [i])

        return [unrolled("row_tile", self.plan.split.atoms_m, one)]

    def ready(self, start: int) -> list[Any]:
        """Return the statements that stand between the reads for the step from block ``start`` on and later reads."""
        if start % self.group:
            return []

        def one(i: Any) -> Any:
            return nodes.store(self.registers, _increasing(nodes.load(self.ahead, [i])), [i])

        return [unrolled("row_tile", self.plan.split.atoms_m, one)]

    def word(self, i: Any, start: int, blocks: int) -> tuple[Any, int]:
        """Return the register for tile row ``i`` of the step of ``blocks`` blocks from ``start``, and the selector."""
        value = nodes.load(self.registers, [i])
        if self.wide:
            return value, 0
        return value, start % self.group // blocks

    def _register(self, i: Any, group: int) -> Any:
        g, t = self.lanes.g, self.lanes.t
        row = self.first + i * 16 + g
        if self.wide:
            row = row + tirx.floormod(t, 2) * 8
            return self._piece(row, group * 2, tirx.floordiv(t, 2))
        low = self._piece(row, group * 4, t)
        high = self._piece(row + 8, group * 4, t)
        return tirx.bitwise_or(low, tirx.shift_left(high, nodes.const(16, "uint32")))

    def _piece(self, row: Any, first: int, offset: Any) -> Any:
        """Return the metadata of a row and block ``first + offset`` as ``uint32``."""
        last = first + self.group - 1
        if self.width > self.bits:  # two blocks share an element
            word = self._element(row, tirx.floordiv(offset, 2) + first // 2, last // 2)
            half = tirx.shift_right(word, nodes.cast(tirx.floormod(offset, 2) * 16, "uint32"))
            return tirx.bitwise_and(half, nodes.const(0xFFFF, "uint32"))
        count = self.bits // self.width
        value: Any = None
        for i in range(count):
            part = self._element(row, (offset + first) * count + i, last * count + i)
            if value is None:
                value = part
            else:
                value = tirx.bitwise_or(value, tirx.shift_left(part, nodes.const(i * self.width, "uint32")))
        return value

    def _element(self, row: Any, column: Any, last: int) -> Any:
        """Return an element of metadata as ``uint32``; ``last`` is the largest column that a lane may ask for."""
        p, s = self.plan.problem, self.plan.split
        if s.warps_m * s.atoms_m * 16 > p.m:
            row = tirx.min(row, nodes.int_const(p.m - 1))
        at = matrix(self.view, self.turned, row, column)
        limits = [column < self.columns] if last >= self.columns else []
        value = nodes.cast(nodes.cast(nodes.load(self.view.buffer, at), f"uint{self.width}"), "uint32")
        beyond = nodes.const(_BEYOND & ((1 << self.width) - 1), "uint32")
        return choose([*limits, *runs.inside(self.view, at, self.ranges)], value, beyond)


@cache
def swizzled(shape: tuple[int, ...], bits: int) -> LayoutMap | None:
    """Return a layout of metadata with rows along K in which a vector of 16 bytes shares no bank with three rows' more.

    ``None`` if rows are too short, or no power of two. Only two bits change, so that addresses stay simple: lanes read
    four rows at once.
    """
    vector, row = 128 // bits, shape[-1]
    if row & (row - 1) or row < 4 * vector:
        return None
    base = vector.bit_length() - 1
    swizzle = Swizzle(2, base, row.bit_length() - 1 - base)
    return Layout(shape, DigitLayout(shape, row_major(shape).digits, swizzles=(swizzle,)), note="swizzled rows")


def _increasing(word: Any) -> Any:
    """Return metadata whose empty nibbles keep elements 0 and 1.

    A nibble of zeros stands where a tail was filled up, and where a compressor found nothing to keep: the kept values
    are zero there. The instructions leave open what they do when indices do not increase.
    """
    pairs = tirx.bitwise_or(word, tirx.shift_right(word, nodes.const(1, "uint32")))
    some = tirx.bitwise_or(pairs, tirx.shift_left(pairs, nodes.const(2, "uint32")))  # in the third bit of a nibble
    third = nodes.const(_BEYOND, "uint32")
    return tirx.bitwise_or(word, tirx.bitwise_xor(tirx.bitwise_and(some, third), third))
