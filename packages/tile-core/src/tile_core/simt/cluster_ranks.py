"""Clusters: concurrent blocks that can access each other's shared memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tile_core.errors.lowering import ClusterUnsupported
from tile_core.ir.program import cluster_of

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.ir.program import Program


def require_clusters(program: Program, ctx: Context) -> None:
    """Refuse a launch in clusters that the target does not have.

    Raises
    ------
    ClusterUnsupported
        With the number of blocks.
    """
    count, most = math.prod(cluster_of(program.attrs)), ctx.capabilities.max_cluster
    if count > most:
        limit = "no clusters" if most == 1 else f"at most {most} in a cluster"
        fix = "launch with T.Kernel, or choose another target" if most == 1 else f"use at most {most} blocks"
        facts = {"kernel": program.name, "found": count, "target": ctx.target.text, "limit": limit, "fix": fix}
        raise ClusterUnsupported(**facts, where=program.where)
