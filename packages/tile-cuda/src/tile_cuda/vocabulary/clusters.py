"""Clusters of blocks: names that this package adds to ``T``.

The blocks of a cluster run at the same time, on neighbouring processors of the device. A program computes the same
without: who waits for whom, and that one copy fills the shared memory of several blocks, is not part of its meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tile_core.errors.language import BadLaunch, OutsideKernel
from tile_core.errors.ops import BadCluster
from tile_core.ir import calls
from tile_core.language.launch import KernelLaunch
from tile_core.values.builder import current
from tile_core.values.checks import python_int, shown
from tile_core.values.value import Index, Value, as_value, constant_of

MOST_BLOCKS = 8
"""Blocks of a cluster on every device that has clusters."""


class ClusterKernel(KernelLaunch):
    """A launch whose blocks run together in clusters: ``with T.ClusterKernel(gx, cluster_dims=2) as bx:``.

    Parameters
    ----------
    *grid
        As for ``T.Kernel``: all blocks, along each axis a multiple of those of a cluster.
    cluster_dims
        Blocks of a cluster along the axes of the grid: Python ints with a product of at most 8. An axis that is
        left out has one.
    threads
        As for ``T.Kernel``.

    Raises
    ------
    OutsideKernel, BadLaunch, SecondLaunch
        As for ``T.Kernel``; for other clusters, and for a constant grid that is not made of whole ones.
    ClusterUnsupported, GridNotInClusters
        When it is compiled for a target with threads but without clusters; when it is launched with other blocks.
    """

    def __init__(
        self, *grid: Index, cluster_dims: int | Sequence[int] = 1, threads: int | Sequence[int] | None = None
    ) -> None:
        super().__init__(*grid, threads=threads)
        self.cluster = _dims(cluster_dims)
        extents = [*self.grid, 1, 1, 1][:3]
        for axis, (extent, size) in enumerate(zip(extents, self.cluster, strict=True)):
            count = constant_of(extent)
            if count is not None and count % size:
                found, expected = f"{count} blocks", f"a multiple of the {size} of a cluster"
                instead = f"nearest: {count + size - count % size}, with blocks that do nothing"
                raise BadLaunch(what=f"grid axis {axis}", found=found, expected=expected, instead=instead)


def block_rank_in_cluster() -> Value:
    """Return the rank of this block in its cluster; the first grid axis counts fastest."""
    launch = launch_of("block_rank_in_cluster")
    return as_value(calls.rank_in_cluster(launch.first, launch.cluster))


def cluster_size() -> int:
    """Return how many blocks a cluster has: 1 for ``T.Kernel``."""
    return prod(launch_of("cluster_size").cluster)


def cluster_arrive() -> None:
    """Arrive at the cluster barrier; ``T.cluster_wait`` follows, with other work between them.

    Raises
    ------
    BadCluster
        When it is compiled: arrivals and waits of all threads of all blocks do not alternate.
    """
    builder = current("T.cluster_arrive")
    launch_of("cluster_arrive")
    builder.emit(calls.cluster_arrive(builder.span()))


def cluster_arrive_relaxed() -> None:
    """Arrive as by ``T.cluster_arrive``, without ordering earlier memory accesses.

    Blocks that rely on such an order are refused: a tile stored before it is not known to have arrived.

    Raises
    ------
    BadCluster
        As for ``T.cluster_arrive``.
    """
    builder = current("T.cluster_arrive_relaxed")
    launch_of("cluster_arrive_relaxed")
    builder.emit(calls.cluster_arrive(builder.span(), relaxed=True))


def cluster_wait() -> None:
    """Wait until all threads of the cluster have arrived, see ``T.cluster_arrive``."""
    builder = current("T.cluster_wait")
    launch_of("cluster_wait")
    builder.emit(calls.cluster_wait(builder.span()))


def cluster_sync() -> None:
    """Wait for all threads of the cluster: ``T.cluster_arrive`` and ``T.cluster_wait``."""
    builder = current("T.cluster_sync")
    launch_of("cluster_sync")
    builder.emit(calls.cluster_arrive(builder.span(), meets=True))
    cluster_wait()


def mask_of(op: str, mask: object) -> tuple[int, tuple[int, int, int]]:
    """Return the blocks of a mask, and the cluster's shape along the grid axes.

    Raises
    ------
    BadCluster
        For other than a Python int of ranks of the cluster.
    """
    launch = launch_of(op)
    count = prod(launch.cluster)
    found = python_int(mask)
    if found is None or not 0 < found < 1 << count:
        reason = f"T.{op}: cluster_mask is {shown(mask)}, and the cluster has {count} block{'s'[: count - 1]}"
        fix = f"set the bits of ranks below {count}" if count > 1 else "launch with T.ClusterKernel"
        raise BadCluster(found=reason, fix=fix)
    return found, launch.cluster


def launch_of(name: str) -> KernelLaunch:
    """Return the launch that a function of ``T`` is called in.

    Raises
    ------
    OutsideKernel
        In none.
    """
    launch: KernelLaunch | None = current(f"T.{name}").launch
    if launch is None:
        raise OutsideKernel(what=f"T.{name}")
    return launch


def _dims(given: object) -> tuple[int, int, int]:
    items = list(given) if isinstance(given, (tuple, list)) else [given]
    sizes = [python_int(n) for n in items]
    if not 1 <= len(sizes) <= 3 or any(n is None or n < 1 for n in sizes):
        expected, instead = "1 to 3 ints >= 1", "write cluster_dims=2, or cluster_dims=(2, 1)"
        raise BadLaunch(what="cluster_dims", found=shown(given), expected=expected, instead=instead)
    x, y, z = [*(n or 1 for n in sizes), 1, 1][:3]
    if x * y * z > MOST_BLOCKS:
        expected, instead = f"at most {MOST_BLOCKS} blocks", f"nearest legal value: {MOST_BLOCKS}"
        raise BadLaunch(what="cluster_dims", found=f"{x * y * z} blocks", expected=expected, instead=instead)
    return x, y, z
