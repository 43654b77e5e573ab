"""Products of tall tiles shared by groups of warps: pipelined, chained, with code between.

The first operand may be 2:4 sparse. What stands behind the loop may take elements of vectors by row or column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tile_core.dtypes import DTYPES
from tile_core.testing.case import VALUE, Param, Unit, output, tensor
from tile_core.testing.data import stored, values
from tile_core.testing.sketch import sparse_operand
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, themed

_KINDS = {
    "float16": "float32", "bfloat16": "float32", "tfloat32": "float32", "int8": "int32", "uint8": "int32",
    "float8_e4m3fn": "float32", "float8_e5m2": "float32",
}  # fmt: skip
#: Element types of the results, by accumulator type.
_RESULTS = {
    "float32": ("float32", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
    "int32": ("int32", "int32", "int8", "uint8"),
}
_ROWS, _COLUMNS, _DEPTHS = (
    (64, 128, 128, 192, 256, 72),
    (8, 16, 24, 32, 40, 64, 72, 96, 128),
    (16, 32, 32, 48, 64, 64, 128),
)
_LARGEST = (128, 128, 256), (16, 32, 48, 64, 96, 128, 240), (64, 64, 128)
_THREADS = (128, 128, 160, 256, 256, 384, 96)
#: Rows and columns of tiles whose rows divide over two warpgroups.
_LEAVING = ((128, 64), (128, 64), (128, 96), (128, 128), (256, 64))
#: Statements that store results, and their annotation before the loop.
_CORNERS: tuple[tuple[tuple[str, ...], str], ...] = (
    *[((), "{at}")] * 4, (("r = {at}",), "r"), (("r = {at}",), "r"), (('r = T.alloc_var("int32")', "r = {at}"), "r"),
    (('r = T.alloc_local((1,), "int32")', "r[0] = {at}"), "r[0]"),
)  # fmt: skip
_POLICIES = ("", "", ", policy=T.GemmWarpPolicy.FullRow", ", policy=T.GemmWarpPolicy.FullCol")
_BETWEEN = ("", "c[i, j] = c[i, j] * 2", "c[i, j] = T.max(c[i, j], 0)", "c[i, j] = c[i, j] + T.cast(j, c.dtype)")
#: Statements that take elements of a vector V for each column, or a matrix U with one of its rows for each row.
_TAKING = (
    "c[i, j] = c[i, j] * {u} + {v}", "c[i, j] = c[i, j] * {u} * {v}", "c[i, j] = c[i, j] + {u}",
    "c[i, j] = c[i, j] * {v}", "c[i, j] = c[i, j] + {v} - {v}",
    "if c[i, j] > 0:\n        c[i, j] = c[i, j] * {v}", "c[i, j] = T.if_then_else(j < {n} - 3, {v}, {u})",
    "at = bx * {n} + j\n    c[i, j] = c[i, j] + T.cast(V[at], c.dtype) * {u}",
)  # fmt: skip

#: Statements that store an accumulator; ``r`` and ``q`` are its first row and column, ``E`` is another result.
_STORES = (
    "{all}\n    B[{r} + i, {q} + j] = c[i, j]",
    "{all}\n    if {r} + i < {rows} and {q} + j < {columns}:\n        B[{r} + i, {q} + j] = c[i, j] + 1",
    "{all}\n    v = c[i, j] * 2\n    if {r} + i < {rows} - 1:\n        B[{r} + i, {q} + j] = v + v",
    'h = T.alloc_fragment(({m}, {n}), "{out}")\n{all}\n    h[i, j] = T.max(c[i, j], 0)\nT.copy(h, B[{r}, {q}])',
    "{all}\n    v = T.min(c[i, j], 3)\n    B[{r} + i, {q} + j] = v\n    E[{r} + i, {q} + j] = v - c[i, j]",
    "T.copy(c, B[{r}, {q}])\n{all}\n    E[{q} + j, {r} + i] = c[i, j]",
    "T.copy(c, B[{r}, {q}])\nfor j, i in T.Parallel({n}, {m}):\n    E[{q} + j, {r} + i] = c[i, j] - 1",
)
#: Fills of accumulators before the loop.
_FILLS = ("T.clear(c)", "T.fill(c, 2)", "for i, j in T.Parallel({m}, {n}):\n    c[i, j] = 0")

#: Iterations of loops over K: rows of metadata may be loaded for eight at a time.
_TRIPS = st.sampled_from((1, 2, 3, 4, 4, 6, 8, 8, 10))
#: Blocks along rows and columns of the result: those that read the same tile may load it for each other.
_BLOCKS = st.tuples(st.sampled_from((1, 2, 2, 2, 3)), st.sampled_from((1, 2, 2)))


@st.composite
def tall_products(draw: Draw) -> Unit:
    """Draw a product, two chained ones, or one of a sparse operand."""
    number = draw(st.integers(0, 7))
    return draw(sparse_products() if number < 2 else leaving_products() if number == 2 else dense_products(number == 3))


@st.composite
def leaving_products(draw: Draw) -> Unit:
    """Draw a product of several tiles whose narrow results may use a late epilogue.

    They may be stored while the next tile is computed.
    """
    kind, out = (draw(st.sampled_from(x)) for x in (("float16", "bfloat16", "float8_e4m3fn"), ("float16", "bfloat16")))
    (m, n), k = draw(st.sampled_from(_LEAVING)), draw(st.sampled_from((32, 64)))
    tb = kind.startswith("float8") or draw(st.booleans())
    trips, stages = n // 32 + draw(st.integers(-1, 2)), draw(st.sampled_from((2, 2, 3, 4)))
    high, wide = draw(st.sampled_from((2, 3))), draw(st.sampled_from((1, 2)))
    rows, columns = m * high - draw(st.sampled_from((0, 5, 56))), n * wide - draw(st.sampled_from((0, 8, 24)))
    depth = k * trips - draw(st.sampled_from((0, 0, 16)))
    lines = [f's = T.alloc_shared(({m}, {k}), "{kind}")', f't = T.alloc_shared({(n, k) if tb else (k, n)}, "{kind}")']
    named, row = draw(st.sampled_from(_CORNERS))
    lines += [f'c = T.alloc_fragment(({m}, {n}), "float32")', "T.clear(c)", *(x.format(at=f"by * {m}") for x in named)]
    lines += [f"for o in T.Pipelined({trips}, num_stages={stages}):", f"    T.copy(X[by * {m}, o * {k}], s)"]
    lines += [f"    T.copy(Y[{f'bx * {n}, o * {k}' if tb else f'o * {k}, bx * {n}'}], t)"]
    lines += [f"    T.gemm(s, t, c, transpose_B={tb})"]
    more, taken, given = _behind(draw, (m, n), (rows, columns), "float32")
    whole_b = (columns, depth) if tb else (depth, columns)
    params = [tensor("X", kind, rows, depth), tensor("Y", kind, *whole_b), *taken, output("B", out, rows, columns)]
    data = {"X": randoms(draw, (rows, depth), kind, -2, 2), "Y": randoms(draw, whole_b, kind, -2, 2), **given}
    body = "\n".join([*lines, *more, f"T.copy(c, B[{row.format(at=f'by * {m}')}, bx * {n}])"])
    return themed(
        "tall-leaving", draw, params, body, {"": data}, VALUE, threads=256, grid=f"{wide}, {high}", axes="(bx, by)"
    )


@st.composite
def sparse_products(draw: Draw) -> Unit:
    """Draw a product with a sparse operand."""
    kind, meta = draw(st.sampled_from(("float16", *_KINDS))), draw(st.sampled_from(("int16", "int32", "uint8")))
    acc, (m, n, k, threads, whole) = _KINDS[kind], _shape(draw, (32, 64, 64, 96, 128))
    high, wide = draw(_BLOCKS)
    group, te, trips = 2 if kind == "tfloat32" else 4, draw(st.sampled_from((False, False, True))), draw(_TRIPS)
    tb = whole or draw(st.sampled_from((True, True, False)))
    per = DTYPES[meta].bits // 4 * group
    kept, metadata = sparse_operand(draw(st.integers(0, 10**6)), m * high, k * trips, kind, meta)
    e_tile, b_tile = ((k // per, m) if te else (m, k // per)), ((n, k) if tb else (k, n))
    whole_b = (n * wide, k * trips) if tb else (k * trips, n * wide)
    lines = [f's = T.alloc_shared(({m}, {k // 2}), "{kind}")', f'e = T.alloc_shared({e_tile}, "{meta}")']
    lines += [f't = T.alloc_shared({b_tile}, "{kind}")', f'c = T.alloc_fragment(({m}, {n}), "{acc}")', "T.clear(c)"]
    lines += [f"for o in T.Pipelined({trips}, num_stages={draw(st.integers(0, 4))}):"]
    lines += [
        f"    T.copy(X[by * {m}, o * {k // 2}], s)",
        f"    T.copy(E[{f'o * {k // per}, by * {m}' if te else f'by * {m}, o * {k // per}'}], e)",
    ]
    lines += [f"    T.copy(Y[{f'bx * {n}, o * {k}' if tb else f'o * {k}, bx * {n}'}], t)"]
    lines += [f"    T.gemm_sp(s, e, t, c, transpose_E={te}, transpose_B={tb})"]
    more, taken, given = _behind(draw, (m, n), (m * high, n * wide), acc)
    lines += more
    found = np.ascontiguousarray(metadata.T) if te else metadata
    params = [tensor("X", kind, *kept.shape), tensor("E", meta, *found.shape), tensor("Y", kind, *whole_b)]
    data = {"X": stored(values(kept, kind), kind), "E": found, "Y": randoms(draw, whole_b, kind, -2, 2), **given}
    body = "\n".join([*lines, f"T.copy(c, B[by * {m}, bx * {n}])"])
    params += [*taken, output("B", draw(st.sampled_from(_RESULTS[acc])), m * high, n * wide)]
    return themed(
        "tall-sparse", draw, params, body, {"": data}, VALUE, threads=threads, grid=f"{wide}, {high}", axes="(bx, by)"
    )


@st.composite
def dense_products(draw: Draw, counted: bool = False) -> Unit:
    """Draw a dense product, or two of which the second uses the first one's accumulator.

    Parameters
    ----------
    counted
        Whether a tensor holds the trip count of each row of blocks, including 0.
    """
    kind = draw(st.sampled_from(("float16", "float16", "bfloat16", *_KINDS)))
    acc, (m, n, k, threads, whole) = _KINDS[kind], _shape(draw, _DEPTHS)
    bits = DTYPES[kind].bits
    ta = draw(st.booleans()) and kind != "tfloat32" and not (whole and bits != 16)
    tb = (whole and bits != 16) or draw(st.sampled_from((True, True, False)))
    trips, stages = draw(st.integers(1, 4)), draw(st.sampled_from((0, 2, 3, 4) if whole else (0, 1, 2, 3, 4)))
    scope = "shared" if whole else draw(st.sampled_from(("shared", "shared", "fragment")))
    a_tile, b_tile = ((k, m) if ta else (m, k)), ((n, k) if tb else (k, n))
    chained = kind == "float16" and n <= 64 and draw(st.booleans())
    # Blocks along rows and columns of the result, and what the last of them have too much.
    high, wide = (1, 1) if chained else draw(_BLOCKS)
    below, beside = (0, 0) if chained else (draw(st.sampled_from((0, 0, 5, 56))), draw(st.sampled_from((0, 0, 1, 4))))
    rows, columns, depth = m * high - below, n * wide - beside, k * trips
    whole_a, whole_b = (depth, rows) if ta else (rows, depth), (columns, depth) if tb else (depth, columns)
    policy = draw(st.sampled_from(_POLICIES))
    lines = [f's = T.alloc_shared({a_tile}, "{kind}")', f't = T.alloc_shared({b_tile}, "{kind}")']
    lines += [f'c = T.alloc_fragment(({m}, {n}), "{acc}")', draw(st.sampled_from(_FILLS)).format(m=m, n=n)]
    lines += [f"for o in T.Pipelined({'L[by]' if counted else trips}, num_stages={stages}):"]
    lines += [f"    T.copy(X[{f'o * {k}, by * {m}' if ta else f'by * {m}, o * {k}'}], s)"]
    lines += [f"    T.copy(Y[{f'bx * {n}, o * {k}' if tb else f'o * {k}, bx * {n}'}], t)"]
    if scope == "fragment":
        lines[2:2] = [f'f = T.alloc_fragment({a_tile}, "{kind}")']
        lines += ["    T.copy(s, f)"]
    lines += [f"    T.gemm({'f' if scope == 'fragment' else 's'}, t, c, {ta}, {tb}{policy})"]
    more, taken, given = _behind(draw, (m, n), (rows, columns), acc)
    lines += more
    out = draw(st.sampled_from(_RESULTS[acc]))
    params = [tensor("X", kind, *whole_a), tensor("Y", kind, *whole_b), *taken, output("B", out, rows, columns)]
    data = {"X": randoms(draw, whole_a, kind, -2, 2), "Y": randoms(draw, whole_b, kind, -2, 2), **given}
    if counted:
        counts = draw(st.lists(st.integers(0, trips), min_size=high, max_size=high))
        params, data["L"] = [tensor("L", "int32", high), *params], np.array(counts, "int32")
    if chained:
        width = draw(st.sampled_from((16, 32, 64)))
        lines += [f'p = T.alloc_fragment(({m}, {n}), "float16")', f'w = T.alloc_shared(({n}, {width}), "float16")']
        lines += [f'd = T.alloc_fragment(({m}, {width}), "float32")', "T.copy(W, w)"]
        lines += [f"for i, j in T.Parallel({m}, {n}):\n    p[i, j] = T.min(T.max(c[i, j], -9), 9)"]
        lines += ["T.gemm(p, w, d, clear_accum=True)", "T.copy(d, D)"]
        params += [tensor("W", "float16", n, width), output("D", "float32", m, width)]
        data["W"] = randoms(draw, (n, width), "float16", -2, 2)
    stores, more_results = _stored(draw, (m, n), (rows, columns), out)
    params += more_results
    body = "\n".join([*lines, stores])
    return themed(
        "tall-products", draw, params, body, {"": data}, VALUE, threads=threads, grid=f"{wide}, {high}", axes="(bx, by)"
    )


def _stored(draw: Draw, tile: tuple[int, int], sizes: tuple[int, int], out: str) -> tuple[str, list[Param]]:
    """Draw the statements that store an accumulator, and the parameters that they need beside B."""
    (m, n), (rows, columns) = tile, sizes
    if out not in ("float32", "float16", "bfloat16") or draw(st.booleans()):
        return f"T.copy(c, B[by * {m}, bx * {n}])", []
    form = draw(st.sampled_from(_STORES))
    names = {"m": m, "n": n, "r": f"by * {m}", "q": f"bx * {n}", "rows": rows, "columns": columns, "out": out}
    turned = "E[{q}" in form
    more = [output("E", out, *((columns, rows) if turned else (rows, columns)))] if "E[" in form else []
    return form.format(**names, all=f"for i, j in T.Parallel({m}, {n}):"), more


def _behind(
    draw: Draw, tile: tuple[int, int], sizes: tuple[int, int], acc: str
) -> tuple[list[str], list[Param], dict[str, Any]]:
    """Draw an epilogue and its operands: lines, parameters and data."""
    (m, n), (rows, columns) = tile, sizes
    if draw(st.integers(0, 2)):
        between = draw(st.sampled_from(_BETWEEN))
        return [f"for i, j in T.Parallel({m}, {n}):\n    {between}"] if between else [], [], {}
    kind = draw(st.sampled_from((acc, acc, "float16", "bfloat16", "int8") if acc == "float32" else (acc, acc, "int8")))
    before = draw(st.sampled_from(("", "", " - 3", " + 5")))
    names = {"m": m, "n": n, "u": f"T.cast(U[bx, by * {m} + i{before}], c.dtype)"}
    names["v"] = f"T.cast(V[bx * {n}{before} + j], c.dtype)"
    lines = [f"for i, j in T.Parallel({m}, {n}):\n    {draw(st.sampled_from(_TAKING)).format(**names)}"]
    other = f"for i, j in T.Parallel({m}, {n}):\n    c[i, j] = c[i, j] + {names['v']}"
    lines += [other] if draw(st.integers(0, 3)) == 0 else []
    # Vectors may end before the tiles do.
    shapes = {"U": (draw(st.sampled_from((1, 3))), rows), "V": (max(1, columns - draw(st.sampled_from((0, 0, 7)))),)}
    params = [tensor(name, kind, *shape) for name, shape in shapes.items()]
    return lines, params, {name: randoms(draw, shape, kind, -2, 2) for name, shape in shapes.items()}


def _shape(draw: Draw, depths: tuple[int, ...]) -> tuple[int, int, int, int, bool]:
    """Draw rows, columns, depth, threads, and whether they are those of the largest instructions."""
    if draw(st.booleans()):
        return (*(draw(st.sampled_from(x)) for x in _LARGEST), 128, True)
    m, n, k, threads = (draw(st.sampled_from(x)) for x in (_ROWS, _COLUMNS, depths, _THREADS))
    return m, n, k, threads, False
