"""Rows of more elements than threads have registers: loaded, updated in place, reduced and stored."""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.testing.case import VALUE, Unit, output, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, themed

#: Elements of a thread in each of two fragments: beside each other, or alone, they are more than its registers.
_HELD = (60, 100, 128, 131, 250, 260)
_THREADS = (1, 2, 8, 32)
#: New values of an element of fragment {a}, beside those of the other one {b}.
_VALUES = (
    "{b}[i, j] + s[i]", "{a}[i, j] - s[i]", "T.max({a}[i, j], {b}[i, j])", "{a}[i, j] * v", "{a}[i, j] + s[i] * v",
    "A[row + i, j] + {b}[i, j]", "t[j] - {a}[i, j]", "t[{n} - 1 - j] + {a}[i, j]", "A[row + i, j]", "j - {b}[i, j]",
)  # fmt: skip
#: Statements between the loops: some change what elements were computed from.
_BETWEEN = (
    "v = v + 2", "T.copy(D[1, 0], t)", "T.clear({a})", "T.copy(A[row, 0], {a})", "T.reduce_max({a}, s, dim=1)",
    "T.reduce_sum({a}, s, dim=1)", "T.reduce_min({b}, s, dim=1)", "T.reduce_max({a}, s, dim=1)",
)  # fmt: skip
_CONDITIONS = ("if (i + j) % 3 == 0:", "if j < {n} - 2:", "if {b}[i, j] > 0:")


@st.composite
def long_rows(draw: Draw) -> Unit:
    """Draw maps and reductions of two fragments that exceed the registers of a thread."""
    threads, rows, blocks = draw(st.sampled_from(_THREADS)), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    n = max(2, threads * draw(st.sampled_from(_HELD)) // rows + draw(st.integers(-1, 1)))
    source = draw(st.sampled_from(("int32", "int16", "int32", "float16")))
    steps = [line for _ in range(draw(st.integers(2, 5))) for line in _step(draw, rows, n)]
    if draw(st.integers(0, 3)) == 0:
        steps = [f"for k in T.serial({draw(st.integers(1, 2))}):", *("    " + x for x in steps)]
    start = [
        f'x = T.alloc_fragment(({rows}, {n}), "int32")', f'y = T.alloc_fragment(({rows}, {n}), "int32")',
        f's = T.alloc_fragment(({rows},), "int32")', f't = T.alloc_shared(({n},), "int32")',
        'v = T.alloc_var("int32", init=3)', f"row = bx * {rows}", "T.copy(D[0, 0], t)", "T.copy(A[row, 0], x)",
        *_loop(rows, n, "y[i, j] = x[i, j] * 2 + t[j]"), "T.reduce_max(x, s, dim=1)",
    ]  # fmt: skip
    end = _loop(rows, n, "Q[row + i, j] = x[i, j] + y[i, j] * 3 + s[i]")
    shape, kinds = (rows * blocks, n), {"A": source, "D": "int32", "P": "int32", "Q": "int32"}
    shapes = {"A": shape, "D": (2, n), "P": shape, "Q": shape}
    params = [tensor("D", "int32", 2, n), *(output(a, kinds[a], *shape) for a in "APQ")]
    data = {a: randoms(draw, shapes[a], kinds[a], -9, 9) for a in "ADP"}
    body = "\n".join([*start, *steps, *end])
    return themed("long-rows", draw, params, body, {"": data}, VALUE, threads=threads, grid=str(blocks))


def _step(draw: Draw, rows: int, n: int) -> list[str]:
    """Draw a loop over the elements, or a statement between loops."""
    a, b = draw(st.sampled_from((("x", "y"), ("y", "x"))))
    names = {"a": a, "b": b, "n": n}
    kind = draw(st.integers(0, 9))
    if kind < 4:
        return [draw(st.sampled_from(_BETWEEN)).format(**names)]
    if kind == 4:
        return _loop(rows, n, f"A[row + i, j] = T.cast({a}[i, j] & 15, A.dtype)")
    value = f"{a}[i, j] = " + draw(st.sampled_from(_VALUES)).format(**names)
    if kind == 5:
        return _loop(rows, n, value, f"P[row + i, j] = {a}[i, j]")
    if kind < 8:
        return _loop(rows, n, draw(st.sampled_from(_CONDITIONS)).format(**names), "    " + value)
    return _loop(rows, n, value)


def _loop(rows: int, n: int, *body: str) -> list[str]:
    return [f"for i, j in T.Parallel({rows}, {n}):", *("    " + x for x in body)]
