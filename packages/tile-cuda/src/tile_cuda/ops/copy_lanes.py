"""``cuda.copy.lanes``: accumulators to fragments in which each thread holds 16 bytes of a row.

Four lanes hold the accumulators of a row, each two adjacent elements of every tile of eight columns. They exchange
words until each has 16 bytes for a vector store: this needs no shared memory and no barrier, so it may stand in a loop
and in a role. Per row and four words of a lane:

- 16 bits: four tiles, lane ``i`` gets tile ``i``; four shuffles in two rounds.
- 8 bits: eight tiles, lane ``i`` gets tiles ``2 i`` and ``2 i + 1``; the same rounds, and permuted bytes.
- 32 bits: two tiles. One round suffices, with two shuffles, since neighbouring lanes hold neighbouring columns: an even
  lane gets a half of the first tile, an odd one of the second. So columns 0, 4, 8 and 12 begin in lanes 0, 2, 1 and 3:
  these are 64 contiguous bytes of a row, and the order of lanes within them costs memory nothing. Another round would
  sort the lanes for two shuffles more.

Each store of a warp is then one of 64 bytes of eight rows, which are whole sectors of 32 bytes. Without an exchange a
lane stores two elements: 32-bit results fill sectors then, too, but with twice the instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import calls, nodes
from tile_core.layout import LayoutMap
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.variant import Accept, Reject, Withdrawn
from tile_core.ops.base import View
from tile_core.ops.copy import convert
from tile_core.records import dataclass
from tile_core.simt.register_loops import loop_role
from tile_core.simt.variant import SimtCall, SimtVariant
from tile_cuda.attributes import LANES
from tile_cuda.ptx.lane_transposes import (
    TRANSPOSE_BYTES,
    TRANSPOSE_FLOATS,
    TRANSPOSE_HALVES,
    TRANSPOSE_KEPT,
    TRANSPOSE_PAIRS,
)
from tile_cuda.target import WARP

if TYPE_CHECKING:
    from tile_core.context import Context

_PAIR, _TILE = 2, 8
"""Neighbours of a row that a lane has of each tile, and all columns of one."""
_HALVES = 4
"""Tiles that are exchanged at a time, of elements of 16 bits."""
_WORD = 32


@dataclass(frozen=True)
class Exchange:
    """How lanes exchange results of a size.

    Attributes
    ----------
    tiles
        Tiles of the matrix units whose results of a row are four words of each lane.
    instructions
        Functions that exchange them: of floats, and of others.
    lanes
        Digits of the lane, as they number the parts of 16 bytes of a row.
    shuffles
        Its shuffles.
    """

    tiles: int
    instructions: tuple[str, str]
    lanes: tuple[Digit, ...]
    shuffles: int

    @property
    def columns(self) -> int:
        """Columns that the lanes of a row exchange at a time."""
        return 4 * self.elements

    @property
    def elements(self) -> int:
        """Neighbours of a row that a lane gets."""
        return self.tiles * _PAIR


_IN_ORDER = (Digit(4, 1, "thread"),)
#: By the bits of a result.
EXCHANGES: Mapping[int, Exchange] = {
    8: Exchange(8, (TRANSPOSE_BYTES, TRANSPOSE_BYTES), _IN_ORDER, 4),
    16: Exchange(4, (TRANSPOSE_HALVES, TRANSPOSE_HALVES), _IN_ORDER, 4),
    32: Exchange(2, (TRANSPOSE_FLOATS, TRANSPOSE_PAIRS), (Digit(2, 1, "thread"), Digit(2, 2, "thread")), 2),
}


class LaneCopy(SimtVariant):
    """A copy from one fragment to another by the four lanes of a row."""

    name = "cuda.copy.lanes"
    op = "copy"
    option = "epilogue"
    priority = 95
    takes_parts = True

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Take what the results of products are staged by."""
        if LANES not in call.attrs:
            return Reject("not a copy of accumulators that lanes exchange")
        src, dst = call.args[:2]
        if {src.scope, dst.scope} != {"local.fragment"} or DTYPES[dst.dtype].bits not in EXCHANGES:
            return Reject("its operands are not in registers")
        if call.block.count % WARP or call.divergent:
            return Reject("not all lanes of each warp execute it")
        return Accept(f"four lanes of a row exchange words, {call.attrs[LANES]}")

    def layouts(self, call: SimtCall, ctx: Context) -> Mapping[int, LayoutMap]:
        """Return the layout of the result, once that of the accumulator is known."""
        src = columns_of(call.placement.fragments.get(call.args[0].buffer), call.args[0])
        found = None if src is None else exchanged(src, _exchange(call))
        return {} if found is None else {1: found}

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return loops over groups of tiles: conversions to registers of 16 bytes, and the exchange."""
        how = _exchange(call)
        whole, dst = (call.placement.fragments.get(v.buffer) for v in call.args[:2])
        src = columns_of(whole, call.args[0])
        made = None if src is None else exchanged(src, how)
        if whole is None or src is None or dst is None or made is None or not made.same_as(dst):
            raise Withdrawn("the accumulator does not have the layout of the matrix units")
        accumulators, results = (call.placement.arrays[v.buffer] for v in call.args[:2])
        (*outer, tiles), lane = _registers(whole), nodes.int_const(0) + call.block.thread % 4
        loops = [(nodes.fresh("r"), d) for d in outer]
        groups = int(call.args[0].extents[-1]) // how.columns if src is not whole else tiles.extent // how.tiles
        group = nodes.fresh("group"), Digit(groups, tiles.stride * how.tiles, "register")
        first, result = nodes.int_const(0) + _first_register(call.args[0], tiles), nodes.int_const(0)
        for (var, digit), stride in zip((*loops, group), _strides(src, how), strict=True):
            first, result = first + var * digit.stride, result + var * stride
        body = self.exchange(call, (accumulators, first, tiles.stride), (results, result), lane)
        for var, digit in reversed((*loops, group)):
            body = nodes.for_loop(var, digit.extent, body, loop_role(digit.extent))
        return calls.step(body, call.span)

    def exchange(
        self, call: SimtCall, accumulators: tuple[BufferVar, Expr, int], results: tuple[BufferVar, Expr], lane: Expr
    ) -> Stmt:  # fmt: skip
        """Return the exchange of adjacent tiles in a row: accumulators or converted elements.

        Parameters
        ----------
        accumulators
            Their array, where the first tile's begin, and how far those of the next are.
        results
            Their array, and where the first one is.
        """
        how, (array, first, apart), (to, start) = _exchange(call), accumulators, results
        bits = DTYPES[call.args[1].dtype].bits
        words = calls.address(to, [start], "rw", words=bits < _WORD)
        if call.args[0].dtype == call.args[1].dtype and how.tiles == _HALVES:
            kept = calls.address(array, [first], words=True)
            words = calls.address(to, [start], "w", words=True)
            return calls.execute(TRANSPOSE_KEPT, [words, kept, nodes.int_const(apart), lane], call.span)
        tile, pair = nodes.fresh("tile"), nodes.fresh("pair")
        value = convert(nodes.load(array, [first + tile * apart + pair]), call.args[1].dtype)
        body = nodes.store(to, value, [start + tile * _PAIR + pair], call.span)
        body = nodes.for_loop(tile, how.tiles, nodes.for_loop(pair, _PAIR, body, "unroll"), "unroll")
        transpose = how.instructions[0 if DTYPES[call.args[1].dtype].is_float else 1]
        return nodes.seq([body, calls.execute(transpose, [words, lane], call.span)])


def _exchange(call: SimtCall) -> Exchange:
    return EXCHANGES[DTYPES[call.args[1].dtype].bits]


def columns_of(layout: FragmentLayout | None, view: View) -> FragmentLayout | None:
    """Return the layout of some accumulator columns on their own, if warps have whole rows."""
    count = int(view.extents[-1])
    if layout is None or len(layout.shape) != 2 or (count == layout.shape[1] and nodes.as_int(view.mins[-1]) == 0):
        return layout
    first = nodes.as_int(view.mins[-1])
    if len(layout.dims[1]) < 3 or not isinstance(first, int) or first % _TILE or count % _TILE:
        return None
    if tuple(view.extents[:-1]) != tuple(layout.shape[:-1]) or layout.padded != layout.shape:
        return None
    *outer, tiles, lanes, pair = layout.dims[1]
    if any(digit.extent > 1 for digit in outer) or tiles.axis != "register":
        return None
    # Registers are numbered without a gap: of digits above that of tiles, there are fewer below now.
    fewer = tiles.extent * _TILE // count

    def moved(digit: Digit) -> Digit:
        above = digit.axis == "register" and digit.stride > tiles.stride
        return Digit(digit.extent, digit.stride // fewer if above else digit.stride, digit.axis)

    if tiles.extent * _TILE % count:
        return None
    columns = (*outer, Digit(count // _TILE, tiles.stride, tiles.axis), lanes, pair)
    rows = tuple(map(moved, layout.dims[0]))
    return FragmentLayout((layout.shape[0], count), (rows, columns), layout.threads, layout.replica)


def _first_register(view: View, tiles: Digit) -> int:
    """Return how many registers are before those of the first column of a part."""
    return int(nodes.as_int(view.mins[-1])) // _TILE * tiles.stride


def exchanged(layout: FragmentLayout, how: Exchange) -> FragmentLayout | None:
    """Return the layout of an accumulator with 16 bytes of a row per lane."""
    if len(layout.dims) != 2 or layout.padded != layout.shape or len(layout.dims[1]) < 3:
        return None
    *outer, tiles, lanes, pair = layout.dims[1]
    if (lanes.axis, lanes.extent, lanes.stride) != ("thread", 4, 1) or (pair.extent, pair.stride) != (_PAIR, 1):
        return None
    if pair.axis != "register" or tiles.axis != "register" or tiles.extent % how.tiles:
        return None
    *others, groups = _strides(layout, how)
    strides = {d.stride: stride for d, stride in zip(_registers(layout), others, strict=False)}

    def moved(digits: Iterable[Digit]) -> tuple[Digit, ...]:
        held = ((d.axis == "register" and d.extent > 1, d) for d in digits)
        return tuple(Digit(d.extent, strides[d.stride], d.axis) if own else d for own, d in held)

    part = Digit(how.elements, 1, "register")
    columns = (*moved(outer), Digit(tiles.extent // how.tiles, groups, "register"), *how.lanes, part)
    return FragmentLayout(layout.shape, (moved(layout.dims[0]), columns), layout.threads, layout.replica)


def _registers(layout: FragmentLayout) -> list[Digit]:
    """Return the register digits without the pair: of groups, and last of tiles."""
    tiles = layout.dims[1][-3]
    others = [d for digits in layout.dims for d in digits if d.axis == "register" and d.extent > 1]
    pair = layout.dims[1][-1]
    return [*(d for d in others if d not in (tiles, pair)), tiles]


def _strides(layout: FragmentLayout, how: Exchange) -> list[int]:
    """Return the registers of the results that these digits are apart, tiles as groups."""
    digits = _registers(layout)
    found, reach = dict[int, int](), how.elements
    for at in sorted(range(len(digits)), key=lambda i: digits[i].stride):
        found[at] = reach
        reach *= digits[at].extent // (how.tiles if at == len(digits) - 1 else 1)
    return [found[at] for at in range(len(digits))]
