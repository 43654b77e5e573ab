"""TMA loads: bulk copies of boxes by one thread; a barrier counts their bytes.

Parts of boxes outside of the tensor become zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.errors.base import InternalError
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import ALIGN, ASKED_LAYOUT, ASYNC, COMPLETION, HINTS, LAYOUT, RANKS, ROUND, VARIANT
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall, View
from tile_core.records import dataclass
from tile_core.simt.memory.alignment import Aligned
from tile_core.simt.pipelining.multicast import sets_of
from tile_core.simt.pipelining.plan import TRANSACTIONS
from tile_core.simt.variant import SimtCall, SimtVariant
from tile_cuda.attributes import ACROSS, BULK_BYTES, REASON, SLOT, SWIZZLE
from tile_cuda.ops.boxes import BULK, Panel, described, of_tensor, panels, row_lengths, unpaneled
from tile_cuda.ptx.bulk import LOAD_BYTES, load_name, multicast_name
from tile_cuda_runtime.tensor_map import has_type

if TYPE_CHECKING:
    from tile_core.context import Context


#: The first element of a box, in the tile's coordinates in the tensor.
Corner = tuple[int, ...]


def can_copy_bulk(call: OpCall, ctx: Context, aligned: Aligned) -> Accept | Reject:
    """Decide whether a copy of the program can be made of boxes.

    Parameters
    ----------
    call
        A copy from global to shared memory, with the attribute ``ASKED_LAYOUT`` if the layout of its tile is decided,
        and ``SLOT`` if the tile is one of several in its buffer.
    aligned
        Guarantees of the launch about addresses and symbols.

    Returns
    -------
    Accept or Reject
        With the layout of the tile in shared memory, its alignment, and the swizzle, as facts.
    """
    if not ctx.capabilities.has_async_copy(BULK):
        return Reject("the target has no bulk copies")
    for reason in _reasons(call, aligned):
        return Reject(reason)
    src, dst = call.args[:2]
    asked = call.attrs.get(ASKED_LAYOUT)
    shape = dst.extents[1:] if call.attrs.get(SLOT) else dst.extents
    blocks = Blocks.of(call)
    rows = row_lengths(call, dst)
    chosen = next(panels(src.extents, shape, src.dtype, asked, rows, blocks.shares, ACROSS in call.attrs), None)
    if chosen is None:
        return Reject(unpaneled(src, dst, asked, rows) + (f", in {blocks.shares} shares" if blocks.shares > 1 else ""))
    facts = {COMPLETION: TRANSACTIONS, LAYOUT: chosen.layout, ALIGN: chosen.align, SWIZZLE: chosen.swizzle}
    return Accept(f"{len(list(chosen.corners()))} boxes of {chosen.box}", facts=facts)


class BulkCopy(SimtVariant):
    """A copy of transactions."""

    name = "cuda.copy.bulk"
    op = "copy"
    priority = 90  # what is taken by chunks has no barrier, and the other way round: the order decides nothing
    option = "tma"
    legality = Legality(
        operands=("src", "dst"),
        dtypes=frozenset((name, name) for name in DTYPES if has_type(name)),
        scopes={"src": ("global",), "dst": ("shared",)},
    )

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Take what ``can_copy_bulk`` has looked at."""
        if str(call.attrs.get(ASYNC)) != TRANSACTIONS:
            return Reject(str(call.attrs.get(REASON, "no barrier counts its bytes")))
        if BULK_BYTES in call.attrs:
            return Accept(f"{int(call.attrs[BULK_BYTES])} bytes that lie one after another")
        rows, ranks = int(call.attrs[SWIZZLE]), Blocks.of(call).ranks
        multicast = f", {len(ranks)} blocks of a cluster share the load" if Blocks.of(call).sets else ""
        shared = multicast or (f", for blocks {', '.join(map(str, ranks))} of a cluster" if len(ranks) > 1 else "")
        return Accept((f"rows of {rows} bytes" if rows else "plain rows") + shared)

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the boxes, which one thread issues."""
        src, dst, barrier = call.args
        if BULK_BYTES in call.attrs:
            return self.bytes(call, src, dst, barrier)
        size, blocks = DTYPES[src.dtype].bits // 8, Blocks.of(call)
        swizzle, across = int(call.attrs[SWIZZLE]), ACROSS in call.attrs
        panel = Panel(tuple(src.extents), tuple(dst.extents), size, swizzle, blocks.shares, across)
        if call.block.count != 1:
            detail = f"{call.block.count} threads issue one bulk copy"
            raise InternalError(stage="bulk copy", detail=detail)
        done = calls.address(barrier.buffer, list(barrier.mins), "a", calls.ASYNC_PROXY)

        def one(corner: tuple[int, ...], to: Sequence[Expr]) -> Stmt:
            at = [call.ranges.simplify(nodes.int_const(0) + m + c) for m, c in zip(src.mins, corner, strict=True)]
            tensor = calls.address(src.buffer, at, "r", calls.ASYNC_PROXY)
            destination = calls.address(
                dst.buffer, dst.spread(panel.indices(corner)), "w", calls.ASYNC_PROXY, calls.UNTIL_PHASE
            )  # fmt: skip
            operands = [destination, described(src, panel, tensor), *reversed(at), done, *to]
            return calls.execute((multicast_name if to else load_name)(len(at)), operands, call.span)

        return calls.step(blocks.issued(list(panel.corners()), one), call.span)

    def bytes(self, call: SimtCall, src: View, dst: View, barrier: View) -> Stmt:
        """Return the copy of bytes that lie one after another."""
        done = calls.address(barrier.buffer, list(barrier.mins), "a", calls.ASYNC_PROXY)
        corner = [call.ranges.simplify(nodes.int_const(0) + low) for low in src.mins]
        start = calls.address(src.buffer, corner, "r", calls.ASYNC_PROXY)
        zeros = [0] * sum(1 for n in dst.extents if n != 1) or [0]
        destination = calls.address(dst.buffer, dst.spread(zeros), "w", calls.ASYNC_PROXY, calls.UNTIL_PHASE)
        size = nodes.int_const(int(call.attrs[BULK_BYTES]))
        return calls.step(calls.execute(LOAD_BYTES, [destination, start, size, done], call.span), call.span)


@dataclass(frozen=True)
class Blocks:
    """The blocks of a cluster that receive a multicast copy.

    Attributes
    ----------
    ranks
        Theirs; empty for a copy of each block for itself.
    shares
        In how many shares they issue it: one, by the first of them, or one for each.
    cluster
        Blocks of a cluster along x, y and z.
    sets
        All blocks of the cluster, in sets of one block per share, for multicast in a pipelined loop.
        Empty where a program names the ranks.
    """

    ranks: tuple[int, ...] = ()
    shares: int = 1
    cluster: tuple[int, ...] = ()
    sets: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(cls, call: OpCall) -> Blocks:
        """Return the blocks of a copy."""
        own, sets = sets_of(call)
        if sets:
            return cls(sets[0], len(sets[0]), own, sets)
        given = call.attrs.get(RANKS)
        if given is None:
            return cls()
        mask, shares, *cluster = (int(n) for n in given)
        return cls(tuple(r for r in range(prod(cluster)) if mask >> r & 1), shares, tuple(cluster))

    def issued(self, corners: Sequence[Corner], one: Callable[[Corner, Sequence[Expr]], Stmt]) -> Stmt:
        """Return the copies of boxes to a mask of blocks or to the own block."""
        alone = nodes.seq([one(corner, []) for corner in corners])
        if len(self.ranks) < 2:
            return alone
        rank = calls.rank_in_cluster([calls.block_index(axis) for axis in range(3)], self.cluster)
        sets = self.sets or (self.ranks,)
        # The blocks outside of the mask copy for themselves; those in it that issue none only receive.
        outside = [r for r in range(prod(self.cluster)) if not any(r in of for of in sets)]
        found: list[Stmt] = []
        for of in sets:
            mask = [nodes.int_const(sum(1 << r for r in of))]
            for number, issuer in enumerate(of[: self.shares]):
                mine = nodes.seq([one(corner, mask) for corner in corners[number :: self.shares]])
                found.append(tirx.IfThenElse(tirx.EQ(rank, nodes.int_const(issuer)), mine, None))
        found += [tirx.IfThenElse(tirx.EQ(rank, nodes.int_const(r)), alone, None) for r in outside]
        return nodes.seq(found)


def _reasons(call: OpCall, aligned: Aligned) -> Iterator[str]:
    """Yield reasons against a copy of boxes in any layout.

    Later reasons assume the earlier conditions.
    """
    src, dst = call.args[:2]
    hints = call.attrs.get(HINTS) or {}
    if bool(dict(hints).get("disable_tma")):
        yield "it has disable_tma"
    if call.attrs.get(VARIANT, BulkCopy.name) != BulkCopy.name:
        yield f"it requests {call.attrs[VARIANT]}"
    if src.dtype != dst.dtype or call.attrs.get(ROUND) is not None:
        yield f"it converts {src.dtype} to {dst.dtype}"
    inner = list(zip(dst.mins, dst.extents, nodes.shape_of(dst.buffer), strict=True))[bool(call.attrs.get(SLOT)) :]
    if any(n != whole for _, n, whole in inner):
        yield f"it writes a part of {dst.name}"
    yield from of_tensor(src, dst, aligned)
