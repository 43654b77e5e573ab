"""Math functions lowered to LLVM intrinsics and C library calls.

TVM's own pass for this simplifies every condition on its way, and fails over ``i * 7 + 3 == -2**31``, whose solution
it computes in 32 bits. Here its rules are applied to calls only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from tile_core.compat.tvm import ir
from tile_core.compat.types import Call, Expr, Stmt
from tile_core.ir.visit import StmtRewriter, map_expr

__all__ = ["lower_intrinsics"]

#: TVM's registries of lowering rules for operators, in order of precedence.
_TABLES = ("llvm.FLowerIntrinsic", "llvm.FLegalize", "default.FLowerIntrinsic", "default.FLegalize")


def lower_intrinsics(body: Stmt) -> Stmt:
    """Return the statement with calls of intrinsics and library functions in place of their operators."""
    return _LowerIntrinsics().stmt(body)


class _LowerIntrinsics(StmtRewriter):
    def expr(self, e: Expr) -> Expr:
        return map_expr(e, self.call, ir.Call)

    def call(self, e: Call) -> Expr:
        for rule in _rules(e.op) if isinstance(e.op, ir.Op) else ():
            new = rule(e)
            if new is not None and not new.same_as(e):
                return self.expr(new)
        return e


@functools.cache
def _rules(op: Expr) -> tuple[Callable[[Call], Expr], ...]:
    found = (op.get_attr(table) for table in _TABLES)
    return tuple(rule for rule in found if rule is not None)
