"""Variants for every target with threads; lanes are used if the target has them."""

from __future__ import annotations

from tile_core.lowering.variant import Variant
from tile_core.ops.registry import OPS
from tile_core.passes.lower_ops import MeaningVariant
from tile_core.simt.ops.atomics import Atomics, atomic_variants
from tile_core.simt.ops.fold import FoldByShuffles
from tile_core.simt.ops.gather_scatter import GatherElements, ScatterColumns
from tile_core.simt.ops.gemm import GemmByThreads
from tile_core.simt.ops.reduce import ReduceByShuffles
from tile_core.simt.ops.reducer import FinalizeByShuffles
from tile_core.simt.ops.scan import ScanByShuffles
from tile_core.simt.ops.sort import SortByShuffles
from tile_core.simt.ops.topk import TopKByShuffles


def thread_variants(owner: str, atomics: Atomics) -> tuple[Variant, ...]:
    """Return the common variants under a backend's name.

    They are products, rows, reductions, scans, atomics, and loops for all ops.

    Threads combine their results by shuffles, or through shared memory where the target declares no lanes
    (``Capabilities.execution_width``).

    Parameters
    ----------
    owner
        The backend's name.
    atomics
        How it updates one element of memory. Plain loops are not atomic, so there is no fallback for what it refuses.
    """
    cooperative = (
        ReduceByShuffles(owner), FoldByShuffles(owner), ScanByShuffles(owner), FinalizeByShuffles(owner),
        SortByShuffles(owner), TopKByShuffles(owner),
    )  # fmt: skip
    loops = (MeaningVariant(owner, op) for op in OPS if not op.startswith("atomic"))
    return (
        GemmByThreads(owner), GatherElements(owner), ScatterColumns(owner), *cooperative,
        *atomic_variants(owner, atomics), *loops,
    )  # fmt: skip
