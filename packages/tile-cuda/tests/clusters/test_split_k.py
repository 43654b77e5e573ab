"""Split-K in a cluster: results, the choice, refusals, and seeded mistakes."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import replace

import hypothesis
import ml_dtypes
import numpy as np
import pytest
from hypothesis import Phase, settings

import tile_core as tile
import tile_core.language as T
from tile_core.compiler import lower
from tile_core.errors import TileError
from tile_core.ir import nodes
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES
from tile_cuda.ops import add_blocks

TARGET = "cuda:sm_90a"
SPLIT = "blocks of a cluster share its iterations"


def product(M, N, K, block, dtype="float16", accum="float32", threads=128, stages=3, value=0, writes=False):
    """A product with B as (N, K), and what keeps its iterations together."""
    bM, bN, bK = block

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), accum)):
        with T.Kernel(T.ceildiv(N, bN), T.ceildiv(M, bM), threads=threads) as (bx, by):
            A_s = T.alloc_shared((bM, bK), dtype)
            B_s = T.alloc_shared((bN, bK), dtype)
            C_f = T.alloc_fragment((bM, bN), accum)
            T.fill(C_f, value)
            for k in T.Pipelined(T.ceildiv(K, bK), num_stages=stages):
                T.copy(A[by * bM, k * bK], A_s)
                T.copy(B[bx * bN, k * bK], B_s)
                T.gemm(A_s, B_s, C_f, transpose_B=True)
                if writes:
                    T.copy(A_s, C[by * bM, bx * bN])
            T.copy(C_f, C[by * bM, bx * bN])

    return main


def gated(M, N, K, group):
    """Two products of 4-bit weights with scales, whose results are multiplied."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "bfloat16"), U: T.Tensor((N, K), "int4"), V: T.Tensor((N, K), "int4"),
        S: T.Tensor((N, K // group), "bfloat16"), C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 16), threads=128) as (bx, by):
            a, q, r = (
                T.alloc_shared((16, 64), "bfloat16"),
                T.alloc_shared((64, 64), "int4"),
                T.alloc_shared((64, 64), "int4"),
            )
            u, v = T.alloc_shared((64, 64), "bfloat16"), T.alloc_shared((64, 64), "bfloat16")
            x, y = T.alloc_fragment((16, 64), "float32"), T.alloc_fragment((16, 64), "float32")
            T.clear(x)
            T.clear(y)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
                T.copy(A[by * 16, k * 64], a)
                T.copy(U[bx * 64, k * 64], q)
                T.copy(V[bx * 64, k * 64], r)
                for i, j in T.Parallel(64, 64):
                    scale = S[bx * 64 + i, (k * 64 + j) // group]
                    u[i, j] = T.cast(q[i, j], "bfloat16") * scale
                    v[i, j] = T.cast(r[i, j], "bfloat16") * scale
                T.gemm(a, u, x, transpose_B=True)
                T.gemm(a, v, y, transpose_B=True)
            for i, j in T.Parallel(16, 64):
                C[by * 16 + i, bx * 64 + j] = x[i, j] * y[i, j]

    return main


def attention():
    """A loop whose iterations depend on maxima, too."""

    @T.prim_func
    def main(Q: T.Tensor((64, 64), "float16"), K: T.Tensor((256, 64), "float16"), R: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            q, k = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
            s, p = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64, 64), "float16")
            o, top = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64,), "float32")
            T.copy(Q, q)
            T.clear(o)
            T.fill(top, -1e30)
            for n in T.Pipelined(4, num_stages=2):
                T.copy(K[n * 64, 0], k)
                T.gemm(q, k, s, transpose_B=True, clear_accum=True)
                T.reduce_max(s, top, dim=1, clear=False)
                s[...] = T.exp(s - top[:, None])
                T.copy(s, p)
                T.gemm(p, k, o)
            T.copy(o, R)

    return main


def converted(how):
    """A product of a shared tile that threads write in a nest: all of it anew, or with values that it has already."""

    @T.prim_func
    def main(A: T.Tensor((64, 256), "float16"), B: T.Tensor((64, 256), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
            t, c = T.alloc_shared((64, 64), "float32"), T.alloc_fragment((64, 64), "float32")
            h = T.alloc_shared((64, 64), "float16")
            T.clear(t)
            for i, j in T.Parallel(64, 64):
                c[i, j] = 0
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 64], a)
                T.copy(B[0, k * 64], b)
                if how == "all":
                    for j, i in T.Parallel(64, 64):
                        t[i, j] = a[i, j]
                elif how == "half":
                    for i, j in T.Parallel(32, 64):
                        t[i, j] = a[i, j]
                elif how == "diagonal":
                    for i, j in T.Parallel(64, 64):
                        t[i, (i + j) % 64] = a[i, j]
                elif how == "some":
                    for i, j in T.Parallel(64, 64):
                        if a[i, j] > 0:
                            t[i, j] = a[i, j]
                elif how == "sum":
                    for i, j in T.Parallel(64, 64):
                        t[i, j] = t[i, j] + a[i, j]
                else:
                    for i, j in T.Parallel(64, 64):
                        h[i, j] = t[i, j]
                        t[i, j] = a[i, j]
                T.copy(t, h)
                T.gemm(h, b, c, transpose_B=True)
            T.copy(c, C)

    return main


def note(kernel):
    """Return what ``explain`` prints, without its line breaks."""
    return " ".join(str(kernel.explain()).split())


def compiled(program, blocks, target=TARGET, **options):
    return tile.compile(program, target, runtime="emulator", options={"split_k": blocks, **options})


CASES = [  # M, N, K, block, blocks, threads: whole tiles, tails in each dimension, and fewer iterations than stages
    ((64, 128, 512), (64, 64, 64), 2, 128), ((64, 64, 448), (64, 64, 64), 4, 128),
    ((33, 70, 328), (64, 64, 32), 8, 128), ((16, 64, 1000), (16, 64, 128), 4, 128),
    ((128, 128, 131), (128, 128, 64), 2, 256), ((1, 7, 129), (64, 64, 64), 2, 128),
]  # fmt: skip


@pytest.mark.sweep(3)
@pytest.mark.parametrize(("sizes", "block", "blocks", "threads"), CASES)
@pytest.mark.parametrize("types", [("float16", "float32"), ("bfloat16", "float32"), ("int8", "int32")])
def test_the_blocks_of_a_cluster_share_a_loop(sizes, block, blocks, threads, types):
    (M, N, K), (dtype, accum) = sizes, types
    kernel = compiled(product(M, N, K, block, dtype, accum, threads), blocks)
    assert f"__cluster_dims__({blocks}, 1, 1)" in kernel.source
    assert f"{blocks} {SPLIT}" in note(kernel)
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    rng = np.random.default_rng()
    a, b = (rng.integers(-8, 9, s).astype(kind) for s in ((M, K), (N, K)))
    c = np.full((M, N), 77 if accum == "int32" else np.nan, accum)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype("int64") @ b.astype("int64").T)  # small integers: exact in any order


@pytest.mark.sweep(0.1)
@pytest.mark.parametrize("target", [TARGET, "cuda:sm_100a"])
@pytest.mark.parametrize("K", [0, 1, 63, 64, 65, 129, 257, 700])
def test_trip_counts_that_a_launch_decides(target, K):
    kernel = compiled(product(T.dynamic("m"), T.dynamic("n"), T.dynamic("k"), (64, 64, 64)), 4, target)
    assert SPLIT in note(kernel)
    rng = np.random.default_rng()
    a, b = (rng.integers(-8, 9, s).astype("float16") for s in ((70, K), (66, K)))
    c = np.full((70, 66), np.nan, "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype("int64") @ b.astype("int64").T)


@pytest.mark.parametrize("blocks", [2, 4])
def test_operands_that_an_iteration_converts_and_two_accumulators(blocks):
    M, N, K, group = 19, 70, 448, 32
    kernel = compiled(gated(M, N, K, group), blocks)
    assert SPLIT in note(kernel)
    rng = np.random.default_rng()
    a = rng.integers(-4, 5, (M, K)).astype(ml_dtypes.bfloat16)
    codes = rng.integers(-8, 8, (2, N, K))
    scales = (2.0 ** rng.integers(-2, 1, (N, K // group))).astype(ml_dtypes.bfloat16)
    packed = [((x[:, ::2] & 15) | (x[:, 1::2] & 15) << 4).astype("uint8") for x in codes]
    c = np.full((M, N), np.nan, "float32")
    kernel(a, *packed, scales, c)
    x, y = (a.astype("float64") @ (w * np.repeat(scales.astype("float64"), group, 1)).T for w in codes)
    np.testing.assert_allclose(c, x * y, rtol=1e-6)


def test_a_tile_that_each_iteration_writes_anew():
    kernel = compiled(converted("all"), 4)
    assert SPLIT in note(kernel)
    rng = np.random.default_rng()
    a, b = (rng.integers(-8, 9, (64, 256)).astype("float16") for _ in range(2))
    c = np.full((64, 64), np.nan, "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype("int64") @ b.astype("int64").T)


@pytest.mark.parametrize("how", ["half", "diagonal", "some", "sum", "load before"])
def test_a_tile_with_values_of_an_earlier_iteration(how):
    assert "t has values of an earlier iteration" in note(compiled(converted(how), 4))


def test_the_choice_is_that_of_the_estimate():
    few = tile.compile(product(64, 1024, 8192, (64, 64, 64), "bfloat16", stages=8), TARGET)
    assert f"4 {SPLIT}" in note(few)
    full = tile.compile(product(256, 4096, 4096, (64, 64, 64), "bfloat16", stages=8), TARGET)
    assert "its blocks fill the device" in note(full)
    assert SPLIT not in note(tile.compile(product(64, 1024, 8192, (64, 64, 64)), TARGET, options={"split_k": "never"}))


@pytest.mark.sweep(0.05)
def test_the_fuzzer_draws_loops_that_are_split():
    found = Counter[str]()

    @hypothesis.seed(1)
    @settings(max_examples=12, deadline=None, database=None, phases=(Phase.generate,))
    @hypothesis.given(STRATEGIES["product-loops"][0])
    def draw(unit):
        with contextlib.suppress(TileError):
            program = load(unit.text())
            text = lower(program, make_context(TARGET, {"split_k": 2}), installed()).lowered.text
            found["__cluster_dims__(2, 1, 1)" in text] += 1

    draw()
    assert found[True] > 0


REFUSED = {
    "zero before the loop": (lambda: product(64, 64, 256, (64, 64, 64), value=1), {}),
    "the loop writes C": (
        lambda: product(64, 64, 256, (64, 64, 64), dtype="float16", accum="float32", writes=True),
        {},
    ),
    "values of an earlier iteration": (attention, {}),
    "add in ascending order": (lambda: product(64, 64, 256, (64, 64, 64)), {"numerics": "strict"}),
    "has 3 iterations": (lambda: product(64, 64, 192, (64, 64, 64)), {}),
    "accumulator of 32 bits": (lambda: product(64, 64, 256, (64, 64, 64), accum="float16"), {}),
    "tensor memory": (lambda: product(128, 64, 256, (128, 64, 64)), {"tcgen05": "always"}),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_loops_that_stay_whole(reason):
    make, options = REFUSED[reason]
    kernel = compiled(make(), 4, "cuda:sm_100a" if "tcgen05" in options else TARGET, **options)
    assert reason in note(kernel)
    assert "__cluster_dims__" not in kernel.source


def test_accumulators_that_exceed_shared_memory():
    kernel = tile.compile(product(128, 256, 1024, (128, 256, 64), threads=256), TARGET, options={"split_k": 8})
    assert "shared memory does not hold the accumulators" in note(kernel)


@pytest.mark.parametrize(("mistake", "K"), [("first meeting", 512), ("second meeting", 576), ("a rank", 640)])
def test_seeded_mistakes_are_found(monkeypatch, mistake, K):
    """Without a meeting of the blocks the emulator reports a race, and without a rank the result is wrong."""
    meet, lower, met = add_blocks._meet, add_blocks.AddBlocks.lower, []

    def meets(call):
        met.append(call)
        left_out = len(met) == {"first meeting": 1, "second meeting": 2}.get(mistake)
        return nodes.seq([]) if left_out else meet(call)

    def fewer(self, call, ctx):
        blocks = nodes.int_const(3 if mistake == "a rank" else 4)
        return lower(self, replace(call, args=(*call.args[:2], blocks)), ctx)

    monkeypatch.setattr(add_blocks, "_meet", meets)
    monkeypatch.setattr(add_blocks.AddBlocks, "lower", fewer)
    rng = np.random.default_rng()
    a, b = (rng.integers(-8, 9, (64, K)).astype("float16") for _ in range(2))
    c = np.full((64, 64), np.nan, "float32")
    try:
        compiled(product(64, 64, K, (64, 64, 64), stages=4), 4)(a, b, c)
    except TileError as found:
        print(found)
        return
    assert not np.array_equal(c, a.astype("int64") @ b.astype("int64").T)
