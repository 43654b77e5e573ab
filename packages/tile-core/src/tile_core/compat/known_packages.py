"""Table of published backend packages, for messages about missing ones; nothing imports them."""

from __future__ import annotations

import fnmatch

from tile_runtime.compat.packages import KINDS as KINDS
from tile_runtime.compat.packages import RUNTIMES as RUNTIMES
from tile_runtime.compat.packages import folders_of as folders_of

# Pattern of names of `T` -> distribution; the first that matches counts.
NAMES = {
    "ClusterKernel": "tile-cuda",
    "alloc_barrier": "tile-cuda",
    "alloc_cluster_barrier": "tile-cuda",
    "alloc_tmem": "tile-cuda",
    "barrier_arrive": "tile-cuda",
    "barrier_wait": "tile-cuda",
    "mbarrier_wait_parity": "tile-cuda",
    "tcgen05_gemm": "tile-cuda",
    "tcgen05_gemm_scaled": "tile-cuda",
    "tcgen05_gemm_sp": "tile-cuda",
    "tma_copy": "tile-cuda",
    "tma_gather4": "tile-cuda",
    "tma_gather4_bytes": "tile-cuda",
    "tma_scatter4": "tile-cuda",
    "wgmma_gemm": "tile-cuda",
    "wgmma_gemm_sp": "tile-cuda",
    "async_copy": "tile-cuda",
    "cluster_*": "tile-cuda",
    "copy_cluster": "tile-cuda",
    "block_rank_in_cluster": "tile-cuda",
    "pdl_*": "tile-cuda",
    "ptx_commit_group": "tile-cuda",
    "ptx_wait_group": "tile-cuda",
    "fence_*": "tile-cuda",
    "mbarrier_*": "tile-cuda",
    "set_max_nreg": "tile-cuda",
    "tcgen05_*": "tile-cuda",
    "tma_*": "tile-cuda",
    "wait_wgmma": "tile-cuda",
    "warpgroup_*": "tile-cuda",
    "wgmma_*": "tile-cuda",
    "cooperative_tensor_*": "tile-metal",
    "simdgroup_*": "tile-metal",
}

# Distribution -> backend name, which is the name of its entry point.
BACKENDS = {distribution: kind for kind, distribution in KINDS.items()}


def distribution_of(name: str) -> str | None:
    """The distribution known to provide ``T.<name>``, if any."""
    return next((package for pattern, package in NAMES.items() if fnmatch.fnmatchcase(name, pattern)), None)
