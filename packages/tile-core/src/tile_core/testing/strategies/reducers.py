"""Reducers over fragments of any shape, reductions of tiles, and products with few or odd threads."""

from __future__ import annotations

from hypothesis import strategies as st

from tile_core.testing.case import VALUE, Unit, output, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, spelled, themed

_EXTENTS = (1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 33, 96)
_THREADS = (1, 31, 32, 64, 96, 128)


@st.composite
def reducers(draw: Draw) -> Unit:
    """Draw a reducer that parallel iterations combine a fragment into, loaded or the result of a product."""
    rows, cols = draw(st.sampled_from(_EXTENTS)), draw(st.sampled_from(_EXTENTS))
    dtype = draw(st.sampled_from(("float32", "int32", "float16", "int64", "float32")))
    op = draw(st.sampled_from(("sum", "max", "min")))
    scope = draw(st.sampled_from(("fragment", "fragment", "shared")))
    along = draw(st.sampled_from(("i", "j", "0")))
    size = {"i": rows, "j": cols, "0": 1}[along]
    wide = "float32" if dtype == "float16" else dtype
    lines = [f"a = T.alloc_{scope}(({rows}, {cols}), {spelled(draw, wide)})"]
    if wide in ("float32", "int32") and draw(st.booleans()):
        k, kind = draw(st.sampled_from((4, 8, 16))), "float16" if wide == "float32" else "int8"
        params = [tensor("X", kind, rows, k), tensor("Y", kind, k, cols)]
        data = {"X": randoms(draw, (rows, k), kind, -3, 3), "Y": randoms(draw, (k, cols), kind, -3, 3)}
        lines += [f's = T.alloc_shared(({rows}, {k}), "{kind}")', f't = T.alloc_shared(({k}, {cols}), "{kind}")']
        lines += ["T.copy(X, s)", "T.copy(Y, t)", "T.clear(a)", "T.gemm(s, t, a)"]
    else:
        params, data = [tensor("X", dtype, rows, cols)], {"X": randoms(draw, (rows, cols), dtype, -5, 5)}
        lines.append("T.copy(X, a)")
    replication = draw(st.sampled_from(("", ', replication="all"', ', replication="none"')))
    lines.append(f'r = T.alloc_reducer(({size},), "{wide}", "{op}"{replication})')
    update = {
        "sum": "r[{x}] += a[i, j]",
        "max": "r[{x}] = T.max(r[{x}], a[i, j])",
        "min": "r[{x}] = T.min(r[{x}], a[i, j])",
    }
    lines += [f"for i, j in T.Parallel({rows}, {cols}):"]
    condition = draw(st.sampled_from(("", "", "if (i + j) % 2 == 0:", f"if j < {max(1, cols - 1)}:")))
    lines += (
        ["    " + condition, "        " + update[op].format(x=along)]
        if condition
        else ["    " + update[op].format(x=along)]
    )
    lines += ["T.finalize_reducer(r)", "T.copy(r, B)"]
    params.append(output("B", wide, size))
    return themed(
        "reducers", draw, params, "\n".join(lines), {"": data}, VALUE, threads=draw(st.sampled_from(_THREADS))
    )


@st.composite
def reductions(draw: Draw) -> Unit:
    """Draw a reduction of a tile of any scope into one that keeps or starts anew, and scans."""
    rows, cols = draw(st.sampled_from(_EXTENTS)), draw(st.sampled_from(_EXTENTS))
    dtype = draw(st.sampled_from(("float32", "int32", "float16", "bfloat16", "uint8", "int64")))
    dim, clear = draw(st.integers(0, 1)), draw(st.booleans())
    kinds = ["sum", "max", "min", "abssum", "absmax"] + ["bitand", "bitor", "bitxor"] * ("int" in dtype)
    kind = draw(st.sampled_from(kinds))
    scopes = [draw(st.sampled_from(("shared", "fragment"))) for _ in range(2)]
    size = (cols, rows)[dim]
    lines = [f'a = T.alloc_{scopes[0]}(({rows}, {cols}), "{dtype}")', f'r = T.alloc_{scopes[1]}(({size},), "{dtype}")']
    lines += ["T.copy(X, a)", draw(st.sampled_from(("T.fill(r, 1)", "T.clear(r)")))]
    form = draw(st.sampled_from((f"T.reduce_{kind}(a, r, ", f"T.reduce_{kind}(a, r, ", f'T.reduce(a, r, "{kind}", ')))
    lines += [f"{form}dim={dim}, clear={clear})", "T.copy(r, B)"]
    params = [tensor("X", dtype, rows, cols), output("B", dtype, size)]
    data = {"X": randoms(draw, (rows, cols), dtype, -1, 1)}
    return themed(
        "reductions", draw, params, "\n".join(lines), {"": data}, VALUE, threads=draw(st.sampled_from(_THREADS))
    )


@st.composite
def odd_products(draw: Draw) -> Unit:
    """Draw products with one thread, an odd number of them, or many, and with every policy."""
    m, n = draw(st.sampled_from((1, 3, 8, 16, 24, 33))), draw(st.sampled_from((1, 5, 8, 16, 31, 40)))
    k, kind = (
        draw(st.sampled_from((1, 4, 8, 16, 20))),
        draw(st.sampled_from(("float16", "float32", "int8", "bfloat16"))),
    )
    acc = "int32" if kind == "int8" else "float32"
    policy = draw(st.sampled_from(("", ", policy=T.GemmWarpPolicy.FullRow", ", policy=T.GemmWarpPolicy.FullCol",
                                   ", policy=T.GemmWarpPolicy.Square")))  # fmt: skip
    lines = [f's = T.alloc_{draw(st.sampled_from(("shared", "fragment")))}(({m}, {k}), "{kind}")']
    lines += [f't = T.alloc_shared(({k}, {n}), "{kind}")']
    lines += [
        f'c = T.alloc_{draw(st.sampled_from(("fragment", "shared")))}(({m}, {n}), "{acc}")',
        "T.copy(X, s)",
        "T.copy(Y, t)",
    ]
    lines += ["T.clear(c)"] if draw(st.booleans()) else ["T.fill(c, 2)"]
    name = draw(st.sampled_from(("gemm", "gemm", "gemm_v2")))
    lines += [f"T.{name}(s, t, c{policy})"] * draw(st.integers(1, 2)) + ["T.copy(c, B)"]
    params = [tensor("X", kind, m, k), tensor("Y", kind, k, n), output("B", acc, m, n)]
    data = {"X": randoms(draw, (m, k), kind, -3, 3), "Y": randoms(draw, (k, n), kind, -3, 3)}
    threads = draw(st.sampled_from((1, 31, 32, 33, 64, 96, 128)))
    return themed("odd-products", draw, params, "\n".join(lines), {"": data}, VALUE, threads=threads)
