"""Programs of tile ops split over roles, equivalent to the work of all threads."""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.testing.case import Unit
from tile_core.testing.sketch import Block, Sketch
from tile_core.testing.strategies.draws import EXTENTS, Draw
from tile_core.testing.strategies.moves import load
from tile_core.testing.strategies.structure import pipeline
from tile_core.testing.strategies.tiles import step

#: Threads of a block, and the threads and numbers of groups of its roles.
_SPLITS = (
    (64, 32, ("0", "1", "0, 1")), (128, 32, ("0", "1", "3", "1, 2")), (256, 128, ("0", "1")),
    (256, 64, ("0", "1, 2", "2, 3", "3")), (160, 32, ("4", "0, 1", "2, 3")),
)  # fmt: skip


@st.composite
def role_programs(draw: Draw) -> Unit:
    """Draw a program of tile ops with steps in roles, loops and conditions."""
    threads, size, groups = draw(st.sampled_from(_SPLITS))
    sketch = Sketch(draw(st.sampled_from(EXTENTS)), draw(st.sampled_from(EXTENTS)), threads)
    load(draw, sketch, sketch.body, (sketch.rows, sketch.cols))
    for _ in range(draw(st.integers(1, 4))):
        block = Block()
        for _ in range(draw(st.integers(1, 3))):
            _role(draw, sketch, block, size, draw(st.sampled_from(groups)))
        if draw(st.booleans()):
            step(draw, sketch, block, 1)
        _around(draw, sketch.body, block)
    fitting = [t for t in sketch.tiles.values() if t.shape == (sketch.rows, sketch.cols)]
    for t in fitting[-3:]:
        sketch.outputs[sketch.fresh("O")] = t
    r, c = sketch.rows, sketch.cols
    return sketch.unit([(2 * r, c, draw(st.integers(-1, 3)))], draw(st.integers(0, 10**6)))


def _role(draw: Draw, sketch: Sketch, block: Block, size: int, groups: str) -> None:
    inner = Block()
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.integers(0, 5)) == 0:
            pipeline(draw, sketch, inner)
        else:
            step(draw, sketch, inner, 1)
        if draw(st.integers(0, 4)) == 0:
            inner.add(f"T.sync_threads({_number(groups)}, {size * len(groups.split(','))})")
    if inner.lines:
        block.add(f"with T.ws({groups}, size={size}):\n{inner.indented()}")


def _number(groups: str) -> int:
    """Return the number of a role's barrier: another one for each set of groups."""
    return 1 + sum(1 << int(g) for g in groups.split(",")) % 15


def _around(draw: Draw, body: Block, block: Block) -> None:
    """Add statements as they are, or under a uniform condition."""
    if not block.lines:
        return
    condition = draw(st.sampled_from(("", "v > 1", "bx == 0")))
    if not condition:
        body.add("\n".join(block.lines))
        return

    body.add(f"if {condition}:\n{block.indented()}")
