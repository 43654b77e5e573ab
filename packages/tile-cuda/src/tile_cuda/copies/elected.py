"""The thread that issues bulk copies: one that its warp elects.

The assembler does not see that of the threads for which ``tid == 0`` only one can be active. Instructions that take
uniform registers, as bulk copies do, it then writes in a loop over all threads that may be: seen in the code of NVRTC
13.5, three loops an iteration in a product with two operands, which all warps went through. Behind ``elect.sync`` it
writes the instruction alone. The branch around it is that of a warp whose number is uniform (``uniform.py``). On an
H200, a float16 product was 0.88 times as fast as with `cp.async` before, 0.89 with ``elect.sync`` alone, and 0.99 with
both and with copies that follow the reads of operands.

Only loads are issued so. A copy out of shared memory belongs to a group of the thread that issued it, which the same
thread waits for, and elsewhere that is the first one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tile_core.analysis.point import Point
from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Node, Stmt, Var
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import StmtRewriter, collect
from tile_core.ir.warp import WARP
from tile_core.simt.kernel_plan import KernelPlan
from tile_cuda.ptx.bulk import ELECT, LOADS
from tile_cuda.uniform import numbers_of

if TYPE_CHECKING:
    from tile_core.context import Context

_AROUND = ("barrier_expect", "barrier_announce", "barrier_wait")
"""Calls that may stand beside loads: any one thread may execute them, the one that issues the loads."""


def elect_issuers(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Let an elected thread issue the bulk loads of its warp's first thread."""
    if not any(_is_load(c) for c in collect(plan.body, ir.Call)):
        return plan
    block = plan.block
    new = _Elected(plan.body, block.thread, block.count).stmt(plan.body)
    return plan if new is plan.body else plan.replace(body=new)


class _Elected(StmtRewriter):
    """Replaces the conditions of branches that one thread of a whole warp enters."""

    def __init__(self, body: Stmt, thread: Var, count: int) -> None:
        self.thread, self.count = thread, count
        self.numbers = numbers_of(body, thread)
        apart = _ApartInWarps(body, self.numbers)
        branches = [p for p in apart.flow.points if p.kind == "if"]
        self.convergent = {p.stmt for p in branches} - {p.stmt for p in branches if apart.divergent(p)}

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        first = self.single(s.condition) if s.else_case is None and s in self.convergent else None
        if first is None or first % WARP or first + WARP > self.count or not _loads(s.then_case):
            return super().visit_IfThenElse(s)
        mine = calls.instruction(ELECT, [], "uint32") != nodes.int_const(0, "uint32")
        if self.count != WARP:
            warp = self.thread >> nodes.int_const(WARP.bit_length() - 1)
            mine = tirx.all(tirx.EQ(warp, nodes.int_const(first // WARP)), mine)
        return tirx.IfThenElse(mine, s.then_case, None, s.span)

    def single(self, e: Expr) -> int | None:
        """Return the number of the one thread for which a condition holds."""
        if not isinstance(e, tirx.EQ):
            return None
        found = _compared(e, self.numbers)
        return None if found is None else found[1]


class _ApartInWarps(Varying):
    """Points that only some threads of a warp execute: a warp-uniform test divides no warp."""

    def __init__(self, body: Stmt, numbers: Mapping[Any, int]) -> None:
        self.numbers = numbers
        super().__init__(body)

    def parts(self, p: Point) -> bool:
        if p.kind == "if" and self.divides_none(p.stmt.condition):
            return False
        return super().parts(p)

    def divides_none(self, e: Node) -> bool:
        """Whether a condition compares a thread's number with the first one of a warp."""
        if isinstance(e, tirx.And):
            return all(self.divides_none(x) or not self.expr(x) for x in (e.a, e.b))
        if not isinstance(e, (tirx.LT, tirx.GE, tirx.LE, tirx.GT)):
            return False
        found = _compared(e, self.numbers)
        if found is None:
            return False
        turned, number = found
        # `thread < n` and `thread >= n` divide before n; `thread <= n` and `thread > n` behind it.
        behind = isinstance(e, (tirx.LE, tirx.GT)) != turned
        return (number + behind) % WARP == 0


def _compared(e: Expr, numbers: Mapping[Any, int]) -> tuple[bool, int] | None:
    """Match ``constant == thread number``; return the constant and the number."""
    for turned, (a, b) in enumerate(((e.a, e.b), (e.b, e.a))):
        constant = nodes.as_int(b)
        if a in numbers and isinstance(constant, int):
            return bool(turned), numbers[a] + constant
    return None


def _loads(body: Stmt) -> bool:
    """Whether statements are only bulk loads and their expected transaction bytes."""
    made = [c for c in collect(body, ir.Call) if nodes.is_tile_call(c)]
    own = [c for c in made if nodes.is_tile_call(c, "instruction")]
    plain = (tirx.Evaluate, tirx.SeqStmt, tirx.IfThenElse, tirx.For, tirx.Bind, tirx.AttrStmt)
    known = all(isinstance(x, plain) for x in collect(body, tirx.Stmt))
    named = all(_name(s) in _AROUND or _is_load(s.value) for s in collect(body, tirx.Evaluate))
    # A thread that waits in a loop does nothing else and keeps its number: election there is not timed.
    waits = any(_name(s) == "barrier_wait" for s in collect(body, tirx.Evaluate)) and bool(collect(body, tirx.For))
    return known and named and bool(own) and all(map(_is_load, own)) and not waits


def _name(s: Stmt) -> str:
    return str(s.value.op.name)[5:] if nodes.is_tile_call(s.value) else ""


def _is_load(c: Any) -> bool:
    return bool(nodes.is_tile_call(c, "instruction")) and str(c.attrs[attributes.NAME]) in LOADS
