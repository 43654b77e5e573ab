"""Functions that rewritten code calls for expressions and simple statements; see ``trace/rewrite.py``."""

from __future__ import annotations

import builtins
import operator
from typing import Any

from tile_core.compat.tvm import ir, tirx
from tile_core.errors.language import BadStore, NoEffect, NotCompileTime
from tile_core.trace import assign
from tile_core.trace.assertions import device_assert
from tile_core.trace.choices import if_then_else
from tile_core.trace.conditions import as_condition
from tile_core.trace.frames import Frame
from tile_core.trace.logic import Thunk, and_, chain, not_, or_, pure
from tile_core.trace.loops import loop_range
from tile_core.trace.python_builtins import MEANINGS
from tile_core.values.buffer import store as store_element
from tile_core.values.value import Buffer, Region, TileValue, Value, is_tile

__all__ = [
    "Frame", "and_", "augmented", "augmented_store", "builtin", "chain", "check", "choose", "formatted", "loop_builtin",
    "not_", "or_", "snapshot", "statement", "store",
]  # fmt: skip


def store(value: object, target: Any, index: Any) -> None:
    """Do ``target[index] = value``."""
    if isinstance(target, Buffer):
        store_element(target, index, value)
    elif isinstance(target, Value):
        raise BadStore(value="anything", target=f"an element of a {target.dtype} value", instead="index a buffer")
    elif isinstance(target, list) and isinstance(index, Value):
        fix = f"allocate memory of the kernel: T.alloc_local(({len(target)},), dtype) instead of the list"
        raise NotCompileTime(what="an index into a list of Python's", value=str(index.expr), fix=fix)
    else:
        target[index] = value


def augmented(op: str, old: Any, value: Any) -> object:
    """Return the new value of ``old op= value``."""
    new = getattr(operator, op)(old, value)
    if isinstance(new, TileValue) and is_tile(old) and not isinstance(old, TileValue):
        new.into = old
    return new


def augmented_store(op: str, target: Any, index: Any, value: Any) -> None:
    """Do ``target[index] op= value``, evaluating target and index once."""
    store(getattr(operator, op)(target[index], value), target, index)


def snapshot(value: object) -> object:
    """Read the variables of a right-hand side before any assignment: ``a, b = b, a``."""
    if isinstance(value, tuple):
        return tuple(assign.read(v) for v in value)
    return assign.read(value)


def statement(value: object) -> None:
    """Refuse a computed value that is unused, such as ``A[i] == 1``."""
    if isinstance(value, (Region, TileValue)):
        raise NoEffect(value=repr(value))
    if isinstance(value, Value) and not isinstance(value._expr, (tirx.Var, tirx.IntImm, tirx.FloatImm, ir.Call)):
        raise NoEffect(value=str(value._expr))


def formatted(value: object) -> object:
    """Return a value for an f-string; runtime values have no text while tracing."""
    if isinstance(value, (Value, TileValue)):
        fix = 'print it at run time, T.print(value, msg="x is"); a message of T.device_assert is constant'
        raise NotCompileTime(what="the text of a runtime value in an f-string", value=repr(value), fix=fix)
    return value


def check(condition: Any, message: Thunk) -> None:
    """Do ``assert condition, message``: now, or on the device."""
    if as_condition(condition) is None:
        if not condition:
            raise AssertionError(message())
        return
    text = message()
    device_assert(condition, "" if text is None else str(text))


def choose(condition: object, yes: Thunk, no: Thunk) -> object:
    """Return ``yes if condition else no``; only the chosen side is evaluated at run time."""
    value = as_condition(condition)
    if value is None:
        return yes() if condition else no()
    return if_then_else(value, pure("if … else", yes), pure("if … else", no))


def builtin(function: object) -> object:
    """Return the kernel's version of a builtin; the same object without one."""
    try:
        return MEANINGS.get(function, function)
    except TypeError:
        return function


def loop_builtin(function: object) -> object:
    """Return the kernel's version of ``range`` as the iterable of a ``for`` statement."""
    if function is builtins.range:
        return loop_range
    return function
