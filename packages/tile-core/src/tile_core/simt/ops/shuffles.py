"""The base of ops whose threads exchange registers: names, groups and accepted operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.ir.attributes import DIM
from tile_core.ir.grammar import PRIVATE
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import View
from tile_core.simt.ops.combination import Lanes
from tile_core.simt.variant import SimtCall, SimtVariant

if TYPE_CHECKING:
    from tile_core.context import Context


class ByShuffles(SimtVariant):
    """A collective op of a block, for every tile size and number of threads.

    Parameters
    ----------
    owner
        The backend's name.
    width
        Threads that can shuffle with each other; the target's execution width if not given. Where that is 1 or the
        target has none, threads exchange values through shared memory.
    """

    priority = 10

    def __init__(self, owner: str, width: int | None = None) -> None:
        self.name = f"{owner}.{self.op}.shuffles"
        self.width = width

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept tiles that are visible to all threads of the block."""
        return self.collective(call, int(call.attrs[DIM]))

    def collective(self, call: SimtCall, dim: int) -> Accept | Reject:
        """Accept operands visible to all threads, for an op along the first one's dimension."""
        if call.divergent:
            return Reject("a single thread executes it here")
        private = [v.name for v in call.args if isinstance(v, View) and v.scope in PRIVATE]
        if private:
            return Reject(f"{private[0]} is private to a thread")
        return Accept(note=f"along {call.args[0].extents[dim]} elements")

    def lanes(self, call: SimtCall, ctx: Context) -> Lanes:
        """Return the groups in which threads exchange values.

        Groups have ``width`` threads or the target's number, at most a power of two.
        """
        own = ctx.capabilities.execution_width
        found = self.width or own or 1
        width = 1 << (found.bit_length() - 1)
        whole = width == own and call.block.count % width == 0 and call.block.first % width == 0
        return Lanes(width, ctx.capabilities.group_reductions if whole else frozenset())
