"""What threads of a warp exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.emit.c_family import CFamilyEmitter
from tile_core.emit.text import UNARY, Text, infix
from tile_core.ir import nodes
from tile_core.ir.warp import WARP
from tile_cuda.emit.prepare import Prepared
from tile_cuda.ptx.values import VALUES

_MODES = {"shfl_sync": "idx", "shfl_xor": "bfly", "shfl_up": "up", "shfl_down": "down"}


class WarpCalls(CFamilyEmitter):
    """Prints shuffles, votes and reductions.

    The instructions take an amount modulo 32, and a lane that does not exist gives anything. In the language an amount
    that leaves the group, or names no lane, gives the own value: where that can happen, the lane is computed.
    """

    prepared: Prepared
    needed: set[Any]
    threads: int

    if TYPE_CHECKING:

        def helper(self, name: str) -> str:
            """Return the name of a function of the table."""

    @property
    def full(self) -> bool:
        """Whether all warps of the block have all their lanes."""
        return self.threads % WARP == 0

    def mask(self) -> str:
        """Return the lanes of this warp that exist, as bits."""
        if self.full:
            return "0xffffffffu"
        lanes = self._lanes()
        return f"{lanes} < 32 ? (1u << {lanes}) - 1 : 0xffffffffu"

    def call_tile_shfl_sync(self, e: Any) -> str:
        """Print the value of a lane."""
        return self._shuffle("idx", e)

    def call_tile_shfl_xor(self, e: Any) -> str:
        """Print the value of the lane whose number differs in some bits."""
        return self._shuffle("bfly", e)

    def call_tile_shfl_up(self, e: Any) -> str:
        """Print the value of a lower lane."""
        return self._shuffle("up", e)

    def call_tile_shfl_down(self, e: Any) -> str:
        """Print the value of a higher lane."""
        return self._shuffle("down", e)

    def _shuffle(self, mode: str, e: Any) -> str:
        value, amount = e.args[0], e.args[1]
        width = int(nodes.as_int(e.args[2])) or WARP
        dtype = nodes.dtype_of(value)
        x = self.bare(value)
        if self.full and (mode == "idx" or self._inside(amount, width)):
            clamp = ((WARP - width) << 8) | (0 if mode == "up" else 31)
            source, text = self.bare(amount), f"{clamp:#x}" if clamp > 31 else str(clamp)
        else:
            lanes = str(WARP) if self.full else self._lanes()
            function = self.helper(f"lane_{mode}")
            source, text = f"{function}({self._lane()}, {self.bare(amount)}, {width}, {lanes})", "31"
            mode = "idx"
        function = self.helper(f"shfl_sync_{mode}_{VALUES[dtype].name}")
        return f"{function}({x}, {source}, {text}, {self.mask()})"

    def _inside(self, amount: Any, width: int) -> bool:
        bound = self.analyzer.const_int_bound(amount)
        return bool(bound.min_value >= 0 and bound.max_value < width)

    def _lane(self) -> str:
        return self._number(self.prepared.lane)

    def _lanes(self) -> str:
        return self._number(self.prepared.lanes)

    def _number(self, part: tuple[Any, Any] | None) -> str:
        assert part is not None
        self.needed.add(part[0])
        return self.writer.name(part[0])

    def call_tile_shuffle(self, e: Any) -> str:
        """Print one exchange of a word, whose mask and lane are given."""
        mask, value, lane = (self._given(e.args[0]), *(self.bare(a) for a in e.args[1:]))
        mode, width = str(e.attrs["mode"]), int(e.attrs["width"])
        clamp = ((WARP - width) << 8) | (0 if mode == "up" else 31)
        function = self.helper(f"shfl_sync_{mode}_{VALUES[nodes.dtype_of(e.args[1])].name}")
        return f"{function}({value}, {lane}, {f'{clamp:#x}' if clamp > 31 else clamp}, {mask})"

    def _given(self, mask: Any) -> str:
        return f"{int(mask.value):#x}u" if isinstance(mask, tirx.IntImm) else self.bare(mask)

    def call_tile_vote(self, e: Any) -> str:
        """Print one vote, whose mask is given."""
        mask, condition = self._given(e.args[0]), self.bare(e.args[1])
        mode = str(e.attrs["mode"])
        if mode == "ballot":
            return f"{self.helper('vote_sync_ballot_b32')}({condition}, {mask})"
        return infix("!=", f"{self.helper(f'vote_sync_{mode}_pred')}({condition}, {mask})", "0")

    def call_tile_ballot(self, e: Any) -> str:
        """Print the lanes where a condition holds, as bits."""
        vote = f"{self.helper('vote_sync_ballot_b32')}({self.bare(e.args[0])}, {self.mask()})"
        return Text(f"({self.type('uint64')}){vote}", UNARY)

    def call_tile_any_sync(self, e: Any) -> str:
        """Print whether a condition holds in some lane."""
        return infix("!=", f"{self.helper('vote_sync_any_pred')}({self.bare(e.args[0])}, {self.mask()})", "0")

    def call_tile_all_sync(self, e: Any) -> str:
        """Print whether a condition holds in all lanes."""
        return infix("!=", f"{self.helper('vote_sync_all_pred')}({self.bare(e.args[0])}, {self.mask()})", "0")

    def _reduce(self, kind: str, e: Any) -> str:
        name = f"warp_reduce_{kind}_{VALUES[nodes.dtype_of(e)].name}"
        if self.full:
            return f"{self.helper(name)}({self.bare(e.args[0])})"
        return f"{self.helper(name + '_part')}({self.bare(e.args[0])}, {self._lane()}, {self._lanes()})"

    def call_tile_warp_reduce_sum(self, e: Any) -> str:
        """Print the sum over the lanes."""
        return self._reduce("sum", e)

    def call_tile_warp_reduce_max(self, e: Any) -> str:
        """Print the greatest value of the lanes."""
        return self._reduce("max", e)

    def call_tile_warp_reduce_min(self, e: Any) -> str:
        """Print the least value of the lanes."""
        return self._reduce("min", e)

    def call_tile_warp_reduce_bitand(self, e: Any) -> str:
        """Print the bits that all lanes have."""
        return self._reduce("bitand", e)

    def call_tile_warp_reduce_bitor(self, e: Any) -> str:
        """Print the bits that some lane has."""
        return self._reduce("bitor", e)
