"""Selection of loops to unroll: constant trip count and few copies.

Unrolling is a hint. A loop whose trip count is known only at launch, or whose copies would cost LLVM more time than
they save, is not unrolled.
"""

from __future__ import annotations

from tile_core.compat import structural
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import bodies_of, replace_for, with_bodies

__all__ = ["MOST_STATEMENTS", "bound_unrolling", "statements_of"]

#: Statements of a loop with all its copies: micro-kernels need some hundreds, LLVM takes a second for some thousands.
MOST_STATEMENTS = 1024


def bound_unrolling(body: Stmt) -> Stmt:
    """Return the statement without unrolling of loops with unknown or too many copies."""
    return _bounded(body)[0]


def statements_of(body: Stmt) -> int:
    """Return how many simple statements a function has when its loops to unroll are unrolled."""
    return _bounded(body)[1]


def _bounded(s: Stmt) -> tuple[Stmt, int]:
    """Return a statement and how many simple statements it has when its loops are unrolled."""
    if isinstance(s, tirx.SeqStmt):
        whole = structural.items(s.seq)
        parts = [_bounded(x) for x in whole]
        same = all(new.same_as(old) for (new, _), old in zip(parts, whole, strict=True))
        return s if same else nodes.seq([new for new, _ in parts]), sum(size for _, size in parts)
    if isinstance(s, tirx.For):
        return _loop(s)
    if not (bodies := bodies_of(s)):
        return s, 1
    parts = [_bounded(x) for x in bodies]
    return with_bodies(s, [new for new, _ in parts]), sum(size for _, size in parts)


def _loop(s: Stmt) -> tuple[Stmt, int]:
    body, size = _bounded(s.body)
    count = nodes.as_int(s.extent)
    unrolls = s.kind == tirx.ForKind.UNROLLED
    if unrolls and isinstance(count, int) and count * size <= MOST_STATEMENTS:
        return s if body.same_as(s.body) else replace_for(s, body), max(count, 0) * size
    if not unrolls:
        return s if body.same_as(s.body) else replace_for(s, body), size
    return replace_for(s, body, kind=tirx.ForKind.SERIAL), size
