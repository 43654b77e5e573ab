"""The backend's answers to the plugin contract (see ``tile_core/plugins/hookspecs.py``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tile_core.manifest import BackendManifest, fingerprint_of
from tile_cuda.options import CudaOptions

if TYPE_CHECKING:
    from tile_core.lowering.tilings import TilingModel
    from tile_core.lowering.variant import Variant
    from tile_core.target import Target


def tile_backend() -> BackendManifest:
    """Return the manifest."""
    from tile_cuda_runtime.architectures import RECORDS

    return BackendManifest(
        name="cuda",
        api=">=1,<2",
        target_kinds=("cuda",),
        options=CudaOptions,
        fingerprint=" ".join(map(fingerprint_of, ("tile_cuda", "tile_cuda_runtime"))),
        architectures=tuple(f"cuda:{name}" for name in RECORDS),
        summary="NVIDIA GPUs from sm_80 to sm_120",
    )


def tile_target(text: str) -> Target | None:
    """Return the target of ``cuda:sm_90a``, or of ``cuda``: this machine's device or sm_80."""
    from tile_cuda.resolve import parse_target

    return parse_target(text)


def tile_detect() -> Target | None:
    """Return the target of the current device; a broken driver is an error."""
    from tile_cuda.resolve import detect

    return detect(strict=True)


_OPS = (
    "alloc_tmem",
    "set_max_nreg",
    "tcgen05_gemm",
    "tcgen05_gemm_scaled",
    "tcgen05_gemm_sp",
    "tma_copy",
    "tma_store_wait",
    "wait_wgmma",
    "wgmma_gemm",
    "wgmma_gemm_sp",
)


def tile_language() -> Mapping[str, str]:
    """Add the ops that guarantee an instruction, and barriers of a program's own."""
    ops = {name: f"tile_cuda.vocabulary.products:{name}" for name in _OPS}
    rows = ("tma_gather4", "tma_gather4_bytes", "tma_scatter4")
    steps = ("warpgroup_arrive", "warpgroup_commit_batch", "warpgroup_fence_operand", "warpgroup_wait")
    ops |= {name: f"tile_cuda.vocabulary.wgmma_steps:{name}" for name in steps}
    barriers = (
        "alloc_barrier", "alloc_cluster_barrier", "barrier_arrive", "barrier_wait", "fence_barrier_init",
        "fence_proxy_async", "mbarrier_arrive", "mbarrier_expect_tx", "mbarrier_wait_parity",
    )  # fmt: skip
    clusters = (
        "ClusterKernel", "block_rank_in_cluster", "cluster_arrive", "cluster_arrive_relaxed", "cluster_size",
        "cluster_sync", "cluster_wait",
    )  # fmt: skip
    ops |= {name: f"tile_cuda.copies.explicit:{name}" for name in ("async_copy", "ptx_commit_group", "ptx_wait_group")}
    ops["copy_cluster"] = "tile_cuda.vocabulary.block_copies:copy_cluster"
    ops |= {name: f"tile_cuda.vocabulary.launches:{name}" for name in ("pdl_sync", "pdl_trigger")}
    ops |= {name: f"tile_cuda.vocabulary.four_rows:{name}" for name in rows}
    ops |= {name: f"tile_cuda.vocabulary.clusters:{name}" for name in clusters}
    return ops | {name: f"tile_cuda.vocabulary.barriers:{name}" for name in barriers}


def tile_lowerings(target: Target) -> Sequence[Variant]:
    """Return the variants that the target can run."""
    from tile_cuda.ops import variants

    return variants(target)


def tile_pipeline(target: Target, spine: Any) -> Any:
    """Return the core's spine with this backend's tail."""
    from tile_cuda.pipeline import pipeline

    return pipeline(target, spine)


def tile_runtimes(target: Target) -> Sequence[Any]:
    """Return the adapter that launches with the driver."""
    from tile_cuda.runtime import CudaAdapter

    return (CudaAdapter(target),)


def tile_emulation(target: Target) -> Any:
    """Return the model of the language and its instructions."""
    from tile_cuda.emulation import dialect

    return dialect(target)


def tile_strategies(target: Target) -> Mapping[str, str]:
    """Return the strategies whose instructions the target has."""
    from tile_cuda.target import CLUSTERS, SCATTER4, TCGEN05

    names = {"multicast": CLUSTERS, "four-rows": SCATTER4, "tensor-memory": TCGEN05}
    found = {name: fact for name, fact in names.items() if target.capabilities.fact(fact)}
    return {name: f"tile_cuda.testing.strategies:{name.replace('-', '_').upper()}" for name in found}


def tile_cases(target: Target) -> Mapping[str, str]:
    """Return the cases of products that arrive at a barrier."""
    return {"tensor-memory": "tile_cuda.testing.cases:units"}


def tile_tilings(target: Target) -> TilingModel:
    """Return the estimates of products on multiprocessors."""
    from tile_cuda.cost.finished_plans import CudaModel

    return CudaModel()
