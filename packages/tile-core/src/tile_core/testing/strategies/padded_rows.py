"""Programs on tiles of more rows than their results have.

Steps may use a row of another step's tile at the same number, at another one, or all rows.
"""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.testing.case import VALUE, Unit, output, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, themed

_ROWS, _COLUMNS = (2, 5, 8, 16, 17), (4, 8, 16, 33)
#: Loads of the first tile.
_LOADS = (
    "T.copy(A[bx * {m}, 0], s)", "T.copy(A[0:{m}, :], s)",
    "{all}\n    s[i, j] = T.if_then_else(i < {rows}, A[i, j], 0)", "{all}\n    s[i, j] = A[{m} - 1 - i, j]",
)  # fmt: skip
#: Steps from the tile s, of m x n elements, and the vector v to either of them.
_STEPS = (
    "{all}\n    s[i, j] = s[i, j] * 2 - v[i]", "{all}\n    s[i, j] = s[i, j] + v[{m} - 1 - i]",
    "{all}\n    s[i, j] = s[i, j] + v[{row}]", "T.reduce_sum(s, v, dim=1)", "T.reduce_max(s, v, dim=1, clear=False)",
    "for i in T.Parallel({m}):\n    v[i] = s[i, 1] - v[i]", "v[{row}] = s[{other}, 2]",
    "for i in T.serial({m}):\n    v[i] = v[i] + s[i, 0]", "T.copy(s, t)\nT.gemm(t, w, s)",
    "T.copy(s, t)\nT.gemm(t, w, s, clear_accum=True)", "T.copy(s, t)\nT.gemm(t, s, g, transpose_A=True)\nT.copy(g, w)",
    "T.copy(s, t)\n{all}\n    s[i, j] = t[i, j] + t[{other}, j]",
    "T.copy(s, t)\n{all}\n    s[i, j] = t[T.min(i + 1, {m} - 1), j] - 1", "T.cumsum(s, dim=0)", "T.fill(v, 3)",
    "for o in T.serial(2):\n    {all}\n        s[i, j] = s[i, j] + v[i] * o",
    "if bx == 0:\n    T.copy(s[{row} : {row} + 1, :], t[{other} : {other} + 1, :])\nT.copy(t, s)",
    "w[{other} % {n}, 1] = v[{row}]",
)  # fmt: skip
#: Stores of results, of ``rows`` rows.
_STORES = (
    "T.copy(s, B[bx * {m}, 0])", "{all}\n    if i < {rows}:\n        B[i, j] = s[i, j]",
    "{all}\n    if i + 1 <= {rows} and j < {n}:\n        B[i, j] = s[i, j] + v[i]", "T.copy(s[0:{rows}, :], B)",
    "{all}\n    if {rows} > i:\n        B[i, j] = s[i, j]\n    else:\n        C[i, j] = 1",
)  # fmt: skip
_MORE = (
    "", "for i in T.Parallel({m}):\n    if i < {rows}:\n        C[i, 0] = v[i]",
    "{all}\n    C[i, j] = s[i, j]",
)  # fmt: skip


@st.composite
def padded_rows(draw: Draw) -> Unit:
    """Draw steps on tiles whose last rows are not stored."""
    m, n = draw(st.sampled_from(_ROWS)), draw(st.sampled_from(_COLUMNS))
    rows = draw(st.integers(1, m))
    sizes = {"m": m, "n": n, "rows": rows, "all": f"for i, j in T.Parallel({m}, {n}):"}
    lines = [f"{x} = T.alloc_fragment(({m}, {n}), 'float32')" for x in "st"]
    lines += [f"v = T.alloc_fragment(({m},), 'float32')", f"w = T.alloc_shared(({n}, {n}), 'float32')"]
    lines += [
        f"g = T.alloc_fragment(({n}, {n}), 'float32')",
        "T.fill(w, 1)",
        "T.clear(t)",
        "T.clear(g)",
        "T.fill(v, 2)",
    ]
    for form in (
        draw(st.sampled_from(_LOADS)),
        *draw(st.lists(st.sampled_from(_STEPS), min_size=1, max_size=5)),
        draw(st.sampled_from(_STORES)),
        draw(st.sampled_from(_MORE)),
    ):
        row, other = (draw(st.integers(0, m - 1)) for _ in range(2))
        lines.append(form.format(**sizes, row=row, other=other))
    params = [tensor("A", "float32", m, n), output("B", "float32", rows, n), output("C", "float32", m, n)]
    data = {"A": randoms(draw, (m, n), "float32", -2, 2)}
    return themed("padded-rows", draw, params, "\n".join(lines), {"": data}, VALUE, threads=128, grid="1", axes="bx")
