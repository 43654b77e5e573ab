"""``T.set_max_nreg``: where it may stand, and that no block waits for ever for registers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.errors.lowering import VariantRefused
from tile_core.ir import nodes
from tile_core.ir.attributes import COUNT, MORE
from tile_core.ir.calls import execute
from tile_core.ir.visit import StmtRewriter, role
from tile_core.lowering.dispatch import refused
from tile_core.lowering.legality import Legality
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import OpCall, is_op
from tile_core.simt.role import Role
from tile_core.simt.role_threads import is_shared, role_of
from tile_core.simt.variant import SimtCall, SimtVariant
from tile_cuda.ops.warpgroup_plan import WARPGROUP
from tile_cuda.ptx.registers import set_name
from tile_cuda.target import REGISTERS as _FILE
from tile_cuda.vocabulary.products import REGISTERS, REQUEST_REGISTERS, UNIT_OF_REGISTERS

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.simt.kernel_plan import KernelPlan

_MOST_OF_A_THREAD = 256
"""Registers of a thread that no instruction has given more."""


class SetRegisters(SimtVariant):
    """The instruction of the warpgroups of a role; `check_registers` has checked where it stands."""

    name = REGISTERS
    op = REQUEST_REGISTERS
    legality = Legality()

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept whole warpgroups."""
        if call.block.count % WARPGROUP or (call.block.begins + call.block.first) % WARPGROUP:
            return Reject(f"{call.block.count} threads are not whole warpgroups of {WARPGROUP}")
        if ctx.options.max_registers is not None:
            return Reject("the option max_registers gives all threads the same number")
        return Accept()

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the instruction."""
        return execute(set_name(int(call.attrs[COUNT]), bool(int(call.attrs[MORE]))), [], call.span)


def first_registers(threads: int) -> int:
    """Return the initial registers of a thread if a block has a multiprocessor to itself."""
    return min(_FILE // threads // UNIT_OF_REGISTERS * UNIT_OF_REGISTERS, _MOST_OF_A_THREAD)


def check_registers(plan: KernelPlan, ctx: Context, threads: int) -> KernelPlan:
    """Check that requests begin roles, and that all of them together can be met.

    Raises
    ------
    VariantRefused
        If one of them could wait for ever, or has no meaning.
    """
    if all(variant.name != REGISTERS for variant in plan.variants):
        return plan  # the target has no such instruction; the selection of variants reports it
    check = _Check(ctx, threads)
    check.stmt(plan.body)
    check.total()
    return plan


class _Check(StmtRewriter):
    def __init__(self, ctx: Context, threads: int) -> None:
        self.ctx, self.threads, self.begin = ctx, threads, first_registers(threads)
        #: Each request with its role and its count.
        self.asked: list[tuple[Stmt, Role, int]] = []
        #: The statement that may be a request, and its role.
        self.expected: tuple[Stmt, Role] | None = None
        self.conditional = False

    def stmt(self, s: Stmt) -> Stmt:
        outer = self.conditional
        loop = isinstance(s, tirx.For) and role(s) not in ("grid", "threads")
        self.conditional = outer or loop or isinstance(s, (tirx.While, tirx.IfThenElse))
        new = super().stmt(s)
        self.conditional = outer
        return new

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        if is_shared(s) and not self.conditional:
            body = list(s.body.seq) if isinstance(s.body, tirx.SeqStmt) else [s.body]
            first = next((x for x in body if not isinstance(x, (tirx.Bind, tirx.AllocBuffer))), None)
            self.expected = None if first is None else (first, role_of(s))
        return super().visit_AttrStmt(s)

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if is_op(s) and nodes.is_tile_call(s.value, REQUEST_REGISTERS):
            if self.expected is None or not s.same_as(self.expected[0]):
                raise self.refused(
                    s, "it is not the first statement of a `with T.ws(...):` that every block executes once"
                )
            self.request(s, self.expected[1])
        return s

    def request(self, s: Stmt, threads: Role) -> None:
        """Add the request of a role."""
        count, more = (int(nodes.as_int(s.value.attrs[name])) for name in (COUNT, MORE))
        if any(r.first < threads.first + threads.count and threads.first < r.first + r.count for _, r, _ in self.asked):
            raise self.refused(s, "its role has another request before it")
        if (count < self.begin) if more else (count > self.begin):
            less = "fewer" if more else "more"
            raise self.refused(s, f"{count} are {less} than the {self.begin} with which its threads begin")
        self.asked.append((s, threads, count))

    def total(self) -> None:
        """Check all requests: a request for more waits until others have released registers."""
        others = self.threads - sum(r.count for _, r, _ in self.asked)
        spare = self.begin * (self.threads - others) - sum(r.count * count for _, r, count in self.asked)
        if spare >= 0:
            return
        s, threads, count = next(x for x in reversed(self.asked) if x[2] > self.begin)
        most = (count * threads.count + spare) // threads.count // UNIT_OF_REGISTERS * UNIT_OF_REGISTERS
        raise self.refused(s, f"no more than {most} are left for each of its {threads.count} threads")

    def refused(self, s: Stmt, reason: str) -> VariantRefused:
        attrs, where = OpCall.decode(s).attrs, nodes.where_of(s)
        return refused(attrs, REGISTERS, REQUEST_REGISTERS, reason, self.ctx.target.text, where)
