"""Warpgroup numbers as one warp-uniform value for the whole kernel.

Otherwise each product computes it, also in loops. A compiler does not hoist its shuffle, and then computes the
descriptors of every instruction from it, one after the other, between instructions that should follow each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, collect, substitute
from tile_core.simt.kernel_plan import KernelPlan
from tile_cuda.ptx.wgmma import UNIFORM

if TYPE_CHECKING:
    from tile_core.context import Context


def share_numbers(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Replace the number of a warp or warpgroup by one value for the whole block."""
    thread = plan.block.thread
    asked = [b for b in collect(plan.body, tirx.Bind) if _is_of(b, thread)]
    if not asked:
        return plan
    return plan.replace(body=_Shared(asked[0].value, thread).stmt(plan.body))


class _Shared(StmtRewriter):
    def __init__(self, value: Expr, thread: Var) -> None:
        self.value, self.thread, self.text = value, thread, str(value)
        self.number: Any = nodes.fresh("group")

    def visit_SeqStmt(self, s: Stmt) -> Stmt:
        body, found = [], dict[Any, Any]()
        for x in s.seq:
            if isinstance(x, tirx.Bind) and _is_of(x, self.thread) and str(x.value) == self.text:
                found[x.var] = self.number
            else:
                body.append(self.stmt(substitute(x, found) if found else x))
        return nodes.seq(body)

    def visit_Bind(self, s: Stmt) -> Stmt:
        if not s.var.same_as(self.thread):
            return super().visit_Bind(s)
        return nodes.seq([s, tirx.Bind(self.number, self.value, s.span)])


def _is_of(bind: Stmt, thread: Var) -> bool:
    """Whether a variable is a number that a shuffle makes uniform, of the block's threads."""
    calls = [c for c in collect(bind.value, ir.Call) if nodes.is_tile_call(c, "instruction")]
    if len(calls) != 1 or not bind.value.same_as(calls[0]) or str(calls[0].attrs[attributes.NAME]) != UNIFORM:
        return False
    return all(v.same_as(thread) for v in collect(bind.value, tirx.Var))
