"""``metal.simdgroup`` and ``metal.tensor_ops``: products on the matrix instructions of a simdgroup."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tile_core.compat.types import Stmt
from tile_core.ir.attributes import VARIANT
from tile_core.layout import LayoutMap
from tile_core.lowering.variant import Accept, Reject
from tile_core.simt.ops.gemm_problem import Problem, policy_of
from tile_core.simt.ops.products.variant import MatrixVariant, matrix_legality, register_scopes
from tile_core.simt.ops.warp_partition import splits
from tile_metal.chips import chip_of
from tile_metal.ops.atoms import SIMDGROUP, TENSOR, Unit, table
from tile_metal.ops.plan import SimdgroupPlan, fastest_for, padded
from tile_metal.ops.product import SimdgroupProduct
from tile_metal.target import SIMD

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.simt.memory.alignment import Aligned
    from tile_core.simt.pipelining.operands import Operand
    from tile_core.simt.variant import SimtCall


#: Simdgroups that may read the same elements of device memory.
_READERS = 4


def reads_rows(operand: Operand, threads: int, ctx: Context, aligned: Aligned) -> bool:
    """Whether tensor operations read an operand as efficiently from device memory.

    Of a row of A or B, as stored, they take neighbours, and the few simdgroups beside each other find in a cache what
    one has read.
    """
    position = operand.position
    if operand.call.name != "gemm":
        return False
    p = Problem.of(operand.call)
    if threads < SIMD or min(p.m, p.n) < 8 or fastest_for(operand.call, threads, ctx) != TENSOR:
        return False
    tiles = -(-p.m // TENSOR.m), -(-p.n // TENSOR.n)
    split = splits(*tiles, threads // SIMD, policy_of(operand.call, p), (TENSOR.m, TENSOR.n))[0]
    readers = split.warps_n if position == 0 else split.warps_m
    width = (p.m if p.turned_a else p.k) if position == 0 else p.k if p.turned_b else p.n
    return readers <= _READERS and width % TENSOR.each == 0


class MatrixGemm(MatrixVariant):
    """Tiles of every size; simdgroups share the rows and columns of C.

    A and B may also be in device memory, from which instructions read them without staging.

    Parameters
    ----------
    unit
        The instruction.
    priority
        Among the variants of ``gemm``.
    """

    op = "gemm"
    suffix = ""
    group = SIMD
    group_name = "simdgroup"

    def __init__(self, unit: Unit, priority: int) -> None:
        # Sparse operands are checked for NaN, which integers lack.
        self.unit = replace(unit, integers=False) if self.op == "gemm_sp" else unit
        self.priority = priority
        self.name = f"metal.{unit.name}{self.suffix}"
        self.legality = matrix_legality(table(self.unit), register_scopes(self.op == "gemm_sp"))

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Reject tensor operations where simdgroup matrices are estimated to be faster."""
        found = super().accepts(call, ctx)
        if isinstance(found, Reject) or self.unit.m == SIMDGROUP.m or VARIANT in call.attrs:
            return found
        if fastest_for(call, call.block.count, ctx) == SIMDGROUP:
            chip = chip_of(ctx.target)
            return Reject(f"simdgroup matrices take fewer cycles on an {chip.name} (published rates, not measured)")
        return found

    def plan(self, call: SimtCall) -> SimdgroupPlan | Reject:
        """See `ProductPlan.for_call`."""
        return SimdgroupPlan.for_call(call, self.unit)

    def shared_layout(self, shape: tuple[int, ...], bits: int) -> LayoutMap | None:
        """Return a layout with longer rows, see `padded`."""
        return padded(shape, bits)

    def statement(self, plan: SimdgroupPlan, call: SimtCall) -> Stmt:
        """Return the product for one thread."""
        return SimdgroupProduct(plan, call).statement()


class MatrixGemmSp(MatrixGemm):
    """The same with a 2:4 sparse A, and metadata of any width and layout.

    See ``ops/sparse.py``.
    """

    op = "gemm_sp"
    suffix = ".sp"
