"""Steps that move, fill, convert, reduce and scan tiles."""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.dtypes import DTYPES
from tile_core.testing.sketch import Block, Sketch, Tile, limit
from tile_core.testing.strategies.draws import (
    EXTENTS,
    SCOPES,
    TYPES,
    Draw,
    convertible,
    is_matrix,
    offset,
    pick,
)  # fmt: skip


def load(draw: Draw, sketch: Sketch, block: Block, shape: tuple[int, int] | None, corner: str = "") -> Tile:
    """Copy a window of an input, which may reach outside, into a new converted tile."""
    dtype = draw(st.sampled_from(TYPES))
    whole = DTYPES[dtype].is_integer and draw(st.booleans())
    name = sketch.input(dtype, whole)
    to = dtype if whole or draw(st.booleans()) else draw(st.sampled_from(TYPES))
    if DTYPES[to].kind == "uint" and DTYPES[dtype].is_float:
        to = dtype  # a negative float has no unsigned value
    extents = shape or (draw(st.sampled_from(EXTENTS)), draw(st.sampled_from(EXTENTS)))
    bound = float("inf") if DTYPES[to].is_integer else 3.0
    t = sketch.alloc(extents, to, draw(st.sampled_from(SCOPES)), bound)
    row = corner or f"bx * {sketch.rows} + {draw(st.integers(-2, 3))}"
    col = offset(draw, 2)
    slices = f"{row} : {row} + {extents[0]}, {col} : {col} + {extents[1]}"
    text = f"{name}[{row}, {col}]" if draw(st.booleans()) else f"{name}[{slices}]"
    block.add(f"T.copy({text}, {t.name})")
    return t


def fill(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Fill a tile or a slice of it, which may reach outside."""
    t = pick(draw, sketch, is_matrix)
    if t is None:
        return
    value = draw(st.integers(0 if DTYPES[t.dtype].kind == "uint" else -3, 3))
    size = draw(st.integers(1, t.shape[0]))
    low = offset(draw, t.shape[0] - size)
    block.add(f"T.fill({t.name}[{low} : {low} + {size}, :], {value})")
    sketch.grown(t, 3.0)


def cast_tile(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Copy a tile into a new one of another element type."""
    source = pick(draw, sketch)
    legal = [t for t in TYPES if source is not None and convertible(source, t)]
    if source is None or not legal:
        return
    dtype = draw(st.sampled_from(legal))
    bound = float("inf") if DTYPES[dtype].is_integer else source.bound
    t = sketch.alloc(source.shape, dtype, draw(st.sampled_from(SCOPES)), bound)
    block.add(f"T.copy({source.name}, {t.name})")


def copy_tile(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Copy rows of a tile to it or to another one of the same width."""
    source = pick(draw, sketch, is_matrix)
    if source is None:
        return
    to = pick(draw, sketch, lambda t: is_matrix(t) and t.shape[1] == source.shape[1] and t.dtype == source.dtype)
    if to is None:
        return
    rows = draw(st.integers(1, min(source.shape[0], to.shape[0])))
    a, b = offset(draw, source.shape[0] - rows), offset(draw, to.shape[0] - rows)
    block.add(f"T.copy({source.name}[{a} : {a} + {rows}, :], {to.name}[{b} : {b} + {rows}, :])")
    sketch.grown(to, source.bound)


def transpose(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Transpose a tile into a new one."""
    source = pick(draw, sketch, is_matrix)
    if source is None:
        return
    t = sketch.alloc(source.shape[::-1], source.dtype, draw(st.sampled_from(SCOPES)), source.bound)
    block.add(f"T.transpose({source.name}, {t.name})")


def reduction(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Reduce a tile into a vector."""
    source = pick(draw, sketch, is_matrix)
    if source is None:
        return
    dim = draw(st.integers(0, 1))
    is_int = DTYPES[source.dtype].is_integer
    kinds = ["max", "min", "sum", "absmax"] + (["bitand", "bitor", "bitxor", "prod", "any", "all"] if is_int else [])
    kind = draw(st.sampled_from(kinds))
    bound = source.bound * (source.shape[dim] if kind == "sum" else 1)
    if (bound > limit(source.dtype) and not is_int) or (is_int and kind.startswith("abs")):
        return
    t = sketch.alloc((source.shape[1 - dim],), source.dtype, "fragment", bound)
    block.add(f"T.reduce_{kind}({source.name}, {t.name}, dim={dim})")


def scan(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Scan a tile in place or into a new one."""
    source = pick(draw, sketch, is_matrix)
    if source is None:
        return
    dim, reverse, op = (
        draw(st.integers(0, 1)),
        draw(st.booleans()),
        draw(st.sampled_from(("cumsum", "cummax", "cumprod"))),
    )
    bound = source.bound * (source.shape[dim] if op == "cumsum" else 1)
    if op == "cumprod" and not DTYPES[source.dtype].is_integer:
        return  # products of many floats are rounded
    if bound > limit(source.dtype) and not DTYPES[source.dtype].is_integer:
        return
    t = source if draw(st.booleans()) else sketch.alloc(source.shape, source.dtype, "shared", bound)
    sketch.grown(t, bound)
    block.add(f"T.{op}({source.name}, {t.name}, dim={dim}, reverse={reverse})")


def gathered(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Gather rows of a tile by constant numbers, some outside."""
    source = pick(draw, sketch, is_matrix)
    if source is None:
        return
    rows = draw(st.lists(st.integers(-1, source.shape[0]), min_size=1, max_size=5))
    t = sketch.alloc((len(rows), source.shape[1]), source.dtype, "shared", source.bound)
    block.add(f"T.gather({source.name}, {rows}, {t.name})")
