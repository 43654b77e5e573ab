"""Pipelined loops whose tiles are gathered by row numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tile_core.testing.case import VALUE, Unit, output, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, themed

_KINDS = ("float16", "bfloat16", "float16", "float32", "float8_e4m3fn")
#: Rows of a tile, and its columns: of 16 to 256 bytes, and of less than a chunk of 4 bytes.
_ROWS, _COLUMNS = (64, 128, 64, 16, 17, 1), (64, 32, 16, 32, 20, 3)
_HEIGHT = 37
#: The most elements that a kernel gathers: the plain executor takes a second for 4 thousand.
_MOST = 6_144
#: Where the row numbers of a tile are, as a statement before the loop, one inside of it, and the operand.
_NUMBERS = {
    "shared": ("T.copy(R[by * {m}], r)", "", "r"),
    "tensor": ("", "", "R[by * {m} : by * {m} + {m}]"),
    "of an iteration": ("", "T.copy(R[o * {m}], r)", "r"),
    "computed": ("", "for i in T.Parallel({m}):\n    r[i] = R[i] + o", "r"),
}
_CORNERS = ("X[0, o * {k}]", "X[0, o * {k}]", "X[3, o * {k}]", "X[by, o * {k}]")


@st.composite
def gathered_loops(draw: Draw) -> Unit:
    """Draw a loop that multiplies or adds gathered rows, some of which do not exist."""
    kind, (m, k) = draw(st.sampled_from(_KINDS)), (draw(st.sampled_from(_ROWS)), draw(st.sampled_from(_COLUMNS)))
    trips = min(draw(st.sampled_from((3, 2, 5, 4, 1, 0))), max(1, _MOST // (m * k)))
    stages, n = draw(st.sampled_from((2, 2, 3, 4, 0))), draw(st.sampled_from((64, 8)))
    multiplied = draw(st.sampled_from((True, True, False)))
    high = draw(st.sampled_from((1, 2))) if 2 * m * k * trips <= _MOST else 1
    where = draw(st.sampled_from(tuple(_NUMBERS)))
    before, inside, operand = (x.format(m=m) for x in _NUMBERS[where])
    shape = (m, n) if multiplied else (m, k)
    lines = [f's = T.alloc_shared(({m}, {k}), "{kind}")']
    lines += [f'w = T.alloc_shared(({n}, {k}), "{kind}")'] if multiplied else []
    index = draw(st.sampled_from(("int32", "int32", "int64")))
    lines += [f'r = T.alloc_shared(({m},), "{index}")', f'c = T.alloc_fragment({shape}, "float32")']
    lines += [*before.splitlines(), "T.clear(c)", f"for o in T.Pipelined({trips}, num_stages={stages}):"]
    body = [*inside.splitlines(), f"T.gather({draw(st.sampled_from(_CORNERS)).format(k=k)}, {operand}, s)"]
    if multiplied:
        body += [f"T.copy(W[0, o * {k}], w)", "T.gemm(s, w, c, transpose_B=True)"]
    else:
        body += [f"for i, j in T.Parallel({m}, {k}):", '    c[i, j] += T.cast(s[i, j], "float32")']
    lines += [*(f"    {line}" for line in body), f"T.copy(c, B[by * {m}, 0])"]
    depth = max(k * trips, k) - draw(st.sampled_from((0, 0, 0, 2)))
    # The last tile may have more rows than numbers: those beyond the tensor read as 0.
    tiles = {"of an iteration": max(trips, 1), "computed": 1}.get(where, high)
    total = m * tiles - draw(st.sampled_from((0, 0, min(m, 3) - 1, m // 2)))
    params = [tensor("X", kind, _HEIGHT, depth), *([tensor("W", kind, n, depth)] if multiplied else [])]
    params += [tensor("R", index, total), output("B", "float32", m * high, shape[1])]
    data = {"X": randoms(draw, (_HEIGHT, depth), kind, -2, 2)}
    if multiplied:
        data["W"] = randoms(draw, (n, depth), kind, -2, 2)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    data["R"] = rng.integers(-2, _HEIGHT + 2, total).astype(index)
    threads = draw(st.sampled_from((128, 128, 256, 96)))
    return themed(
        "gathered-loops", draw, params, "\n".join(lines), {"": data}, VALUE, threads=threads, grid=f"1, {high}",
        axes="(bx, by)",
    )  # fmt: skip
