"""``cpu.sort.parts``: sorting networks whose exchanges stay in the first cache as long as they can."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tile_core.compat.types import Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir.attributes import DIM
from tile_core.lowering.variant import Accept, Reject, TargetCall, Variant
from tile_core.numerics.order_keys import key_type
from tile_core.ops import sort

if TYPE_CHECKING:
    from tile_core.context import Context

#: Bytes of keys that are exchanged before others are looked at: less than the first cache of any processor.
_BYTES = 16 * 1024


class PartSort(Variant):
    """Tiles with keys beyond a part of the L1 cache; rows lie in vectors."""

    name = "cpu.sort.parts"
    op = "sort"
    priority = 10

    def accepts(self, call: TargetCall, ctx: Context) -> Accept | Reject:
        """Accept tiles of which a proper part has at least two keys along the dimension."""
        if ctx.options is not None and ctx.options.generic:
            return Reject("the option generic requires plain loops")
        near, steps = _near(call), (int(call.args[0].extents[int(call.attrs[DIM])]) - 1).bit_length()
        if not 1 <= near < steps:
            return Reject("no proper part of the tile has two keys along the dimension")
        return Accept(note=f"parts of {1 << near} keys")

    def lower(self, call: TargetCall, ctx: Context) -> Stmt:
        """Return the network in parts."""
        return sort.lowered(call, _near(call))


def _near(call: TargetCall) -> int:
    src, dim = call.args[0], int(call.attrs[DIM])
    rows = prod(int(e) for d, e in enumerate(src.extents) if d != dim)
    return (_BYTES * 8 // (DTYPES[key_type(src.dtype)].bits * rows)).bit_length() - 1
