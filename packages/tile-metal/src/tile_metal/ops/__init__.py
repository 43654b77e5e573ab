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
from tile_metal.ops.atomics import MetalAtomics
from tile_metal.ops.atoms import SIMDGROUP, TENSOR
from tile_metal.ops.gemm import MatrixGemm, MatrixGemmSp
from tile_metal.ops.vector import VectorByLanes, VectorByThreads
from tile_metal.target import TENSOR_OPS

if TYPE_CHECKING:
    from tile_core.lowering.variant import Variant
    from tile_core.target import Target


def variants(target: Target) -> tuple[Variant, ...]:
    """Return all variants for a target."""
    kinds = (MatrixGemm, MatrixGemmSp)
    tensors = tuple(kind(TENSOR, 20) for kind in kinds) if target.capabilities.fact(TENSOR_OPS) else ()
    products = (
        *tensors,
        *(kind(SIMDGROUP, 10) for kind in kinds),
        VectorByLanes(),
        VectorByThreads(),
        GemmByThreads("metal"),
    )
    warps = (ReduceByShuffles("metal"), ScanByShuffles("metal"), FinalizeByShuffles("metal"))
    rows = (GatherElements("metal"), ScatterColumns("metal"))
    # Loops are no atomic updates: what Metal has no atomics for is refused.
    plain = (MeaningVariant("metal", op) for op in OPS if not op.startswith("atomic"))
    atomics = atomic_variants("metal", MetalAtomics())
    return (*products, *warps, *rows, *atomics, *plain)
