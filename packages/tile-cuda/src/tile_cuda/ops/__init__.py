"""The lowering variants of this backend, one file each; ops also have plain loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.simt.ops.common import thread_variants
from tile_cuda.ops.add_blocks import AddBlocks
from tile_cuda.ops.atomics import PtxAtomics
from tile_cuda.ops.boxes import BULK
from tile_cuda.ops.copy_async import AsyncCopy, AsyncGather
from tile_cuda.ops.copy_bulk import BulkCopy
from tile_cuda.ops.copy_lanes import LaneCopy
from tile_cuda.ops.copy_matrix import MatrixCopy
from tile_cuda.ops.copy_to_block import CopyToBlock
from tile_cuda.ops.four_rows import FourRowGather, FourRowScatter
from tile_cuda.ops.gemm_exchanged import ExchangedGemm
from tile_cuda.ops.gemm_mma import MmaGemm
from tile_cuda.ops.gemm_scaled_mma import MmaGemmScaled
from tile_cuda.ops.gemm_sp_mma import MmaGemmSp
from tile_cuda.ops.gemm_sp_wgmma import WarpgroupGemmSp
from tile_cuda.ops.gemm_wgmma import WarpgroupGemm
from tile_cuda.ops.move_accumulators import ReadAccumulator, WriteAccumulator
from tile_cuda.ops.pin_accumulator import PinAccumulator
from tile_cuda.ops.registers import SetRegisters
from tile_cuda.ops.store_bulk import BulkStore, BulkUpdate
from tile_cuda.ops.tensor_products import TENSOR_PRODUCTS
from tile_cuda.ops.wait_uses import TensorWait, WarpgroupWait
from tile_cuda.target import BLOCK_SCALED_MMA, FP8_MMA, GATHER4, SCATTER4, SETMAXNREG, STMATRIX, TCGEN05, WGMMA

if TYPE_CHECKING:
    from tile_core.lowering.variant import Variant
    from tile_core.target import Target


def variants(target: Target) -> tuple[Variant, ...]:
    """Return all variants for a target."""
    fp8 = target.capabilities.fact(FP8_MMA)
    bulk: tuple[Variant, ...] = ()
    if target.capabilities.has_async_copy(BULK):
        bulk = (BulkCopy(), BulkStore(), BulkUpdate())
    bulk += (FourRowGather(),) if target.capabilities.fact(GATHER4) else ()
    bulk += (FourRowScatter(),) if target.capabilities.fact(SCATTER4) else ()
    groups: tuple[Variant, ...] = ()
    groups += (LaneCopy(), *([MatrixCopy()] if target.capabilities.fact(STMATRIX) else []))
    groups += (AddBlocks(), CopyToBlock()) if target.capabilities.max_cluster > 1 else ()
    if target.capabilities.fact(WGMMA):
        groups += (WarpgroupGemm(), ExchangedGemm(), WarpgroupGemmSp(), WarpgroupWait())
    groups += (SetRegisters(),) if target.capabilities.fact(SETMAXNREG) else ()
    if target.capabilities.fact(TCGEN05):
        groups += (*TENSOR_PRODUCTS, TensorWait(), PinAccumulator(), ReadAccumulator(), WriteAccumulator())
    groups += (MmaGemmScaled(),) if target.capabilities.fact(BLOCK_SCALED_MMA) else ()
    return (
        *groups,
        MmaGemm(fp8),
        MmaGemmSp(fp8),
        AsyncCopy(),
        AsyncGather(),
        *bulk,
        *thread_variants("cuda", PtxAtomics()),
    )
