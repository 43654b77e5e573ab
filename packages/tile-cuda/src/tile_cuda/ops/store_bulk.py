"""TMA stores and reductions from shared to global memory, issued by one thread.

The engine reads the tile after the statement, until a wait that barrier insertion places where the tile is written
again, and at the end. Parts of boxes outside of the tensor are left out. PTX ISA, "cp.async.bulk.tensor" and
"cp.reduce.async.bulk.tensor".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import ALIGN, ASKED_LAYOUT, HINTS, KIND, LAYOUT, ORDER, ROUND, VARIANT, VECTOR_WIDTH
from tile_core.layout.base import LayoutMap
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.atomic import BITS
from tile_core.ops.base import OpCall, View
from tile_core.simt.memory.alignment import Aligned, factor
from tile_core.simt.variant import SimtCall, SimtVariant
from tile_cuda.attributes import BULK_BYTES, DIRECT, REASON, SLOT, STAGED, STORE, SWIZZLE
from tile_cuda.ops.boxes import BULK, CHUNK, Panel, described, of_tensor, panels, row_lengths, unpaneled
from tile_cuda.ptx.bulk import STORE_BYTES, store_name
from tile_cuda_runtime.tensor_map import has_type

if TYPE_CHECKING:
    from tile_core.context import Context

LASTS, ENDS = "lasts", "ends"

#: PTX ISA, "cp.reduce.async.bulk.tensor": the element of the map, by operation and type. Minima and maxima of floats
#: are left out, since the manual does not specify the result for NaN. Signed elements of 64 bits have minima and maxima
#: only.
REDUCTIONS = {
    ("add", "float32"): "float32", ("add", "float16"): "float16", ("add", "bfloat16"): "bfloat16",
    ("add", "int32"): "int32", ("add", "uint32"): "uint32", ("add", "int64"): "uint64", ("add", "uint64"): "uint64",
    **{(kind, t): t for kind in ("min", "max") for t in ("int32", "uint32", "int64", "uint64")},
    **{(kind, t): f"uint{bits}" for kind in BITS for bits in (32, 64) for t in (f"int{bits}", f"uint{bits}")},
}  # fmt: skip


def can_store_bulk(call: OpCall, ctx: Context, aligned: Aligned, ranges: Analyzer) -> Accept | Reject:
    """Return whether boxes can implement a copy or an atomic update of the program.

    Parameters
    ----------
    call
        A ``copy`` from shared to global memory or an ``atomic_tile``, with the attribute ``ASKED_LAYOUT`` if the layout
        of its tile is decided, and ``SLOT`` if the tile is a slot of its buffer.
    aligned
        Guarantees of the launch about addresses and symbols.
    ranges
        Bounds of the variables around the call.

    Returns
    -------
    Accept or Reject
        With the layout of the tile in shared memory, its alignment, and the swizzle, as facts.
    """
    if not ctx.capabilities.has_async_copy(BULK):
        return Reject("the target has no bulk copies")
    tile, tensor = sides(call)
    for reason in _reasons(call, tile, tensor, aligned, ranges):
        return Reject(reason)
    shape = tile.extents[1:] if call.attrs.get(SLOT) else tile.extents
    asked: LayoutMap | None = call.attrs.get(ASKED_LAYOUT)
    rows = row_lengths(call, tile)
    chosen = next(panels(tensor.extents, shape, tensor.dtype, asked, rows), None)
    if chosen is None:
        return Reject(unpaneled(tensor, tile, asked, rows))
    return Accept(facts={LAYOUT: chosen.layout, ALIGN: chosen.align, SWIZZLE: chosen.swizzle})


def sides(call: OpCall) -> tuple[View, View]:
    """Return the tile and the part of the tensor."""
    first, second = call.args[:2]
    return (first, second) if call.name == "copy" else (second, first)


class BulkStore(SimtVariant):
    """A copy from shared to global memory."""

    name = "cuda.copy.bulk_store"
    op = "copy"
    priority = 80
    option = "tma"
    legality = Legality(
        operands=("src", "dst"),
        dtypes=frozenset((name, name) for name in DTYPES if has_type(name)),
        scopes={"src": ("shared",), "dst": ("global",)},
    )

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Take what ``can_store_bulk`` has looked at."""
        tile, tensor = sides(call)
        why, note = call.attrs.get(DIRECT), call.attrs.get(STAGED)
        if tile.scope != "shared" or tensor.scope != "global":
            direct = f"not a copy from shared to global memory, but from {tile.scope} to {tensor.scope}"
            return Reject(f"{direct}; {why}" if why else direct)
        if STORE not in call.attrs:
            return Reject(str(call.attrs.get(REASON, "the option tma does not enable it")))
        if BULK_BYTES in call.attrs:
            return Accept(f"{int(call.attrs[BULK_BYTES])} bytes that lie one after another")
        rows = f"rows of {int(call.attrs[SWIZZLE])} bytes" if call.attrs[SWIZZLE] else "plain rows"
        return Accept(f"{rows}; {note}" if note else rows)

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the boxes and their group, which one thread issues."""
        tile, tensor = sides(call)
        if BULK_BYTES in call.attrs:
            return self.issued(call, [self.bytes(call, tile, tensor)])
        size, swizzle = DTYPES[tensor.dtype].bits // 8, int(call.attrs[SWIZZLE])
        panel = Panel(tuple(tensor.extents), tuple(tile.extents), size, swizzle)
        lasts = str(call.attrs[STORE]) == LASTS
        kind = "" if call.name == "copy" else str(call.attrs[KIND])
        dtype = REDUCTIONS[kind, tensor.dtype] if kind else tensor.dtype
        corner = [nodes.int_const(0) + m for m in tensor.mins]
        access = calls.address(
            tensor.buffer, corner, "a" if kind else "w", calls.ASYNC_PROXY, calls.UNTIL_STORED, tensor.extents
        )  # fmt: skip
        made = described(tensor, panel, access, dtype)
        parts = []
        for first in panel.corners():
            at = [call.ranges.simplify(m + c) for m, c in zip(corner, first, strict=True)]
            until = calls.UNTIL_READ if lasts else ""
            source = calls.address(tile.buffer, tile.spread(panel.indices(first)), "r", calls.ASYNC_PROXY, until)
            parts.append(calls.execute(store_name(len(at), kind), [source, made, *reversed(at)], call.span))
        return self.issued(call, parts)

    def bytes(self, call: SimtCall, tile: View, tensor: View) -> Stmt:
        """Return the copy of bytes that lie one after another."""
        corner = [call.ranges.simplify(nodes.int_const(0) + low) for low in tensor.mins]
        start = calls.address(
            tensor.buffer, corner, "w", calls.ASYNC_PROXY, calls.UNTIL_STORED, tensor.extents
        )  # fmt: skip
        until = calls.UNTIL_READ if str(call.attrs[STORE]) == LASTS else ""
        zeros = [0] * sum(1 for n in tile.extents if n != 1) or [0]
        source = calls.address(tile.buffer, tile.spread(zeros), "r", calls.ASYNC_PROXY, until)
        return calls.execute(STORE_BYTES, [start, source, nodes.int_const(int(call.attrs[BULK_BYTES]))], call.span)

    def issued(self, call: SimtCall, parts: list[Stmt]) -> Stmt:
        """Return copies as a group that one thread issues."""
        lasts = str(call.attrs[STORE]) == LASTS
        parts += [calls.store_commit()] if lasts else [calls.store_commit(), calls.store_wait(stored=False)]
        body = nodes.seq(parts)
        if call.block.count > 1:
            body = tirx.IfThenElse(tirx.EQ(call.block.thread, nodes.int_const(0)), body, None, call.span)
        return calls.step(body, call.span)


class BulkUpdate(BulkStore):
    """An atomic update of a tile of global memory by a tile in shared memory."""

    name = "cuda.atomic.bulk_update"
    op = "atomic_tile"
    legality = Legality(
        operands=("dst", "src"),
        dtypes=frozenset((name, name) for _, name in REDUCTIONS),
        scopes={"dst": ("global",), "src": ("shared",)},
    )


def _reasons(call: OpCall, tile: View, tensor: View, aligned: Aligned, ranges: Analyzer) -> Iterator[str]:
    """Yield reasons against boxes, whatever the layout; later ones assume the earlier conditions."""
    hints = call.attrs.get(HINTS) or {}
    if bool(dict(hints).get("disable_tma")):
        yield "it has disable_tma"
    if call.attrs.get(VARIANT, BulkStore.name) != BulkStore.name:
        yield f"it requests {call.attrs[VARIANT]}"
    if call.attrs.get(ROUND) is not None:
        yield f"it converts {tile.dtype} to {tensor.dtype}"
    if call.name == "atomic_tile":
        if (str(call.attrs[KIND]), tensor.dtype) not in REDUCTIONS:
            yield f"bulk copies have no {call.attrs[KIND]} of {tensor.dtype}"
        if str(call.attrs[ORDER]) != "relaxed" or VECTOR_WIDTH in call.attrs:
            yield "its elements are updated one by one"
    inner = list(zip(tile.mins, tile.extents, nodes.shape_of(tile.buffer), strict=True))[bool(call.attrs.get(SLOT)) :]
    if any(nodes.as_int(low) != 0 or n != whole for low, n, whole in inner):
        yield f"it reads a part of {tile.name}"
    yield from of_tensor(tensor, tile, aligned)
    row = factor(nodes.shape_of(tensor.buffer)[-1], aligned.divisors) * DTYPES[tensor.dtype].bits // 8
    if row % CHUNK:
        yield (
            f"rows of {tensor.name} have {row} bytes, or multiples of it; boxes are stored by whole {CHUNK} bytes, "
            f"also beyond the end of a row"
        )
    for low in tensor.mins:
        if not ranges.can_prove(nodes.int_const(0, nodes.dtype_of(nodes.int_const(0) + low)) + low >= 0):
            yield f"it may begin before the first element of {tensor.name}; boxes are stored from element 0 on"
