"""``cuda.copy.lanes``: sums of matrix units to results of 16 bits of which each thread holds eight neighbours of a row.

Four lanes hold the sums of a row, each two neighbours of every eight. They exchange words until each has eight, which
it can store as 16 bytes: this needs no shared memory and no barrier, so it may stand in a loop and in a role.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tile_core.compat.types import Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import calls, nodes
from tile_core.layout import LayoutMap
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.variant import Accept, Reject, Withdrawn
from tile_core.ops.copy import convert
from tile_core.simt.register_loops import loop_role
from tile_core.simt.variant import SimtCall, SimtVariant
from tile_cuda.ptx.composed import TURN_QUAD
from tile_cuda.target import WARP

if TYPE_CHECKING:
    from tile_core.context import Context

#: Attribute of a copy between fragments that this variant is for.
LANES = "lanes"
COLUMNS = 32
"""Columns of four tiles of the matrix units, of which a lane gets eight."""
_TILES, _PAIR = 4, 2


class LaneCopy(SimtVariant):
    """A copy from one fragment to another, which the four lanes of a row do together."""

    name = "cuda.copy.lanes"
    op = "copy"
    option = "staged_results"
    priority = 95

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Take what the results of products are staged by."""
        if LANES not in call.attrs:
            return Reject("it is none of sums that lanes exchange")
        src, dst = call.args[:2]
        if {src.scope, dst.scope} != {"local.fragment"} or DTYPES[dst.dtype].bits != 16:
            return Reject("its operands are not in registers")
        if call.block.count % WARP or call.divergent:
            return Reject("not all lanes of each warp execute it")
        return Accept("four lanes of a row exchange words")

    def layouts(self, call: SimtCall, ctx: Context) -> Mapping[int, LayoutMap]:
        """Return the layout of the results, as soon as that of the sums is known."""
        src = call.places.fragments.get(call.args[0].buffer)
        found = None if src is None else exchanged(src)
        return {} if found is None else {1: found}

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return loops over groups of four tiles: conversions to eight registers, and the exchange."""
        src, dst = (call.places.fragments.get(v.buffer) for v in call.args[:2])
        made = None if src is None else exchanged(src)
        if src is None or dst is None or made is None or not made.same_as(dst):
            raise Withdrawn("the sums are not where matrix units leave them")
        sums, results = (call.places.arrays[v.buffer] for v in call.args[:2])
        (*outer, tiles), lane = _registers(src), nodes.int_const(0) + call.block.thread % 4
        loops = [(nodes.fresh("r"), d) for d in outer]
        group = nodes.fresh("group"), Digit(tiles.extent // _TILES, tiles.stride * _TILES, "register")
        first, place = nodes.int_const(0), nodes.int_const(0)
        for (var, digit), stride in zip((*loops, group), _strides(src), strict=True):
            first, place = first + var * digit.stride, place + var * stride
        tile, pair = nodes.fresh("tile"), nodes.fresh("pair")
        value = nodes.load(sums, [first + tile * tiles.stride + pair])
        body = nodes.store(results, convert(value, call.args[1].dtype), [place + tile * _PAIR + pair], call.span)
        body = nodes.for_loop(tile, _TILES, nodes.for_loop(pair, _PAIR, body, "unroll"), "unroll")
        body = nodes.seq([body, calls.execute(TURN_QUAD, [calls.address(results, [place], "rw"), lane], call.span)])
        for var, digit in reversed((*loops, group)):
            body = nodes.for_loop(var, digit.extent, body, loop_role(digit.extent))
        return calls.step(body, call.span)


def exchanged(sums: FragmentLayout) -> FragmentLayout | None:
    """Return the layout in which each lane has eight neighbours, if the sums are where matrix units leave them."""
    if len(sums.dims) != 2 or sums.padded != sums.shape or len(sums.dims[1]) < 3:
        return None
    *outer, tiles, lanes, pair = sums.dims[1]
    if (lanes.axis, lanes.extent, lanes.stride) != ("thread", 4, 1) or (pair.extent, pair.stride) != (_PAIR, 1):
        return None
    if pair.axis != "register" or tiles.axis != "register" or tiles.extent % _TILES:
        return None
    *others, groups = _strides(sums)
    places = {d.stride: place for d, place in zip(_registers(sums), others, strict=False)}

    def moved(digits: Iterable[Digit]) -> tuple[Digit, ...]:
        held = ((d.axis == "register" and d.extent > 1, d) for d in digits)
        return tuple(Digit(d.extent, places[d.stride], d.axis) if own else d for own, d in held)

    eight = Digit(_TILES * _PAIR, 1, "register")
    columns = (*moved(outer), Digit(tiles.extent // _TILES, groups, "register"), lanes, eight)
    return FragmentLayout(sums.shape, (moved(sums.dims[0]), columns), sums.threads, sums.replica)


def _registers(sums: FragmentLayout) -> list[Digit]:
    """Return the digits of the register but the pair: those that number groups, and last that of tiles."""
    tiles = sums.dims[1][-3]
    others = [d for digits in sums.dims for d in digits if d.axis == "register" and d.extent > 1]
    pair = sums.dims[1][-1]
    return [*(d for d in others if d not in (tiles, pair)), tiles]


def _strides(sums: FragmentLayout) -> list[int]:
    """Return the registers of the results that these digits are apart, tiles as groups of four."""
    digits = _registers(sums)
    found, reach = dict[int, int](), _TILES * _PAIR
    for at in sorted(range(len(digits)), key=lambda i: digits[i].stride):
        found[at] = reach
        reach *= digits[at].extent // (_TILES if at == len(digits) - 1 else 1)
    return [found[at] for at in range(len(digits))]
