"""Functions of scalars that take tiles too."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tile_core.values.tile_values import TileValue, is_tile

P = ParamSpec("P")
R = TypeVar("R")


def elementwise(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function of scalars take tiles, element by element; keywords with tiles too."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def applied(*args: P.args, **keywords: P.kwargs) -> R:
        if any(map(is_tile, args)) or any(map(is_tile, keywords.values())):
            try:
                signature.bind(*args, **keywords)
            except TypeError as error:  # the function itself is called where the cause could not be located
                raise TypeError(f"{function.__name__}() {error}") from None
            return TileValue(function, (*args, *keywords.values()), tuple(keywords))  # type: ignore[return-value]
        return function(*args, **keywords)

    return applied
