"""Functions of scalars that take tiles too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tile_core.values.tile_values import TileValue, is_tile

P = ParamSpec("P")
R = TypeVar("R")


def elementwise(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function of scalars take tiles, element by element; keywords with tiles too."""

    @functools.wraps(function)
    def applied(*args: P.args, **keywords: P.kwargs) -> R:
        if any(map(is_tile, args)) or any(map(is_tile, keywords.values())):
            return TileValue(function, (*args, *keywords.values()), tuple(keywords))  # type: ignore[return-value]
        return function(*args, **keywords)

    return applied
