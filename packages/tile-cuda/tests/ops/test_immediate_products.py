"""Loops whose products complete in their own iteration, with a producer warp, persistent blocks and clusters."""

import re

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core import sparse
from tile_core.errors.base import TileError

F8 = "float8_e4m3fn"


def scaled_blocks(m, n, k, bm, bn, threads, stages):
    @T.prim_func
    def main(
        A: T.Tensor((m, k), F8), SA: T.Tensor((m, k // 128), "float32"), B: T.Tensor((n, k), F8),
        SB: T.Tensor((n // 128, k // 128), "float32"), C: T.Tensor((m, n), "bfloat16"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=threads) as (bx, by):
            a = T.alloc_shared((bm, 128), F8)
            b = T.alloc_shared((bn, 128), F8)
            part = T.alloc_fragment((bm, bn), "float32")
            total = T.alloc_fragment((bm, bn), "float32")
            T.clear(total)
            for o in T.Pipelined(k // 128, num_stages=stages):
                T.copy(A[by * bm, o * 128], a)
                T.copy(B[bx * bn, o * 128], b)
                T.gemm(a, b, part, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(bm, bn):
                    total[i, j] += part[i, j] * (SA[by * bm + i, o] * SB[(bx * bn + j) // 128, o])
            T.copy(total, C[by * bm, bx * bn])

    return main


def run(m, n, k, bm, bn, threads, stages, **options):
    kernel = tile.compile(
        scaled_blocks(m, n, k, bm, bn, threads, stages), "cuda:sm_90a", runtime="emulator", options=options
    )
    rng = np.random.default_rng()
    a, b = (rng.integers(-4, 5, s).astype(ml_dtypes.float8_e4m3fn) for s in ((m, k), (n, k)))
    sa, sb = (np.exp2(rng.integers(-1, 2, (s, k // 128))).astype(np.float32) for s in (m, n // 128))
    c = np.full((m, n), np.nan, ml_dtypes.bfloat16)
    kernel(a, sa, b, sb, c)
    x, y = a.astype(float) * np.repeat(sa, 128, 1), b.astype(float) * np.repeat(np.repeat(sb, 128, 0), 128, 1)
    np.testing.assert_array_equal(c.astype(float), (x @ y.T).astype(ml_dtypes.bfloat16).astype(float))
    return kernel


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    ("sizes", "options", "shown"),
    [
        ((256, 256, 384, 128, 128, 256, 4), {"persistent": 3}, "3 persistent blocks process 4 tiles"),
        ((256, 256, 384, 128, 128, 256, 4), {"persistent": 4, "clusters": "always"}, "clusters of 2 x 1 blocks"),
        ((192, 384, 640, 64, 128, 128, 2), {"persistent": 2}, "2 persistent blocks process 9 tiles"),
        ((100, 256, 640, 64, 128, 128, 5), {"persistent": "always"}, "4 persistent blocks process 4 tiles"),
        ((192, 384, 128, 64, 128, 128, 4), {"persistent": 2}, "it has 1 iterations"),
        ((192, 384, 256, 64, 128, 128, 2), {}, "all 9 blocks run at a time"),
    ],
)
def test_products_that_each_iteration_scales(sizes, options, shown):
    text = " ".join(str(run(*sizes, **options).explain()).split())
    assert shown in text


def test_a_slot_is_free_before_threads_scale_the_product():
    source = run(256, 256, 384, 128, 128, 256, 4, persistent=3).source
    loop = source[source.index("wgmma_wait_group_sync_aligned_0();") :]
    assert loop.index("mbarrier_arrive_shared") < loop.index("total[r")
    assert re.search(r"if \(\(number & 31\) == 0\) \{\s*mbarrier_arrive_shared", loop)  # one thread of each warp


def test_results_of_a_total_leave_through_shared_memory():
    source = run(256, 256, 384, 128, 128, 256, 4, persistent=3).source
    assert "cp_async_bulk_tensor_2d_global_shared" in source
    assert "*(unsigned*)(&C[" not in source


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    "options", [{"persistent": 2}, {"persistent": "always", "clusters": "always"}, {"clusters": "always"}]
)
def test_each_thread_releases_slots_that_threads_read(options):
    @T.prim_func
    def main(A: T.Tensor((32, 160), "float16"), W: T.Tensor((125, 160), "int4"), C: T.Tensor((32, 125), "float32")):
        with T.Kernel(2, 2, threads=128) as (bx, by):
            a = T.alloc_shared((16, 32), "float16")
            q = T.alloc_shared((64, 32), "int4")
            w = T.alloc_shared((64, 32), "float16")
            c = T.alloc_fragment((16, 64), "float32")
            T.clear(c)
            for o in T.Pipelined(5, num_stages=3):
                T.copy(A[by * 16, o * 32], a)
                T.copy(W[bx * 64, o * 32], q)
                for i, j in T.Parallel(64, 32):
                    w[i, j] = T.cast(q[i, j], "float16")
                T.gemm(a, w, c, transpose_B=True)
            T.copy(c, C[by * 16, bx * 64])

    options = {"wgmma": "always", "tma": "always", **options}
    kernel = tile.compile(main, "cuda:sm_90a", runtime="emulator", options=options)
    assert not re.search(r"free: 3 barriers of (4|8) arrivals", str(kernel.explain()))
    rng = np.random.default_rng()
    a, codes = rng.integers(-3, 4, (32, 160)).astype(np.float16), rng.integers(0, 16, (125, 160))
    c = np.full((32, 125), np.nan, np.float32)
    try:
        kernel(a, (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8), c)
    except TileError as error:  # the emulator reports a slot that is free before a thread has read it
        pytest.fail(str(error))
    np.testing.assert_array_equal(c, a.astype(float) @ ((codes ^ 8) - 8).T)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("persistent", ["never", 2])
@pytest.mark.parametrize("k", [512, 640])
def test_promoted_sparse_products_fill_all_registers_of_metadata(persistent, k):
    @T.prim_func
    def main(
        A: T.Tensor((256, k // 2), F8), E: T.Tensor((256, k // 32), "int32"), B: T.Tensor((24, k), F8),
        C: T.Tensor((256, 24), "float32"),
    ):  # fmt: skip
        with T.Kernel(2, threads=128) as by:
            a = T.alloc_shared((128, 32), F8)
            e = T.alloc_shared((128, 2), "int32")
            b = T.alloc_shared((24, 64), F8)
            c = T.alloc_fragment((128, 24), "float32")
            T.clear(c)
            for o in T.Pipelined(k // 64, num_stages=3):
                T.copy(A[by * 128, o * 32], a)
                T.copy(E[by * 128, o * 2], e)
                T.copy(B[0, o * 64], b)
                T.gemm_sp(a, e, b, c, transpose_B=True)
            T.copy(c, C[by * 128, 0])

    options = {"wgmma": "always", "tma": "always", "persistent": persistent}
    kernel = tile.compile(main, "cuda:sm_90a", runtime="emulator", options=options)
    rng = np.random.default_rng()
    a = sparse.prune(rng.integers(-3, 4, (256, k)).astype(ml_dtypes.float8_e4m3fn))
    b = rng.integers(-3, 4, (24, k)).astype(ml_dtypes.float8_e4m3fn)
    values, metadata = sparse.compress(a)
    words = np.ascontiguousarray(np.asarray(metadata)).view(np.int32).reshape(256, k // 32)
    c = np.full((256, 24), np.nan, np.float32)
    kernel(values, words, b, c)
    np.testing.assert_array_equal(c, a.astype(float) @ b.astype(float).T)
