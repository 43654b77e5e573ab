"""``cpu.gemm_sp.rows``: sparse products of scratch tiles that multiply kept values only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.cpu.isa import Isa
from tile_core.cpu.micro_gemm_sp import Sparse, micro_gemm_sp
from tile_core.cpu.ops.gemm import HELD, decoded, refusal, tile2d
from tile_core.dtypes import DTYPES
from tile_core.ir.attributes import GROUP, TRANSPOSED
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import Accept, DecodedCall, Reject, Variant
from tile_core.ops.gemm_sp import kept
from tile_core.passes.guard import guarded

if TYPE_CHECKING:
    from tile_core.context import Context


class RowsGemmSp(Variant):
    """Matrices in the last two dimensions of scratch tiles, of every element type and size."""

    name = "cpu.gemm_sp.rows"
    op = "gemm_sp"
    priority = 10
    legality = Legality(scopes=dict.fromkeys("AEBC", HELD))

    def __init__(self, isa: Isa) -> None:
        self.isa = isa

    def accepts(self, call: DecodedCall, ctx: Context) -> Accept | Reject:
        """Accept scratch tiles, as for ``cpu.gemm.packed``."""
        roles = ("A_sparse", "E", "B", "C")
        reason = refusal(ctx, dict(zip(roles, call.args[:4], strict=True)))
        return Reject(reason) if reason else Accept(note=f"{self.isa.name}, kept values only")

    def lower(self, call: DecodedCall, ctx: Context) -> Stmt:
        """Return the row kernel's loops."""
        a, e, b, c, clear = call.args
        trans_a, trans_e, trans_b = (bool(call.attrs[TRANSPOSED[r]]) for r in "AEB")
        group = int(call.attrs[GROUP])
        m, n = c.extents[-2:]
        words = e.extents[-2] if trans_e else e.extents[-1]
        nibbles = DTYPES[e.dtype].bits // 4
        sparse = Sparse(
            values=decoded(tile2d(a, trans_a)),
            metadata=tile2d(e, trans_e),
            words=words,
            nibbles=nibbles,
            kept=lambda code: kept(group, code),
            group=group,
        )
        clear = bool(int(clear.value)) if isinstance(clear, tirx.IntImm) else clear
        dense = decoded(tile2d(b, trans_b))
        k = words * nibbles * group
        # Rows of B come from metadata: no analysis could prove that they are in bounds.
        return guarded(micro_gemm_sp(sparse, dense, tile2d(c, False), m, n, k, isa=self.isa, clear=clear))
