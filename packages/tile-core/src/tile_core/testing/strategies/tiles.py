"""Programs of tile ops, drawn step by step."""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.testing.case import Unit
from tile_core.testing.sketch import Block, Sketch
from tile_core.testing.strategies.draws import EXTENTS, THREADS, Draw
from tile_core.testing.strategies.elementwise import elementwise
from tile_core.testing.strategies.moves import (
    cast_tile,
    copy_tile,
    fill,
    gathered,
    load,
    reduction,
    scan,
    transpose,
)  # fmt: skip
from tile_core.testing.strategies.products import product, sparse_product
from tile_core.testing.strategies.structure import loop, pipeline
from tile_core.testing.strategies.whole import whole_tiles


@st.composite
def tile_programs(draw: Draw) -> Unit:
    """Draw a legal program: the target must compute what plain Python computes."""
    sketch = Sketch(draw(st.sampled_from(EXTENTS)), draw(st.sampled_from(EXTENTS)), draw(st.sampled_from(THREADS)))
    load(draw, sketch, sketch.body, (sketch.rows, sketch.cols))
    size = draw(st.integers(1, 7))
    for _ in range(3 * size):  # a step that does not fit adds nothing
        if sketch.body.count <= size:
            step(draw, sketch, sketch.body)
    fitting = [t for t in sketch.tiles.values() if t.shape == (sketch.rows, sketch.cols)]
    for t in fitting[-3:]:
        sketch.outputs[sketch.fresh("O")] = t
    r, c = sketch.rows, sketch.cols
    sizes = [(r, c, 1), (draw(st.integers(1, 2 * r + 3)), draw(st.integers(1, 2 * c + 3)), draw(st.integers(-2, 5)))]
    return sketch.unit(sizes if sizes[0] != sizes[1] else sizes[:1], draw(st.integers(0, 10**6)))


def step(draw: Draw, sketch: Sketch, block: Block, depth: int = 0) -> None:
    """Draw one statement."""
    simple = [load, fill, copy_tile, transpose, reduction, scan, cast_tile, gathered, sparse_product]
    simple += [elementwise] * 3 + [whole_tiles] * 3 + [product] * 3
    nested = [pipeline, pipeline, loop, branch] if depth == 0 else []
    chosen = draw(st.sampled_from([*simple, *nested]))
    chosen(draw, sketch, block) if chosen is not load else load(draw, sketch, block, None)


def branch(draw: Draw, sketch: Sketch, block: Block) -> None:
    """Statements under a condition that is the same for the whole block."""
    condition = draw(
        st.sampled_from(("v > 1", "bx == 0", "bx % 2 == 1", f"bx * {sketch.rows} < m - 3", "v > 0 and bx < 2"))
    )
    inner, other = Block(), Block()
    step(draw, sketch, inner, 1)
    if draw(st.booleans()):
        step(draw, sketch, other, 1)

    text = f"if {condition}:\n{inner.indented()}"
    if other.lines:
        text += f"\nelse:\n{other.indented()}"
    if inner.lines:
        block.add(text)
