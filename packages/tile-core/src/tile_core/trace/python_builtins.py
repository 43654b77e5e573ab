"""Python's builtins on runtime values."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from tile_core.trace import assertions, choices
from tile_core.values import conversions, extremes, powers
from tile_core.values.value import Buffer, Index, Region, TileValue, Value

_RUNTIME = (Value, Buffer, Region, TileValue)


def _has_runtime(args: tuple[object, ...]) -> bool:
    return any(isinstance(a, _RUNTIME) for a in args)


def _extreme(ours: Callable[..., object], python: Callable[..., object]) -> Callable[..., object]:
    def function(*args: object, **keywords: object) -> object:
        items = tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        if keywords or (items is args and len(args) == 1) or not _has_runtime(items):
            return python(*args, **keywords)
        return ours(*items) if len(items) > 1 else items[0]

    return function


def _pow(base: Any, exponent: Any, *modulus: Any) -> object:
    if modulus or not _has_runtime((base, exponent)):
        return builtins.pow(base, exponent, *modulus)
    return powers.pow(base, exponent)


def _convert(dtype: str, python: Callable[..., object]) -> Callable[..., object]:
    def function(*args: Any, **keywords: object) -> object:
        if len(args) == 1 and not keywords and _has_runtime(args):
            return conversions.cast(args[0], dtype)
        return python(*args, **keywords)

    return function


def _print(*items: object, **keywords: Any) -> None:
    if _has_runtime(items):
        assertions.print(*items, **keywords)
    else:
        builtins.print(*items, **keywords)


def _len(x: Any) -> Index:
    return x.shape[0] if isinstance(x, (Buffer, Region, TileValue)) and len(x.shape) else builtins.len(x)


def _every(ours: Callable[..., object], python: Callable[..., object]) -> Callable[..., object]:
    def function(items: Any) -> object:
        if isinstance(items, _RUNTIME):
            return ours(items)
        listed = list(items)
        return ours(listed) if _has_runtime(tuple(listed)) else python(listed)

    return function


#: Builtins with another meaning for runtime values; for anything else they are Python's.
MEANINGS: dict[object, Callable[..., object]] = {
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
