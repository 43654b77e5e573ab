"""Strategies for elementwise work: expressions of tiles in T.Parallel loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from tile_core.dtypes import DTYPES
from tile_core.testing.sketch import Block, Sketch, Tile, limit
from tile_core.testing.strategies.draws import SCOPES, Draw, convertible, is_matrix, pick

#: Text, and the largest size of the value.
Operand = tuple[str, float]
#: Operations of integers, which wrap: in comparisons too, which compilers like to decide uncomputed.
_INTEGER_FORMS = (
    "({} & {})", "({} | {})", "({} ^ {})", "(({} >> 1) + ({} << 2))", "(-{1})", "({} // 3 + {} % 5)",
    "T.if_then_else({0} + 1 > {0}, {0}, {1})", "T.if_then_else({0} - {1} < {0}, {0}, {1})",
    "T.if_then_else({0} * 2 // 2 == {0}, {0}, {1})",
)  # fmt: skip


def elementwise(draw: Draw, sketch: Sketch, block: Block, grow: int = 1) -> None:
    """A T.Parallel loop that stores an expression of other tiles, perhaps under a condition."""
    to = pick(draw, sketch, is_matrix)
    if to is None:
        return
    if draw(st.booleans()):
        to = sketch.alloc(to.shape, to.dtype, draw(st.sampled_from(SCOPES)), 0.0)
    text, bound = expression(draw, sketch, to, draw(st.integers(0, 2)))
    is_int = DTYPES[to.dtype].is_integer
    if bound * grow > limit(to.dtype) and not is_int:
        return
    condition = draw(st.sampled_from(("", "", "(i + j) % 3 == 0", "i < v", "bx * {r} + i < m", "{t}[i, j] > 1")))
    condition = condition.format(r=sketch.rows, t=to.name)
    rows, cols = to.shape
    target = f"{to.name}[i, j]"
    inner = f"{target} = {text}"
    if condition:
        inner = f"if {condition}:\n        {inner}"
    sketch.grown(to, float("inf") if is_int else bound)
    block.add(f"for i, j in T.Parallel({rows}, {cols}):\n    {inner}")


def expression(
    draw: Draw, sketch: Sketch, to: Tile, depth: int, leaf: Callable[[Draw, Sketch, Tile], Operand] | None = None
) -> Operand:
    """Draw an expression of the element type of ``to``; ``leaf`` draws its operands."""
    leaf = leaf or _leaf
    if depth == 0:
        return leaf(draw, sketch, to)
    left, right = (expression(draw, sketch, to, depth - 1, leaf) for _ in "ab")
    dtype, is_int = to.dtype, DTYPES[to.dtype].is_integer
    larger = max(left[1], right[1])
    forms = [
        ("({} + {})", left[1] + right[1]), ("({} - {})", left[1] + right[1]), ("T.max({}, {})", larger),
        ("T.min({}, {})", larger), ("T.if_then_else({0} > {1}, {0}, {1})", larger),
        ("T.Select({0} == {1}, {0}, {1})", larger),
    ]  # fmt: skip
    if left[1] * right[1] <= limit(dtype) or is_int:
        forms.append(("({} * {})", left[1] * right[1]))
    if is_int:
        forms += [(form, 0.0) for form in _INTEGER_FORMS]
    form, bound = draw(st.sampled_from(forms))
    if bound > limit(dtype) and not is_int:
        return left
    return form.format(left[0], right[0]), float("inf") if is_int else bound


def _leaf(draw: Draw, sketch: Sketch, to: Tile) -> Operand:
    """Draw an element or constant, converted to the element type of ``to``.

    The element is of a tile, a vector or an input.
    """
    rows, cols = to.shape
    kind = draw(st.sampled_from(("tile", "tile", "constant", "index")))
    dtype = to.dtype
    if kind == "tile":
        source = pick(draw, sketch, lambda t: convertible(t, dtype) or t.dtype == dtype)
        if source is not None:
            return _element(draw, source, to)
    if kind == "index":
        bound = float(rows + cols)
        if bound <= limit(dtype) and DTYPES[dtype].bits >= 16:
            return f'T.cast(i + j, "{dtype}")', bound
    number = draw(st.integers(0, 3))
    return f'T.cast({number}, "{dtype}")', 3.0


def _element(draw: Draw, source: Tile, to: Tile) -> Operand:
    """Draw a read of another tile's element.

    The tile that is written is read at the same index only.
    """
    same = source.name == to.name
    if len(source.shape) == 1:
        index = draw(st.sampled_from(("j", "i", "j // 2")))
        indices: tuple[str, ...] = (index,)
    else:
        dr, dc = draw(st.integers(-2, 2)), draw(st.integers(-2, 2))
        shapes = (
            ["i, j"]
            if same
            else ["i, j", f"i + {dr}, j + {dc}", "j, i", f"{source.shape[0] - 1} - i, j", "i, 0", "i // 2, j % 5"]
        )
        indices = tuple(draw(st.sampled_from(shapes)).split(", "))
    text = _read(draw, source, to, indices)
    if source.dtype != to.dtype:
        text = f'T.cast({text}, "{to.dtype}")'
    return text, source.bound


def _read(draw: Draw, source: Tile, to: Tile, indices: tuple[str, ...]) -> str:
    """Return the text of a read.

    An index that may be outside is guarded, or depends on a scalar, so that no proof can decide it.
    """
    i, j = np.indices(to.shape)
    outside = []
    for d, (index, extent) in enumerate(zip(indices, source.shape, strict=True)):
        at = np.asarray(eval(index, {}, {"i": i, "j": j}))
        if ((at < 0) | (at >= extent)).any():
            outside.append((d, f"{index} >= 0 and {index} < {extent}"))
    if outside and draw(st.booleans()):
        hidden = [
            f"{index} + T.min(T.max(v, 0), 0)" if d in dict(outside) else index for d, index in enumerate(indices)
        ]
        return f"{source.name}[{', '.join(hidden)}]"
    text = f"{source.name}[{', '.join(indices)}]"
    if outside:
        guard = " and ".join(condition for _, condition in outside)
        return f'T.if_then_else({guard}, {text}, T.cast(0, "{source.dtype}"))'
    return text
