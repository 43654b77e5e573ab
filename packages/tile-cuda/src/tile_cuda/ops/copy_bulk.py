"""Copies from global to shared memory by bulk copies of boxes: one thread issues, a barrier with phases counts.

Parts of boxes outside of the tensor become zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tile_core.compat.types import Stmt
from tile_core.dtypes import DTYPES
from tile_core.errors.base import InternalError
from tile_core.ir import calls, nodes
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall
from tile_core.simt.memory.alignment import Aligned
from tile_core.simt.pipelining.plan import ALIGN, ASKED_LAYOUT, COMPLETION, LAYOUT, TRANSACTIONS
from tile_core.simt.pipelining.writers import ASYNC
from tile_core.simt.variant import SimtCall, SimtVariant
from tile_cuda.ops.boxes import BULK, REASON, SLOT, SWIZZLE, Panel, described, of_tensor, panels, unpaneled
from tile_cuda.ptx.bulk import load_name
from tile_cuda.tensor_map import has_type

if TYPE_CHECKING:
    from tile_core.context import Context


def can_copy_bulk(call: OpCall, ctx: Context, aligned: Aligned) -> Accept | Reject:
    """Say whether a copy of the program can be made of boxes.

    Parameters
    ----------
    call
        A copy from global to shared memory, with the attribute ``ASKED_LAYOUT`` if the layout of its tile is decided,
        and ``SLOT`` if the tile is one of several in its buffer.
    aligned
        What the launch promises about addresses and symbols.

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
    chosen = next(panels(src.extents, shape, src.dtype, asked), None)
    if chosen is None:
        return Reject(unpaneled(src, dst, asked))
    facts = {COMPLETION: TRANSACTIONS, LAYOUT: chosen.layout, ALIGN: chosen.align, SWIZZLE: chosen.swizzle}
    return Accept(f"{len(list(chosen.corners()))} boxes of {chosen.box}", facts=facts)


class BulkCopy(SimtVariant):
    """A copy of transactions."""

    name = "cuda.copy.bulk"
    op = "copy"
    priority = 90  # what is taken by chunks has no barrier, and the other way round: the order decides nothing
    option = "bulk_copies"
    legality = Legality(
        operands=("src", "dst"),
        dtypes=frozenset((name, name) for name in DTYPES if has_type(name)),
        scopes={"src": ("global",), "dst": ("shared",)},
    )

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Take what ``can_copy_bulk`` has looked at."""
        if str(call.attrs.get(ASYNC)) != TRANSACTIONS:
            return Reject(str(call.attrs.get(REASON, "no barrier counts its bytes")))
        return Accept(f"rows of {int(call.attrs[SWIZZLE])} bytes" if call.attrs[SWIZZLE] else "plain rows")

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the boxes, which one thread issues."""
        src, dst, barrier = call.args
        panel = Panel(tuple(src.extents), tuple(dst.extents), DTYPES[src.dtype].bits // 8, int(call.attrs[SWIZZLE]))
        if call.block.count != 1:
            detail = f"{call.block.count} threads issue one bulk copy"
            raise InternalError(stage="bulk copy", detail=detail)
        done = calls.address(barrier.buffer, list(barrier.mins), "a", calls.ASYNC_PROXY)
        copies = []
        for corner in panel.corners():
            at = [call.ranges.simplify(nodes.int_const(0) + m + c) for m, c in zip(src.mins, corner, strict=True)]
            tensor = calls.address(src.buffer, at, "r", calls.ASYNC_PROXY)
            place = calls.address(
                dst.buffer, dst.spread(panel.place(corner)), "w", calls.ASYNC_PROXY, calls.UNTIL_PHASE
            )  # fmt: skip
            operands = [place, described(src, panel, tensor), *reversed(at), done]
            copies.append(calls.execute(load_name(len(at)), operands, call.span))
        return calls.step(nodes.seq(copies), call.span)


def _reasons(call: OpCall, aligned: Aligned) -> Iterator[str]:
    """Yield why a copy is none of boxes, whatever the tile's layout; later ones rely on the earlier."""
    src, dst = call.args[:2]
    hints = call.attrs.get("hints") or {}
    if bool(dict(hints).get("disable_tma")):
        yield "it says disable_tma"
    if call.attrs.get("variant", BulkCopy.name) != BulkCopy.name:
        yield f"it asks for {call.attrs['variant']}"
    if src.dtype != dst.dtype or call.attrs.get("round") is not None:
        yield f"it converts {src.dtype} to {dst.dtype}"
    inner = list(zip(dst.mins, dst.extents, nodes.shape_of(dst.buffer), strict=True))[bool(call.attrs.get(SLOT)) :]
    if any(n != whole for _, n, whole in inner):
        yield f"it writes a part of {dst.name}"
    yield from of_tensor(src, dst, aligned)
