"""Rare ops: dot products of four, convolution windows, scaled products, gathered rows."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tile_core.testing.case import VALUE, Unit, output, scalar, tensor
from tile_core.testing.data import stored
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import patterns, randoms, themed


@st.composite
def rare_ops(draw: Draw) -> Unit:
    """Draw one of the rare ops."""
    made: Unit = draw(st.sampled_from((_dots, _windows, _scaled, _rows, _randoms)))(draw)
    return made


def _dots(draw: Draw) -> Unit:
    a, b, c = draw(
        st.sampled_from((("int8", "int8", "int32"), ("uint8", "uint8", "uint32"), ("int8", "uint8", "int32")))
    )
    n = draw(st.integers(1, 20))
    loop = draw(st.sampled_from(("T.Parallel", "T.serial")))
    body = f"for i in {loop}({n}):\n    T.dp4a(A[i, {draw(st.sampled_from((0, 4)))}], B[i, 0], C[i])"
    data = {"A": patterns(draw, (n, 8), a), "B": patterns(draw, (n, 4), b), "C": randoms(draw, (n,), c, 0, 9)}
    return themed(
        "dots", draw, [tensor("A", a, n, 8), tensor("B", b, n, 4), output("C", c, n)], body, {"": data}, threads=32
    )


def _randoms(draw: Draw) -> Unit:
    n, seed, off = draw(st.sampled_from((1, 7, 32, 100))), draw(st.integers(0, 2**63)), draw(st.integers(0, 9))
    take = draw(st.sampled_from(("T.rng_rand()", "T.rng_rand() >> 7", "T.cast(T.rng_rand_float() * 1000, 'uint32')")))
    words = draw(st.sampled_from((
        "T.philox({seed}, i, {off})[2]", "T.philox(v, {off}, i)[0]", "T.philox(i, {seed})[3]",
        "T.cast(T.uniform_of(T.philox(v, i)[1]) * 100, 'uint32')",
        "T.cast(T.normal_of(T.philox(v, i)[1], T.philox(v, i)[2])[0] > 2.0, 'uint32')",
    ))).format(seed=seed, off=off)  # fmt: skip
    body = "\n".join((
        f"for i in T.Parallel({n}):", f"    B[i] = {words}", f"    T.rng_init({seed}, i, {off})", f"    C[i] = {take}",
        f"    C[i] = C[i] ^ {take}",
    ))  # fmt: skip
    params = [scalar("v"), output("B", "uint32", n), output("C", "uint32", n)]
    return themed("randoms", draw, params, body, {"": {"v": draw(st.integers(0, 2**31 - 1))}}, threads=32)


def _windows(draw: Draw) -> Unit:
    h, w, c = draw(st.integers(3, 7)), draw(st.integers(3, 7)), draw(st.integers(1, 4))
    kernel, stride, dilation, pad = draw(st.integers(1, 3)), draw(st.integers(1, 2)), 1, draw(st.integers(0, 2))
    rows, cols = draw(st.sampled_from((4, 8, 9))), draw(st.sampled_from((4, 6, 9)))
    body = (
        f's = T.alloc_shared(({rows}, {cols}), "float16")\n'
        f"T.c2d_im2col(A, s, bx, 0, {kernel}, {stride}, {dilation}, {pad})\nT.copy(s, B[bx * {rows}, 0])"
    )
    params = [tensor("A", "float16", 1, h, w, c), output("B", "float16", 2 * rows, cols)]
    return themed(
        "windows", draw, params, body, {"": {"A": randoms(draw, (1, h, w, c), "float16")}}, grid="2", threads=32
    )


def _scaled(draw: Draw) -> Unit:
    m, n, k = draw(st.sampled_from((8, 16))), draw(st.sampled_from((8, 16))), draw(st.sampled_from((32, 64)))
    kind = draw(st.sampled_from(("float8_e4m3fn", "float8_e5m2")))
    turned, per_row = draw(st.booleans()), draw(st.booleans())
    right = (n, k) if turned else (k, n)
    sa, sb = ((m,), (n,)) if per_row else ((1,), (1,))
    body = (
        f'a = T.alloc_shared(({m}, {k}), "{kind}")\nb = T.alloc_shared({right}, "{kind}")\nT.copy(A, a)\nT.copy(B, b)\n'
        f"T.fp8_scaled_matmul(a, P, b, Q, C, transpose_B={turned})"
    )
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    data = {"A": randoms(draw, (m, k), kind, -3, 3), "B": randoms(draw, right, kind, -3, 3)}
    data |= {
        "P": stored(2.0 ** rng.integers(-2, 3, sa), "float32"),
        "Q": stored(2.0 ** rng.integers(-2, 3, sb), "float32"),
    }
    params = [
        tensor("A", kind, m, k),
        tensor("P", "float32", *sa),
        tensor("B", kind, *right),
        tensor("Q", "float32", *sb),
    ]
    return themed(
        "scaled",
        draw,
        [*params, output("C", "float32", m, n)],
        body,
        {"": data},
        VALUE,
        threads=128,
        needs=frozenset({"fp8_scaled_matmul"}),
    )


def _rows(draw: Draw) -> Unit:
    n, cols, k = draw(st.integers(1, 9)), draw(st.sampled_from((4, 7, 8))), draw(st.integers(1, 6))
    rows = np.random.default_rng(draw(st.integers(0, 10**6))).permutation(np.arange(-1, k))[:k].astype(np.int32)
    op = draw(st.sampled_from(("T.gather(A, R, s)\nT.copy(s, B)", "T.copy(A[0, 0], s)\nT.scatter(s, B, R)")))
    body = f's = T.alloc_shared(({k}, {cols}), "int32")\n{op}'
    params = [tensor("A", "int32", n, cols), tensor("R", "int32", k), output("B", "int32", k, cols)]
    data = {"A": randoms(draw, (n, cols), "int32"), "R": rows, "B": randoms(draw, (k, cols), "int32")}
    return themed("rows", draw, params, body, {"": data}, threads=draw(st.sampled_from((1, 32))))
