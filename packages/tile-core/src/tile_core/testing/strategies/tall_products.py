"""Products of tiles with many rows, which groups of warps compute together: pipelined, chained, with code between."""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.testing.case import VALUE, Unit, output, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, themed

_KINDS = {
    "float16": "float32", "bfloat16": "float32", "tfloat32": "float32", "int8": "int32", "uint8": "int32",
    "float8_e4m3fn": "float32", "float8_e5m2": "float32",
}  # fmt: skip
_ROWS, _COLUMNS, _DEPTHS = (64, 64, 128, 192, 72), (8, 16, 24, 32, 40, 64, 72, 96, 128), (16, 32, 32, 48, 64, 64, 128)
_THREADS = (128, 128, 160, 256, 256, 384, 96)
_POLICIES = ("", "", ", policy=T.GemmWarpPolicy.FullRow", ", policy=T.GemmWarpPolicy.FullCol")
_BETWEEN = ("", "c[i, j] = c[i, j] * 2", "c[i, j] = T.max(c[i, j], 0)", "c[i, j] = c[i, j] + T.cast(j, c.dtype)")


@st.composite
def tall_products(draw: Draw) -> Unit:
    """Draw a product, or two of which the second takes the first one's sums."""
    kind = draw(st.sampled_from(("float16", *_KINDS)))
    acc, (m, n, k) = _KINDS[kind], (draw(st.sampled_from(x)) for x in (_ROWS, _COLUMNS, _DEPTHS))
    ta, tb = draw(st.booleans()) and kind != "tfloat32", draw(st.sampled_from((True, True, False)))
    trips, stages = draw(st.integers(1, 4)), draw(st.integers(0, 4))
    scope = draw(st.sampled_from(("shared", "shared", "fragment")))
    a_tile, b_tile = ((k, m) if ta else (m, k)), ((n, k) if tb else (k, n))
    whole_a = (a_tile[0] * trips, m) if ta else (m, k * trips)
    whole_b = (n, k * trips) if tb else (k * trips, n)
    policy = draw(st.sampled_from(_POLICIES))
    lines = [f's = T.alloc_shared({a_tile}, "{kind}")', f't = T.alloc_shared({b_tile}, "{kind}")']
    lines += [f'c = T.alloc_fragment(({m}, {n}), "{acc}")', draw(st.sampled_from(("T.clear(c)", "T.fill(c, 2)")))]
    lines += [f"for o in T.Pipelined({trips}, num_stages={stages}):"]
    lines += [f"    T.copy(X[{f'o * {k}, 0' if ta else f'0, o * {k}'}], s)"]
    lines += [f"    T.copy(Y[{f'0, o * {k}' if tb else f'o * {k}, 0'}], t)"]
    if scope == "fragment":
        lines[2:2] = [f'f = T.alloc_fragment({a_tile}, "{kind}")']
        lines += ["    T.copy(s, f)"]
    lines += [f"    T.gemm({'f' if scope == 'fragment' else 's'}, t, c, {ta}, {tb}{policy})"]
    between = draw(st.sampled_from(_BETWEEN))
    lines += [f"for i, j in T.Parallel({m}, {n}):\n    {between}"] if between else []
    params = [tensor("X", kind, *whole_a), tensor("Y", kind, *whole_b), output("B", acc, m, n)]
    data = {"X": randoms(draw, whole_a, kind, -2, 2), "Y": randoms(draw, whole_b, kind, -2, 2)}
    if kind == "float16" and n <= 64 and draw(st.booleans()):
        columns = draw(st.sampled_from((16, 32, 64)))
        lines += [f'p = T.alloc_fragment(({m}, {n}), "float16")', f'w = T.alloc_shared(({n}, {columns}), "float16")']
        lines += [f'd = T.alloc_fragment(({m}, {columns}), "float32")', "T.copy(W, w)"]
        lines += [f"for i, j in T.Parallel({m}, {n}):\n    p[i, j] = T.min(T.max(c[i, j], -9), 9)"]
        lines += ["T.gemm(p, w, d, clear_accum=True)", "T.copy(d, D)"]
        params += [tensor("W", "float16", n, columns), output("D", "float32", m, columns)]
        data["W"] = randoms(draw, (n, columns), "float16", -2, 2)
    body = "\n".join([*lines, "T.copy(c, B)"])
    return themed("tall-products", draw, params, body, {"": data}, VALUE, threads=draw(st.sampled_from(_THREADS)))
