"""Pipelined loops of several products, some of which use results of the same iteration."""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.testing.case import VALUE, Unit, output, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, themed

_THREADS = (128, 128, 256, 160, 96)
#: Statements before the first product of an iteration, between its products, and after the last one.
_BEFORE = ("", "", "", "T.clear(p)", "for i, j in T.Parallel({m}, {d}):\n    c[i, j] = c[i, j] + o")
_BETWEEN = ("", "for i, j in T.Parallel({m}, {d}):\n    c[i, j] = T.max(c[i, j], -99)", "T.reduce_max(s, top, dim=1)")
_BEHIND = ("", "", "", "T.clear(p)", "for i, j in T.Parallel({m}, {n}):\n    s[i, j] = 0")


@st.composite
def product_loops(draw: Draw) -> Unit:
    """Draw a loop of two or three chained products."""
    m, n, k = (draw(st.sampled_from(x)) for x in ((64, 64, 128, 32, 48, 16), (16, 32, 64, 32, 24), (16, 32, 64)))
    same = draw(st.sampled_from((False, False, True)))
    d = k if same else draw(st.sampled_from((16, 32, 64, 40)))
    # Products whose fragments leave registers for one block alone, and so for a producer warp.
    wide = draw(st.sampled_from((*[False] * 7, True)))
    m, n, k, d = (128, 32, 128 if same else k, 128) if wide else (m, n, k, d)
    trips, stages, sizes = (
        draw(st.sampled_from((2, 3, 4, 5, 5, 1, 0))),
        draw(st.sampled_from((2, 2, 3, 4, 0))),
        {"m": m, "n": n, "d": d},
    )
    held = draw(st.sampled_from(("fragment", "fragment", "shared")))
    fresh = draw(st.sampled_from((True, True, False)))
    lines = [f'q = T.alloc_shared(({m}, {k}), "float16")', f'y = T.alloc_shared(({n}, {k}), "float16")']
    lines += [f'z = T.alloc_shared(({n}, {d}), "float16")', f's = T.alloc_fragment(({m}, {n}), "float32")']
    lines += [f'p = T.alloc_{held}(({m}, {n}), "float16")', f'c = T.alloc_fragment(({m}, {d}), "float32")']
    lines += [f'e = T.alloc_fragment(({m}, {d}), "float32")', f'top = T.alloc_fragment(({m},), "float32")']
    lines += ["T.copy(Q, q)", "T.clear(c)", "T.clear(e)", "T.clear(s)", "T.clear(top)"]
    lines += [f"for o in T.Pipelined({trips}, num_stages={stages}):"]
    trip = [f"T.copy(Y[o * {n}, 0], y)", f"T.copy(Z[o * {n}, 0], z)"][: 1 if same else 2]
    trip += [draw(st.sampled_from(_BEFORE)), f"T.gemm(q, y, s, transpose_B=True, clear_accum={fresh})"]
    trip += [f"for i, j in T.Parallel({m}, {n}):\n    p[i, j] = T.min(T.max(s[i, j], -9), 9)"]
    trip += [draw(st.sampled_from(_BETWEEN)), f"T.gemm(p, {'y' if same else 'z'}, c)"]
    if wide or draw(st.booleans()):
        trip += [f"T.gemm(p, {'y' if same else 'z'}, e)"]
    trip += [draw(st.sampled_from(_BEHIND))]
    for s in trip:
        lines += [f"    {line}" for line in s.format(**sizes).splitlines()]
    params = [tensor("Q", "float16", m, k), tensor("Y", "float16", max(1, n * trips - 3), k)]
    params += [tensor("Z", "float16", max(1, n * trips - 5), d)]
    params += [output("B", "float32", m, d), output("C", "float32", m, d), output("D", "float32", m)]
    shapes = {"Q": (m, k), "Y": (max(1, n * trips - 3), k), "Z": (max(1, n * trips - 5), d)}
    data = {name: randoms(draw, shape, "float16", -2, 2) for name, shape in shapes.items()}
    body = "\n".join([*lines, "T.copy(c, B)", "T.copy(e, C)", "T.copy(top, D)"])
    threads = 256 if wide else draw(st.sampled_from(_THREADS))
    return themed("product-loops", draw, params, body, {"": data}, VALUE, threads=threads)
