"""Columns of tensor memory, and the barrier that products arrive at, for the blocks whose products ask for them.

The first warp allocates the columns that the largest product of a block takes, gives up the permit to allocate more,
and frees them when all threads have come to the block's end. Products of a block run one after another, so they share
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.ir import calls, nodes
from tile_core.ir.visit import StmtRewriter, collect, replace_for, role
from tile_core.ops.base import OpCall, is_op
from tile_core.simt.roles import is_shared
from tile_core.simt.variant import Block, SimtCall
from tile_cuda.ops.gemm_tensor import asks
from tile_cuda.ops.tensor_plan import TensorPlan
from tile_cuda.ops.warpgroup_plan import WARPGROUP
from tile_cuda.ptx.tensor import ALLOCATE, FREE, RELINQUISH
from tile_cuda.target import TCGEN05, WARP

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.passes.spine import Plan

_FIRST_WARP = ("the first warp", 0, WARP)
_LEADER = ("the first thread", 0, 1)


def use_tensor_memory(plan: Plan, ctx: Context) -> Plan:
    """Give products that ask for tensor memory its columns, and allocate and free these."""
    if not ctx.capabilities.fact(TCGEN05) or not any(_asks(s, ctx) for s in collect(plan.body, tirx.Evaluate)):
        return plan
    return plan.replace(body=_Allocate(plan, ctx).stmt(plan.body))


class _Allocate(StmtRewriter):
    def __init__(self, plan: Plan, ctx: Context) -> None:
        self.ctx = ctx
        self.varying = Varying(plan.body)
        self.names = {str(v.name) for v in collect(plan.body, tirx.Var)}
        self.frames: list[_Frame] = []
        #: Whether not all threads of the block come here together.
        self.apart = False

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) == "grid":
            self.frames.append(_Frame(self.names))
            new = super().visit_For(s)
            return replace_for(new, self.frames.pop().around(new.body))
        return self._inside(s, role(s) in ("parallel", "vectorized") or self.varying.loop(s), super().visit_For)

    def visit_While(self, s: Stmt) -> Stmt:
        return self._inside(s, self.varying.loop(s), super().visit_While)

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        return self._inside(s, self.varying.expr(s.condition), super().visit_IfThenElse)

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        return self._inside(s, is_shared(s), super().visit_AttrStmt)

    def _inside(self, s: Stmt, apart: bool, visit: Any) -> Stmt:
        outer, self.apart = self.apart, self.apart or apart
        new: Stmt = visit(s)
        self.apart = outer
        return new

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if not _asks(s, self.ctx) or self.apart or not self.frames:
            return s
        call = OpCall.decode(s)
        if any(v.scope == "local.fragment" for v in call.args[:2]):
            return s
        block = Block((WARPGROUP, 1, 1), nodes.fresh("tid"))  # the variant refuses blocks of other sizes
        found = TensorPlan.of(SimtCall(call.name, call.args, call.attrs, call.where, call.span, block=block))
        if found is None:
            return s
        return self.frames[-1].product(s, found.allocated)


class _Frame:
    """What a block allocates."""

    def __init__(self, names: set[str]) -> None:
        zero = nodes.int_const(0)
        self.columns = 0
        self.held, self.allocate_held = nodes.alloc([1], "uint32", _named("tensor_columns", names), "shared")
        self.barrier, self.allocate_barrier = calls.alloc_barriers(_named("product_done", names), 1)
        self.phase, self.allocate_phase = nodes.alloc([1], "int32", _named("product_phase", names), "local.var")
        self.parity = nodes.load(self.phase, [zero])

    def product(self, s: Stmt, columns: int) -> Stmt:
        """Return a product with the operands that it needs, and the next phase behind it."""
        self.columns, zero = max(self.columns, columns), nodes.int_const(0)
        more = [nodes.region(self.held, [zero], [1]), nodes.region(self.barrier, [zero], [1]), self.parity]
        call = s.value
        new = type(call)(call.op, [*call.args, *more], attrs=call.attrs, ret_ty=call.ty)
        after = nodes.store(self.phase, nodes.int_const(1) - self.parity, [zero])
        return nodes.seq([tirx.Evaluate(new, s.span), after])

    def around(self, body: Stmt) -> Stmt:
        """Return a body with the allocation before it, and the end behind it."""
        if not self.columns:
            return body
        zero = nodes.int_const(0)
        count = nodes.int_const(self.columns)
        taken = calls.execute(ALLOCATE, [calls.address(self.held, [zero], "w"), count])
        freed = calls.execute(FREE, [nodes.load(self.held, [zero]), count])
        return nodes.seq([
            self.allocate_held, self.allocate_barrier, self.allocate_phase, nodes.store(self.phase, zero, [zero]),
            calls.only(_LEADER, calls.barrier_init(self.barrier, zero, 1)),
            calls.only(_FIRST_WARP, nodes.seq([taken, calls.execute(RELINQUISH, [])])),
            *(list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]),
            calls.sync_threads(), calls.only(_FIRST_WARP, freed),
            calls.only(_LEADER, calls.barrier_drop(self.barrier, zero)),
        ])  # fmt: skip


def _named(base: str, names: set[str]) -> str:
    name, count = base, 1
    while name in names:
        name, count = f"{base}_{count}", count + 1
    names.add(name)
    return name


def _asks(s: Stmt, ctx: Context) -> bool:
    """Whether a statement is a product that is to have its sums in tensor memory."""
    return is_op(s) and nodes.is_tile_call(s.value, "gemm") and asks(OpCall.decode(s), ctx)
