"""Share the iterations of a product's loop among the blocks of a cluster (split-K).

A product with few tiles leaves most of a device idle. Where the iterations of a block's only pipelined loop depend on
each other by their accumulators alone, each block of a cluster executes a part of them. The accumulators of the others
reach the shared memory of the block of rank 0 (``ops/add_blocks.py``), which executes what follows the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from tile_core.analysis.uniformity import uses_threads
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.attributes import CLUSTER
from tile_core.ir.visit import StmtRewriter, collect, replace_for, role, substitute
from tile_core.lowering.variant import Reject
from tile_core.ops import add_blocks
from tile_core.ops.base import OpCall, View, is_op
from tile_core.ops.effects import PER_THREAD_OPS
from tile_core.passes.lower_ops import requires_order
from tile_core.records import dataclass
from tile_core.simt.pipelining.async_products import accumulator_of, products_of
from tile_core.simt.pipelining.dependences import Analysis, top_level, uses
from tile_core.simt.pipelining.grids import GridLoops, grid_of, outer_grid
from tile_core.simt.pipelining.loop_note import LoopNote, with_notes
from tile_core.simt.whole_tiles import filled_with_zeros, overwrites

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.ir.program import Program
    from tile_core.simt.kernel_plan import KernelPlan

Choose = Callable[["Program", "int | None", int], "int | Reject"]
"""How many blocks, 2 or more, share a loop of a program, or the reason if each executes all of it.

Given the trip count, if it is a constant, and the bytes of accumulators.
"""


def split_over_cluster(plan: KernelPlan, ctx: Context, choose: Choose | None) -> KernelPlan:
    """Let the blocks of a cluster share the iterations of a product's loop.

    Parameters
    ----------
    choose
        Decides how many do; by default each block executes all of them.
    """
    loops = [s for s in collect(plan.body, tirx.For) if role(s) == "pipelined"]
    if choose is None or ctx.capabilities.max_cluster < 2 or len(loops) != 1 or not products_of(loops[0].body):
        return plan
    chosen = _chosen(plan, ctx, choose)
    if isinstance(chosen, Reject):
        return _noted(plan, loops[0], f"no split-K in a cluster: {chosen.reason}")
    site, count = chosen
    plan = _noted(plan, loops[0], f"split-K: {count} blocks of a cluster share its iterations")
    program = replace(plan.program, attrs={**plan.program.attrs, CLUSTER: (count, 1, 1)})
    return plan.replace(body=_Split(site, count).stmt(plan.body), program=program, written=plan.program)


@dataclass(frozen=True)
class _Site:
    """A loop: its position in a block, trip count if known, and accumulators."""

    grid: GridLoops
    at: int
    trips: int | None
    accumulators: tuple[View, ...]

    @property
    def bytes(self) -> int:
        """Bytes of the accumulators."""
        return sum(prod(map(int, v.extents)) * DTYPES[v.dtype].bits // 8 for v in self.accumulators)


def _noted(plan: KernelPlan, loop: Stmt, text: str) -> KernelPlan:
    note = LoopNote(str(loop.loop_var.name), text)
    return plan.replace(loop_notes=with_notes(plan.loop_notes, [(loop, note)]))


def _chosen(plan: KernelPlan, ctx: Context, choose: Choose) -> tuple[_Site, int] | Reject:
    """Return a program's loop and how many blocks share it, or why they do not."""
    site = _site(plan, ctx)
    if isinstance(site, str):
        return Reject(site)
    count = choose(plan.program, site.trips, site.bytes)
    return count if isinstance(count, Reject) else (site, count)


def _site(plan: KernelPlan, ctx: Context) -> _Site | str:
    """Return the loop of a program, or why its iterations are not shared."""
    if not plan.is_unordered or uses_threads(plan.body):
        return "the program orders its blocks, has clusters, or names its threads"
    outer = outer_grid(plan.body)
    grid = "it has several grids" if outer is None else grid_of(outer, fixed=False)
    if isinstance(grid, str):
        return grid
    if grid.loop is None or nodes.as_int(grid.loops[0].min) != 0 or 0 not in grid.axes:
        return "its loop stands in another statement, or does not begin at 0"
    found, loop = _accumulators(grid, ctx), grid.loops[0]
    reason = found if isinstance(found, str) else _carried(grid, [v.buffer for v in found])
    if isinstance(found, str) or reason:
        return reason or str(found)
    trips = nodes.as_int(loop.extent)
    return _Site(grid, grid.loop, trips if isinstance(trips, int) else None, tuple(found))


def _accumulators(grid: GridLoops, ctx: Context) -> list[View] | str:
    """Return the tiles to which iterations add, or why blocks cannot share them."""
    found: list[View] = []
    top = top_level(grid.loops[0].body)
    for s in products_of(grid.loops[0].body):
        call = OpCall.decode(s)
        at = accumulator_of(call)
        view = call.args[at]
        if requires_order(call, ctx):
            return "the level of numerics requires products that add in ascending order"
        if nodes.as_int(call.args[at + 1]) in (1, True):
            continue  # another statement adds its result
        if nodes.as_int(call.args[at + 1]) not in (0, False) or not any(s.same_as(x) for x in top):
            return f"an iteration may begin {view.name} anew"
        if not view.is_whole or view.scope != "local.fragment" or DTYPES[view.dtype].bits != 32:
            return f"{view.name} is not a whole accumulator of 32 bits"
        found.append(view)
    return found or "no product of the loop adds to an accumulator"


def _carried(grid: GridLoops, accumulators: Sequence[BufferVar]) -> str:
    """Return the dependence of iterations besides their accumulators; empty if none."""
    at, loop = grid.loop or 0, grid.loops[0]
    before, after, inside = grid.body[:at], grid.body[at + 1 :], top_level(loop.body)
    analysis = Analysis(nodes.seq(list(grid.body)))
    if analysis.flow.roots:
        return "the program has views"
    for s in before:
        if any(nodes.scope_of(b) == "global" for b in analysis.written(s)) or _acts(s):
            return "each block would execute what the program writes before the loop"
    for b in accumulators:
        own = [s for s in before if uses(s, b)]
        filled = filled_with_zeros(own[0]) if len(own) == 1 else None
        if filled is None or not filled.same_as(b):
            return f"{b.name} is not zero before the loop"
        if any(uses(s, b) and b not in _added(s) for s in inside):
            return f"an iteration uses {b.name} in other ways than to add to it"
    local = {a.buffer for a in collect(loop.body, tirx.AllocBuffer)}
    written = analysis.written(loop.body) - set(accumulators) - local
    for b in sorted(written, key=lambda b: str(b.name)):
        if nodes.scope_of(b) == "global":
            return f"the loop writes {b.name}"
        first = next((s for s in inside if uses(s, b)), None)
        if first is None or not overwrites(first, b) or any(uses(s, b) for s in after):
            return f"{b.name} has values of an earlier iteration"
    return ""


def _acts(s: Stmt) -> bool:
    """Whether a statement prints, or has another effect of its own."""
    calls = [x.value for x in collect(s, tirx.Evaluate) if nodes.is_tile_call(x.value)]
    return any(str(c.op.name)[5:] in PER_THREAD_OPS for c in calls)


def _added(s: Stmt) -> list[BufferVar]:
    """Return the accumulator of a product that reads it nowhere else."""
    if not is_op(s) or not products_of(s):
        return []
    call = OpCall.decode(s)
    at = accumulator_of(call)
    others = [a.buffer for i, a in enumerate(call.args) if isinstance(a, View) and i != at]
    return [b for b in (call.args[at].buffer,) if not any(b.same_as(x) for x in others)]


class _Split(StmtRewriter):
    """Give each block of a cluster a part of the iterations."""

    def __init__(self, site: _Site, count: int) -> None:
        self.site, self.count = site, count
        self.block = nodes.fresh(str(site.grid.axes[0].loop_var.name))
        self.inner = list(site.grid.axes.values())[-1]
        self.rank = tirx.floormod(self.block, nodes.int_const(count))

    def visit_For(self, s: Stmt) -> Stmt:
        new = replace_for(s, nodes.seq(self._body())) if s.same_as(self.inner) else super().visit_For(s)
        if not s.same_as(self.site.grid.axes[0]):
            return new
        old = {s.loop_var: tirx.floordiv(self.block, nodes.int_const(self.count))}
        return replace_for(s, substitute(new.body, old), loop_var=self.block, extent=s.extent * self.count)

    def _body(self) -> list[Stmt]:
        body, at = list(self.site.grid.body), self.site.at
        rest = [s for s in body[at + 1 :] if not isinstance(s, tirx.AllocBuffer)]
        allocated = [s for s in body[at + 1 :] if isinstance(s, tirx.AllocBuffer)]
        added = [self._added(view, body[at]) for view in self.site.accumulators]
        last = tirx.IfThenElse(tirx.EQ(self.rank, nodes.int_const(0)), nodes.seq(rest), None)
        return [*body[:at], self._part(body[at]), *added, *allocated, last]

    def _part(self, loop: Stmt) -> Stmt:
        """Return the iterations of a block."""
        k = tirx.Var(loop.loop_var.name, loop.loop_var.ty)
        kind = nodes.dtype_of(k)
        blocks, trips = nodes.int_const(self.count, kind), nodes.cast(loop.extent, kind)
        per = tirx.floordiv(trips + nodes.int_const(self.count - 1, kind), blocks)
        if self.site.trips is not None:
            per = nodes.int_const(-(-self.site.trips // self.count), kind)
        first, count = nodes.cast(self.rank, kind) * per, per
        if self.site.trips is None or self.site.trips % self.count:
            count = tirx.max(tirx.min(per, trips - first), nodes.int_const(0, kind))
        return replace_for(loop, substitute(loop.body, {loop.loop_var: first + k}), loop_var=k, extent=count)

    def _added(self, view: View, loop: Stmt) -> Stmt:
        region = nodes.region(view.buffer, list(view.mins), list(view.extents))
        arguments = [region, self.rank, nodes.int_const(self.count)]
        return tirx.Evaluate(nodes.tile_call(add_blocks.NAME, arguments), loop.span)
