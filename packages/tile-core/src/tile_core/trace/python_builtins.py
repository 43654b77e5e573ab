"""Python's builtins on runtime values."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from tile_core.trace import assertions, choices
from tile_core.values import conversions, extremes, powers
from tile_core.values.value import Buffer, Region, Value

_RUNTIME = (Value, Buffer, Region)


def _has_runtime(args: tuple[Any, ...]) -> bool:
    return any(isinstance(a, _RUNTIME) for a in args)


def _extreme(ours: Callable[..., Any], python: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any, **keywords: Any) -> Any:
        items = tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        if keywords or (items is args and len(args) == 1) or not _has_runtime(items):
            return python(*args, **keywords)
        return ours(*items) if len(items) > 1 else items[0]

    return function


def _pow(base: Any, exponent: Any, *modulus: Any) -> Any:
    if modulus or not _has_runtime((base, exponent)):
        return builtins.pow(base, exponent, *modulus)
    return powers.pow(base, exponent)


def _convert(dtype: str, python: Callable[..., Any]) -> Callable[..., Any]:
    def function(*args: Any, **keywords: Any) -> Any:
        if len(args) == 1 and not keywords and _has_runtime(args):
            return conversions.cast(args[0], dtype)
        return python(*args, **keywords)

    return function


def _print(*items: Any, **keywords: Any) -> None:
    if _has_runtime(items):
        assertions.print(*items, **keywords)
    else:
        builtins.print(*items, **keywords)


def _len(x: Any) -> Any:
    return x.shape[0] if isinstance(x, (Buffer, Region)) and len(x.shape) else builtins.len(x)


def _every(ours: Callable[..., Any], python: Callable[..., Any]) -> Callable[..., Any]:
    def function(items: Any) -> Any:
        if isinstance(items, _RUNTIME):
            return ours(items)
        listed = list(items)
        return ours(listed) if _has_runtime(tuple(listed)) else python(listed)

    return function


#: Builtins with another meaning for runtime values; for anything else they are Python's.
MEANINGS: dict[Any, Callable[..., Any]] = {
    builtins.min: _extreme(extremes.min, builtins.min),
    builtins.max: _extreme(extremes.max, builtins.max),
    builtins.pow: _pow,
    builtins.int: _convert("int32", builtins.int),
    builtins.float: _convert("float32", builtins.float),
    builtins.bool: _convert("bool", builtins.bool),
    builtins.print: _print,
    builtins.len: _len,
    builtins.any: _every(choices.any_of, builtins.any),
    builtins.all: _every(choices.all_of, builtins.all),
}
