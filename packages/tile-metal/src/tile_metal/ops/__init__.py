"""The lowering variants of this backend, one file each; every op also has its plain loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.ops.registry import OPS
from tile_core.passes.lower_ops import MeaningVariant
from tile_core.simt.ops.atomics import atomic_variants
from tile_core.simt.ops.gemm import GemmByThreads
from tile_core.simt.ops.reduce import ReduceByShuffles
from tile_core.simt.ops.reducer import FinalizeByShuffles
from tile_core.simt.ops.rows import GatherElements, ScatterColumns
from tile_core.simt.ops.scan import ScanByShuffles
from tile_metal.ops.atomics import MetalAtomics
from tile_metal.ops.atoms import SIMDGROUP, TENSOR
from tile_metal.ops.gemm import MatrixGemm
from tile_metal.target import TENSOR_OPS

if TYPE_CHECKING:
    from tile_core.lowering.variant import Variant
    from tile_core.target import Target


def variants(target: Target) -> tuple[Variant, ...]:
    """Return all variants for a target."""
    tensors = (MatrixGemm(TENSOR, 20),) if target.capabilities.fact(TENSOR_OPS) else ()
    products = (*tensors, MatrixGemm(SIMDGROUP, 10), GemmByThreads("metal"))
    warps = (ReduceByShuffles("metal"), ScanByShuffles("metal"), FinalizeByShuffles("metal"))
    rows = (GatherElements("metal"), ScatterColumns("metal"))
    atomics = atomic_variants("metal", MetalAtomics())
    return (*products, *warps, *rows, *atomics, *(MeaningVariant("metal", op) for op in OPS))
