"""Asynchronous copies that a program waits for itself (``cp.async``): names added to ``T``.

Such a copy is in flight until the wait behind it that ends its commit group. An access to the tile in between is
rejected with both lines (``K229``), and so is a copy without a wait. The result is the same as with ``T.copy``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.errors.ops import BadBarrier, ScopeNotAllowed
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import ASYNC, ONLY, SAFE_VALUES, VARIANT, Attrs
from tile_core.ir.visit import StmtRewriter, collect, role
from tile_core.lowering.variant import Accept
from tile_core.ops import operands
from tile_core.ops.base import OpCall, is_op, with_attributes
from tile_core.ops.copy import copy
from tile_core.simt.kernel_plan import KernelPlan
from tile_cuda.attributes import REASON
from tile_cuda.ops.copy_async import EXPLICIT, AsyncCopy, can_copy
from tile_cuda.vocabulary.barriers import builder_in_launch

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.values.value import Tile

MOST_PENDING = 7
_CALLS = {"tile.async_wait": "ptx_wait_group", "tile.async_commit": "ptx_commit_group"}


def async_copy(src: Tile, dst: Tile) -> None:
    """Copy a tile from global to shared memory by ``cp.async``, asynchronously.

    ``T.ptx_wait_group`` waits for it.

    Parameters
    ----------
    src, dst
        As for ``T.copy``.

    Raises
    ------
    ScopeNotAllowed
        For other scopes.
    VariantRefused, VariantMissing
        When it is compiled: the instruction does not fit, with the reason, or the target has none.
    NotWaitedFor
        When it is compiled: the tile is touched before the wait.
    """
    for name, tile, legal in (("src", src, "global"), ("dst", dst, "shared")):
        found = operands.as_region("async_copy", name, tile).scope
        if found != legal:
            raise ScopeNotAllowed(op="async_copy", role=name, found=found, legal=f"{legal} memory")
    with operands.called("T.async_copy", "write T.copy"):
        copy(src, dst, variant=AsyncCopy.name)


def ptx_commit_group() -> None:
    """Commit a group: the ``T.async_copy`` calls since the last commit or wait.

    A copy that no such call follows is a group of its own.

    Raises
    ------
    BadBarrier
        When it is compiled: in a pipelined loop, or where only the threads of a role come.
    """
    builder = builder_in_launch("ptx_commit_group")
    builder.emit(calls.async_commit(builder.span()))


def ptx_wait_group(num: int = 0) -> None:
    """Wait for copies of ``T.async_copy``.

    Parameters
    ----------
    num
        How many of the latest groups may still be in flight, from 0 to 7: groups of ``T.ptx_commit_group``, and single
        copies that belong to none.

    Raises
    ------
    BadBarrier
        When it is compiled: in a pipelined loop, or where only the threads of a role come.
    """
    pending = operands.integer("ptx_wait_group", "num", num, 0, MOST_PENDING)
    builder = builder_in_launch("ptx_wait_group")
    builder.emit(calls.async_wait(pending, builder.span()))


def begin_explicit_copies(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Mark the copies that a program waits for itself, and end their groups.

    Raises
    ------
    BadBarrier
        Where only the threads of a role wait or end a group, and in pipelined loops.
    """
    if not any(map(_counts, collect(plan.body, tirx.Evaluate))):
        return plan
    return plan.replace(body=_Begin(plan, ctx).stmt(plan.body))


class _Begin(StmtRewriter):
    def __init__(self, plan: KernelPlan, ctx: Context) -> None:
        self.ctx, self.aligned = ctx, plan.aligned
        self.annotated = frozenset(map(str, plan.program.layouts))
        self.safe_values = frozenset(map(str, plan.program.attrs.get(SAFE_VALUES) or ()))
        self.around: list[str] = []
        #: Copies whose group the program ends.
        self.grouped = {s for seq in collect(plan.body, tirx.SeqStmt) for s in _grouped(list(seq.seq))}

    def visit_For(self, s: Stmt) -> Stmt:
        pipelined = ["pipelined loops count groups of their own"] if role(s) == "pipelined" else []
        self.around += pipelined
        new = super().visit_For(s)
        del self.around[len(self.around) - len(pipelined) :]
        return new

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        mine = ["only the threads of a role would wait for it"] if s.attr_key == ONLY else []
        self.around += mine
        new = super().visit_AttrStmt(s)
        del self.around[len(self.around) - len(mine) :]
        return new

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        name = _CALLS.get(nodes.operator_name(s.value))
        if name is not None and self.around:
            found = f"T.{name} stands where {self.around[-1]}"
            raise BadBarrier(found=found, fix="let the whole block execute it, outside", where=nodes.where_of(s))
        if not _is_one(s):
            return s
        call = OpCall.decode(s)
        reason, facts = self.answer(call)
        more: Attrs = {REASON: reason} if reason else {ASYNC: EXPLICIT, **facts}
        copied = with_attributes(s, more)
        return copied if reason or s in self.grouped else nodes.seq([copied, calls.async_commit()])

    def answer(self, call: OpCall) -> tuple[str, Attrs]:
        """Return why a copy cannot use ``cp.async``, or the attributes that its lowering needs."""
        if self.around:
            return self.around[-1], {}
        src = call.args[0]
        if src.name in self.annotated or src.name in self.safe_values:
            return f"{src.name} is annotated", {}
        plain = OpCall(call.name, call.args, {k: v for k, v in call.attrs.items() if k != VARIANT}, call.where)
        found = can_copy(plain, self.ctx, self.aligned)
        return ("", found.facts) if isinstance(found, Accept) else (found.reason, {})


def _grouped(statements: list[Stmt]) -> list[Stmt]:
    """Return the copies in a list of statements whose group one statement ends."""
    found: list[Stmt] = []
    pending: list[Stmt] = []
    for s in statements:
        if _is_one(s):
            pending.append(s)
        elif isinstance(s, tirx.Evaluate) and nodes.is_tile_call(s.value, "async_commit"):
            found += pending
            pending = []
        elif any(map(_counts, collect(s, tirx.Evaluate))):
            pending = []
    return found


def _counts(s: Stmt) -> bool:
    """Whether a statement is a copy, ends a group, or waits."""
    return nodes.operator_name(s.value) in _CALLS or _is_one(s)


def _is_one(s: Stmt) -> bool:
    if not is_op(s) or not nodes.is_tile_call(s.value, "copy"):
        return False
    attrs = OpCall.decode(s).attrs
    return attrs.get(VARIANT) == AsyncCopy.name and ASYNC not in attrs
