"""Warp operations where a block's threads run sequentially: all store their operands, then read."""

from __future__ import annotations

from typing import Any, Protocol

from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Call, Expr, Stmt, UnaryNode, Var
from tile_core.cpu.deferred_steps import DeferredStep, Keep, Rewriter
from tile_core.ir import nodes
from tile_core.ir.visit import collect, map_expr
from tile_core.ir.warp import REDUCTIONS, SHUFFLES, WARP, warp_call


class BlockThreads(Protocol):
    """The threads of a block, and the loop over all for one thread's code."""

    count: int
    varying: Varying
    slots: dict[Any, Any]

    def private(self, name: str, dtype: str) -> BufferVar:
        """Return a new buffer with one slot per thread."""

    def thread_loop(self, group: list[Stmt]) -> Stmt:
        """Return a loop over the threads that takes the steps."""


def has_warp_call(s: Stmt) -> bool:
    """Whether a simple statement, or a branch's condition, has a warp operation."""
    if isinstance(s, (tirx.For, tirx.While, tirx.AttrStmt, tirx.SeqStmt)):
        return False
    part = s.condition if isinstance(s, tirx.IfThenElse) else s
    return any(map(warp_call, collect(part, ir.Call)))


def hoist(s: Stmt, owner: BlockThreads) -> tuple[list[Stmt], Stmt]:
    """Move the warp operations out of a simple statement (or a compound one's own expressions).

    Returns
    -------
    tuple
        Statements that must run before, and the statement that reads their results.
    """
    before: list[Stmt] = []

    def replace(e: Call) -> Var:
        if not warp_call(e):
            return e
        operand = e.args[0]
        left = owner.private("left", _slot_type(operand))
        before.append(owner.thread_loop([Keep(left, _stored(operand))]))
        result = owner.private("seen", nodes.dtype_of(e))
        before.append(owner.thread_loop([_Look(e, left, result, owner.count)]))
        var = nodes.fresh("seen", nodes.dtype_of(e))
        owner.varying.vars.add(var)
        owner.slots[var] = result
        return var

    if isinstance(s, tirx.IfThenElse):
        condition = map_expr(s.condition, replace, ir.Call)
        return before, s if not before else tirx.IfThenElse(condition, s.then_case, s.else_case, s.span)
    return before, map_expr(s, replace, ir.Call) if not isinstance(s, tirx.Bind) else _bind(s, replace, before)


def _bind(s: Stmt, replace: UnaryNode, before: list[Stmt]) -> Stmt:
    value = map_expr(s.value, replace, ir.Call)
    return tirx.Bind(s.var, value, s.span) if before else s


def _slot_type(operand: Expr) -> str:
    dtype = nodes.dtype_of(operand)
    return "int32" if dtype == "bool" else dtype


def _stored(operand: Expr) -> Expr:
    return tirx.Cast("int32", operand) if nodes.dtype_of(operand) == "bool" else operand


class _Look(DeferredStep):
    """Compute one thread's result of a warp operation from the stored operands of all threads."""

    def __init__(self, call: Call, left: BufferVar, result: BufferVar, count: int) -> None:
        self.call, self.left, self.result, self.count = call, left, result, count

    def emit(self, rewriter: Rewriter, t: Var) -> Stmt:
        name = str(self.call.op.name)[5:]
        if name in SHUFFLES:
            return nodes.store(self.result, self.shuffle(name, rewriter, t), [t])
        return self.vote(name, t)

    def shuffle(self, name: str, rewriter: Rewriter, t: Var) -> Expr:
        width = int(nodes.as_int(self.call.args[2])) or WARP
        amount = nodes.cast(rewriter.expr(self.call.args[1]), "int32")
        first = tirx.floordiv(t, width) * width
        lane = tirx.floormod(t, width)
        if name == "shfl_sync":
            source = tirx.floormod(amount, width)
        elif name == "shfl_xor":
            source = tirx.bitwise_xor(lane, amount)
        else:
            source = lane - amount if name == "shfl_up" else lane + amount
        inside = tirx.all(source >= 0, source < width, first + source < self.count)
        return nodes.load(self.left, [first + tirx.Select(inside, source, lane)])

    def vote(self, name: str, t: Var) -> Stmt:
        """Combine the operands of the warp's existing threads."""
        from tile_core.ops.reduce import combiner, neutral

        lane = nodes.fresh("lane")
        other = tirx.floordiv(t, WARP) * WARP + lane
        dtype = nodes.element_type(self.result)
        mine: Expr = nodes.load(self.left, [other])
        if name in REDUCTIONS:
            kind = REDUCTIONS[name]
            start, combine = neutral(kind, dtype), combiner(kind, dtype, False)
        elif name == "ballot":
            bit = tirx.shift_left(nodes.const(1, dtype), nodes.cast(lane, dtype))
            mine = tirx.Select(tirx.NE(mine, nodes.zero(nodes.dtype_of(mine))), bit, nodes.zero(dtype))
            start, combine = nodes.zero(dtype), lambda a, b: tirx.bitwise_or(a, b)
        else:
            mine = tirx.NE(mine, nodes.zero(nodes.dtype_of(mine)))
            start, combine = nodes.const(name == "all_sync", "bool"), tirx.And if name == "all_sync" else tirx.Or
        total = self.result[t]
        step = nodes.store(self.result, combine(total, mine), [t])
        guarded = tirx.IfThenElse(other < self.count, step, None)
        return nodes.seq([nodes.store(self.result, start, [t]), nodes.for_loop(lane, WARP, guarded)])
