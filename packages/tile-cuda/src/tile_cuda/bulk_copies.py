"""Which copies outside of pipelined loops are bulk copies of boxes, and the layouts that their tiles then have.

A copy to shared memory there becomes what one thread issues and all wait for. Each has a barrier object of its own,
made where its block or its role begins, whose phase is 0, or in loops a variable that alternates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

from tile_core.analysis.analyzer import Analyzer
from tile_core.analysis.ranges import sizes_of
from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import calls, nodes
from tile_core.ir.visit import StmtRewriter, collect, replace_for, role
from tile_core.layout import StackedLayout
from tile_core.layout.base import LayoutMap
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import COUNTED, OpCall, View, is_op
from tile_core.passes.barrier_steps import step_of
from tile_core.simt.memory import arena
from tile_core.simt.notes import ALIGNED, PIPELINE
from tile_core.simt.pipelining.plan import ALIGN, ASKED_LAYOUT, LAYOUT, TRANSACTIONS
from tile_core.simt.pipelining.writers import ASYNC
from tile_core.simt.roles import is_shared
from tile_cuda.ops.boxes import BULK, REASON, SLOT, SWIZZLE, slots_of
from tile_cuda.ops.copy_bulk import BulkCopy, can_copy_bulk
from tile_cuda.ops.four_rows import FourRowGather, FourRowScatter, can_copy_rows, row_sides
from tile_cuda.ops.store_bulk import ENDS, LASTS, STORE, BulkStore, can_store_bulk, sides

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.passes.spine import Plan

_MOVES = ("copy", "gather", "scatter")


def choose_bulk_copies(plan: Plan, ctx: Context) -> Plan:
    """Mark the copies and updates of global memory that are made of boxes, and give their tiles layouts."""
    if not ctx.capabilities.has_async_copy(BULK):
        return plan
    if ctx.options.bulk_copies == "never" and not any(map(_forces, collect(plan.body, tirx.Evaluate))):
        return plan
    rewriter = _Choose(plan, ctx)
    body = rewriter.stmt(plan.body)
    if not rewriter.chosen:
        return plan.replace(body=body)
    report = replace(plan[PIPELINE], slots={**plan[PIPELINE].slots, **rewriter.layouts})
    return plan.replace(body=_Aligned(rewriter.aligns).stmt(body)).note(PIPELINE, report)


def is_forced(call: OpCall) -> bool:
    """Whether a call says that it is a bulk copy, whatever the options."""
    return str(call.attrs.get("variant")) in (BulkCopy.name, BulkStore.name, FourRowGather.name, FourRowScatter.name)


@dataclass
class _Frame:
    """Where barrier objects are made: a block, or a role.

    Attributes
    ----------
    of_role
        Whether it is a role.
    first, last
        The statements before and after what is inside.
    """

    of_role: bool = False
    first: list[Stmt] = field(default_factory=list)
    last: list[Stmt] = field(default_factory=list)

    def around(self, body: Stmt) -> Stmt:
        """Return a body with them."""
        if not self.first:
            return body
        parts = list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]
        # A role begins with a thread's number in it.
        number = 1 if self.of_role else 0
        return nodes.seq([*parts[:number], *self.first, *parts[number:], *self.last])


class _Choose(StmtRewriter):
    def __init__(self, plan: Plan, ctx: Context) -> None:
        self.safe_values = frozenset(map(str, plan.program.attrs.get("safe_values") or ()))
        self.varying = Varying(plan.body)
        self.names = {str(v.name) for v in collect(plan.body, tirx.Var)}
        self.frames: list[_Frame] = []
        self.loops = 0
        self.ctx, self.aligned, self.asked = ctx, plan[ALIGNED], plan.program.layouts
        self.announced = [
            step.barrier for step in map(step_of, collect(plan.body, tirx.Evaluate)) if step and step.name == "announce"
        ]
        self.rings: Mapping[Any, BufferVar] = plan[PIPELINE].versions
        #: Layouts of tiles, and of the slots of rings.
        self.layouts: dict[Any, LayoutMap] = dict(plan[PIPELINE].slots)
        self.aligns: dict[Any, int] = {}
        self.chosen = 0
        self.viewed = {v for d in collect(plan.body, tirx.DeclBuffer) for v in collect(d.data, tirx.Var)}
        self.viewed |= {d.buffer for d in collect(plan.body, tirx.DeclBuffer)}
        self.ranges = Analyzer()
        for var in sizes_of(plan.params):
            self.ranges.bind(var, ir.Range.from_min_extent(nodes.int_const(0, nodes.dtype_of(var)), _most(var)))
        self.managed: list[Any] = []
        #: Whether not all threads come here together.
        self.apart = False

    def visit_For(self, s: Stmt) -> Stmt:
        self.ranges.bind(s.loop_var, ir.Range.from_min_extent(s.min, s.extent), True)
        if role(s) == "grid":
            self.frames.append(_Frame())
            new = super().visit_For(s)
            return replace_for(new, self.frames.pop().around(new.body))
        outer = self.apart, self.loops
        self.apart = self.apart or role(s) in ("parallel", "vectorized") or self.varying.loop(s)
        self.loops += 1
        new = super().visit_For(s)
        self.apart, self.loops = outer
        return new

    def visit_While(self, s: Stmt) -> Stmt:
        outer = self.apart, self.loops
        self.apart, self.loops = self.apart or self.varying.loop(s), self.loops + 1
        new = super().visit_While(s)
        self.apart, self.loops = outer
        return new

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        outer, self.apart = self.apart, self.apart or self.varying.expr(s.condition)
        new = super().visit_IfThenElse(s)
        self.apart = outer
        return new

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        if is_shared(s):
            outer, self.loops = self.loops, 0
            self.frames.append(_Frame(of_role=True))
            new = super().visit_AttrStmt(s)
            self.loops = outer
            return tirx.AttrStmt(s.node, s.attr_key, s.value, self.frames.pop().around(new.body), s.span)
        mine = list(s.node) if s.attr_key == calls.MANAGED else []
        self.managed += mine
        new = super().visit_AttrStmt(s)
        del self.managed[len(self.managed) - len(mine) :]
        return new

    def visit_Bind(self, s: Stmt) -> Stmt:
        if nodes.dtype_of(s.value).startswith("int") and not nodes.is_tile_call(s.value):
            self.ranges.bounded(s.var, s.value)
        return s

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if not is_op(s) or not self.frames or not _is_one(s):
            return s
        call = OpCall.decode(s)
        if self.ctx.options.bulk_copies == "never" and not is_forced(call):
            return s
        if self.apart:
            return _with(s, {REASON: "not all threads of the block execute it together"})
        return self.loaded(s, call) if _loads(call) else self.left(s, call)

    def loaded(self, s: Stmt, call: OpCall) -> Stmt:
        """Return a copy to shared memory, as one that a thread issues and all wait for if it can be of boxes."""
        dst, src = _sides(call)
        answer: Accept | Reject = Reject(f"reads outside of {src.name} do not give zero")
        if src.name not in self.safe_values:
            answer = self.answer(call)
        if isinstance(answer, Reject):
            return _with(s, {REASON: answer.reason})
        self.keep(dst, answer)
        if len(call.args) > COUNTED[call.name]:
            return self.counted(s, call, dst, answer)
        name = self.name(f"{dst.name}_arrived")
        barrier, allocate = calls.alloc_barriers(name, 1)
        zero, frame = nodes.int_const(0), self.frames[-1]
        leader = ("the first thread", 0, 1)
        frame.first += [allocate, calls.only(leader, calls.barrier_init(barrier, zero, 1))]
        frame.last.append(calls.only(leader, calls.barrier_drop(barrier, zero)))
        copy = nodes.tile_call(
            call.name, [*s.value.args, nodes.region(barrier, [zero], [1])],
            {**call.attrs, ASYNC: TRANSACTIONS, SWIZZLE: answer.facts[SWIZZLE]},
        )  # fmt: skip
        size = prod(dst.extents) * DTYPES[dst.dtype].bits // 8
        issued = nodes.seq([calls.barrier_expect(barrier, zero, size), tirx.Evaluate(copy, s.span)])
        parts = [calls.only(leader, issued, s.span)]
        if not self.loops:
            return nodes.seq([*parts, calls.barrier_wait(barrier, zero, zero)])
        phase, made = nodes.alloc([1], "int32", self.name(f"{dst.name}_phase"), "local.var")
        frame.first += [made, nodes.store(phase, zero, [zero])]
        now = nodes.load(phase, [zero])
        parts += [calls.barrier_wait(barrier, zero, now), nodes.store(phase, nodes.int_const(1) - now, [zero])]
        return nodes.seq(parts)

    def left(self, s: Stmt, call: OpCall) -> Stmt:
        """Return a copy or an update of global memory, marked if it can be of boxes."""
        answer = self.answer(call)
        if isinstance(answer, Reject):
            return _with(s, {REASON: answer.reason})
        tile = _sides(call)[0]
        self.keep(tile, answer)
        lasts = ENDS if any(tile.buffer.same_as(b) for b in self.managed) else LASTS
        return _with(s, {SWIZZLE: answer.facts[SWIZZLE], STORE: lasts})

    def counted(self, s: Stmt, call: OpCall, tile: View, answer: Accept) -> Stmt:
        """Return a copy whose bytes a barrier of the program counts, which a wait of the program's is for."""
        barrier = call.args[-1]
        copy = _with(s, {ASYNC: TRANSACTIONS, SWIZZLE: answer.facts[SWIZZLE]})
        size = nodes.int_const(prod(tile.extents) * DTYPES[tile.dtype].bits // 8)
        announced = calls.barrier_announce(barrier.buffer, barrier.mins[0], size, s.span)
        own = any(barrier.buffer.same_as(b) for b in self.announced)
        return calls.only(("the first thread", 0, 1), copy if own else nodes.seq([announced, copy]), s.span)

    def keep(self, tile: View, answer: Accept) -> None:
        """Note what a copy needs of its tile."""
        self.chosen += 1
        slots, layout = self.slots(tile), answer.facts[LAYOUT]
        self.layouts.setdefault(tile.buffer, StackedLayout(layout, slots) if slots else layout)
        self.aligns[tile.buffer] = max(self.aligns.get(tile.buffer, 1), int(answer.facts[ALIGN]))

    def slots(self, tile: View) -> int:
        """Return how many tiles a buffer of the program has, of which a view is one; 0 for others, and rings."""
        return 0 if tile.buffer in self.rings else slots_of(tile)

    def answer(self, call: OpCall) -> Accept | Reject:
        """Say whether a copy or an update of global memory is made of boxes, or of rows."""
        tile, tensor = _sides(call)
        found, given = self.shared(call, tensor, tile), self.given(call, tile)
        if found is not None:
            return found
        if call.name in ("gather", "scatter"):
            return can_copy_rows(given, self.ctx, self.aligned, self.ranges)
        if _loads(call):
            return can_copy_bulk(given, self.ctx, self.aligned)
        return can_store_bulk(given, self.ctx, self.aligned, self.ranges)

    def shared(self, call: OpCall, tensor: View, tile: View) -> Reject | None:
        """Return why a tensor or a tile is not known to be in plain order, if it is not."""
        if tensor.name in self.asked:
            return Reject(f"the layout of {tensor.name} is annotated")
        if tile.buffer in self.viewed:
            return Reject(f"another view shares the storage of {tile.name}")
        return None

    def name(self, base: str) -> str:
        """Return a name that the program does not have."""
        name, count = base, 1
        while name in self.names:
            name, count = f"{base}_{count}", count + 1
        self.names.add(name)
        return name

    def given(self, call: OpCall, tile: View) -> OpCall:
        """Return a call with what is known of its tile's layout."""
        ring, slots = self.rings.get(tile.buffer), self.slots(tile)
        asked = self.layouts.get(tile.buffer, self.asked.get(tile.name if ring is None else str(ring.name)))
        if slots and isinstance(asked, StackedLayout):
            asked = asked.inner
        facts = {ASKED_LAYOUT: asked, SLOT: 1 if ring is not None or slots else None}
        attrs = {**call.attrs, **{name: fact for name, fact in facts.items() if fact is not None}}
        return replace(call, attrs=attrs)


class _Aligned(StmtRewriter):
    """Aligns the allocations of tiles."""

    def __init__(self, aligns: Mapping[Any, int]) -> None:
        self.aligns = aligns

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        align = self.aligns.get(s.buffer)
        if align is None:
            return s
        return tirx.AllocBuffer(s.buffer, {**dict(s.annotations or {}), arena.ALIGN: nodes.int_const(align)}, s.span)


def _forces(s: Stmt) -> bool:
    return is_op(s) and any(nodes.is_tile_call(s.value, name) for name in _MOVES) and is_forced(OpCall.decode(s))


def _is_one(s: Stmt) -> bool:
    """Whether a statement moves a tile between shared and global memory, or updates global memory by one."""
    if not any(nodes.is_tile_call(s.value, name) for name in (*_MOVES, "atomic_tile")):
        return False
    call = OpCall.decode(s)
    return tuple(v.scope for v in _sides(call)) == ("shared", "global") and ASYNC not in call.attrs


def _sides(call: OpCall) -> tuple[View, View]:
    """Return the tile in shared memory and the tensor, where a call has them."""
    if call.name in ("gather", "scatter"):
        return row_sides(call)[:2]
    first, second = sides(call)
    return (second, first) if _loads(call) else (first, second)


def _loads(call: OpCall) -> bool:
    """Whether a call fills a tile."""
    return call.name == "gather" or (call.name == "copy" and call.args[0].scope == "global")


def _with(s: Stmt, attrs: Mapping[str, object]) -> Stmt:
    """Return the statement of a tile op with more attributes."""
    call, old = s.value, OpCall.decode(s).attrs
    return tirx.Evaluate(type(call)(call.op, list(call.args), attrs={**old, **attrs}, ret_ty=call.ty), s.span)


def _most(var: Var) -> Any:
    from tile_core.analysis.ranges import whole
    from tile_core.ir.grammar import SYMBOL_ROOM

    kind = nodes.dtype_of(var)
    return nodes.int_const(whole(kind)[1] - SYMBOL_ROOM, kind)
