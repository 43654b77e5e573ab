"""Replace ``break`` and ``continue`` by flags, for targets whose text or code generator lacks them.

``break`` sets a flag that is part of the loop's condition; what follows a statement that may break or continue runs
under the flag's negation. A counted loop with ``break`` keeps its count: its remaining iterations do nothing.
"""

from __future__ import annotations

from tile_core.analysis.flow import jumps_of
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect, replace_for, statements


def lower_break(body: Stmt) -> Stmt:
    """Return the body without ``Break`` and ``Continue``."""
    if not collect(body, (tirx.Break, tirx.Continue)):
        return body
    return _LowerJumps().stmt(body)


class _Loop:
    """The flags of one loop."""

    def __init__(self, body: Stmt) -> None:
        own = _own_jumps(body)
        self.stop = nodes.alloc([1], "int32", "stop", "local.var") if own & {"break"} else None
        self.skip = nodes.alloc([1], "int32", "skip", "local.var") if own else None

    def clear(self, flag: BufferVar) -> list[Stmt]:
        return [] if flag is None else [flag[1], nodes.store(flag[0], nodes.int_const(0), [0])]

    def running(self) -> Expr:
        assert self.skip is not None
        return tirx.EQ(self.skip[0][0], nodes.int_const(0))


class _LowerJumps(StmtRewriter):
    def __init__(self) -> None:
        self.loops: list[_Loop] = []

    def visit_Break(self, s: Stmt) -> Stmt:
        loop = self.loops[-1]
        assert loop.stop is not None
        assert loop.skip is not None
        one = nodes.int_const(1)
        return nodes.seq([nodes.store(loop.stop[0], one, [0], s.span), nodes.store(loop.skip[0], one, [0], s.span)])

    def visit_Continue(self, s: Stmt) -> Stmt:
        loop = self.loops[-1]
        assert loop.skip is not None
        return nodes.store(loop.skip[0], nodes.int_const(1), [0], s.span)

    def visit_SeqStmt(self, s: Stmt) -> Stmt:
        parts = list(s.seq)
        for at, part in enumerate(parts):
            if self.loops and _own_jumps(part):
                rest = nodes.seq(parts[at + 1 :])
                head = [self.stmt(p) for p in parts[: at + 1]]
                if nodes.is_nop(rest):
                    return nodes.seq(head)
                if isinstance(part, (tirx.Break, tirx.Continue)):
                    return nodes.seq(head)
                # Allocations stay visible to what follows; only their uses are guarded.
                allocs = [p for p in statements(rest) if isinstance(p, tirx.AllocBuffer)]
                others = [p for p in statements(rest) if not isinstance(p, tirx.AllocBuffer)]
                guarded = self.stmt(nodes.seq(others))
                return nodes.seq([*head, *allocs, tirx.IfThenElse(self.loops[-1].running(), guarded, None, part.span)])
        return super().visit_SeqStmt(s)

    def visit_For(self, s: Stmt) -> Stmt:
        loop = _Loop(s.body)
        self.loops.append(loop)
        body = self.stmt(s.body)
        self.loops.pop()
        if loop.skip is None:
            return s if body.same_as(s.body) else replace_for(s, body)
        body = nodes.seq([*loop.clear(loop.skip), body])
        if loop.stop is None:
            return replace_for(s, body)
        going = tirx.EQ(loop.stop[0][0], nodes.int_const(0))
        return nodes.seq([*loop.clear(loop.stop), replace_for(s, tirx.IfThenElse(going, body, None, s.span))])

    def visit_While(self, s: Stmt) -> Stmt:
        loop = _Loop(s.body)
        self.loops.append(loop)
        body = self.stmt(s.body)
        self.loops.pop()
        if loop.skip is None:
            return s if body.same_as(s.body) else tirx.While(s.condition, body, s.span)
        body = nodes.seq([*loop.clear(loop.skip), body])
        if loop.stop is None:
            return tirx.While(s.condition, body, s.span)
        # The flag comes first: after a break the condition must not be evaluated again.
        going = tirx.EQ(loop.stop[0][0], nodes.int_const(0))
        condition = tirx.if_then_else(going, s.condition, nodes.const(False, "bool"))
        return nodes.seq([*loop.clear(loop.stop), tirx.While(condition, body, s.span)])


def _own_jumps(s: Stmt) -> set[str]:
    """Return the kinds of jumps in ``s`` that belong to its enclosing loop."""
    return {p.kind for p in jumps_of(s)}
