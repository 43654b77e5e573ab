"""The CPU's lowering variants, one file each; every op also has its plain loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.cpu.ops.fold import LaneFold
from tile_core.cpu.ops.gemm import DotGemm, PackedGemm, TileGemm
from tile_core.cpu.ops.gemm_scaled import PackedGemmScaled
from tile_core.cpu.ops.gemm_sp import DotGemmSp, ExpandedGemmSp, RowsGemmSp
from tile_core.cpu.ops.reduce import LaneReduce
from tile_core.cpu.ops.scan import LaneScan
from tile_core.cpu.ops.sort import PartSort
from tile_core.cpu.ops.topk import LaneTopK
from tile_core.cpu.target import isa_of
from tile_core.ops.registry import OPS
from tile_core.passes.lower_ops import MeaningVariant

if TYPE_CHECKING:
    from tile_core.lowering.variant import Variant
    from tile_core.target import Target


def variants(target: Target) -> tuple[Variant, ...]:
    """Return all variants for a CPU."""
    isa = isa_of(target)
    return (
        TileGemm(isa),
        DotGemm(isa),
        PackedGemm(isa),
        PackedGemmScaled(isa),
        DotGemmSp(isa),
        ExpandedGemmSp(isa),
        RowsGemmSp(isa),
        LaneReduce(isa),
        LaneFold(isa),
        LaneScan(isa),
        LaneTopK(isa),
        PartSort(),
        *(MeaningVariant("cpu", op) for op in OPS),
    )
