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
from tile_core.simt.calls import address, execute
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
    layout
        Of the buffer; row-major if there is none.
    """

    def __init__(
        self, plan: Plan, view: View, turned: bool, lanes: Lanes, first: Any, ranges: Any, layout: LayoutMap | None
    ) -> None:
        self.ranges, self.layout = ranges, layout
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
        self.new: list[Any] = []
        self.binds: list[Any] = []
        #: Row and column of the row of a matrix whose address the lane gives, by matrices at a time.
        self.places: dict[int, tuple[Any, Any]] = {}

    def begin(self) -> None:
        """Begin a product: nothing is read yet."""
        rows = self.plan.split.atoms_m
        self.loaded, self.places, self.binds = -1, {}, []
        self.ahead, new = nodes.alloc([rows], "uint32", "metadata_ahead", "local")
        self.registers, also = nodes.alloc([rows], "uint32", "metadata", "local")
        self.new = [new, also]

    def prepared(self) -> list[Any]:
        """Return the allocations, of what is read ahead and of what instructions take, and where matrices begin."""
        return [*self.new, *self.binds]

    def load(self, start: int) -> list[Any]:
        """Return the statements that read ahead what the step from block ``start`` on needs, unless it is there."""
        group = start // self.group
        if group == self.loaded:
            return []
        self.loaded = group
        if self._in_matrices(group):
            return self._matrices(group)

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

    # By ldmatrix

    def _in_matrices(self, group: int) -> bool:
        """Whether ``ldmatrix`` reads the group: its rows are whole, in memory along the rows of A, and in the tile."""
        view, p = self.view, self.plan.problem
        columns = self.group * self.bits // 16
        if not self.turned or self.width != 16 or (group + 1) * columns > self.columns or p.m % 8:
            return False
        dim = view.matrix_dims()[1]
        return not runs.conditions(view, self.ranges) and runs.has_runs(self.layout, view, dim, 8, self.ranges)

    def _matrices(self, group: int) -> list[Any]:
        """Return the reads of a group: as many tile rows at a time as there are matrices in an instruction.

        A row of a matrix is 8 rows of A beside one element of metadata. Transposed, lane ``4 g + t`` gets element ``g``
        of the rows ``2 t`` and ``2 t + 1`` of the matrix: the halves of its register.
        """
        rows, found, at = self.plan.split.atoms_m, [], 0
        s, p = self.plan.split, self.plan.problem
        for per in (4, 2, 1):
            count = (rows - at) // per
            if not count:
                continue
            row0, column0 = self._place(per)

            def load(u: Any, at: int = at, per: int = per, row0: Any = row0, column0: Any = column0) -> Any:
                tile = at + u * per
                row = row0 + tile * 16
                if s.warps_m * s.atoms_m * 16 > p.m:
                    row = tirx.min(row, nodes.int_const(p.m - 8))
                place = matrix(self.view, True, row, column0 + group * (self.group * self.bits // 16))
                args = [address(self.ahead, [tile], "w"), address(self.view.buffer, place)]
                return execute(f"ldmatrix_sync_aligned_m8n8_x{per}_trans_shared_b16", args)

            found.append(unrolled("row_tile", count, load))
            at += count * per
        return found

    def _place(self, per: int) -> tuple[Any, Any]:
        """Bind row and column of the row of a matrix whose address the lane gives, for the first of ``per`` tiles."""
        if per not in self.places:
            lane = self.lanes.lane
            low, middle, high = (tirx.floormod(tirx.floordiv(lane, 1 << bit), 2) for bit in range(3))
            tile = {4: tirx.floordiv(lane, 8), 2: tirx.floormod(tirx.floordiv(lane, 8), 2), 1: nodes.int_const(0)}[per]
            half, column = (middle, high * 2 + low) if self.wide else (low, high * 2 + middle)
            names = nodes.fresh("metadata_row"), nodes.fresh("metadata_k")
            values = self.first + tile * 16 + half * 8, column
            self.binds += [tirx.Bind(v, e) for v, e in zip(names, values, strict=True)]
            self.places[per] = names
        return self.places[per]

    # Element by element

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
    """Return a layout of metadata with rows along K in which two vectors of 16 bytes of four rows share no bank.

    That is what a matrix of metadata consists of. ``None`` if rows are too short for that or no power of two.
    """
    vector, row = 128 // bits, shape[-1]
    chunks = row // vector
    if row & (row - 1) or chunks < 4:
        return None
    base = vector.bit_length()  # the second bit of a vector's number
    digits, low = (2, 0) if chunks >= 8 else (1, 1)  # of the row's number, from bit ``low`` on
    swizzle = Swizzle(digits, base, row.bit_length() - 1 + low - base)
    return Layout(shape, DigitLayout(shape, row_major(shape).digits, swizzles=(swizzle,)), note="swizzled rows")


def _increasing(word: Any) -> Any:
    """Return metadata whose empty nibbles keep elements 0 and 1.

    A nibble of zeros stands where a tail was filled up, and where a compressor found nothing to keep: the kept values
    are zero there. The instructions leave open what they do when indices do not increase. Of two increasing indices
    the second one, in the upper half of the nibble, is never zero: its bits say whether a nibble is empty.
    """
    third = nodes.const(_BEYOND, "uint32")  # bits of nibbles; where it is set in the word, it stays set
    upper = tirx.bitwise_and(tirx.shift_right(word, nodes.const(1, "uint32")), third)
    return tirx.bitwise_or(word, tirx.bitwise_xor(upper, third))
