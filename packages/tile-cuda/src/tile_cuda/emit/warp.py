"""Communication between the threads of a warp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Call, Expr
from tile_core.emit.c_family import CFamilyEmitter
from tile_core.emit.text import infix
from tile_core.ir.attributes import MODE, WIDTH
from tile_cuda.target import WARP


class WarpCalls(CFamilyEmitter):
    """Prints shuffles of words and votes, which is all that ``simt/threads/warp_calls.py`` leaves of them."""

    if TYPE_CHECKING:

        def helper(self, name: str) -> str:
            """Return the name of a function of the table."""

    def call_tile_shuffle(self, e: Call) -> str:
        """Print one exchange of a word, whose mask and lane are given."""
        mask, value, lane = (self._given(e.args[0]), *(self.bare(a) for a in e.args[1:]))
        mode, width = str(e.attrs[MODE]), int(e.attrs[WIDTH])
        clamp = ((WARP - width) << 8) | (0 if mode == "up" else 31)
        function = self.helper(f"shfl_sync_{mode}_u32")
        return f"{function}({value}, {lane}, {f'{clamp:#x}' if clamp > 31 else clamp}, {mask})"

    def _given(self, mask: Expr) -> str:
        return f"{int(mask.value):#x}u" if isinstance(mask, tirx.IntImm) else self.bare(mask)

    def call_tile_vote(self, e: Expr) -> str:
        """Print one vote, whose mask is given."""
        mask, condition = self._given(e.args[0]), self.bare(e.args[1])
        mode = str(e.attrs[MODE])
        if mode == "ballot":
            return f"{self.helper('vote_sync_ballot_b32')}({condition}, {mask})"
        return infix("!=", f"{self.helper(f'vote_sync_{mode}_pred')}({condition}, {mask})", "0")
