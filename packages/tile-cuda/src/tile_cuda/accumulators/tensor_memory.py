"""Allocation of tensor memory, and the barriers at which its products arrive.

The first warp allocates the columns of a block, relinquishes the allocation permit, and frees the columns when all
threads have reached the block's end. Each accumulator fragment has its own columns while there are some, so that it can
stay there (`tile_cuda.accumulators.resident`); the other products, which run one after another, share columns.

Products are counted, and arrive at two barriers alternately: a wait for one passes although the next has ended, too.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import COMPLETES, ISSUED, NAME, ONLY, AttrDict
from tile_core.ir.program import cluster_of
from tile_core.ir.visit import collect, replace_for, role
from tile_core.lowering.variant import Reject
from tile_core.ops.base import OpCall, View, is_op, with_attributes
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.pipelining.async_products import WAIT_USES, accumulator_of
from tile_core.simt.role_threads import block_in, is_shared
from tile_core.simt.variant import SimtCall
from tile_cuda.attributes import PLACED, REFUSED, WHOLE
from tile_cuda.occupancy import bytes_of_share
from tile_cuda.ops.accumulator_marks import MATRIX
from tile_cuda.ops.gemm_tensor import FORCED, requests_tensor_memory
from tile_cuda.ops.move_accumulators import READ, WRITE
from tile_cuda.ops.tensor_plan import ALL_COLUMNS, TensorPlan, allocated_columns
from tile_cuda.ops.tensor_products import variant_of
from tile_cuda.ptx.tensor import AFTER, ALLOCATE, BEFORE, FREE, RELINQUISH
from tile_cuda.target import TCGEN05, WARP
from tile_cuda.teams import TeamRewriter
from tile_cuda.vocabulary.products import PIN_ACCUMULATOR
from tile_cuda_runtime.architectures import record_of

if TYPE_CHECKING:
    from tile_core.context import Context

_FIRST_WARP = ("the first warp", 0, WARP)
_LEADER = ("the first thread", 0, 1)


def use_tensor_memory(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Allocate and free columns of tensor memory, and assign them to products."""
    if not ctx.capabilities.fact(TCGEN05) or not any(_asks(s, ctx) for s in collect(plan.body, tirx.Evaluate)):
        return plan
    return plan.replace(body=_Allocate(plan, ctx).stmt(plan.body))


def reserve_columns(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Reserve shared memory of clusters in proportion to their columns of tensor memory.

    A block waits for columns that others hold, and the device does not count columns when it places blocks. One of a
    cluster keeps its columns until its partners have come: two clusters, each with a block that waits for what the
    other one holds, would never end. Where each block takes its part of the shared memory too, which the device does
    count, columns are always free for it, beside blocks of other kernels as well. Single blocks never deadlock.
    """
    calls_made = (s.value for s in collect(plan.body, tirx.Evaluate) if nodes.is_tile_call(s.value, "instruction"))
    columns = [int(nodes.as_int(c.args[1])) for c in calls_made if str(c.attrs[NAME]) in ALLOCATE.values()]
    if not columns or prod(cluster_of(plan.program.attrs)) == 1:
        return plan
    least = bytes_of_share(record_of(ctx.target.arch), ALL_COLUMNS // max(columns))
    return plan.replace(arena=replace(plan.arena, bytes=max(plan.arena.bytes, least)))


class _Allocate(TeamRewriter):
    def __init__(self, plan: KernelPlan, ctx: Context) -> None:
        super().__init__(plan.body)
        self.ctx, self.block = ctx, plan.block
        self.names = {str(v.name) for v in collect(plan.body, tirx.Var)}
        self.frames: list[_BlockColumns] = []
        #: Whether a thread comes here that has nothing to do with products.
        self.copies = False

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) == "grid" and not any(role(x) == "grid" for x in collect(s.body, tirx.For)):
            self.frames.append(_BlockColumns(self.names))
            super().visit_For(s)  # first pass: collects the requests of all products before columns are assigned
            self.frames[-1].settle()
            new = super().visit_For(s)
            return replace_for(new, self.frames.pop().around(new.body))
        return super().visit_For(s)

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        outer = self.copies
        if s.attr_key == ONLY and not is_shared(s):
            self.copies = not any(_asks(x, self.ctx) for x in collect(s.body, tirx.Evaluate))
        new = super().visit_AttrStmt(s)
        self.copies = outer
        return new

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if self.frames and nodes.is_tile_call(s.value, "barrier_wait"):
            return s if self.copies else self.frames[-1].awaited(s)
        if self.frames and self.frames[-1].issued and nodes.is_tile_call(s.value, "barrier_arrive"):
            return nodes.seq([calls.execute(BEFORE, []), s])
        if is_op(s) and nodes.is_tile_call(s.value, WAIT_USES) and not self.apart and self.frames:
            return self.frames[-1].wait(s)
        if is_op(s) and any(nodes.is_tile_call(s.value, n) for n in (READ, WRITE)) and self.frames:
            return self.frames[-1].given(s, View.of(s.value.args[0]))
        if is_op(s) and nodes.is_tile_call(s.value, PIN_ACCUMULATOR) and self.frames:
            return self.frames[-1].demand(s)
        if not _asks(s, self.ctx) or not self.frames:
            return s
        call, frame = OpCall.decode(s), self.frames[-1]
        found = self.planned(call, frame)
        if isinstance(found, str):
            line = "" if call.where is None else f"in line {call.where.line}, "
            frame.refusals.setdefault(call.args[accumulator_of(call)].buffer, line + found)
            return s
        return frame.product(s, found)

    def planned(self, call: OpCall, frame: _BlockColumns) -> TensorPlan | str:
        """Return the plan of a product on tensor memory, or the rejection reason."""
        if self.apart:
            return "not all threads execute it"
        # The accumulator may have to move outside of a role. Products are counted by one group of threads.
        if self.role is not None and call.args[accumulator_of(call)].scope != MATRIX:
            return f"it stands in a role, and its accumulator is not divided{_because(call)}"
        group = self.team if self.role is not None else None
        if (self.role is not None or ISSUED not in call.attrs) and not frame.takes(group):
            return "threads of another role, or the whole block, also issue products"
        block = block_in(self.role, self.block)
        given = SimtCall(call.name, call.args, call.attrs, call.where, call.span, block=block)
        variant = variant_of(call)
        answer = variant.fits(given, self.ctx)
        found = answer if isinstance(answer, Reject) else variant.plan(given)
        return found.reason if isinstance(found, Reject) else found


class _BlockColumns:
    """Columns that a block allocates: resident accumulators, shared accumulators, then metadata."""

    def __init__(self, names: set[str]) -> None:
        self.columns = 0
        #: Whether products arrive at barriers of the program, and whether others are counted.
        self.arrives = self.counts = False
        #: Whether one thread issues them for consumers, which signal when they have read the accumulator.
        self.issued = False
        self.plans: list[TensorPlan] = []
        #: By accumulator, why a product that adds to it is not in tensor memory.
        self.refusals: dict[BufferVar, str] = {}
        #: Who issues products.
        self.groups: list[tuple[int, int] | None] = []
        self.demanded: list[BufferVar] = []
        self.starts: dict[BufferVar, int] = {}
        self.shared = self.metadata = 0
        self.held, self.allocate_held = nodes.alloc([1], "uint32", _named("tensor_columns", names), "shared")
        self.done, self.allocate_done = calls.alloc_barriers(_named("product_done", names), 2)
        self.ready, self.allocate_ready = calls.alloc_barriers(_named("operands_ready", names), 2)
        #: Blocks that compute the products.
        self.blocks = 1
        self.count, self.allocate_count = nodes.alloc([1], "int32", _named("products", names), "local.var")

    def takes(self, group: tuple[int, int] | None) -> bool:
        """Whether products of a role, or of the block, are counted: only of one group."""
        if not self.groups:
            self.groups.append(group)
        return self.groups[0] == group

    def settle(self) -> None:
        """Assign columns to accumulators: each fragment its own, while some are left."""
        self.counts = False
        metadata = 2 * max((p.metadata for p in self.plans), default=0)
        able = {p.problem.c.buffer: p.allocated for p in self.plans if p.can_stay}
        fixed = {b: n for b, n in able.items() if nodes.scope_of(b) == MATRIX}
        # Those that have to stay come first.
        asked = fixed | {b: n for b, n in able.items() if b in self.demanded} | able
        for staying in range(len(asked), -1, -1):
            own = list(asked)[:staying]
            starts = [sum(asked[b] for b in own[:i]) for i in range(staying + 1)]
            others = [p.columns for p in self.plans if p.problem.c.buffer not in own]
            self.shared, self.metadata = starts[-1], starts[-1] + max(others, default=0)
            if self.metadata + metadata <= ALL_COLUMNS:
                self.starts = dict(zip(own, starts, strict=False))
                wanted = self.metadata + metadata
                self.columns = allocated_columns(wanted) if self.plans else 0
                return

    def product(self, s: Stmt, plan: TensorPlan) -> Stmt:
        """Return a product with the operands that it needs."""
        self.plans.append(plan)
        self.blocks = plan.blocks
        arrives, issued = COMPLETES in s.value.attrs, ISSUED in s.value.attrs
        self.arrives, self.issued = self.arrives or arrives or issued, self.issued or issued
        self.counts = (
            self.counts or not (arrives or issued) or bool(plan.metadata) or plan.problem.c.buffer not in self.starts
        )
        return self.given(s, plan.problem.c)

    def demand(self, s: Stmt) -> Stmt:
        """Return the request for a resident accumulator, with its columns or the rejection reason."""
        accumulator = View.of(s.value.args[0])
        self.demanded.append(accumulator.buffer)
        plan = next((p for p in self.plans if p.problem.c.buffer.same_as(accumulator.buffer)), None)
        at, more = self.starts.get(accumulator.buffer), AttrDict()
        if plan is not None and at is not None:
            more = {PLACED: f"columns {at} to {at + plan.columns - 1} of tensor memory"}
        elif plan is not None and not plan.can_stay:
            more = {REFUSED: f"{accumulator.name} has {accumulator.dtype} elements, the accumulator has {plan.total}"}
        elif plan is not None:
            wanted = sum({p.problem.c.buffer: p.columns for p in self.plans}.values())
            beside = max(self.plans, key=lambda p: p.metadata)
            sets = f" and two sets of {beside.metadata} of {beside.beside}" if beside.metadata else ""
            more = {REFUSED: f"the block needs {wanted} accumulator columns{sets}; tensor memory has {ALL_COLUMNS}"}
        elif accumulator.buffer in self.refusals:
            more = {
                REFUSED: f"no tcgen05 product accumulates into {accumulator.name}: {self.refusals[accumulator.buffer]}"
            }
        return with_attributes(s, more)

    def wait(self, s: Stmt) -> Stmt:
        """Return a wait for products with the operands that it needs, if there are products."""
        if not self.plans:
            return s
        return self.given(s, View.of(s.value.args[0]) if len(s.value.args) else None)

    def awaited(self, s: Stmt) -> Stmt:
        """Return a wait for a barrier of the program that products may arrive at."""
        return nodes.seq([s, calls.execute(AFTER, [])]) if self.arrives else s

    def given(self, s: Stmt, accumulator: View | None) -> Stmt:
        """Return a call with `gemm_tensor.Added`."""
        at = None if accumulator is None else self.starts.get(accumulator.buffer)
        zero = nodes.int_const(0)
        offsets = self.shared if at is None else at, self.metadata, int(at is not None)
        ready = self.ready if self.blocks > 1 else self.done
        buffers = ((self.held, 1), (self.done, 2), (ready, 2), (self.count, 1))
        more = [*(nodes.region(b, [zero], [n]) for b, n in buffers), *map(nodes.int_const, offsets)]
        return with_attributes(s, {}, [*s.value.args, *more])

    def around(self, body: Stmt) -> Stmt:
        """Return a body with the allocation before it, and the end behind it."""
        if not self.columns:
            return body
        zero, blocks = nodes.int_const(0), self.blocks
        count = nodes.int_const(self.columns)
        taken = calls.execute(ALLOCATE[blocks], [calls.address(self.held, [zero], "w"), count])
        freed = calls.execute(FREE[blocks], [nodes.load(self.held, [zero]), count])
        objects = {self.done: 1, **({self.ready: 2} if blocks > 1 else {})} if self.counts else {}
        each = [(b, nodes.int_const(i), n) for b, n in objects.items() for i in (0, 1)]
        first = [calls.barrier_init(b, i, n) for b, i, n in each]
        last = [calls.barrier_drop(b, i) for b, i, _ in each]
        # Products name them in any case.
        made = [self.allocate_held, self.allocate_done, self.allocate_count]
        made += [self.allocate_ready] if blocks > 1 else []
        if objects:
            made += [nodes.store(self.count, zero, [zero]), calls.only(_LEADER, nodes.seq(first))]
        # Both blocks of a pair run before they allocate, and until neither needs the other one any more.
        meeting = [calls.cluster_arrive(meets=True), calls.cluster_wait()]
        return nodes.seq([
            *made, *(meeting if blocks > 1 else []),
            calls.only(_FIRST_WARP, nodes.seq([taken, calls.execute(RELINQUISH[blocks], [])])),
            *(list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]),
            *(meeting if blocks > 1 else [calls.sync_threads()]), calls.only(_FIRST_WARP, freed),
            *([calls.only(_LEADER, nodes.seq(last))] if last else []),
        ])  # fmt: skip


def _because(call: OpCall) -> str:
    return f": {call.attrs[WHOLE]}" if WHOLE in call.attrs else ""


def _named(base: str, names: set[str]) -> str:
    name, count = base, 1
    while name in names:
        name, count = f"{base}_{count}", count + 1
    names.add(name)
    return name


def _asks(s: Stmt, ctx: Context) -> bool:
    """Whether a statement is a product whose accumulator is to be in tensor memory."""
    product = is_op(s) and any(nodes.is_tile_call(s.value, name) for name in FORCED)
    return product and requests_tensor_memory(OpCall.decode(s), ctx)
