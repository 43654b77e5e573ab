"""Lower selected ops by their variants, now that all placements are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tile_core.analysis.analyzer import Analyzer
from tile_core.analysis.ranges import whole
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Stmt, Var
from tile_core.ir import attributes, nodes
from tile_core.ir.grammar import SYMBOL_HEADROOM
from tile_core.ir.visit import StmtRewriter, role
from tile_core.lowering.dispatch import Selection, guarded
from tile_core.lowering.variant import Withdrawn
from tile_core.numerics.regions import in_region
from tile_core.ops.effects import PER_THREAD_OPS
from tile_core.simt.placement.tile_uses import PARALLEL
from tile_core.simt.placement.variant_selection import call_of, number_of
from tile_core.simt.role_threads import block_in, is_shared, role_of
from tile_core.simt.variant import Block, Placement, SimtCall

if TYPE_CHECKING:
    from tile_core.context import Context


def lower_selected(
    body: Stmt,
    selections: Mapping[int, Selection],
    block: Block,
    placement: Placement,
    ctx: Context,
    sizes: Iterable[Var] = (),
    *,
    names_threads: bool,
) -> Stmt:
    """Return the body without tile ops; ``sizes`` are the variables of symbolic extents.

    ``names_threads``: as of ``select_ops``.
    """
    lower = _LowerSelected(selections, block, placement, ctx, names_threads)
    for var in sizes:
        # Launches leave headroom above symbolic sizes, so that rounding up to a tile does not overflow.
        kind = nodes.dtype_of(var)
        most = nodes.int_const(whole(kind)[1] - SYMBOL_HEADROOM, kind)
        lower.ranges.bind(var, ir.Range.from_min_extent(nodes.int_const(0, kind), most))
    return lower.stmt(body)


class _LowerSelected(StmtRewriter):
    def __init__(
        self, selections: Mapping[int, Selection], block: Block, placement: Placement, ctx: Context, names_threads: bool
    ) -> None:
        self.selections, self.block, self.placement, self.ctx = selections, block, placement, ctx
        self.names_threads = names_threads
        self.divergent = self.alone = False
        self.ranges = Analyzer()
        if block.thread is not None:
            self.ranges.bind(block.thread, ir.Range.from_min_extent(0, block.count))

    def call(self, s: Stmt) -> SimtCall:
        alone = self.names_threads and str(s.value.op.name)[5:] in PER_THREAD_OPS
        return replace(call_of(s, self.block, self.placement, self.divergent or alone), ranges=self.ranges)

    def visit_For(self, s: Stmt) -> Stmt:
        self.ranges.bind(s.loop_var, ir.Range.from_min_extent(s.min, s.extent), True)
        outer, self.divergent = self.divergent, self.divergent or role(s) in PARALLEL
        new = super().visit_For(s)
        self.divergent = outer
        return new

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        condition = self.ranges.simplify(s.condition)
        with self.ranges.constraint_scope(condition):
            then = self.stmt(s.then_case)
        other = None
        if s.else_case is not None:
            with self.ranges.constraint_scope(self.ranges.simplify(tirx.Not(condition))):
                other = self.stmt(s.else_case)
        return tirx.IfThenElse(s.condition, then, other, s.span)

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        if s.attr_key != attributes.ONLY:
            return super().visit_AttrStmt(s)
        outer = self.block, self.alone
        if is_shared(s):
            self.block = block_in(s, self.block)
            self.ranges.bind(self.block.thread, ir.Range.from_min_extent(0, self.block.count))
        else:
            self.block, self.alone = self.block.part(role_of(s)), True
        new = super().visit_AttrStmt(s)
        self.block, self.alone = outer
        return new

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        number = number_of(s)
        if number is None:
            return s
        selection = self.selections[number]
        call = self.call(s)
        try:
            lowered = selection.lower(call, self.ctx)
        except Withdrawn as gone:
            gone.number = number
            raise
        if self.alone:  # not all threads of the block execute it together
            return lowered
        key = attributes.OP_MARK if getattr(selection.variant, "in_thread_code", False) else attributes.LOWERED
        return nodes.mark(key, call.name, lowered, call.span)

    def visit_Bind(self, s: Stmt) -> Stmt:
        number = number_of(s)
        if number is None:
            if nodes.dtype_of(s.value).startswith("int"):
                self.ranges.bounded(s.var, s.value)
            return s
        call = self.call(s)
        before, value = guarded(self.selections[number].variant, "lower_value", call, self.ctx)
        return nodes.seq([in_region(before, call.attrs, self.ctx.options), tirx.Bind(s.var, value, s.span)])
