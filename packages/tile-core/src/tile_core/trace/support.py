"""What rewritten code calls for expressions and simple statements; see the table in ``trace/rewrite.py``."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any

from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.errors.language import BadStore, NoEffect, NotCompileTime, StatementInExpression
from tile_core.trace import assign
from tile_core.trace.conditions import as_condition
from tile_core.trace.frames import Frame
from tile_core.values.builder import current
from tile_core.values.value import Buffer, Region, Value, derive

__all__ = [
    "Frame", "and_", "augmented", "augmented_store", "builtin", "chain", "check", "choose", "loop_builtin", "not_",
    "or_", "snapshot", "statement", "store",
]  # fmt: skip

Thunk = Callable[[], Any]
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "is_": operator.is_, "is_not": operator.is_not, "in_": lambda a, b: a in b, "not_in": lambda a, b: a not in b,
}  # fmt: skip


def store(value: Any, target: Any, index: Any) -> None:
    """Do ``target[index] = value``."""
    if isinstance(target, Buffer):
        assign.store(target, index, value)
    elif isinstance(target, Value):
        raise BadStore(value="anything", target=f"an element of a {target.dtype} value", instead="index a buffer")
    elif isinstance(target, list) and isinstance(index, Value):
        fix = f"allocate memory of the kernel: T.alloc_local(({len(target)},), dtype) instead of the list"
        raise NotCompileTime(what="an index into a list of Python's", value=str(index.expr), fix=fix)
    else:
        target[index] = value


def augmented(op: str, old: Any, value: Any) -> Any:
    """Return the new value of ``old op= value``."""
    return getattr(operator, op)(old, value)


def augmented_store(op: str, target: Any, index: Any, value: Any) -> None:
    """Do ``target[index] op= value``, evaluating target and index once."""
    store(getattr(operator, op)(target[index], value), target, index)


def snapshot(value: Any) -> Any:
    """Read the variables of a right-hand side before any target is assigned: ``a, b = b, a``."""
    if isinstance(value, tuple):
        return tuple(assign.read(v) for v in value)
    return assign.read(value)


def statement(value: Any) -> None:
    """Refuse a computed value that nobody uses, such as ``A[i] == 1``."""
    if isinstance(value, Region):
        raise NoEffect(value=repr(value))
    if isinstance(value, Value) and not isinstance(value._expr, (tirx.Var, tirx.IntImm, tirx.FloatImm, ir.Call)):
        raise NoEffect(value=str(value._expr))


def check(condition: Any, message: Thunk) -> None:
    """Do ``assert condition, message``: now, or on the device."""
    if as_condition(condition) is None:
        if not condition:
            raise AssertionError(message())
        return
    from tile_core.trace.assertions import device_assert

    text = message()
    device_assert(condition, "" if text is None else str(text))


def and_(a: Any, b: Thunk) -> Any:
    """Return ``a and b``."""
    left = as_condition(a)
    if left is None:
        return b() if a else a
    return _logical("and", left, b)


def or_(a: Any, b: Thunk) -> Any:
    """Return ``a or b``."""
    left = as_condition(a)
    if left is None:
        return a if a else b()
    return _logical("or", left, b)


def _logical(word: str, left: Value, b: Thunk) -> Any:
    right = _pure(word, b)
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


def _may_trap(expr: Any) -> bool:
    """Whether evaluating the right operand is harmful when the left one decides: divisions and calls."""
    found: list[Any] = []
    for kind in (tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod, ir.Call):
        tvm_ffi.structural_walk(expr, (kind, found.append))
    return bool(found)


def not_(a: Any) -> Any:
    """Return ``not a``."""
    value = as_condition(a)
    return (not a) if value is None else derive(tirx.Not(value.expr), value.dtype, value)


def chain(ops: Sequence[str], left: Any, *rest: Thunk) -> Any:
    """Return ``a < b < c``, with every operand evaluated at most once."""
    right = rest[0]()
    first = _COMPARE[ops[0]](left, right)
    if len(rest) == 1:
        return first
    return and_(first, lambda: chain(ops[1:], right, *rest[1:]))


def choose(condition: Any, yes: Thunk, no: Thunk) -> Any:
    """Return ``yes if condition else no``; of runtime values only the chosen side is evaluated."""
    value = as_condition(condition)
    if value is None:
        return yes() if condition else no()
    from tile_core.trace.choices import if_then_else

    return if_then_else(value, _pure("if … else", yes), _pure("if … else", no))


def _pure(what: str, thunk: Thunk) -> Any:
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
    return result


def builtin(function: Any) -> Any:
    """Return what a builtin means in a kernel; the same object if it means nothing special, or is no builtin."""
    from tile_core.trace.python_builtins import MEANINGS

    try:
        return MEANINGS.get(function, function)
    except TypeError:
        return function


def loop_builtin(function: Any) -> Any:
    """Return what ``range`` means as the iterable of a ``for`` statement."""
    if function is builtins.range:
        from tile_core.trace.loops import loop_range

        return loop_range
    return function
