"""Multicast: the blocks of a cluster load shared tiles of a pipelined loop once.

Blocks of a row of a grid often read the same tile of an operand. As a cluster they load it once: each block multicasts
an equal part to all blocks. Slots are then filled by several blocks, and free after arrivals from all of them
(``programs.in_cluster``). The corners of copies prove which blocks load the same tile
(`tile_core.analysis.cluster_uniform`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from math import prod
from typing import Any

from tile_core.analysis.cluster_uniform import InCluster
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import MULTICAST, TRANSPOSE_B, Attrs
from tile_core.ir.visit import collect, role
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall, View, is_op
from tile_core.records import dataclass
from tile_core.simt.pipelining.async_products import accumulator_of, products_of
from tile_core.simt.pipelining.dependences import Candidate, top_level, uses
from tile_core.simt.pipelining.schedule import Each
from tile_core.simt.role_threads import is_shared

#: Clusters that are looked at: pairs along an axis, and pairs of both.
SHAPES = ((2, 1, 1), (1, 2, 1), (2, 2, 1))

Sets = tuple[tuple[int, ...], ...]
CanCopy = Callable[[OpCall], "Accept | Reject | bool"]


@dataclass(frozen=True)
class ClusterOffer:
    """A cluster with tiles that could be multicast.

    Attributes
    ----------
    cluster
        Blocks along x, y and z.
    sets
        Of blocks that take the same tile, by the buffer that is filled.
    loaded
        Bytes of an iteration that each block then loads.
    """

    cluster: tuple[int, int, int]
    sets: Mapping[Any, Sets]
    loaded: int


@dataclass(frozen=True)
class Shared:
    """Facts about a loop whose blocks could form a cluster, for the target's decision.

    Attributes
    ----------
    threads, stages
        Of a block, and of its loop.
    loaded
        Bytes of an iteration that each block loads without multicast.
    product
        The loop's product, an ``OpCall``.
    alone
        Whether it is the block's only product and the only reader of its B.
    offers
        The legal clusters.
    reasons
        Rejection reasons for other clusters: a buffer whose copies prevent multicast, or ``None``, and the reason.
    copies
        The copies of an iteration, by the buffer that is filled.
    persistent
        Whether the kernel is persistent.
    """

    threads: int
    stages: int
    loaded: int
    product: Any
    alone: bool
    offers: Sequence[ClusterOffer]
    reasons: Sequence[tuple[Any, str]] = ()
    copies: Mapping[Any, OpCall] = field(default_factory=dict)
    persistent: bool = False

    def because(self, buffer: Any = None) -> str:
        """Return the rejection reasons of other clusters, for all buffers or one."""
        mine = (why for b, why in self.reasons if b is None or buffer is None or b.same_as(buffer))
        return "; ".join(dict.fromkeys(mine))


@dataclass(frozen=True)
class ChosenCluster:
    """The target's choice of a cluster, and the arrivals that release slots.

    Attributes
    ----------
    offer
        The cluster.
    each
        ``"warp"``, one thread of each ``width``, where only instructions of whole warps read slots; or ``"thread"``.
    width
        Threads of a warp.
    halves
        Whether a pair of blocks computes one product (two-CTA product) instead of multicasting B: each loads half of
        the columns of B for itself, so no other block fills its slots.
    processors
        That can run blocks of such clusters, where the device has others too: the number of persistent blocks is
        limited to than run at a time. 0: all can.
    """

    offer: ClusterOffer
    each: Each = "thread"
    width: int = 32
    halves: bool = False
    processors: int = 0


@dataclass(frozen=True)
class Clustering:
    """The target's decision about clusters, and its inputs.

    Attributes
    ----------
    choose
        The target's decision.
    thread
        The variable of a thread's number in the block.
    most
        Blocks of a cluster at most.
    """

    choose: Callable[[Shared], ChosenCluster | Reject]
    thread: Var
    most: int


def halved(c: Candidate, product: OpCall, cluster: tuple[int, int, int]) -> Candidate:
    """Return the copy of B that loads half of the columns in each block.

    The two blocks of a pair load different halves.
    """
    src, dst = c.call.args[:2]
    transposed = bool(product.attrs[TRANSPOSE_B])
    from_end = 2 if transposed else 1
    half = int(dst.extents[-from_end]) // 2
    rank = rank_in(cluster)
    extents, mins, whole = list(src.extents), list(src.mins), list(nodes.shape_of(dst.buffer))
    extents[-from_end], whole[-from_end] = half, half
    mins[-from_end] = mins[-from_end] + rank * half
    small = tirx.decl_buffer(whole, nodes.element_type(dst.buffer), dst.buffer.name, scope="shared", layout=None)
    there = View.of(nodes.region(small, list(dst.mins), [*dst.extents[:-from_end], half, *dst.extents[-from_end:][1:]]))
    given = replace(c.call, args=(View.of(nodes.region(src.buffer, mins, extents)), there, *c.call.args[2:]))
    return replace(c, call=given)


def is_alone(grid: Mapping[int, Stmt], loop: Stmt, product: OpCall) -> bool:
    """Whether a product is the block's only one and the only reader of B.

    Only readers in the loop count.
    """
    inner = _innermost(grid)
    read = product.args[accumulator_of(product) - 1].buffer
    body = [s for s in top_level(loop.body) if uses(s, read)]
    others = [s for s in body if not (is_op(s) and OpCall.decode(s).name == "copy")]
    return inner is not None and len(products_of(inner.body)) == 1 == len(others)


def _innermost(grid: Mapping[int, Stmt]) -> Stmt | None:
    return min(grid.values(), key=lambda s: len(list(collect(s, tirx.For))), default=None)


def sets_of(call: OpCall) -> tuple[tuple[int, ...], Sets]:
    """Return the cluster and the multicast sets of a copy; empty for other copies."""
    given = [int(n) for n in call.attrs.get(MULTICAST, ())]
    ranks = range(prod(given[:3]))
    return tuple(given[:3]), tuple(tuple(r for r in ranks if mask >> r & 1) for mask in given[3:])


def marked(cluster: Sequence[int], sets: Sets) -> Attrs:
    """Return the attribute of a multicast copy."""
    return {MULTICAST: [*cluster, *(sum(1 << r for r in of) for of in sets)]}


def in_line(cluster: Sequence[int]) -> tuple[int, int, int]:
    """Return the cluster of persistent blocks, which are numbered along one axis."""
    return prod(cluster), 1, 1


def rank_in(cluster: Sequence[int]) -> Expr:
    """Return the rank of a block in a cluster of a launch."""
    return calls.rank_in_cluster([calls.block_index(axis) for axis in range(3)], cluster)


def arrive_at_peers(
    barrier: Any, slot: Expr, cluster: Sequence[int], partners: Sequence[int], lane: Expr | None, span: Any
) -> Stmt:
    """Return the arrivals in all blocks that fill slots here.

    Parameters
    ----------
    cluster
        Of the launch.
    partners
        Those blocks of the one of rank 0.
    lane
        A thread's number in its warp if one of each warp arrives in each block; otherwise all do.
    """

    def there(bits: Expr) -> Stmt:
        # Two blocks of a row differ in one bit of their rank, two of a column in the other one.
        return calls.barrier_arrive(barrier, slot, span, tirx.bitwise_xor(rank_in(cluster), bits))

    if lane is None:
        return nodes.seq([there(nodes.int_const(bits)) for bits in partners])
    return tirx.IfThenElse(lane < nodes.int_const(len(partners)), there(lane), None)


def mask_of(cluster: Sequence[int], partners: Sequence[int]) -> Expr:
    """Return the mask of these blocks, by their ranks."""
    if len(partners) == prod(cluster):
        return nodes.int_const((1 << len(partners)) - 1)
    one, rank = nodes.int_const(1), rank_in(cluster)
    found: Expr = nodes.int_const(0)
    for bits in partners:
        found = tirx.bitwise_or(found, tirx.shift_left(one, tirx.bitwise_xor(rank, nodes.int_const(bits))))
    return found


def multicast_of(
    clustering: Clustering, grid: Mapping[int, Stmt], loop: Stmt, copies: Sequence[Candidate], sizes: Mapping[Any, int],
    binds: Mapping[Var, Any], product: OpCall, alone: bool, threads: int, stages: int,
    can_copy: CanCopy, persistent: bool,
) -> ChosenCluster | str:  # fmt: skip
    """Return the multicast of a loop's copies, or the rejection reason.

    Parameters
    ----------
    grid
        The loops over blocks, by axis.
    loop
        As it is in the body of the innermost of them.
    copies, sizes
        Prefetched copies that complete on barriers; bytes of a slot of all prefetched copies, by buffer.
    binds
        Values of variables.
    can_copy
        Whether a copy that is marked can be made so.
    persistent
        Whether the kernel is persistent.
    """
    known = InCluster((1, 1, 1), {axis: s.loop_var for axis, s in grid.items()}, dict(binds))
    reason = not_alike(grid, loop, known)
    if reason:
        return reason
    offers, reasons = offers_of(grid, copies, sizes, known, clustering.most, can_copy)
    calls = {c.buffer: c.call for c in copies}
    shared = Shared(threads, stages, sum(sizes.values()), product, alone, offers, reasons, calls, persistent)
    answer = clustering.choose(shared)
    return answer.reason if isinstance(answer, Reject) else answer


def not_alike(grid: Mapping[int, Stmt], loop: Stmt, known: InCluster) -> str:
    """Return the reason why blocks may have different trip counts; empty if they do not.

    Parameters
    ----------
    grid
        The loops over blocks, by axis.
    known
        With the coordinates of blocks, of clusters of any shape.
    """
    inner = _innermost(grid)
    if inner is None or not any(s.same_as(loop) for s in top_level(inner.body)):
        return "the loop is nested in another statement"
    if sum(role(s) == "pipelined" for s in collect(inner.body, tirx.For)) > 1:
        return "its block has several pipelined loops"
    if any(is_shared(s) for s in collect(inner.body, tirx.AttrStmt)):
        return "its block has roles of its own"
    if collect(inner.body, tirx.Return):
        return "a thread may leave the block early"
    names = (str(getattr(c.op, "name", "")) for c in collect(inner.body, ir.Call))
    own = next((n for n in names if n.startswith("tile.cluster_")), "")
    if own:
        return f"it calls {own[5:]} itself"
    bounds = [nodes.int_const(0) + e for e in (loop.min, loop.extent)]
    varying = [v for e in bounds for v in collect(known.expanded(e), tirx.Var)]
    if any(v.same_as(s.loop_var) for s in grid.values() for v in varying) or not known.same(bounds, (0,)):
        return "blocks may have different trip counts"
    return ""


def offers_of(
    grid: Mapping[int, Stmt], copies: Sequence[Candidate], sizes: Mapping[Any, int], known: InCluster, most: int,
    can_copy: CanCopy,
) -> tuple[list[ClusterOffer], list[tuple[Any, str]]]:  # fmt: skip
    """Return the clusters with multicast, and the reasons against others (see `Shared.reasons`).

    Parameters
    ----------
    sizes
        Bytes of a slot, by buffer.
    most
        Blocks of a cluster at most.
    can_copy
        Whether a copy that is marked can be made so.
    """
    found: list[ClusterOffer] = []
    reasons: list[tuple[Any, str]] = []
    extents = [nodes.as_int(grid[axis].extent) if axis in grid else 1 for axis in range(3)]
    for cluster in SHAPES:
        reason = "" if prod(cluster) <= most else f"a cluster has at most {most} blocks"
        for extent, size in zip(extents, cluster, strict=True):
            if size > 1 and not isinstance(extent, int):
                reason = "the number of blocks is not known at compile time"
            elif size > 1 and int(extent) % size:
                reason = f"{extent} blocks along an axis of the grid are not a multiple of {size}"
        if reason:
            reasons.append((None, reason))
            continue
        sets: dict[Any, Sets] = {}
        for c in copies:
            made, why = _sets(c, cluster, known, can_copy)
            if made:
                sets[c.buffer] = made
            else:
                reasons.append((c.buffer, why))
        loaded = sum(n // len(sets[b][0]) if b in sets else n for b, n in sizes.items())
        if sets and all(loaded < o.loaded for o in found if prod(o.cluster) < prod(cluster)):
            found.append(ClusterOffer(cluster, sets, loaded))
    return found, reasons


def _sets(c: Candidate, cluster: tuple[int, int, int], known: InCluster, can_copy: CanCopy) -> tuple[Sets, str]:
    """Return the multicast sets of a copy, or the rejection reason."""
    there = InCluster(cluster, known.axes, known.binds)
    for sets in _partitions(cluster):
        if all(there.same(c.call.args[0].mins, of) for of in sets):
            answer = can_copy(replace(c.call, attrs={**c.call.attrs, **marked(cluster, sets)}))
            reason = answer.reason if isinstance(answer, Reject) else "it cannot"
            return (sets, "") if isinstance(answer, Accept) else ((), f"{c.buffer.name}: {reason}")
    return (), f"no neighboring blocks provably copy the same part of {c.source_name}"


def _partitions(cluster: tuple[int, int, int]) -> list[Sets]:
    """Return the partitions of a cluster: all blocks, rows or columns."""
    x, y, _ = cluster
    whole = tuple(range(x * y))
    rows = tuple(tuple(r * x + i for i in range(x)) for r in range(y))
    columns = tuple(tuple(r * x + i for r in range(y)) for i in range(x))
    return [s for s in dict.fromkeys(((whole,), rows, columns)) if len(s[0]) > 1]
