"""Resident accumulators in tensor memory: results, and the minimal number of moves."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

from ..emit.nvrtc import assemble

TARGET = "cuda:sm_100a"
ALWAYS = {"tcgen05": "always"}


def program(kind, dtype="float32", trips=3):
    """Two accumulators, C and D, of products of A and B; kinds vary C."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 256), "float16"), B: T.Tensor((256, 32), "float16"), n: T.int32,
        C: T.Tensor((128, 32), dtype), D: T.Tensor((128, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            S, R = T.alloc_shared((128, 64), "float16"), T.alloc_shared((64, 32), "float16")
            F, G = T.alloc_fragment((128, 32), dtype), T.alloc_fragment((128, 32), "float32")
            T.fill(F, 1)
            T.clear(G)
            if kind == "two before the loop":
                T.copy(A[0, 0], S)
                T.copy(B[0, 0], R)
                T.gemm(S, R, F)
                T.gemm(S, R, F)
            for t in T.Pipelined(n, num_stages=2) if kind == "pipelined" else T.serial(n):
                T.copy(A[0, t * 64], S)
                T.copy(B[t * 64, 0], R)
                if kind == "scaled before":
                    for i, j in T.Parallel(128, 32):
                        F[i, j] = F[i, j] * 2
                if kind == "started in each trip":
                    T.gemm(S, R, F, clear_accum=True)
                elif kind == "started in the first trip":
                    T.gemm(S, R, F, clear_accum=t == 0)
                elif kind == "in a branch":
                    if t % 2 == 1:
                        T.gemm(S, R, F)
                elif kind == "in both branches":
                    if t % 2 == 1:
                        T.gemm(S, R, F)
                    else:
                        for i, j in T.Parallel(128, 32):
                            F[i, j] = F[i, j] + 1
                else:
                    T.gemm(S, R, F)
                if kind in ("two accumulators", "inner loop"):
                    T.gemm(S, R, G)
                if kind == "read behind":
                    for i, j in T.Parallel(128, 32):
                        G[i, j] = G[i, j] + T.cast(F[i, j], "float32")
                if kind == "scaled behind":
                    for i, j in T.Parallel(128, 32):
                        F[i, j] = F[i, j] * 2
                if kind == "inner loop":
                    for _ in range(2):
                        T.gemm(S, R, F)
            if kind == "after the loop":
                T.copy(A[0, 64], S)
                T.copy(B[64, 0], R)
                T.gemm(S, R, F)
            T.copy(F, C)
            T.copy(G, D)

    return main


def meaning(kind, a, b, n):
    a, b = a.astype(float), b.astype(float)
    part = [a[:, k : k + 64] @ b[k : k + 64] for k in range(0, 256, 64)]
    f, g = np.ones((128, 32)), np.zeros((128, 32))
    if kind == "two before the loop":
        f += 2 * part[0]
    for t in range(n):
        f *= 2 if kind == "scaled before" else 1
        if kind == "started in each trip" or (kind == "started in the first trip" and t == 0):
            f[:] = 0
        if kind == "in both branches" and t % 2 == 0:
            f += 1
        elif kind != "in a branch" or t % 2:
            f += part[t]
        g += part[t] if kind in ("two accumulators", "inner loop") else f if kind == "read behind" else 0
        f *= 2 if kind == "scaled behind" else 1
        f += 2 * part[t] if kind == "inner loop" else 0
    f += part[1] if kind == "after the loop" else 0
    return f, g


#: Moves in the text, before, in and behind the outer loop: (stores, loads) of C's accumulators.
KINDS = {
    "plain": ((1, 0), (0, 0), (0, 1)), "pipelined": ((1, 0), (0, 0), (0, 1)),
    "two accumulators": ((1, 0), (0, 0), (0, 1)), "inner loop": ((1, 0), (0, 0), (0, 1)),
    "scaled before": ((0, 0), (1, 1), (0, 0)), "scaled behind": ((1, 0), (1, 1), (0, 1)),
    "read behind": ((1, 0), (0, 1), (0, 1)), "started in each trip": ((0, 0), (0, 1), (0, 0)),
    "started in the first trip": ((1, 0), (0, 0), (0, 1)), "in a branch": ((1, 0), (0, 0), (0, 1)),
    "in both branches": ((1, 0), (1, 2), (0, 1)), "two before the loop": ((1, 0), (0, 0), (0, 1)),
    "after the loop": ((1, 0), (0, 0), (0, 1)),
}  # fmt: skip


def moves(source):
    body = source[source.index('extern "C"') :]
    begin = re.search(r"\n  for \(int t = ", body)
    end = re.search(r"\n  }\n", body[begin.start() :])
    parts = body[: begin.start()], body[begin.start() :][: end.start()], body[begin.start() :][end.start() :]
    move = r"tcgen05_{}_sync\w+\(&F(?:_piece\w*)?\[0\]"
    return tuple(tuple(len(re.findall(move.format(x), p)) for x in ("st", "ld")) for p in parts)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sweep(2)
def test_numbers_and_moves(kind):
    kernel = tile.compile(program(kind), TARGET, runtime="emulator", options=ALWAYS)
    assert moves(kernel.source) == KINDS[kind]
    assert assemble(kernel.source, "sm_100a") == ""
    rng = np.random.default_rng()
    a, b = rng.integers(-2, 3, (128, 256)).astype("float16"), rng.integers(-2, 3, (256, 32)).astype("float16")
    for n in (0, 1, 2, 4):
        c, d = np.full((128, 32), np.nan, "float32"), np.full((128, 32), np.nan, "float32")
        kernel(a, b, n, c, d)
        f, g = meaning(kind, a, b, n)
        np.testing.assert_array_equal(c, f)
        np.testing.assert_array_equal(d, g)


def test_accumulators_of_another_type_are_rounded_by_each_product():
    kernel = tile.compile(program("plain", "float16"), TARGET, runtime="emulator", options=ALWAYS)
    inside = kernel.source.split("for (int t = ")[1].split("\n  }\n")[0]
    assert "tcgen05_ld_sync" in inside
    assert "tcgen05_st_sync" in inside


def many(count):
    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), C: T.Tensor((count, 128, 128), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((128, 64), "float16")
            F = [T.alloc_fragment((128, 128), "float32") for _ in range(count)]
            for f in F:
                T.clear(f)
            for _ in range(2):
                T.copy(A, S)
                for f in F:
                    T.gemm(S, S, f, transpose_B=True)
            for i, f in enumerate(F):
                T.copy(f, C[i, 0, 0])

    return main


@pytest.mark.parametrize(("count", "allocated", "staying"), [(1, 128, 1), (3, 512, 3), (4, 512, 4), (5, 512, 3)])
@pytest.mark.sweep(2)
def test_columns_are_shared_out_until_there_are_none(count, allocated, staying):
    """Allocate columns to three of five accumulators; the others share the last 128."""
    kernel = tile.compile(many(count), TARGET, runtime="emulator", options=ALWAYS)
    assert f"tcgen05_alloc_cta_group_1_sync_aligned_shared_cta_b32(&tensor_columns[0], {allocated})" in kernel.source
    inside = re.split(r"for \(int \w+ = 0; \w+ < 2;", kernel.source)[1].split("\n  }\n")[0]
    assert len(set(re.findall(r"tcgen05_ld_sync\w+\(&(\w+)\[0\]", inside))) == count - staying
    a, c = np.random.default_rng(3).integers(-2, 3, (128, 64)).astype("float16"), np.zeros((count, 128, 128), "float32")
    kernel(a, c)
    for one in c:
        np.testing.assert_array_equal(one, 2 * a.astype(float) @ a.T.astype(float))


def test_a_product_of_a_pipelined_loop_is_in_flight_while_the_next_one_begins():
    kernel = tile.compile(program("pipelined"), TARGET, runtime="emulator", options=ALWAYS)
    inside = kernel.source.split("for (int t = ")[1].split("\n  }\n")[0]
    product, count, wait = (
        inside.index(x) for x in ("tcgen05_commit", "products = ", "mbarrier_wait_parity(&product_")
    )
    assert product < count < wait
    assert "(products - 2) >> 1" in inside
    assert "asynchronous until waited for" in " ".join(kernel.explain().split())


@pytest.mark.sweep(1)
@pytest.mark.parametrize("first", [True, False])
def test_a_product_that_becomes_another_instruction_is_not_counted(first):
    """Exclude a product whose lowering finds an inexpressible descriptor offset of B."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 64), "float16"), B: T.Tensor((72, 64), "float16"), C: T.Tensor((128, 64), "float32"),
        n: T.int32,
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            S, R = T.alloc_shared((128, 64), "float16"), T.alloc_shared((72, 64), "float16")
            F = T.alloc_fragment((128, 64), "float32")
            T.copy(A, S)
            T.copy(B, R)
            T.clear(F)
            for _ in range(2):
                if first:
                    T.gemm(S, R[n : n + 64, :], F, transpose_B=True)
                T.gemm(S, R[0:64, :], F, transpose_B=True)
                if not first:
                    T.gemm(S, R[n : n + 64, :], F, transpose_B=True)
            T.copy(F, C)

    kernel = tile.compile(main, TARGET, runtime="emulator", options=ALWAYS)
    text = kernel.source[kernel.source.index('extern "C"') :]
    assert "tcgen05_mma_cta" in text
    assert "  mma_sync" in text
    rng = np.random.default_rng(4)
    a, b = rng.integers(-2, 3, (128, 64)).astype("float16"), rng.integers(-2, 3, (72, 64)).astype("float16")
    c = np.full((128, 64), np.nan, "float32")
    kernel(a, b, c, 3)
    np.testing.assert_array_equal(c, 2 * (a.astype(float) @ (b[:64].astype(float) + b[3:67].astype(float)).T))
