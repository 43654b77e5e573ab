"""Election of the thread that issues box loads, and positions of copies among mma instructions."""

import re

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

TARGET = "cuda:sm_90a"
ALWAYS = {"tma": "always", "wgmma": "never"}


def through(threads, rows=16, columns=32):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float16"), B: T.Tensor((rows, columns), "float16")):
        with T.Kernel(1, threads=threads):
            a = T.alloc_shared((rows, columns), "float16")
            T.copy(A, a)
            T.copy(a, B)

    return main


def product(stages, trips=5, threads=32):
    @T.prim_func
    def main(
        A: T.Tensor((32, trips * 32), "float16"), B: T.Tensor((trips * 32, 32), "float16"),
        C: T.Tensor((32, 32), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=threads):
            a, b = T.alloc_shared((32, 32), "float16"), T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(trips, num_stages=stages):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    return main


def text_of(program, **options):
    return tile.compile(program, target=TARGET, options={**ALWAYS, **options}).source


def result_of(program, out, *inputs):
    tile.compile(program, TARGET, runtime="emulator", options=ALWAYS)(*inputs, out)
    return out


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    ("threads", "condition"),
    [
        (1, None), (16, "tid == 0"), (31, "tid == 0"), (32, "elect_sync() != 0u"),
        (33, "(tid >> 5) == 0 && elect_sync() != 0u"), (64, "warp == 0 && elect_sync() != 0u"),
        (48, "(tid >> 5) == 0 && elect_sync() != 0u"),
        (128, "warp == 0 && elect_sync() != 0u"),
    ],
)  # fmt: skip
def test_whole_warps_elect_the_loading_thread(threads, condition):
    text = text_of(through(threads))
    before = text.split("cp_async_bulk_tensor_2d_shared_cluster")[-2].splitlines()
    found = [re.search(r"if \((.*)\) \{", line) for line in before[-4:]]
    assert [f[1] for f in found if f] == ([] if condition is None else [condition])
    x = np.arange(16 * 32, dtype=np.float16).reshape(16, 32)
    assert np.array_equal(result_of(through(threads), np.full_like(x, np.nan), x), x)


def test_the_first_thread_stores_and_waits_for_its_stores():
    text = text_of(through(64))
    assert re.search(r"if \(tid == 0\) \{\n *cp_async_bulk_tensor_2d_global_shared_cta", text)


def test_a_warp_of_a_role_elects():
    @T.prim_func
    def main(A: T.Tensor((16, 32), "float16"), B: T.Tensor((16, 32), "float16")):
        with T.Kernel(1, threads=256):
            a = T.alloc_shared((16, 32), "float16")
            full = T.alloc_barrier(128)
            with T.ws(1):
                T.tma_copy(A, a, barrier=full)
                T.barrier_arrive(full)
            with T.ws(0):
                T.barrier_wait(full, 0)
                T.copy(a, B)

    assert "if (warp == 4 && elect_sync() != 0u)" in text_of(main)
    x = np.arange(16 * 32, dtype=np.float16).reshape(16, 32)
    assert np.array_equal(result_of(main, np.full_like(x, np.nan), x), x)


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("stages", "trips"), [(2, 1), (2, 2), (2, 5), (3, 2), (3, 3), (3, 7), (4, 5)])
def test_copies_follow_the_reads_behind_the_barrier(stages, trips):
    program = product(stages, trips)
    text = text_of(program)
    if trips > stages:
        loop = text[text.index("for (int k = 0") :]
        positions = [loop.index(x) for x in ("mbarrier_wait_parity", "__syncthreads", "expect_tx", "mma_sync_aligned")]
        last = loop.index("mma_sync_aligned", positions[2])
        assert positions[0] < positions[1] < positions[2] < last
        assert "ldmatrix" not in loop[positions[2] : last]
    rng = np.random.default_rng(trips)
    a, b = (rng.integers(-3, 4, s).astype(np.float16) for s in ((32, trips * 32), (trips * 32, 32)))
    c = result_of(program, np.full((32, 32), np.nan, np.float32), a, b)
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
