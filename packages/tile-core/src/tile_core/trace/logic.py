"""Python's ``and``, ``or``, ``not`` and chained comparisons of runtime values: with short-circuit evaluation."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Expr
from tile_core.errors.language import StatementInExpression
from tile_core.trace.conditions import as_condition
from tile_core.values.builder import current
from tile_core.values.value import TileValue, Value, derive

Thunk = Callable[[], Any]
_COMPARE: dict[str, Callable[[Any, Any], object]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "is_": operator.is_, "is_not": operator.is_not, "in_": lambda a, b: a in b, "not_in": lambda a, b: a not in b,
}  # fmt: skip


def and_(a: object, b: Thunk) -> object:
    """Return ``a and b``."""
    left = as_condition(a)
    if left is None:
        return b() if a else a
    return _logical("and", left, b)


def or_(a: object, b: Thunk) -> object:
    """Return ``a or b``."""
    left = as_condition(a)
    if left is None:
        return a if a else b()
    return _logical("or", left, b)


def _logical(word: str, left: Value, b: Thunk) -> bool | Value:
    right = pure(word, b)
    value = as_condition(right)
    if value is None:
        # A Python operand decides at once, or is neutral.
        decides = bool(right) == (word == "or")
        return bool(right) if decides else left
    if _may_trap(value.expr):
        yes, no = (value.expr, left.expr) if word == "and" else (left.expr, value.expr)
        return derive(tirx.if_then_else(left.expr, yes, no), left.dtype, left, value)
    node = tirx.And if word == "and" else tirx.Or
    return derive(node(left.expr, value.expr), left.dtype, left, value)


def _may_trap(expr: Expr) -> bool:
    """Whether evaluating the right operand is harmful when the left one decides: divisions and calls."""
    found: list[Any] = []
    for kind in (tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod, ir.Call):
        tvm_ffi.structural_walk(expr, (kind, found.append))
    return any(isinstance(x, ir.Call) or not isinstance(x.b, tirx.IntImm) or int(x.b) in (0, -1) for x in found)


def not_(a: object) -> object:
    """Return ``not a``."""
    value = as_condition(a)
    return (not a) if value is None else derive(tirx.Not(value.expr), value.dtype, value)


def chain(ops: Sequence[str], left: object, *rest: Thunk) -> object:
    """Return ``a < b < c``, with every operand evaluated at most once."""
    right = rest[0]()
    first = _COMPARE[ops[0]](left, right)
    if len(rest) == 1:
        return first
    return and_(first, lambda: chain(ops[1:], right, *rest[1:]))


def pure(what: str, thunk: Thunk) -> object:
    """Return an operand of a lazy operator, which must not emit statements.

    Raises
    ------
    StatementInExpression
        If it does.
    """
    builder = current("a conditional expression")
    scope = builder.push("branch")
    try:
        result = thunk()
        emitted = bool(scope.statements)
    finally:
        builder.pop(scope)
    if emitted:
        raise StatementInExpression(what=what)
    if isinstance(result, Value) and result.reads:
        result.scope = builder.scope
    if isinstance(result, TileValue):
        result.moved(builder.scope)
    return result
