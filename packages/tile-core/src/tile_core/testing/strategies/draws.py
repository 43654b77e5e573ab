"""Basic draws of all strategies: element types, extents, positions and tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tile_core.dtypes import DTYPES
from tile_core.testing.sketch import Sketch, Tile, limit

Draw = Callable[[Any], Any]

TYPES = ("float32", "float16", "int32", "bfloat16", "int8", "uint8", "int16", "float64", "uint32", "int64", "uint64")
EXTENTS = (1, 2, 3, 7, 8, 16, 17, 24, 33, 48)
SCOPES = ("shared", "fragment")
THREADS = (1, 31, 32, 64, 96, 128, 384)


def offset(draw: Draw, last: int) -> str:
    """Draw a position: a constant from 0 to ``last``, or an unchecked runtime value."""
    inside = st.integers(0, max(0, last)).map(str)
    return draw(st.one_of(inside, st.integers(-3, 3).map(lambda c: f"v + {c}")))


def pick(draw: Draw, sketch: Sketch, test: Callable[[Tile], bool] = lambda t: True) -> Tile | None:
    """Draw a tile that passes a test."""
    found = [t for t in sketch.tiles.values() if test(t)]
    return draw(st.sampled_from(found)) if found else None


def is_matrix(t: Tile) -> bool:
    """Whether a tile has two dimensions."""
    return len(t.shape) == 2


def convertible(source: Tile, dtype: str) -> bool:
    """Whether all values of a tile convert to an element type exactly or by wrapping."""
    if DTYPES[source.dtype].is_float:
        return source.bound <= limit(dtype) and (
            not DTYPES[dtype].is_integer or (source.bound <= 100 and DTYPES[dtype].kind == "int")
        )
    return not DTYPES[dtype].is_float
