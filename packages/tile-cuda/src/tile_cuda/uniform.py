"""The number of a thread's warp as one warp-uniform value.

Kernels whose instructions take uniform registers have it. It comes from a shuffle: only then does the assembler see
that a branch on it is the same for all threads of a warp, and that loops in the branch have uniform counters. It then
keeps slots, phases and the descriptors of instructions in uniform registers. In a branch on a thread's number, it
computes them for each thread and moves them by ``R2UR``, one after the other, between instructions that should follow
each other. Seen in the code of ptxas 13.0: a product of 8-bit floats with block scales has 76 of these moves with a
branch on a thread's number, and 11 with a branch on this value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.analysis.affine import linear_form
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Node, Stmt, Var
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import StmtRewriter, collect, map_expr
from tile_core.ir.warp import WARP
from tile_core.simt.kernel_plan import KernelPlan
from tile_cuda.ptx.bulk import ELECT
from tile_cuda.ptx.wgmma import UNIFORM

if TYPE_CHECKING:
    from tile_core.context import Context

SHUFFLE = "shfl_sync_idx_b32"

_BITS = WARP.bit_length() - 1
_COMPARED, _DIVIDED = (tirx.LT, tirx.GE), (tirx.RShift, tirx.FloorDiv)


def share_numbers(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Compute the number of a thread's warp once, for branches and warpgroup products."""
    thread, count = plan.block.thread, plan.block.count
    called = (c for c in collect(plan.body, ir.Call) if nodes.is_tile_call(c, "instruction"))
    if count % WARP or count == WARP or not any(str(c.attrs[attributes.NAME]) in (UNIFORM, ELECT) for c in called):
        return plan
    sharing = _Sharing(thread, numbers_of(plan.body, thread))
    body = sharing.stmt(plan.body)
    return plan.replace(body=_BindWarp(thread, sharing.warp).stmt(body)) if sharing.used else plan


def numbers_of(body: Stmt, thread: Var) -> dict[Any, int]:
    """Return the variables that are a thread's number less a constant, with that."""
    found: dict[Any, int] = {thread: 0}
    for bind in collect(body, tirx.Bind):
        names = [v for v in set(collect(bind.value, tirx.Var)) if v in found]
        if len(names) != 1 or bind.var.same_as(thread):
            continue
        form = linear_form(bind.value, names)
        if form is not None and form.steps == (1,) and isinstance(first := nodes.as_int(form.rest), int):
            found[bind.var] = found[names[0]] - first
    return found


class _Sharing(StmtRewriter):
    """Write conditions of whole warps and requested uniform numbers with the number of the warp."""

    def __init__(self, thread: Var, numbers: dict[Any, int]) -> None:
        self.thread, self.numbers = thread, numbers
        self.warp: Any = nodes.fresh("warp")
        self.used = False

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        condition = map_expr(s.condition, self.of_warp, (*_COMPARED, *_DIVIDED))
        new = s if condition.same_as(s.condition) else tirx.IfThenElse(condition, s.then_case, s.else_case, s.span)
        return super().visit_IfThenElse(new)

    def visit_Bind(self, s: Stmt) -> Stmt:
        if not nodes.is_tile_call(s.value, "instruction") or str(s.value.attrs[attributes.NAME]) != UNIFORM:
            return super().visit_Bind(s)
        (number,) = s.value.args
        found = self.of_warp(number)
        return s if found is number else tirx.Bind(s.var, found, s.span)

    def of_warp(self, e: Expr) -> Node:
        """Return a comparison or quotient that a warp shares by the number of the warp."""
        if not isinstance(e, (*_COMPARED, *_DIVIDED)):
            return e
        first, amount = self.numbers.get(e.a), nodes.as_int(e.b)
        if first is None or not isinstance(amount, int):
            return e
        if isinstance(e, _COMPARED):
            if (amount + first) % WARP:
                return e
            self.used = True
            return type(e)(self.warp, nodes.int_const((amount + first) // WARP))
        bits = amount if isinstance(e, tirx.RShift) else amount.bit_length() - 1
        if first % WARP or bits < _BITS or (isinstance(e, tirx.FloorDiv) and amount != 1 << bits):
            return e
        self.used = True
        warp = self.warp - nodes.int_const(first // WARP) if first else self.warp
        return warp >> nodes.int_const(bits - _BITS) if bits > _BITS else warp


class _BindWarp(StmtRewriter):
    """Bind the number of the warp behind that of the thread."""

    def __init__(self, thread: Var, warp: Var) -> None:
        self.thread, self.warp = thread, warp

    def visit_Bind(self, s: Stmt) -> Stmt:
        if not s.var.same_as(self.thread):
            return s
        number = nodes.cast(self.thread >> nodes.int_const(_BITS), "uint32")
        given = [number, nodes.int_const(0), nodes.int_const(WARP - 1), nodes.int_const(0xFFFFFFFF, "uint32")]
        same = nodes.cast(calls.instruction(SHUFFLE, given, "uint32"), "int32")
        return nodes.seq([s, tirx.Bind(self.warp, same, s.span)])
