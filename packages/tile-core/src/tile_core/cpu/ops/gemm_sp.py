"""``cpu.gemm_sp.rows``: sparse products of scratch tiles that multiply kept values only."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.cpu.attributes import INSIDE
from tile_core.cpu.isa import Isa
from tile_core.cpu.micro_dots_sp import fours_of, micro_dots_expanded, micro_dots_sp, pairs_of
from tile_core.cpu.micro_gemm_sp import Sparse, micro_gemm_sp
from tile_core.cpu.ops.gemm import HELD, decoded, flushes, refusal, tile2d
from tile_core.cpu.tile2d import Tile2D
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
        views = dict(zip(("A", "E", "B", "C"), call.args[:4], strict=True))
        inside = str(call.attrs.get(INSIDE, ""))
        held = {("A_sparse" if role == "A" else role): v for role, v in views.items() if role not in inside}
        reason = refusal(ctx, held)
        return Reject(reason) if reason else Accept(note=f"{self.isa.name}, kept values only")

    def lower(self, call: DecodedCall, ctx: Context) -> Stmt:
        """Return the row kernel's loops."""
        sparse, dense, sizes = self.operands(call)
        clear = call.args[4]
        clear = bool(int(clear.value)) if isinstance(clear, tirx.IntImm) else clear
        # Rows of B come from metadata: no analysis could prove that they are in bounds.
        return guarded(
            self.product(call, ctx)(sparse, dense, tile2d(call.args[3], False), *sizes, isa=self.isa, clear=clear)
        )

    def product(self, call: DecodedCall, ctx: Context) -> Callable[..., Stmt]:
        """Return the micro-kernel."""
        return micro_gemm_sp

    @staticmethod
    def operands(call: DecodedCall) -> tuple[Sparse, Tile2D, tuple[int, int, int]]:
        """Return the sparse and the dense operand, and the sizes of the product."""
        a, e, b, c, _ = call.args
        trans_a, trans_e, trans_b = (bool(call.attrs[TRANSPOSED[r]]) for r in "AEB")
        group = int(call.attrs[GROUP])
        m, n = c.extents[-2:]
        words = e.extents[e.matrix_dims()[0 if trans_e else 1]]
        nibbles = DTYPES[e.dtype].bits // 4
        sparse = Sparse(
            values=decoded(tile2d(a, trans_a)),
            metadata=tile2d(e, trans_e),
            words=words,
            nibbles=nibbles,
            kept=lambda code: kept(group, code),
            group=group,
        )
        return sparse, decoded(tile2d(b, trans_b)), (m, n, words * nibbles * group)


class DotGemmSp(RowsGemmSp):
    """The same for pairs of kept values, by a dot-product instruction."""

    name = "cpu.gemm_sp.dot"
    priority = 20

    def accepts(self, call: DecodedCall, ctx: Context) -> Accept | Reject:
        """Accept products of types with an instruction for two elements, of whole vectors of columns."""
        found = pairs_of(self.isa, call, flush=flushes(call, ctx))
        if found is None:
            return Reject(f"{self.isa.mcpu} has no instruction for pairs of elements in a result of this size")
        answer = super().accepts(call, ctx)
        return answer if isinstance(answer, Reject) else Accept(note=f"{found.note}, kept values only")

    def product(self, call: DecodedCall, ctx: Context) -> Callable[..., Stmt]:
        """Return the micro-kernel."""
        found = pairs_of(self.isa, call, flush=flushes(call, ctx))
        assert found is not None  # as accepted
        return functools.partial(micro_dots_sp, products=found)


class ExpandedGemmSp(RowsGemmSp):
    """The same of integers by the dense kernel, for instructions that multiply whole groups."""

    name = "cpu.gemm_sp.expanded"
    priority = 19

    def accepts(self, call: DecodedCall, ctx: Context) -> Accept | Reject:
        """Accept products of types with an instruction for four elements, of whole vectors of columns."""
        found = fours_of(self.isa, call)
        if found is None:
            return Reject(f"{self.isa.mcpu} has no instruction for four integers in a result of this size")
        answer = super().accepts(call, ctx)
        return answer if isinstance(answer, Reject) else Accept(note=f"{found.note}, zeros are multiplied, too")

    def product(self, call: DecodedCall, ctx: Context) -> Callable[..., Stmt]:
        """Return the micro-kernel."""
        return micro_dots_expanded
