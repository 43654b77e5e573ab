"""The lowering variants of this backend, one file each; every op also has its plain loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.simt.ops.common import thread_variants
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
    return (MmaGemm(fp8), MmaGemmSp(fp8), AsyncCopy(), *thread_variants("cuda", PtxAtomics()))
