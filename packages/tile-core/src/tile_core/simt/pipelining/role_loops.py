"""Pipelined loops that a producer warp can serve, and the reasons against others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import collect, distinct
from tile_core.ops.base import OpCall
from tile_core.records import dataclass
from tile_core.simt.memory.register_pressure import register_pressure
from tile_core.simt.pipelining.async_products import Product, products_of
from tile_core.simt.pipelining.dependences import Analysis
from tile_core.simt.pipelining.grids import GridLoops
from tile_core.simt.pipelining.loop_note import LoopNote
from tile_core.simt.pipelining.overlap import OverlapPlan
from tile_core.simt.pipelining.persistent import Shape
from tile_core.simt.pipelining.plan import TRANSACTIONS, Prefetched, stages_of
from tile_core.simt.pipelining.role_slices import RoleSlice


@dataclass(frozen=True)
class RoleLoop:
    """A pipelined loop whose copies a producer issues.

    Attributes
    ----------
    loop
        The loop.
    choice
        Its prefetched copies.
    first
        Its first asynchronous product, a statement.
    binds
        Positions of bindings that the corners of copies use.
    product
        Its product that completes in the next iteration, or how its iterations overlap, if they do.
    only_products_read
        Whether only instructions of whole warps read its slots.
    notes
        Why its products complete in their own iteration, if they do.
    """

    loop: Any
    choice: Prefetched
    first: Any
    binds: Sequence[int]
    product: Product | OverlapPlan | None = None
    only_products_read: bool = True
    notes: tuple[LoopNote, ...] = ()

    @property
    def copied(self) -> list[BufferVar]:
        """The buffers that the copies fill."""
        return [c.buffer for c in self.choice.chosen]

    def shares_slots(self, other: RoleLoop) -> bool:
        """Whether two loops fill the same buffers, with equally many slots."""
        same = set(self.copied) == set(other.copied)
        return same and stages_of(self.loop) == stages_of(other.loop)


def role_loops(
    s: Stmt, grid: GridLoops, analysis: Analysis, make: Callable[[Stmt], RoleLoop | str]
) -> list[RoleLoop] | str:
    """Return the pipelined loops of a grid, or the rejection reason.

    Parameters
    ----------
    make
        Returns one of them, or the reason against it.
    """
    found: list[RoleLoop] = []
    for loop in grid.loops:
        made = make(loop)
        reason = made if isinstance(made, str) else _obstacle(s, grid, made.choice, analysis)
        if isinstance(made, str) or reason:
            return reason
        for other in found:
            both = sorted(str(b.name) for b in set(made.copied) & set(other.copied))
            if both and not made.shares_slots(other):
                return f"its loops do not use {both[0]} with the same other tiles and stages"
        found.append(made)
    return found


def _obstacle(s: Stmt, grid: GridLoops, choice: Prefetched, analysis: Analysis) -> str:
    """Return the reason why a producer warp cannot serve a loop; empty if it can."""
    kept = next((f"{name} is copied in place: {why}" for name, why in choice.kept), "")
    if kept or not choice.chosen:
        return kept or "it copies nothing"
    if any(f.get(attributes.COMPLETION) != TRANSACTIONS for f in choice.facts.values()):
        return "its copies do not complete on transaction barriers"
    written = analysis.written(s)
    for c in choice.chosen:
        if not analysis.only_in(c.buffer, grid.loops):
            return f"{c.buffer.name} is used outside of the loop"
        if analysis.root(c.call.args[0].buffer) in written:
            return f"the block writes {c.source_name}"
    return ""


def not_repeated(s: Stmt, grid: GridLoops, repeated: RoleSlice, analysis: Analysis, thread: Var) -> str:
    """Return the reason why a producer cannot repeat a slice, else empty."""
    inner = [x for x in collect(s, (tirx.For, tirx.Bind)) if not any(x.same_as(a) for a in grid.axes.values())]
    bound = {x.loop_var if isinstance(x, tirx.For) else x.var for x in inner}
    known = {v for v in distinct(collect(s, tirx.Var)) if v not in bound and not tirx.is_buffer_var(v)}
    return repeated.reason(known - {thread}, analysis, s)


def shape_of(s: Stmt, loops: Sequence[RoleLoop], threads: int, tiles: int | None) -> Shape:
    """Return the facts of a kernel for the decision about a producer warp."""
    first, slots = loops[0], dict[BufferVar, int]()
    for x in loops:
        slots |= {b: stages_of(x.loop) * size_of(b) for b in x.copied}
    stages, trips = stages_of(first.loop), nodes.as_int(first.loop.extent)
    shared = [a.buffer for a in collect(s, tirx.AllocBuffer) if nodes.scope_of(a.buffer) == "shared"]
    other = sum(size_of(b) for b in shared if b not in slots)
    number, immediate = trips if isinstance(trips, int) else 0, any(x.product is None for x in loops)
    call, size = OpCall.decode(first.first), sum(slots.values())
    overlaps = isinstance(first.product, OverlapPlan) and bool(first.product.tails)
    count = max(len(products_of(x.loop.body)) for x in loops)
    registers = -(-register_pressure(s, ("local.fragment",)).registers // threads)
    return Shape(
        threads, tiles, number, stages, size, other, call, immediate=immediate, overlaps=overlaps, products=count,
        registers=registers,
    )  # fmt: skip


def size_of(buffer: BufferVar) -> int:
    """Return the bytes of a shared buffer."""
    return prod(nodes.shape_of(buffer)) * max(8, DTYPES[nodes.element_type(buffer)].bits) // 8
