"""Copies between blocks of a cluster: a name that this package adds to ``T``.

The blocks of a cluster execute a program side by side, one statement after another: all of them read their tiles
before any of them writes. The check of barriers (``K233``) executes all blocks, and accepts a program only if arrivals
and waits, or the barrier of the cluster, make that true in each order in which they may run.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from tile_core.errors.language import BadArgument
from tile_core.errors.ops import BadAttribute, BadCluster, BadElementType, ScopeNotAllowed
from tile_core.ir import attributes, nodes
from tile_core.ops import copy_to_block, operands
from tile_core.values.checks import python_int, shown
from tile_core.values.value import as_value
from tile_cuda.vocabulary.barriers import as_barrier
from tile_cuda.vocabulary.clusters import launch_of
from tile_cuda.vocabulary.products import tma_copy

if TYPE_CHECKING:
    from tile_core.compat.types import Expr
    from tile_core.values.value import Scalar, Tile

#: Name of the variant (``tile_cuda.ops.copy_to_block``).
VARIANT = "cuda.copy.block"


def copy_cluster(
    src: Tile, dst: Tile, *, dst_block: Scalar | None = None, cluster_mask: int | None = None,
    remote_barrier: object = None,
) -> None:  # fmt: skip
    """Copy a tile in shared memory to another block of the cluster.

    Parameters
    ----------
    src, dst
        Tiles in shared memory of one element type and shape: ``src`` of this block, ``dst`` of block ``dst_block``.
    dst_block
        Rank of the block that receives it, of this one too: an integer made of constants, loop variables and
        ``T.block_rank_in_cluster()``.
    cluster_mask
        Instead of ``dst_block``: the ranks of the blocks that share a tile of global memory, see ``T.tma_copy``.
    remote_barrier
        An object of ``T.alloc_cluster_barrier``: that of the receiving block gets the bytes, which are expected there,
        and one arrival. The receiver waits for its phase, and ``src`` is read until it has ended. Without it threads
        store the elements, and the barrier of the cluster (``T.cluster_sync``) makes them visible.

    Raises
    ------
    ScopeNotAllowed, BadElementType, ShapesDiffer, BadAttribute, BadArgument, BadCluster, BadBarrier
        For other operands; for a rank that the cluster does not have.
    VariantRefused
        When it is compiled: a tile that a barrier counts is not made of runs of 16 bytes, with the rule.
    UnbalancedBarrier, BadBarrier
        When it is compiled: one block may write what another one still uses, or reads too early.
    ClusterUnsupported
        When it is compiled for a target without clusters.
    """
    op = "copy_cluster"
    if cluster_mask is not None or dst_block is None:
        if dst_block is not None or cluster_mask is None or remote_barrier is not None:
            legal = "either a block that receives it, or cluster_mask= of blocks that share a tile of global memory"
            raise BadAttribute(op=op, name="dst_block", found=operands.named(dst_block), legal=legal)
        with operands.called("T.copy_cluster", "write T.copy"):
            tma_copy(src, dst, cluster_mask=cluster_mask)
        return
    source, to = operands.as_region(op, "src", src), operands.as_region(op, "dst", dst)
    for role, x in (("src", source), ("dst", to)):
        if x.scope != "shared":
            raise ScopeNotAllowed(op=op, role=role, found=x.scope, legal="shared memory")
    if source.dtype != to.dtype:
        raise BadElementType(op=op, role="dst", found=to.dtype, legal=f"{source.dtype}, that of src")
    operands.same_shape(op, ("src", "dst"), source, to)
    args: list[Any] = [source, to, _rank(op, dst_block)]
    if remote_barrier is not None:
        barrier = as_barrier(op, remote_barrier)
        if not barrier.of_cluster:
            found = f"T.{op}: {barrier.name} takes arrivals of its own block only"
            raise BadCluster(found=found, fix="make it with T.alloc_cluster_barrier")
        buffer, index = barrier.located(op)
        args.append(nodes.region(buffer, [index], [1]))
    with operands.called("T.copy_cluster"):
        operands.emit(copy_to_block.NAME, args, [to], {attributes.VARIANT: VARIANT})


def _rank(op: str, dst_block: Scalar) -> Expr:
    """Return the rank of a block of the cluster.

    Raises
    ------
    BadArgument, BadCluster
        If it is no integer; for a constant that is no rank.
    """
    rank = as_value(dst_block)
    if not rank.dtype.is_integer:
        found, instead = f"a {rank.dtype} value", "use T.block_rank_in_cluster()"
        raise BadArgument(function=op, name="dst_block", found=found, expected="an integer", instead=instead)
    count, constant = prod(launch_of(op).cluster), python_int(dst_block)
    if constant is not None and not 0 <= constant < count:
        fix = f"use 0 to {count - 1}" if count > 1 else "launch with T.ClusterKernel"
        found = f"T.{op}: dst_block is {shown(dst_block)}, and the cluster has {count} block{'s'[: count - 1]}"
        raise BadCluster(found=found, fix=fix)
    return nodes.cast(rank.expr, "int32")
