"""Bulk copies of boxes (TMA) outside of pipelined loops, and the layouts of their tiles.

One thread issues the copy to shared memory and all threads wait for it. Each copy has its own barrier object, made at
the begin of its block or role, with phase 0, or a variable that alternates in loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from math import prod
from typing import TYPE_CHECKING, Any

from tile_core.analysis.analyzer import Analyzer
from tile_core.analysis.cluster_uniform import InCluster
from tile_core.analysis.ranges import sizes_of
from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.attributes import Attrs
from tile_core.ir.fresh_names import FreshNames
from tile_core.ir.program import cluster_of
from tile_core.ir.visit import StmtRewriter, annotation, collect, map_statements, replace_for, role
from tile_core.layout import StackedLayout
from tile_core.layout.base import LayoutMap
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import COUNTED, OpCall, View, is_op, with_attributes
from tile_core.passes.barrier_block import step_of
from tile_core.records import dataclass
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.pipelining.plan import TRANSACTIONS
from tile_core.simt.role_threads import is_shared
from tile_cuda.attributes import BULK_BYTES, REASON, SLOT, STORE, SWIZZLE, WANTED
from tile_cuda.ops.boxes import BULK, slots_of
from tile_cuda.ops.contiguous import can_copy_bytes
from tile_cuda.ops.copy_bulk import Blocks, BulkCopy, can_copy_bulk
from tile_cuda.ops.four_rows import FourRowGather, FourRowScatter, can_copy_rows, row_sides
from tile_cuda.ops.store_bulk import ENDS, LASTS, BulkStore, can_store_bulk, sides

if TYPE_CHECKING:
    from tile_core.context import Context

_MOVES = frozenset({"tile.copy", "tile.gather", "tile.scatter", "tile.atomic_tile"})
_FORCED = (BulkCopy.name, BulkStore.name, FourRowGather.name, FourRowScatter.name)


def choose_tma(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Mark the copies and updates of global memory that use TMA, with layouts."""
    if not ctx.capabilities.has_async_copy(BULK):
        return plan
    if not any(_moves(s) and is_wanted(OpCall.decode(s), ctx) for s in collect(plan.body, tirx.Evaluate)):
        return plan
    rewriter = _Choose(plan, ctx)
    body = rewriter.stmt(plan.body)
    if not rewriter.chosen:
        return plan.replace(body=body)
    report = replace(plan.pipeline, slots={**plan.pipeline.slots, **rewriter.layouts})
    body = map_statements(body, lambda s: _aligned(s, rewriter.aligns.get(s.buffer)), tirx.AllocBuffer)
    return plan.replace(body=body, pipeline=report)


def prefer_tma(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Mark the moves of a kernel with wgmma products, where ``"auto"`` means ``"always"``.

    On an H200, 51 of 54 such kernels (products dense, sparse and of 8-bit floats, attention) were faster with boxes, by
    up to a third, and three slower, by at most 4 percent. Other kernels copy as fast either way (`benchmarks/results`).
    """
    if ctx.options.tma != "auto" or not ctx.capabilities.has_async_copy(BULK):
        return plan
    return plan.replace(body=_Prefer().stmt(plan.body))


def is_wanted(call: OpCall, ctx: Context) -> bool:
    """Whether a move should be made of boxes if it can."""
    asked = ctx.options.tma
    return asked == "always" or is_forced(call) or (asked == "auto" and WANTED in call.attrs)


def is_forced(call: OpCall) -> bool:
    """Whether a call requests a bulk copy, whatever the options."""
    return str(call.attrs.get(attributes.VARIANT)) in _FORCED


def may_be_bytes(call: OpCall) -> bool:
    """Whether a copy that is not made of boxes may still be a bulk copy."""
    mine = BulkCopy.name if _loads(call) else BulkStore.name
    hints = dict(call.attrs.get(attributes.HINTS) or {})
    requested = call.attrs.get(attributes.VARIANT, mine) == mine and not hints.get("disable_tma")
    return call.name == "copy" and requested and not Blocks.of(call).ranks


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
    def __init__(self, plan: KernelPlan, ctx: Context) -> None:
        self.safe_values = frozenset(map(str, plan.program.attrs.get(attributes.SAFE_VALUES) or ()))
        self.varying = Varying(plan.body)
        self.name = FreshNames(str(v.name) for v in collect(plan.body, tirx.Var))
        self.frames: list[_Frame] = []
        self.loops = 0
        self.ctx, self.aligned, self.asked = ctx, plan.aligned, plan.program.layouts
        self.announced = [
            step.barrier for step in map(step_of, collect(plan.body, tirx.Evaluate)) if step and step.name == "announce"
        ]
        self.rings: Mapping[Any, BufferVar] = plan.pipeline.versions
        #: Layouts of tiles, and of the slots of rings.
        self.layouts: dict[Any, LayoutMap] = dict(plan.pipeline.slots)
        self.aligns: dict[Any, int] = {}
        self.chosen = 0
        self.viewed = {v for d in collect(plan.body, tirx.DeclBuffer) for v in collect(d.data, tirx.Var)}
        self.viewed |= {d.buffer for d in collect(plan.body, tirx.DeclBuffer)}
        self.ranges = Analyzer()
        for var in sizes_of(plan.params):
            self.ranges.bind(var, ir.Range.from_min_extent(nodes.int_const(0, nodes.dtype_of(var)), _most(var)))
        self.managed: list[Any] = []
        moves = [OpCall.decode(s) for s in collect(plan.body, tirx.Evaluate) if _is_one(s)]
        #: Tiles that copies to global memory, or updates of it, read.
        self.left_from = {_sides(call)[0].buffer for call in moves if not _loads(call)}
        #: Whether not all threads come here together.
        self.apart = False
        self.cluster = InCluster(cluster_of(plan.program.attrs))
        #: What decides whether, and how often, a statement is executed.
        self.control: list[Expr] = []

    def visit_For(self, s: Stmt) -> Stmt:
        self.ranges.bind(s.loop_var, ir.Range.from_min_extent(s.min, s.extent), True)
        if role(s) == "grid":
            self.cluster.axes[int(annotation(s, attributes.AXIS))] = s.loop_var
            self.frames.append(_Frame())
            new = super().visit_For(s)
            return replace_for(new, self.frames.pop().around(new.body))
        outer = self.apart, self.loops
        self.apart = self.apart or role(s) in ("parallel", "vectorized") or self.varying.loop(s)
        self.loops += 1
        self.control += [s.min, s.extent]
        new = super().visit_For(s)
        del self.control[-2:]
        self.apart, self.loops = outer
        return new

    def visit_While(self, s: Stmt) -> Stmt:
        outer = self.apart, self.loops
        self.apart, self.loops = self.apart or self.varying.loop(s), self.loops + 1
        self.control.append(s.condition)
        new = super().visit_While(s)
        self.control.pop()
        self.apart, self.loops = outer
        return new

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        outer, self.apart = self.apart, self.apart or self.varying.expr(s.condition)
        self.control.append(s.condition)
        new = super().visit_IfThenElse(s)
        self.control.pop()
        self.apart = outer
        return new

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        if is_shared(s):
            outer, self.loops = self.loops, 0
            self.frames.append(_Frame(of_role=True))
            new = super().visit_AttrStmt(s)
            self.loops = outer
            return tirx.AttrStmt(s.node, s.attr_key, s.value, self.frames.pop().around(new.body), s.span)
        mine = list(s.node) if s.attr_key == attributes.MANAGED else []
        self.managed += mine
        new = super().visit_AttrStmt(s)
        del self.managed[len(self.managed) - len(mine) :]
        return new

    def visit_Bind(self, s: Stmt) -> Stmt:
        if nodes.dtype_of(s.value).startswith("int") and not nodes.is_tile_call(s.value):
            self.ranges.bounded(s.var, s.value)
        self.cluster.binds[s.var] = s.value
        return s

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if not is_op(s) or not self.frames or not _is_one(s):
            return s
        call = OpCall.decode(s)
        if not is_wanted(call, self.ctx):
            return s
        if self.apart:
            return with_attributes(s, {REASON: "not all threads of the block execute it"})
        return self.loaded(s, call) if _loads(call) else self.left(s, call)

    def loaded(self, s: Stmt, call: OpCall) -> Stmt:
        """Replace a copy to shared memory by a bulk copy of one thread, if possible."""
        dst, src = _sides(call)
        answer: Accept | Reject = Reject(f"reads outside of {src.name} do not give zero")
        if src.name not in self.safe_values:
            answer = self.answer(call)
        if isinstance(answer, Reject):
            return with_attributes(s, {REASON: answer.reason})
        self.keep(call, dst, answer)
        if len(call.args) > COUNTED[call.name]:
            return self.counted(s, call, dst, answer)
        name = self.name(f"{dst.name}_arrived")
        barrier, allocate = calls.alloc_barriers(name, 1)
        zero, frame = nodes.int_const(0), self.frames[-1]
        leader = ("the first thread", 0, 1)
        shared = bool(Blocks.of(call).ranks)
        # What other blocks' copies arrive at is made visible to them before the blocks meet.
        made = [calls.barrier_init(barrier, zero, 1), *([calls.fence_init()] if shared else [])]
        frame.first += [allocate, calls.only(leader, nodes.seq(made))]
        frame.last.append(calls.only(leader, calls.barrier_drop(barrier, zero)))
        copy = nodes.tile_call(
            call.name, [*s.value.args, nodes.region(barrier, [zero], [1])],
            {**call.attrs, attributes.ASYNC: TRANSACTIONS, **_kept(answer)},
        )  # fmt: skip
        size = prod(dst.extents) * DTYPES[dst.dtype].bits // 8
        issued = nodes.seq([calls.barrier_expect(barrier, zero, size), tirx.Evaluate(copy, s.span)])
        # Other blocks' copies write here: they begin when all threads of all blocks are done with the tile, and so are
        # the copies out of it that the leader has issued.
        drained = [calls.only(leader, calls.store_wait(stored=False))] if dst.buffer in self.left_from else []
        meeting = [*drained, calls.cluster_arrive(s.span), calls.cluster_wait(s.span)] if shared else []
        parts = [*meeting, calls.only(leader, issued, s.span)]
        if not self.loops:
            return nodes.seq([*parts, calls.barrier_wait(barrier, zero, zero)])
        phase, made = nodes.alloc([1], "int32", self.name(f"{dst.name}_phase"), "local.var")
        frame.first += [made, nodes.store(phase, zero, [zero])]
        now = nodes.load(phase, [zero])
        parts += [calls.barrier_wait(barrier, zero, now), nodes.store(phase, nodes.int_const(1) - now, [zero])]
        return nodes.seq(parts)

    def left(self, s: Stmt, call: OpCall) -> Stmt:
        """Mark a copy to, or update of, global memory if it can use TMA."""
        answer = self.answer(call)
        if isinstance(answer, Reject):
            return with_attributes(s, {REASON: answer.reason})
        tile = _sides(call)[0]
        self.keep(call, tile, answer)
        lasts = ENDS if any(tile.buffer.same_as(b) for b in self.managed) else LASTS
        return with_attributes(s, {**_kept(answer), STORE: lasts})

    def counted(self, s: Stmt, call: OpCall, tile: View, answer: Accept) -> Stmt:
        """Return a copy whose bytes a barrier of the program counts."""
        barrier = call.args[-1]
        copy = with_attributes(s, {attributes.ASYNC: TRANSACTIONS, **_kept(answer)})
        size = nodes.int_const(prod(tile.extents) * DTYPES[tile.dtype].bits // 8)
        announced = calls.barrier_announce(barrier.buffer, barrier.mins[0], size, s.span)
        own = any(barrier.buffer.same_as(b) for b in self.announced)
        return calls.only(("the first thread", 0, 1), copy if own else nodes.seq([announced, copy]), s.span)

    def keep(self, call: OpCall, tile: View, answer: Accept) -> None:
        """Note what a copy needs of its tile."""
        self.chosen += 1
        slots, layout = self.slots(call, tile), answer.facts[attributes.LAYOUT]
        self.layouts.setdefault(tile.buffer, StackedLayout(layout, slots) if slots else layout)
        self.aligns[tile.buffer] = max(self.aligns.get(tile.buffer, 1), int(answer.facts[attributes.ALIGN]))

    def slots(self, call: OpCall, tile: View) -> int:
        """Return how many tiles a buffer of the program holds; 0 for other buffers."""
        return 0 if tile.buffer in self.rings else slots_of(tile, 2 if call.name in ("gather", "scatter") else 0)

    def answer(self, call: OpCall) -> Accept | Reject:
        """Decide whether a copy or an update of global memory is a bulk copy."""
        tile, tensor = _sides(call)
        found, given = self.shared(call, tensor, tile), self.given(call, tile)
        found = found or self.of_several(call, tensor)
        if found is not None:
            return found
        if call.name in ("gather", "scatter"):
            numbers = row_sides(call)[2].name
            if numbers in self.safe_values:
                return Reject(f"reads outside of {numbers} do not give zero")
            return can_copy_rows(given, self.ctx, self.aligned, self.ranges)
        if _loads(call):
            boxes = can_copy_bulk(given, self.ctx, self.aligned)
        else:
            boxes = can_store_bulk(given, self.ctx, self.aligned, self.ranges)
        if isinstance(boxes, Accept) or not may_be_bytes(call):
            return boxes
        whole = can_copy_bytes(given, tile, tensor, self.aligned, self.ranges)
        return whole if isinstance(whole, Accept) else Reject(f"{boxes.reason}; {whole.reason}")

    def shared(self, call: OpCall, tensor: View, tile: View) -> Reject | None:
        """Return why a tensor or tile is not in plain order, or ``None``."""
        if tensor.name in self.asked:
            return Reject(f"the layout of {tensor.name} is annotated")
        if tile.buffer in self.viewed:
            return Reject(f"another view shares the storage of {tile.name}")
        return None

    def of_several(self, call: OpCall, tensor: View) -> Reject | None:
        """Return why the blocks of a cluster cannot multicast a tile, or ``None``."""
        ranks = Blocks.of(call).ranks
        if ranks and not self.cluster.same(tensor.mins, ranks):
            return Reject(f"the blocks that share it are not known to copy the same part of {tensor.name}")
        if len(call.args) > COUNTED.get(call.name, len(call.args)):
            return None  # the program's barriers order the blocks, and `check_barriers` has analyzed all of them
        if ranks and not self.cluster.same(self.control, range(prod(self.cluster.cluster))):
            return Reject("the blocks of the cluster are not known to execute it equally often")
        if ranks and self.frames[-1].of_role:
            return Reject("its wait includes all threads of the block, not only those of T.ws")
        return None

    def given(self, call: OpCall, tile: View) -> OpCall:
        """Return a call with what is known of its tile's layout."""
        ring, slots = self.rings.get(tile.buffer), self.slots(call, tile)
        asked = self.layouts.get(tile.buffer, self.asked.get(tile.name if ring is None else str(ring.name)))
        if slots and isinstance(asked, StackedLayout):
            asked = asked.inner
        facts = {attributes.ASKED_LAYOUT: asked, SLOT: 2 if ring is not None else slots or None}
        attrs = {**call.attrs, **{name: fact for name, fact in facts.items() if fact is not None}}
        return replace(call, attrs=attrs)


def _aligned(s: Stmt, align: int | None) -> Stmt:
    """Return the allocation of a tile with an alignment in bytes."""
    if align is None:
        return s
    given = {**dict(s.annotations or {}), attributes.ALIGNMENT: nodes.int_const(align)}
    return tirx.AllocBuffer(s.buffer, given, s.span)


class _Prefer(StmtRewriter):
    """Marks moves, apart from those of roles in loops, which would initialize their barriers repeatedly."""

    def __init__(self) -> None:
        self.loops = 0

    def visit_For(self, s: Stmt) -> Stmt:
        self.loops += role(s) != "grid"
        new = super().visit_For(s)
        self.loops -= role(s) != "grid"
        return new

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        return s if is_shared(s) and self.loops else super().visit_AttrStmt(s)

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        return with_attributes(s, {WANTED: 1}) if _moves(s) else s


def _moves(s: Stmt) -> bool:
    return type(s) is tirx.Evaluate and nodes.operator_name(s.value) in _MOVES


def _is_one(s: Stmt) -> bool:
    """Whether a statement copies between shared and global memory, or updates global memory."""
    if not _moves(s):
        return False
    call = OpCall.decode(s)
    return tuple(v.scope for v in _sides(call)) == ("shared", "global") and attributes.ASYNC not in call.attrs


def _sides(call: OpCall) -> tuple[View, View]:
    """Return the tile in shared memory and the tensor, where a call has them."""
    if call.name in ("gather", "scatter"):
        return row_sides(call)[:2]
    first, second = sides(call)
    return (second, first) if _loads(call) else (first, second)


def _kept(answer: Accept) -> Attrs:
    """Return the attributes that the lowering of a copy needs."""
    return {name: answer.facts[name] for name in (SWIZZLE, BULK_BYTES) if name in answer.facts}


def _loads(call: OpCall) -> bool:
    """Whether a call fills a tile."""
    return call.name == "gather" or (call.name == "copy" and call.args[0].scope == "global")


def _most(var: Var) -> Any:
    from tile_core.analysis.ranges import whole
    from tile_core.ir.grammar import SYMBOL_HEADROOM

    kind = nodes.dtype_of(var)
    return nodes.int_const(whole(kind)[1] - SYMBOL_HEADROOM, kind)
