"""Lowering variants of this backend, one file each, beside every op's plain loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.simt.ops.common import thread_variants
from tile_metal.ops.atomics import MetalAtomics
from tile_metal.ops.atoms import SIMDGROUP, TENSOR
from tile_metal.ops.gemm import MatrixGemm, MatrixGemmSp
from tile_metal.ops.scaled import MatrixGemmScaled
from tile_metal.ops.vector import VectorByLanes, VectorByThreads
from tile_metal.target import TENSOR_OPS

if TYPE_CHECKING:
    from tile_core.lowering.variant import Variant
    from tile_core.target import Target


def variants(target: Target) -> tuple[Variant, ...]:
    """Return all variants for a target."""
    kinds = (MatrixGemm, MatrixGemmSp, MatrixGemmScaled)
    tensors = tuple(kind(TENSOR, 20) for kind in kinds) if target.capabilities.fact(TENSOR_OPS) else ()
    products = (*tensors, *(kind(SIMDGROUP, 10) for kind in kinds), VectorByLanes(), VectorByThreads())
    return (*products, *thread_variants("metal", MetalAtomics()))
