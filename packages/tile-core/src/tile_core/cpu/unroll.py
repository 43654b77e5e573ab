"""Which loops are unrolled: those of constant trip count with few copies.

Unrolling is a hint. A loop whose trip count is known only at launch, or whose copies would cost LLVM more time than
they save, is not unrolled.
"""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import replace_for

__all__ = ["MOST_STATEMENTS", "bound_unrolling", "statements_of"]

#: Statements of a loop with all its copies: micro-kernels need some hundreds, LLVM takes a second for some thousands.
MOST_STATEMENTS = 1024


def bound_unrolling(body: Stmt) -> Stmt:
    """Return the statement without loops to unroll that have too many copies or an unknown number of them."""
    return _bounded(body)[0]


def statements_of(body: Stmt) -> int:
    """Return how many simple statements a function has when its loops to unroll are unrolled."""
    return _bounded(body)[1]


def _bounded(s: Stmt) -> tuple[Any, int]:
    """Return a statement and how many simple statements it has when its loops are unrolled."""
    if isinstance(s, tirx.SeqStmt):
        parts = [_bounded(x) for x in s.seq]
        same = all(new.same_as(old) for (new, _), old in zip(parts, s.seq, strict=True))
        return s if same else nodes.seq([new for new, _ in parts]), sum(size for _, size in parts)
    if isinstance(s, tirx.For):
        return _loop(s)
    if isinstance(s, tirx.IfThenElse):
        then, size = _bounded(s.then_case)
        other, more = (None, 0) if s.else_case is None else _bounded(s.else_case)
        same = then.same_as(s.then_case) and (other is None or other.same_as(s.else_case))
        return s if same else tirx.IfThenElse(s.condition, then, other, s.span), size + more
    if isinstance(s, tirx.While):
        inner, size = _bounded(s.body)
        return s if inner.same_as(s.body) else tirx.While(s.condition, inner, s.span), size
    if isinstance(s, tirx.AttrStmt):
        inner, size = _bounded(s.body)
        return s if inner.same_as(s.body) else tirx.AttrStmt(s.node, s.attr_key, s.value, inner, s.span), size
    return s, 1


def _loop(s: Stmt) -> tuple[Any, int]:
    body, size = _bounded(s.body)
    count = nodes.as_int(s.extent)
    unrolls = s.kind == tirx.ForKind.UNROLLED
    if unrolls and isinstance(count, int) and count * size <= MOST_STATEMENTS:
        return s if body.same_as(s.body) else replace_for(s, body), max(count, 0) * size
    if not unrolls:
        return s if body.same_as(s.body) else replace_for(s, body), size
    return replace_for(s, body, kind=tirx.ForKind.SERIAL), size
