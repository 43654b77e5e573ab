"""Memory: views and reshapes, user layouts, atomics, safe values and hints."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from tile_core.dtypes import DTYPES
from tile_core.testing.case import Unit, output, scalar, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import patterns, randoms, themed

_WIDTHS = {
    8: ("int8", "uint8", "float8_e4m3fn", "float8_e5m2"), 16: ("int16", "uint16", "float16", "bfloat16"),
    32: ("int32", "uint32", "float32"), 64: ("int64", "uint64", "float64"),
}  # fmt: skip


@st.composite
def views(draw: Draw) -> Unit:
    """Draw reshapes and views of shared memory and tensors, written and read through either name."""
    bits, to = draw(st.sampled_from((8, 16, 32))), draw(st.sampled_from((8, 16, 32, 64)))
    a, b = draw(st.sampled_from(_WIDTHS[bits])), draw(st.sampled_from(_WIDTHS[to]))
    rows, cols = draw(st.sampled_from((1, 2, 3, 6, 8))), draw(st.sampled_from((8, 16, 24, 40)))
    total = rows * cols * bits // to
    shape = draw(
        st.sampled_from([s for s in ((total,), (2, total // 2), (total // 4, 4), (1, total)) if math.prod(s) == total])
    )
    call = f'T.view({{0}}, shape={shape}, dtype="{b}")' if a != b else f"T.reshape({{0}}, {shape})"
    lines = []
    if draw(st.booleans()):
        lines.append(f"T.copy({call.format('A')}, B)")
    else:
        lines += [f's = T.alloc_shared(({rows}, {cols}), "{a}")', "T.copy(A, s)", f"w = {call.format('s')}"]
        lines += ["T.copy(w, B)"]
        if draw(st.booleans()):
            index = ", ".join(("i", "j")[: len(shape)])
            back = ", ".join(f"{e - 1} - {x}" for e, x in zip(shape, ("i", "j"), strict=False))
            lines += [
                f"for {index} in T.Parallel{shape if len(shape) > 1 else f'({shape[0]})'}:",
                f"    w[{index}] = B[{back}]",
            ]
    if any(x.startswith("s = ") for x in lines):
        lines.append("T.copy(s, C)")
    else:
        lines.append("T.copy(A, C)")
    params = [tensor("A", a, rows, cols), output("B", b, *shape), output("C", a, rows, cols)]
    threads = draw(st.sampled_from((1, 32, 48, 128)))
    # A NaN that is moved as a float may change its payload: the bits are those of numbers under both names.
    data = patterns(draw, (rows, cols), a)
    if DTYPES[a].is_float:
        data = randoms(draw, (rows, cols), a)
    elif DTYPES[b].is_float:
        data = randoms(draw, (total,), b).view(np.uint8).view(DTYPES[a].numpy()).reshape(rows, cols)
    if DTYPES[a].is_float and DTYPES[b].is_float:
        data[...] = 0
    return themed("views", draw, params, "\n".join(lines), {"": {"A": data}}, threads=threads)


#: Layouts of a tile of {r} by {c} elements in shared memory.
_IN_MEMORY = (
    "tile.layout.make_swizzled_layout(s)",
    "T.Layout(({r}, {c}), lambda i, j: j * {r} + i)",
    "lambda i, j: i * {c} + j",
    "T.Layout(({r}, {c}), lambda i, j: i * {c} + (j + i * 4) % {c})",
    "T.Layout(({r}, {c}), lambda i, j: i * ({c} + 4) + j, span={r} * ({c} + 4))",
    "T.Layout(({r}, {c}), '({r},{c}):({c},1)')",
)
#: Layouts of the same tile on {t} threads, where a row takes {q} registers, with copies in {k} groups of threads.
#: Some end early in threads or registers; the last one has no digits, so that targets with threads refuse it.
ON_THREADS = (
    "T.Fragment(({r}, {c}), lambda i, j: ((i * {c} + j) % {t}, (i * {c} + j) // {t}))",
    "T.Fragment(({r}, {c}), lambda i, j: ((j * {r} + i) % {t}, (j * {r} + i) // {t}))",
    "T.Fragment(({r}, {c}), lambda i, j: (j % {t}, i * {q} + j // {t}))",
    "T.Fragment(({r}, {c}), lambda i, j: (j % {t}, i + j // {t} * {r}))",
    "T.Fragment(({r}, {c}), lambda i, j: (i % {t}, i // {t} * {c} + j))",
    "T.Fragment(({r}, {c}), lambda i, j, copy: (copy * 16 + i % 16, i // 16 * {c} + j), replicate={k})",
    "T.Fragment(({r}, {c}), forward_thread_fn=lambda i, j: i % {t}, forward_index_fn=lambda i, j: i // {t} * {c} + j)",
    "T.Fragment(({r}, {c}), forward_thread_fn=lambda i, j, copy: copy, replicate={t})",
    "T.Fragment(({r}, {c}), lambda i, j: ((i + j) % {t}, i * {q} + j // {t}))",
)


@st.composite
def layouts(draw: Draw) -> Unit:
    """Draw user layouts of shared memory and fragments under copies, loops and reductions.

    Awkward sizes are included.
    """
    r, c = draw(st.sampled_from((3, 8, 16, 17, 32))), draw(st.sampled_from((5, 32, 33, 64)))
    t = draw(st.sampled_from((32, 64)))
    facts = {"r": r, "c": c, "t": t, "q": -(-c // t), "k": t // 16}
    dtype = draw(st.sampled_from(("float16", "float32", "int8", "int32")))
    notes = [f"s: {draw(st.sampled_from(_IN_MEMORY)).format(**facts)}"]
    notes += [f"{f}: {draw(st.sampled_from(ON_THREADS)).format(**facts)}" for f in "fg" if draw(st.booleans())]
    lines = [f's = T.alloc_shared(({r}, {c}), "{dtype}")']
    lines += [f'{f} = T.alloc_fragment(({r}, {c}), "{dtype}")' for f in "fg"]
    lines.append("T.annotate_layout({" + ", ".join(notes) + "})")
    if draw(st.booleans()):
        lines.append("T.annotate_l2_hit_ratio({A: 0.5})")
    lines += ["T.copy(A, s)", "T.copy(s, f)"]
    lines += [f"for i, j in T.Parallel({r}, {c}):", f"    f[i, j] = f[i, j] + s[{r - 1} - i, j]"]
    lines += draw(st.sampled_from((["T.copy(f, s)", "T.copy(s, g)"], ["T.copy(s, g)"])))
    lines += draw(st.sampled_from((
        ["T.copy(f, B)"], ["T.copy(f, s)", "T.copy(s, B)"], ["T.copy(g, B)"],
        [f"for i, j in T.Parallel({r}, {c}):", "    g[i, j] = g[i, j] - f[i, j]", "T.copy(g, B)"],
        [f"for i, j in T.Parallel({r}, {c}):", f"    g[i, j] = f[{r - 1} - i, j]", "T.copy(g, B)"],
        [f'n = T.alloc_fragment(({r},), "{dtype}")', "T.reduce_max(f, n, dim=1)",
         f"for i, j in T.Parallel({r}, {c}):", "    g[i, j] = n[i]", "T.copy(g, B)"],
    )))  # fmt: skip
    params = [tensor("A", dtype, r, c), output("B", dtype, r, c)]
    data = {"A": randoms(draw, (r, c), dtype, -3, 3)}
    return themed("layouts", draw, params, "\n".join(lines), {"": data}, threads=t)


@st.composite
def atomics(draw: Draw) -> Unit:
    """Draw atomic updates of elements, pairs, fours and tiles, whose order does not matter."""
    dtype = draw(st.sampled_from(("int32", "float32", "int64", "uint32", "float16")))
    n, blocks = draw(st.sampled_from((8, 16, 20))), draw(st.integers(1, 4))
    op = draw(st.sampled_from(("add", "max", "min", *(("and", "or", "xor") if "int" in dtype else ()))))
    c = draw(st.integers(1, n))
    order = draw(st.sampled_from(("", ', memory_order="seq_cst"')))
    body = draw(st.sampled_from((
        "for i in T.Parallel({n}):\n    T.atomic_{op}(B[(i * {c}) % {n}], A[bx, i]{order})",
        "T.atomic_{op}(B, A[bx, 0:{n}])", "T.atomic_{op}(B[0:{n}], 2)",
        "s = T.alloc_shared(({n},), '{dtype}')\nT.copy(A[bx, 0:{n}], s)\nT.atomic_{op}(B, s)",
        "for i in T.serial({n} // 2):\n    T.atomic_addx2(B[i * 2], A[bx, i * 2])",
        "for i in T.serial({n} // 4):\n    T.atomic_addx4(B[i * 4], A[bx, i * 4])",
        "T.atomic_store(B[bx], T.atomic_load(A[bx, 1]{order}){order})",
        "T.atomic_store(B[bx], T.atomic_load(A[bx, 1]))",
        "s = T.alloc_shared(({n},), '{dtype}')\nT.copy(A[bx, 0:{n}], s)\nfor i in T.Parallel({n}):\n"
        "    T.atomic_{op}(B[i], T.max(T.atomic_load({read}i], memory_order='relaxed'), {read}(i + {c}) % {n}]))",
        "p = T.atomic_{op}(B[bx], A[bx, 0], return_prev=True)\nB[bx + 4] = p",
    ))).format(n=n, op=op, c=c, dtype=dtype, order=order, read=draw(st.sampled_from(("s[", "A[bx, "))))  # fmt: skip
    params = [tensor("A", dtype, blocks, n), output("B", dtype, n)]
    data = {"A": randoms(draw, (blocks, n), dtype, -9, 9), "B": randoms(draw, (n,), dtype, 0, 5)}
    needs = frozenset(f"atomic:{x}:{dtype}" for x in {"add", "max", "min", op})
    return themed(
        "atomics",
        draw,
        params,
        body,
        {"": data},
        grid=str(blocks),
        threads=draw(st.sampled_from((1, 32, 64))),
        needs=needs,
    )


@st.composite
def windows(draw: Draw) -> Unit:
    """Draw copies, scatters and reads that reach outside, with a value for what is there."""
    dtype = draw(st.sampled_from(("float32", "int32", "uint8", "int16", "bfloat16")))
    n, cols = draw(st.integers(1, 12)), draw(st.sampled_from((4, 7, 8)))
    constants = ("3", f"T.max_value('{dtype}')" if dtype != "bfloat16" else "T.infinity('bfloat16')")
    safe = draw(st.sampled_from(("", *(f"T.annotate_safe_value({{A: {c}}})" for c in constants))))
    form = draw(st.sampled_from((
        "for i, j in T.Parallel(6, {cols}):\n    B[i, j] = A[i - {c}, j + 1]",
        "s = T.alloc_shared((6, {cols}), '{dtype}')\nT.copy(A[v - {c}, 0], s)\nT.copy(s, B)",
        "for i in T.serial(6):\n    for j in T.vectorized({cols}):\n        B[i, j] = A[v + i, {cols} - 1 - j]",
        "s = T.alloc_shared((3, {cols}), '{dtype}')\nT.copy(A[0, 0], s)\nT.scatter(s, B, [{c}, -1, 5])",
        "T.copy(A[v : v + 3, :], B[v + {c} : v + {c} + 3, :])",
    )))  # fmt: skip
    body = form.format(cols=cols, c=draw(st.integers(0, 4)), dtype=dtype)
    params = [tensor("A", dtype, "m", cols), scalar("v"), output("B", dtype, 6, cols)]
    data = {
        "m": n,
        "v": draw(st.integers(-4, 9)),
        "A": randoms(draw, (n, cols), dtype),
        "B": randoms(draw, (6, cols), dtype),
    }
    lines = [safe, body] if safe else [body]
    return themed("windows", draw, params, "\n".join(lines), {"": data}, threads=32, symbols=("m",))
