"""Products other than on 8 x 8 matrices of shared tiles, and their memory."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core import sparse
from tile_core.errors import TileError

from .kit import TARGETS, right, text

pytestmark = pytest.mark.sweep(4)


def stored(x):
    return x.view(np.uint8) if x.dtype.itemsize == 1 else x


def drawn(shape, dtype, seed=3):
    values = np.random.default_rng(seed).standard_normal(shape)
    return values.astype(getattr(ml_dtypes, dtype, dtype))


def close(got, a, b, c=0.0):
    a, b = a.astype("float64"), b.astype("float64")
    bound = 2.0**-20 * (np.abs(a) @ np.abs(b)) + 1e-6
    return bool((np.abs(got.astype("float64") - (a @ b + c)) <= bound).all())


def row_times_matrix(N, K, block_n, block_k, turned, dtype, out="float32", threads=128, clear=False):
    @T.prim_func
    def vecmat(A: T.Tensor((1, K), dtype), B: T.Tensor((N, K) if turned else (K, N), dtype), C: T.Tensor((1, N), out)):
        with T.Kernel(T.ceildiv(N, block_n), threads=threads) as bx:
            A_s = T.alloc_shared((1, block_k), dtype)
            B_s = T.alloc_shared((block_n, block_k) if turned else (block_k, block_n), dtype)
            C_f = T.alloc_fragment((1, block_n), out)
            T.copy(C[0, bx * block_n], C_f)
            for k in T.Pipelined(T.ceildiv(K, block_k), num_stages=2):
                T.copy(A[0, k * block_k], A_s)
                if turned:
                    T.copy(B[bx * block_n, k * block_k], B_s)
                else:
                    T.copy(B[k * block_k, bx * block_n], B_s)
                T.gemm(A_s, B_s, C_f, transpose_B=turned, clear_accum=clear)
            T.copy(C_f, C[0, bx * block_n])

    return vecmat


ROWS = (
    (70, 300, 32, 128, True, "float16", 128), (70, 300, 32, 128, False, "float16", 128),
    (33, 77, 13, 40, True, "float32", 64), (1, 1, 1, 1, True, "float32", 32), (5, 513, 5, 513, True, "bfloat16", 96),
    (64, 256, 16, 256, True, "float8_e4m3fn", 128), (30, 64, 16, 64, True, "float8_e5m2", 32),
    (30, 64, 16, 64, False, "float8_e4m3fn", 32),
)  # fmt: skip


@pytest.mark.parametrize(("N", "K", "bn", "bk", "turned", "dtype", "threads"), ROWS)
def test_a_row_times_a_matrix(N, K, bn, bk, turned, dtype, threads):
    a, b = drawn((1, K), dtype), drawn((N, K) if turned else (K, N), dtype, 4)
    start = drawn((1, N), "float32", 5)
    program = row_times_matrix(N, K, bn, bk, turned, dtype, threads=threads)
    found, out = right(program, stored(a), stored(b), start.copy())
    assert ("simd_sum" in found.text) == turned
    assert "simdgroup_multiply" not in found.text
    assert close(out["C"], a, b.T if turned else b, start)


def test_the_row_of_float8_reads_vectors():
    source = text(row_times_matrix(64, 1024, 32, 512, True, "float8_e4m3fn")).text
    assert "(threadgroup const uint4*)&B_s" in source
    assert "(threadgroup const uint4*)&A_s" in source


def test_a_row_reduction_in_half_is_rounded_once():
    a, b = drawn((1, 96), "float16"), drawn((40, 96), "float16", 4)
    c = np.zeros((1, 40), np.float16)
    _, out = right(row_times_matrix(40, 96, 40, 96, True, "float16", out="float16"), a, b, c)
    exact = (a.astype("float64") @ b.T.astype("float64")).astype(np.float16)
    assert np.abs(out["C"].astype("float64") - exact.astype("float64")).max() <= 2 * np.spacing(np.abs(exact).max())


def sparse_product(M, N, K, block, dtype, transposed=False):
    bm, bn, bk = block
    e = sparse.E_FACTOR_MAP[dtype]["int16"]

    @T.prim_func
    def gemm_sp(
        A: T.Tensor((M, K // 2), dtype), E: T.Tensor((M, K // e), "int16"),
        B: T.Tensor((N, K) if transposed else (K, N), dtype), C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=64) as (bx, by):
            A_s = T.alloc_shared((bm, bk // 2), dtype)
            E_s = T.alloc_shared((bm, bk // e), "int16")
            B_s = T.alloc_shared((bn, bk) if transposed else (bk, bn), dtype)
            C_f = T.alloc_fragment((bm, bn), "float32")
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=2):
                T.copy(A[by * bm, k * bk // 2], A_s)
                T.copy(E[by * bm, k * bk // e], E_s)
                if transposed:
                    T.copy(B[bx * bn, k * bk], B_s)
                else:
                    T.copy(B[k * bk, bx * bn], B_s)
                T.gemm_sp(A_s, E_s, B_s, C_f, transpose_B=transposed)
            T.copy(C_f, C[by * bm, bx * bn])

    return gemm_sp


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_an_infinity_that_no_row_keeps_does_not_count(dtype, target):
    """A dense product would make NaN of it: zero times infinity."""
    M, N, K = 19, 21, 64
    a = sparse.prune(drawn((M, K), dtype))
    values, metadata = sparse.compress(a)
    b = drawn((K, N), dtype, 4)
    b[5, 3], b[17, 20], b[40, 0] = np.inf, np.nan, -np.inf
    c = np.full((M, N), np.nan, np.float32)
    _, out = right(sparse_product(M, N, K, (16, 16, 32), dtype), values, metadata, b, c, target=target)
    kept = a != 0
    expected = np.zeros((M, N))
    for i in range(M):
        expected[i] = (a[i, kept[i], None].astype("float64") * b[kept[i]].astype("float64")).sum(0)
    assert np.array_equal(np.isnan(out["C"]), np.isnan(expected))
    assert np.array_equal(np.isinf(out["C"]), np.isinf(expected))
    finite = np.isfinite(expected)
    assert finite.sum() > M * N // 2
    assert (~finite).any()
    np.testing.assert_allclose(out["C"][finite], expected[finite], rtol=1e-4, atol=1e-4)


def direct(M, N, K, dtype):
    @T.prim_func
    def product(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=64) as (bx, by):
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            T.simdgroup_gemm(A[by * 32 : by * 32 + 32, :], B[:, bx * 32 : bx * 32 + 32], c)
            T.copy(c, C[by * 32, bx * 32])

    return product


@pytest.mark.parametrize(
    ("M", "N", "K", "dtype"), [(64, 64, 64, "float16"), (70, 45, 37, "float16"), (33, 40, 8, "float32")]
)
def test_operands_in_device_memory_are_not_staged(M, N, K, dtype):
    a, b = drawn((M, K), dtype), drawn((K, N), dtype, 4)
    found, out = right(direct(M, N, K, dtype), a, b, np.full((M, N), np.nan, np.float32))
    assert "threadgroup uchar" not in found.text
    assert ("simdgroup_load_" in found.text) == (K % 8 == 0)
    assert close(out["C"], a, b)


class TestNames:
    def test_matrices_of_a_fragment(self):
        @T.prim_func
        def expert(
            A: T.Tensor((24, 40), "float16"), B: T.Tensor((32, 40), "float16"), C: T.Tensor((32, 24), "float32")
        ):
            with T.Kernel(1, threads=64):
                a = T.alloc_fragment((24, 40), "float16")
                b = T.alloc_fragment((40, 32), "float16")
                c = T.alloc_fragment((24, 32), "float32")
                T.simdgroup_fill(c, 1.0)
                T.simdgroup_load(a, A)
                T.simdgroup_load(b, B, transpose=True)
                T.simdgroup_multiply_accumulate(c, a, b)
                T.simdgroup_store(c, C, transpose=True)

        a, b = drawn((24, 40), "float16"), drawn((32, 40), "float16", 4)
        _, out = right(expert, a, b, np.full((32, 24), np.nan, np.float32))
        assert close(out["C"].T, a, b.T, 1.0)

    def one(self, op, **how):
        @T.prim_func
        def product(
            A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 32), "float16"), C: T.Tensor((16, 32), "float32")
        ):
            with T.Kernel(1, threads=32):
                a = T.alloc_shared((16, 16), "float16")
                b = T.alloc_shared((16, 32), "float16")
                c = T.alloc_fragment((16, 32), "float32")
                T.copy(A, a)
                T.copy(B, b)
                op(a, b, c, clear_accum=True)
                T.copy(c, C)

        return product

    def test_tensor_operations_are_for_metal4(self):
        program = self.one(T.cooperative_tensor_gemm)
        assert "matmul2d_16x32x16" in text(program, "metal:metal4").text
        with pytest.raises(TileError) as found:
            text(program)
        assert found.value.code == "U103"

    def test_a_promised_instruction_is_no_other(self):
        assert "matmul2d" not in text(self.one(T.simdgroup_gemm), "metal:metal4").text
        with pytest.raises(TileError, match=r"metal\.simdgroup"):
            tile.compile(self.one(T.simdgroup_gemm), target="cpu")

    def test_a_tile_that_is_no_fragment(self):
        with pytest.raises(TileError) as found:

            @T.prim_func
            def wrong(A: T.Tensor((8, 8), "float16")):
                with T.Kernel(1, threads=32):
                    s = T.alloc_shared((8, 8), "float16")
                    T.simdgroup_load(s, A)

        assert found.value.code == "K204"


def tiled(M, N, K, block, stages):
    bm, bn, bk = block

    @T.prim_func
    def gemm(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=128) as (bx, by):
            A_s = T.alloc_shared((bm, bk), "float16")
            B_s = T.alloc_shared((bk, bn), "float16")
            C_f = T.alloc_fragment((bm, bn), "float32")
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                T.copy(A[by * bm, k * bk], A_s)
                T.copy(B[k * bk, bx * bn], B_s)
                T.gemm(A_s, B_s, C_f)
            T.copy(C_f, C[by * bm, bx * bn])

    return gemm


class TestMemory:
    @pytest.mark.parametrize("stages", [1, 2, 4])
    @pytest.mark.parametrize("depth", [32, 48, 96])
    def test_stages_need_no_memory(self, stages, depth):
        """Tiles go through registers, or are copied in place; either way they have one place."""
        found = text(tiled(64, 64, 512, (64, 64, depth), stages))
        assert found.facts.shared_bytes == (64 * (depth + 8) + depth * (64 + 8)) * 2
        assert ("A_s_ahead" in found.text) == (stages > 1 and depth == 32)

    def test_rows_are_not_padded_where_that_does_not_fit(self):
        found = text(tiled(64, 64, 256, (64, 128, 80), 1))
        assert found.facts.shared_bytes == 64 * 80 * 2 + 80 * 128 * 2
        assert "a_tile * 640 + " in found.text

    def test_tiles_that_fit_in_no_way_are_refused(self):
        with pytest.raises(TileError) as found:
            text(tiled(128, 128, 256, (128, 128, 96), 1))
        assert found.value.code == "U301"
