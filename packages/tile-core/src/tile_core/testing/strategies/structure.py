"""Steps that hold other steps: pipelines and loops."""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.dtypes import DTYPES
from tile_core.testing.sketch import Block, Sketch, limit
from tile_core.testing.strategies.draws import SCOPES, Draw, is_matrix, pick
from tile_core.testing.strategies.moves import copy_tile, fill, gathered, load, transpose


def pipeline(draw: Draw, sketch: Sketch, block: Block) -> None:
    """A pipelined loop that loads a tile and accumulates it."""
    rows, cols = sketch.rows, sketch.cols
    trips = draw(st.sampled_from((0, 1, 2, 4)))
    runtime = draw(st.booleans())
    stages = draw(st.integers(0, 4))
    inner = Block()
    t = load(draw, sketch, inner, (rows, cols), f"k * {rows} + bx")
    is_int = DTYPES[t.dtype].is_integer
    if not is_int and limit(t.dtype) < 3.0 * 8:
        return
    total = sketch.alloc((rows, cols), t.dtype, draw(st.sampled_from(SCOPES)), float("inf") if is_int else 24.0)
    inner.add(
        f"for i, j in T.Parallel({rows}, {cols}):\n    {total.name}[i, j] = {total.name}[i, j] + {t.name}[i, j]",
    )
    count = "v" if runtime else str(trips)
    block.add(f"for k in T.Pipelined({count}, num_stages={stages}):\n{inner.indented()}")


def loop(draw: Draw, sketch: Sketch, block: Block) -> None:
    """A serial loop around statements that may be repeated."""
    inner = Block()
    for _ in range(draw(st.integers(1, 2))):
        draw(st.sampled_from((fill, copy_tile, transpose, gathered, _maximum)))(draw, sketch, inner)
    count = draw(st.sampled_from(("0", "1", "3", "v")))
    kind = draw(st.sampled_from(("T.serial", "range") if count == "v" else ("T.serial", "T.unroll", "range")))

    if inner.lines:
        block.add(f"for k in {kind}({count}):\n{inner.indented()}")


def _maximum(draw: Draw, sketch: Sketch, block: Block) -> None:
    """An update that may happen any number of times."""
    t = pick(draw, sketch, is_matrix)
    if t is None:
        return
    value = draw(st.integers(0, 3))
    code = f"{t.name}[i, j] = T.max({t.name}[i, j], {value})"
    sketch.grown(t, 3.0)
    block.add(f"for i, j in T.Parallel({t.shape[0]}, {t.shape[1]}):\n    {code}")
