"""The lowering variants of this backend, one file each; every op also has its plain loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.ops.registry import OPS
from tile_core.passes.lower_ops import MeaningVariant
from tile_core.simt.ops.atomics import atomic_variants
from tile_core.simt.ops.gather_scatter import GatherElements, ScatterColumns
from tile_core.simt.ops.gemm import GemmByThreads
from tile_core.simt.ops.reduce import ReduceByShuffles
from tile_core.simt.ops.reducer import FinalizeByShuffles
from tile_core.simt.ops.scan import ScanByShuffles
from tile_cuda.ops.atomics import PtxAtomics
from tile_cuda.ops.copy_async import AsyncCopy
from tile_cuda.ops.gemm_mma import MmaGemm
from tile_cuda.ops.gemm_sp_mma import MmaGemmSp
from tile_cuda.target import FP8_MMA

if TYPE_CHECKING:
    from tile_core.lowering.variant import Variant
    from tile_core.target import Target


def variants(target: Target) -> tuple[Variant, ...]:
    """Return all variants for a target."""
    fp8 = target.capabilities.fact(FP8_MMA)
    products = (MmaGemm(fp8), MmaGemmSp(fp8), GemmByThreads("cuda"))
    warps = (ReduceByShuffles("cuda"), ScanByShuffles("cuda"), FinalizeByShuffles("cuda"))
    rows = (AsyncCopy(), GatherElements("cuda"), ScatterColumns("cuda"))
    atomics = atomic_variants("cuda", PtxAtomics())
    return (*products, *warps, *rows, *atomics, *(MeaningVariant("cuda", op) for op in OPS))
