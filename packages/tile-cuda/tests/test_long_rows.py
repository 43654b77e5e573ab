"""Rows of more elements than a block has registers: no spills, vector accesses, and reports."""

from __future__ import annotations

import warnings

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.reports import report_json, slow


def softmax(n, dtype="float32", threads=1024):
    @T.prim_func
    def main(X: T.Tensor((64, n), dtype), Y: T.Tensor((64, n), dtype)):
        with T.Kernel(64, threads=threads) as b:
            x = T.alloc_fragment((1, n), "float32")
            s = T.alloc_fragment((1,), "float32")
            T.copy(X[b, 0], x)
            T.reduce_max(x, s, dim=1)
            for i, j in T.Parallel(1, n):
                x[i, j] = T.exp(x[i, j] - s[i])
            T.reduce_sum(x, s, dim=1)
            for i, j in T.Parallel(1, n):
                x[i, j] = x[i, j] / s[i]
            T.copy(x, Y[b, 0])

    return main


def norm(n, dtype="float32", threads=1024):
    @T.prim_func
    def main(X: T.Tensor((64, n), dtype), W: T.Tensor((n,), dtype), Y: T.Tensor((64, n), dtype)):
        with T.Kernel(64, threads=threads) as b:
            x, q = T.alloc_fragment((1, n), "float32"), T.alloc_fragment((1, n), "float32")
            s = T.alloc_fragment((1,), "float32")
            T.copy(X[b, 0], x)
            for i, j in T.Parallel(1, n):
                q[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(q, s, dim=1)
            for i, j in T.Parallel(1, n):
                Y[b, j] = x[i, j] * T.rsqrt(s[i] / n + 1e-5) * W[j]

    return main


def in_place(n, threads):
    @T.prim_func
    def main(X: T.Tensor((4, n), "float32"), Y: T.Tensor((4, n), "float32")):
        with T.Kernel(4, threads=threads) as b:
            x = T.alloc_fragment((1, n), "float32")
            T.copy(X[b, 0], x)
            for j in T.Parallel(n):
                X[b, j] = 0
            for i, j in T.Parallel(1, n):
                Y[b, j] = x[i, j]

    return main


@pytest.mark.sweep(2)
@pytest.mark.parametrize("make", [softmax, norm])
@pytest.mark.parametrize(
    ("n", "dtype", "threads"),
    [
        (131_072, "float32", 1024), (131_071, "float32", 1024), (131_072, "bfloat16", 256), (100_003, "float16", 512),
        (57_344, "float32", 1024),
    ],
)  # fmt: skip
def test_rows_beyond_registers_do_not_spill(make, n, dtype, threads):
    pytest.importorskip("cuda.bindings.nvrtc")
    report = report_json(make(n, dtype, threads), "cuda:sm_90a")
    assert not report["warnings"]
    assert report["built"]["spill_bytes"] == report["built"]["stack_bytes"] == 0
    recomputed = {f["name"]: f["recomputed"] for f in report["block"]["fragments"] if f["recomputed"]}
    assert "x" in recomputed
    assert f"of at most {min(255, 65536 // threads)}" in recomputed["x"]


def test_every_pass_reads_vectors():
    text = tile.compile(softmax(131_072), "cuda:sm_90a").source
    assert text.count("= *(const uint4*)&X[") == 3
    assert text.count("*(uint4*)&Y[") == 1
    assert text.count("#pragma unroll 4\n") == 3
    assert "[128]" not in text


def test_shorter_rows_stay_in_registers():
    text = tile.compile(softmax(49_152), "cuda:sm_90a").source
    assert "float x[48];" in text


def test_rows_that_change_are_moved_to_shared_memory_or_reported(monkeypatch):
    monkeypatch.setattr(slow, "_given", set())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel = tile.compile(in_place(40_000, 128), "cuda:sm_90a")
    assert "no fragment: it needs 316 registers of a thread, of at most 255" in " ".join(kernel.explain().split())
    expected = (
        r"fragment x \(test_long_rows.py:\d+\) spills: it needs 512 registers of a thread, of at most 255; the kernel "
        r"writes X, which it is computed from; use fewer elements, more than 256 threads, or T.alloc_shared if its "
        r"524,288 bytes fit in shared memory"
    )
    with pytest.warns(slow.Spills, match=expected):
        tile.compile(in_place(131_072, 256), "cuda:sm_90a")


@pytest.mark.sweep(0.25)
def test_registers_that_a_role_requests_are_counted():
    @T.prim_func
    def main(
        A: T.Tensor((4096, 4096), "bfloat16"), B: T.Tensor((4096, 4096), "bfloat16"),
        C: T.Tensor((4096, 4096), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(16, 32, threads=256) as (bx, by):
            a, b = T.alloc_shared((128, 64), "bfloat16"), T.alloc_shared((256, 64), "bfloat16")
            c = T.alloc_fragment((128, 256), "float32")
            T.clear(c)
            for k in T.Pipelined(64, num_stages=4):
                T.copy(A[by * 128, k * 64], a)
                T.copy(B[bx * 256, k * 64], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C[by * 128, bx * 256])

    report = report_json(main, "cuda:sm_90a")
    assert "setmaxnreg_inc" in tile.compile(main, "cuda:sm_90a").source
    assert not report["warnings"]
    assert not any(f["recomputed"] for f in report["block"]["fragments"])


def test_arrays_that_the_program_makes_private_stay(monkeypatch):
    monkeypatch.setattr(slow, "_given", set())
    m, n = T.dynamic("m, n")

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((m, n), "float32"), P: T.Tensor((24, 63), "float32")):
        with T.Kernel(T.ceildiv(n, 63), T.ceildiv(m, 24), threads=1) as (bx, by):
            s = T.alloc_local((24, 63), "float32")
            T.fill(s, 1)
            T.copy(A[by * 24, bx * 63], s)
            T.copy(s, B[by * 24, bx * 63])
            if T.all_of(bx == T.ceildiv(n, 63) - 1, by == T.ceildiv(m, 24) - 1):
                T.copy(s, P)

    with pytest.warns(slow.Spills, match="s .* spills: it needs 1512 registers"):
        assert "float s[1512];" in tile.compile(main, "cuda:sm_90a").source
