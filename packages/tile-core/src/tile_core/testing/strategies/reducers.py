"""Reducers over fragments of any shape, reductions of tiles, products with odd thread counts."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tile_core.testing.case import VALUE, Unit, output, scalar, tensor
from tile_core.testing.data import Array, stored, values
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import randoms, spelled, themed

_EXTENTS = (1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 33, 96, 260)
#: Rows, columns and threads that come out even: each group of threads has rows of its own.
_EVEN = ((8, 64, 64), (4, 128, 128), (16, 96, 128), (8, 256, 256), (2, 512, 64))
_THREADS = (1, 31, 32, 64, 96, 128, 256)
#: Lengths of lines of scans: shorter and longer than vectors, with and without elements that are left.
_LINES = (260, 131, 96, 67, 64, 33, 16, 8, 3, 1)
#: Element types of a tile that is scanned or reduced, and of the result.
_CONVERTED = (
    *((d, d) for d in ("float32", "int32", "float16", "bfloat16", "uint8", "int64", "float64", "uint16")),
    ("float16", "float32"), ("int8", "int32"), ("int32", "uint8"), ("float8_e4m3fn", "float32"),
    ("float32", "bfloat16"),
)  # fmt: skip
#: Element types of the operands of a product, and the numbers of some.
_PAIRS = (
    ("float16", "float16"), ("float32", "float32"), ("bfloat16", "bfloat16"), ("int8", "int8"), ("int8", "int8"),
    ("uint8", "int8"), ("int8", "uint8"),
)  # fmt: skip
_LIMITS = {"int8": (-128, 127), "uint8": (0, 255)}


@st.composite
def reducers(draw: Draw) -> Unit:
    """Draw a reducer over a fragment that is loaded or the result of a product."""
    rows, cols = draw(st.sampled_from(_EXTENTS)), draw(st.sampled_from(_EXTENTS))
    dtype = draw(st.sampled_from(("float32", "int32", "float16", "int64", "float32")))
    bits = ("bitand", "bitor", "bitxor") if dtype in ("int32", "int64") else ()
    op = draw(st.sampled_from(("sum", "max", "min", *bits)))
    scope = draw(st.sampled_from(("fragment", "fragment", "shared")))
    along, threads = draw(st.sampled_from(("i", "j", "0"))), draw(st.sampled_from(_THREADS))
    if draw(st.integers(0, 3)) == 0:
        rows, cols, threads = draw(st.sampled_from(_EVEN))
        along = "i"
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
        "bitand": "r[{x}] = r[{x}] & a[i, j]",
        "bitor": "r[{x}] |= a[i, j]",
        "bitxor": "r[{x}] ^= a[i, j]",
    }
    if draw(st.booleans()):
        update[op] = "T.reducer_update(r[{x}], a[i, j])"
    lines += [f"for i, j in T.Parallel({rows}, {cols}):"]
    condition = draw(st.sampled_from(("", "", "if (i + j) % 2 == 0:", f"if j < {max(1, cols - 1)}:")))
    lines += (
        ["    " + condition, "        " + update[op].format(x=along)]
        if condition
        else ["    " + update[op].format(x=along)]
    )
    if draw(st.integers(0, 2)) == 0:
        ends = f'd = T.alloc_fragment(({size},), "{wide}")'
        loop = len(lines) - (3 if condition else 2)
        again = [f"for k in T.serial({draw(st.integers(1, 3))}):", "    T.reducer_init(r)"]
        lines[loop:] = [ends, *again, *("    " + line for line in lines[loop:]), "    T.finalize_reducer(r, d)"]
        lines += ["T.copy(d, B)"]
    else:
        lines += ["T.finalize_reducer(r)", "T.copy(r, B)"]
    params.append(output("B", wide, size))
    return themed("reducers", draw, params, "\n".join(lines), {"": data}, VALUE, threads=threads)


@st.composite
def reductions(draw: Draw) -> Unit:
    """Draw scans, and reductions of a tile that accumulate or start anew."""
    if draw(st.booleans()):
        return _scan(draw)
    rows, cols = draw(st.sampled_from(_EXTENTS)), draw(st.sampled_from(_EXTENTS))
    dtype, to = draw(st.sampled_from(_CONVERTED))
    dim, clear = draw(st.integers(0, 1)), draw(st.booleans())
    kinds = ["sum", "max", "min", "abssum", "absmax", "prod", "any", "all"]
    kind = draw(st.sampled_from(kinds + ["bitand", "bitor", "bitxor"] * ("int" in dtype)))
    out = draw(st.sampled_from(("int32", "uint8", "bool"))) if kind in ("any", "all") else to
    scopes = [draw(st.sampled_from(("shared", "fragment"))) for _ in range(2)]
    size = (cols, rows)[dim]
    lines = [f'a = T.alloc_{scopes[0]}(({rows}, {cols}), "{dtype}")', f'r = T.alloc_{scopes[1]}(({size},), "{out}")']
    lines += ["T.copy(X, a)", draw(st.sampled_from(("T.fill(r, 1)", "T.clear(r)")))]
    form = draw(st.sampled_from((f"T.reduce_{kind}(a, r, ", f"T.reduce_{kind}(a, r, ", f'T.reduce(a, r, "{kind}", ')))
    lines += [f"{form}dim={dim}, clear={clear})", "T.copy(r, B)"]
    params = [tensor("X", dtype, rows, cols), output("B", out, size)]
    data = {"X": randoms(draw, (rows, cols), dtype, -1, 1)}
    return themed(
        "reductions", draw, params, "\n".join(lines), {"": data}, VALUE, threads=draw(st.sampled_from(_THREADS))
    )


def _scan(draw: Draw) -> Unit:
    """Return a scan of a tile, in place or into another one."""
    kind, dim = draw(st.sampled_from(("sum", "sum", "prod", "max", "max"))), draw(st.sampled_from((1, 1, 0)))
    short, long = draw(st.sampled_from((1, 2, 5, 16))), draw(st.sampled_from(_LINES))
    shape = (long, short) if dim == 0 else (short, long)
    source, to = draw(st.sampled_from(_CONVERTED))
    # Running products of signs, or of powers of two, which only grow: exact in every order, also where they overflow.
    low, high = draw(st.sampled_from(((-1, 1), (1, 2)))) if kind == "prod" else (-1, 1) if kind == "sum" else (-9, 9)
    scopes = [draw(st.sampled_from(("shared", "fragment"))) for _ in range(2)]
    lines, out = [f'a = T.alloc_{scopes[0]}({shape}, "{source}")', "T.copy(X, a)"], "a"
    if source != to or draw(st.booleans()):
        lines, out = [*lines, f'r = T.alloc_{scopes[1]}({shape}, "{to}")'], "r"
    way = draw(st.sampled_from(("", ", reverse=True")))
    way += draw(st.sampled_from(("", ", nan_propagate=True"))) if kind == "max" else ""
    lines += [f"T.cum{kind}(a, {out}, dim={dim - draw(st.sampled_from((0, 2)))}{way})", f"T.copy({out}, B)"]
    data = {"X": _with_nan(draw, randoms(draw, shape, source, low, high), source, kind)}
    params, threads = [tensor("X", source, *shape), output("B", to, *shape)], draw(st.sampled_from(_THREADS))
    return themed("reductions", draw, params, "\n".join(lines), {"": data}, VALUE, threads=threads)


def _with_nan(draw: Draw, x: Array, dtype: str, kind: str) -> Array:
    """Return the array, with a few NaN where maxima of floats are scanned."""
    if kind != "max" or dtype not in ("float32", "float16", "bfloat16", "float64") or draw(st.booleans()):
        return x
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    return stored(np.where(rng.random(x.shape) < 0.1, np.nan, values(x, dtype, x.shape)), dtype)


#: Functions of the user's, as (tiles, text, identity); whole numbers stay exact in every order.
_FUNCTIONS = (
    (1, "lambda a, b: a + b", "0"),
    (1, "lambda a, b: T.max(a, b)", "-9"),
    (1, "lambda a, b: a * b", "1"),
    (1, "lambda a, b: T.if_then_else(a > b, a, b)", "-9"),
    (1, "lambda a, b: a + b + v * (a - a)", "0"),
    (2, "lambda a, b: (a[0] + b[0], T.min(a[1], b[1]))", "(0, 9)"),
    (2, "lambda a, b: (T.if_then_else(b[0] > a[0], b[0], a[0]), a[1] + b[1])", "(-9, 0)"),
)
#: Ones whose order matters: composition of maps x -> p x + q, and the last of two that is not 0.
_ORDERED = (
    (2, "lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1])", "(1, 0)"),
    (1, "lambda a, b: T.if_then_else(b != 0, b, a)", "0"),
)


@st.composite
def functions(draw: Draw) -> Unit:
    """Draw a reduction or scan by a user function, or an argmax or argmin."""
    rows, cols = draw(st.sampled_from(_EXTENTS)), draw(st.sampled_from(_EXTENTS[:-1]))
    dim, form = draw(st.integers(0, 1)), draw(st.sampled_from(("reduce", "scan", "place", "order")))
    dtype = draw(st.sampled_from(("int32", "float32", "int64", "int16", "float32", "float16")))
    scopes = [draw(st.sampled_from(("shared", "fragment"))) for _ in range(4)]
    size = (cols, rows)[dim] if form != "scan" else 0
    params, data = (
        [tensor("X", dtype, rows, cols), scalar("v")],
        {"X": randoms(draw, (rows, cols), dtype, -1, 1), "v": 3},
    )
    lines = [f'a = T.alloc_{scopes[0]}(({rows}, {cols}), "{dtype}")', "T.copy(X, a)"]
    if form == "order":
        k, way = draw(st.integers(1, min(5, (rows, cols)[dim]))), draw(st.booleans())
        small = (k, cols) if dim == 0 else (rows, k)
        lines += [f'r = T.alloc_{scopes[1]}(({rows}, {cols}), "{dtype}")', f"T.sort(a, r, dim={dim}, descending={way})"]
        lines += [f'q = T.alloc_{scopes[2]}({small}, "{dtype}")', f'p = T.alloc_{scopes[3]}({small}, "int32")']
        lines += [f"T.topk(a, q, p, dim={dim}, largest={way})", "T.copy(r, B)", "T.copy(q, C)", "T.copy(p, D)"]
        params += [output("B", dtype, rows, cols), output("C", dtype, *small), output("D", "int32", *small)]
    elif form == "place":
        kind = draw(st.sampled_from(("argmax", "argmin")))
        lines += [f'r = T.alloc_{scopes[1]}(({size},), "int32")', f"T.{kind}(a, r, dim={dim})", "T.copy(r, B)"]
        params.append(output("B", "int32", size))
    else:
        count, function, identity = draw(st.sampled_from(_FUNCTIONS + (_ORDERED if form == "scan" else ())))
        shape = f"({rows}, {cols})" if form == "scan" else f"({size},)"
        extents = (rows, cols) if form == "scan" else (size,)
        lines.append(f'r = T.alloc_{scopes[1]}({shape}, "{dtype}")')
        src, dst = "a", "r"
        if count == 2:
            params += [tensor("Y", dtype, rows, cols), output("C", dtype, *extents)]
            data["Y"] = randoms(draw, (rows, cols), dtype, -1, 1)
            lines += [f'b = T.alloc_{scopes[2]}(({rows}, {cols}), "{dtype}")', "T.copy(Y, b)"]
            lines.append(f'q = T.alloc_{scopes[3]}({shape}, "{dtype}")')
            src, dst = "(a, b)", "(r, q)"
        more = draw(st.sampled_from(("", ", reverse=True"))) if form == "scan" else ""
        lines += [f"T.{form}_with({function}, {src}, {dst}, dim={dim}{more}, identity={identity})", "T.copy(r, B)"]
        lines += ["T.copy(q, C)"] if count == 2 else []
        params.append(output("B", dtype, *extents))
    threads = draw(st.sampled_from(_THREADS))
    return themed("functions", draw, params, "\n".join(lines), {"": data}, VALUE, threads=threads)


@st.composite
def odd_products(draw: Draw) -> Unit:
    """Draw products with one, odd or many threads, and with every policy."""
    m, n = draw(st.sampled_from((1, 3, 8, 16, 24, 33))), draw(st.sampled_from((1, 5, 8, 16, 31, 40)))
    k, (kind, other) = draw(st.sampled_from((1, 4, 8, 16, 20, 68, 132))), draw(st.sampled_from(_PAIRS))
    ta, tb, trips = draw(st.booleans()), draw(st.booleans()), draw(st.sampled_from((1, 1, 3)))
    depth = k * trips - draw(st.sampled_from((0, 0, min(1, k - 1))))
    acc = "int32" if "int" in kind else "float32"
    policy = draw(st.sampled_from(("", ", policy=T.GemmWarpPolicy.FullRow", ", policy=T.GemmWarpPolicy.FullCol",
                                   ", policy=T.GemmWarpPolicy.Square")))  # fmt: skip
    scopes = [draw(st.sampled_from(("shared", "fragment"))) for _ in range(2)]
    lines = [f's = T.alloc_{scopes[0]}({(k, m) if ta else (m, k)}, "{kind}")']
    lines += [f't = T.alloc_shared({(n, k) if tb else (k, n)}, "{other}")']
    lines += [f'c = T.alloc_{scopes[1]}(({m}, {n}), "{acc}")']
    lines += ["T.clear(c)"] if draw(st.booleans()) else ["T.fill(c, 2)"]
    name = draw(st.sampled_from(("gemm", "gemm", "gemm_v2")))
    lines += [f"for o in T.Pipelined({trips}, num_stages={draw(st.sampled_from((0, 2)))}):"]
    lines += [f"    T.copy(X[{f'o * {k}, 0' if ta else f'0, o * {k}'}], s)"]
    lines += [f"    T.copy(Y[{f'0, o * {k}' if tb else f'o * {k}, 0'}], t)"]
    lines += [f"    T.{name}(s, t, c, {ta}, {tb}{policy})"] * draw(st.integers(1, 2)) + ["T.copy(c, B)"]
    shapes = {"X": (depth, m) if ta else (m, depth), "Y": (n, depth) if tb else (depth, n)}
    types = {"X": kind, "Y": other}
    params = [*(tensor(x, types[x], *shape) for x, shape in shapes.items()), output("B", acc, m, n)]
    data = {x: randoms(draw, shape, types[x], *_LIMITS.get(types[x], (-3, 3))) for x, shape in shapes.items()}
    threads = draw(st.sampled_from((1, 31, 32, 33, 64, 96, 128)))
    return themed("odd-products", draw, params, "\n".join(lines), {"": data}, VALUE, threads=threads)
