"""Strategies for expressions of whole tiles: broadcasting, slices, in-place updates, new names, operands of ops."""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.dtypes import DTYPES
from tile_core.testing.sketch import Block, Sketch, Tile, limit
from tile_core.testing.strategies.draws import SCOPES, Draw, convertible, is_matrix, pick
from tile_core.testing.strategies.elementwise import Operand, expression


def whole_tiles(draw: Draw, sketch: Sketch, block: Block, grow: int = 1) -> None:
    """Draw a whole-tile expression stored in a tile or slice, or passed to an op."""
    to = pick(draw, sketch, is_matrix)
    if to is None:
        return
    if draw(st.booleans()):
        to = sketch.alloc(to.shape, to.dtype, draw(st.sampled_from(SCOPES)), 0.0)
    form = draw(st.sampled_from(("all", "slice", "name", "op", "in place", "where")))
    low, rows = 0, to.shape[0]
    if form == "slice":
        low = draw(st.integers(0, rows - 1))
        rows = draw(st.integers(1, rows - low))
    part = Tile(to.name, (rows, to.shape[1]), to.dtype, to.scope, to.bound)
    text, bound = expression(draw, sketch, part, draw(st.integers(0, 2)), _leaf)
    if form == "in place":
        bound += to.bound
    if bound * grow > limit(to.dtype) and not DTYPES[to.dtype].is_integer:
        return
    sketch.grown(to, float("inf") if DTYPES[to.dtype].is_integer else bound)
    block.add(_statement(form, sketch, part, text, low))


def _statement(form: str, sketch: Sketch, to: Tile, text: str, low: int) -> str:
    """Return the text of an assignment."""
    tile = f"({text}) + {to.name} * T.cast(0, {to.dtype!r})"  # a tile even where the expression is a number
    if form == "name":
        name = sketch.fresh("w")
        return f"{name} = {tile}\nT.copy({name}, {to.name})"
    if form == "op":
        return f"T.copy({tile}, {to.name})"
    if form == "in place":
        return f"{to.name} += {text}"
    if form == "where":
        return f"{to.name}[...] = T.where({to.name} > 1, {text}, {to.name})"
    return f"{to.name}[{low}:{low + to.shape[0]}, :] = {text}" if form == "slice" else f"{to.name}[...] = {text}"


def _leaf(draw: Draw, sketch: Sketch, to: Tile) -> Operand:
    """Draw a tile whose shape broadcasts to that of ``to``, or a constant."""
    dtype = to.dtype
    source = pick(draw, sketch, lambda t: convertible(t, dtype) or t.dtype == dtype) if draw(st.booleans()) else None
    text = None if source is None else _part(draw, source, to)
    if source is None or text is None:
        number = draw(st.integers(0, 3))
        return f'T.cast({number}, "{dtype}")', 3.0
    if source.dtype != dtype:
        text = draw(st.sampled_from((f'T.cast({text}, "{dtype}")', f'{text}.astype("{dtype}")')))
    return text, source.bound


def _part(draw: Draw, source: Tile, to: Tile) -> str | None:
    """Draw a part of a tile that broadcasts.

    Return ``None`` if no tile is large enough.
    """
    (rows, cols), name = to.shape, source.name
    forms: list[str] = []
    if len(source.shape) == 1:
        n = source.shape[0]
        if n >= cols:
            c = draw(st.integers(0, n - cols))
            part = f"{name}[{c}:{c + cols}]"
            forms += [part, f"{name}[None, {c}:{c + cols}]", f"T.cast({part}, {source.dtype!r})[None, :]"]
        if n >= rows:
            r = draw(st.integers(0, n - rows))
            part = f"{name}[{r}:{r + rows}"
            forms += [f"{part}, None]", f"T.cast({part}], {source.dtype!r})[..., None]"]
        forms.append(f"{name}[{n - 1}]")
    else:
        r, c = (draw(st.integers(0, max(0, a - b))) for a, b in zip(source.shape, to.shape, strict=True))
        row, col = f"{r}:{r + rows}", f"{c}:{c + cols}"
        wide, tall = source.shape[1] >= cols, source.shape[0] >= rows
        if wide and tall:
            forms += [f"{name}[{row}, {col}]"] * 3
        if source.shape == to.shape:
            forms += [name] * 3
        if wide:
            forms += [f"{name}[{r}, {col}]", f"{name}[{r}:{r + 1}, {col}]"]
        if tall:
            forms += [f"{name}[{row}, {c}:{c + 1}]", f"{name}[{row}, {c}][:, None]"]
    return draw(st.sampled_from(forms)) if forms else None
