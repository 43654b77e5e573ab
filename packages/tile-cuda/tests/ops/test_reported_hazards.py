"""Reported hazards of asynchronous copies, barriers and roles on sm_90: right, or refused.

One test for each row of tile-ai/tilelang's issues (the number is the issue's). Bulk copies are on, and where the
situation needs it, it is checked that the text has them, or that it does without.
"""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

pytestmark = pytest.mark.sweep(6)
TARGET, ALWAYS = "cuda:sm_90a", {"tma": "always"}
STORE, LOAD = "  cp_async_bulk_tensor_2d_global_shared", "  cp_async_bulk_tensor_2d_shared_cluster"


def body_of(kernel):
    return kernel.source[kernel.source.index('extern "C"') :]


def ready(program):
    return tile.compile(program, TARGET, runtime="emulator", options=ALWAYS)


def numbers(*shape, dtype="float16"):
    return np.random.default_rng().integers(-4, 5, shape).astype(dtype)


def poison(*shape, dtype="float16"):
    return np.full(shape, 77, dtype)


# Copies


def test_2527_column_offset_of_four_bytes():
    """Shared tile to int32 ``B[0:32, 1:33]``: an illegal instruction at run time."""

    @T.prim_func
    def main(A: T.Tensor((32, 32), "int32"), B: T.Tensor((32, 40), "int32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((32, 32), "int32")
            T.copy(A, S)
            T.copy(S, B[0:32, 1:33])

    kernel = ready(main)
    assert STORE not in body_of(kernel)
    a, b = numbers(32, 32, dtype="int32"), poison(32, 40, dtype="int32")
    kernel(a, b)
    assert np.array_equal(b[:, 1:33], a)
    assert (b[:, [0, *range(33, 40)]] == 77).all()


@pytest.mark.parametrize("length", [1, 255, 1000])
def test_2529_length_that_is_no_multiple_of_the_block(length):
    """Shared to global 1-D copy of a partial tile: an error in layout inference."""

    @T.prim_func
    def main(A: T.Tensor((length,), "float16"), B: T.Tensor((length,), "float16")):
        with T.Kernel(T.ceildiv(length, 256), threads=128) as bx:
            S = T.alloc_shared((256,), "float16")
            T.copy(A[bx * 256], S)
            T.copy(S, B[bx * 256])

    kernel = ready(main)
    # A box would write whole chunks of 16 bytes.
    assert ("  cp_async_bulk_tensor_1d_global" in body_of(kernel)) == (length % 8 == 0)
    a, b = numbers(length), poison(length)
    kernel(a, b)
    assert np.array_equal(b, a)


@pytest.mark.parametrize("threads", [1, 2, 17, 31, 32])
def test_2562_fewer_threads_than_a_warp(threads):
    """Shared to global copy with 2 to 31 threads: nothing is written."""

    @T.prim_func
    def main(A: T.Tensor((16, 32), "float16"), B: T.Tensor((16, 32), "float16")):
        with T.Kernel(1, threads=threads):
            S = T.alloc_shared((16, 32), "float16")
            T.copy(A, S)
            T.copy(S, B)

    kernel = ready(main)
    assert STORE in body_of(kernel)
    a, b = numbers(16, 32), poison(16, 32)
    kernel(a, b)
    assert np.array_equal(b, a)


def test_2581_tile_that_is_wider_than_the_copy():
    """Shared (M, N + 8), copy of ``[:, :N]``: packed with the wrong pitch."""

    @T.prim_func
    def main(A: T.Tensor((16, 32), "float16"), B: T.Tensor((16, 32), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((16, 40), "float16")
            T.fill(S, 5)
            T.copy(A, S[:, 0:32])
            T.copy(S[:, 0:32], B)

    kernel = ready(main)
    assert STORE not in body_of(kernel)
    assert "it reads a part of S" in str(kernel.explain())
    a, b = numbers(16, 32), poison(16, 32)
    kernel(a, b)
    assert np.array_equal(b, a)


@pytest.mark.parametrize("start", [0, 1, 4, 8])
def test_2584_slices_with_an_unaligned_first_byte(start):
    """1-D slices of shared and global memory: a misaligned address."""

    @T.prim_func
    def main(A: T.Tensor((128,), "float16"), B: T.Tensor((128,), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float16")
            T.copy(A[start : start + 64], S)
            T.copy(S, B[start : start + 64])

    kernel = ready(main)
    assert ("  cp_async_bulk_tensor_1d_global" in body_of(kernel)) == (start % 8 == 0)
    a, b = numbers(128), poison(128)
    kernel(a, b)
    assert np.array_equal(b[start : start + 64], a[start : start + 64])
    assert (b[:start] == 77).all()
    assert (b[start + 64 :] == 77).all()


def test_2426_convolution_with_a_narrower_output():
    """The window's origin runs past the row."""

    @T.prim_func
    def main(A: T.Tensor((1, 9, 11, 8), "float16"), B: T.Tensor((64, 72), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64, 72), "float16")
            T.c2d_im2col(A, S, 0, 0, 3, 1, 1, 0)
            T.copy(S, B)

    a, b = numbers(1, 9, 11, 8), poison(64, 72)
    kernel = ready(main)
    assert "  cp_async_bulk_tensor_2d_global" in body_of(kernel)
    kernel(a, b)
    wanted = np.zeros((64, 72), np.float16)
    for m in range(63):
        y, x = divmod(m, 9)
        wanted[m] = a[0, y : y + 3, x : x + 3].reshape(-1)
    assert np.array_equal(b[:63], wanted[:63])


@pytest.mark.parametrize("op", ["copy", "fill"])
def test_2979_slices_beyond_the_shape(op):
    """Slice with min + extent beyond the shape: accepted, and writes out of bounds."""

    @T.prim_func
    def main(A: T.Tensor((24, 32), "float16"), B: T.Tensor((24, 32), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((16, 32), "float16")
            T.copy(A[0:16, :], S)
            if op == "copy":
                T.copy(S, B[16:32, :])
            else:
                T.fill(B[16:32, :], 3)

    a, b = numbers(24, 32), poison(24, 32)
    ready(main)(a, b)  # elements outside are not written
    assert np.array_equal(b[16:], a[:8] if op == "copy" else np.full((8, 32), 3))
    assert (b[:16] == 77).all()


def test_3007_a_hint_that_fits_nothing():
    """``coalesced_width=2`` where the vector has 1 element: fatal instead of a hint."""

    @T.prim_func
    def main(A: T.Tensor((16, 33), "float16"), B: T.Tensor((16, 33), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((16, 33), "float16")
            T.copy(A, S, coalesced_width=2)
            T.copy(S, B, coalesced_width=2)

    a, b = numbers(16, 33), poison(16, 33)
    ready(main)(a, b)
    assert np.array_equal(b, a)


def test_2634_operands_that_threads_wrote():
    """Threads write a tile, the engine reads it without a fence between: old data."""

    @T.prim_func
    def main(A: T.Tensor((16, 64), "float16"), B: T.Tensor((16, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((16, 64), "float16")
            for i, j in T.Parallel(16, 64):
                S[i, j] = A[15 - i, j] + 1
            T.copy(S, B)

    kernel = ready(main)
    text = body_of(kernel)
    assert text.index("fence_proxy_async_shared_cta();") < text.index("__syncthreads();") < text.index(STORE)
    a, b = numbers(16, 64), poison(16, 64)
    kernel(a, b)
    assert np.array_equal(b, a[::-1] + 1)


def test_2699_2703_a_tile_is_cleared_after_its_last_read():
    """Bulk store of zeros to a tile before its reuse: no barrier."""

    @T.prim_func
    def main(A: T.Tensor((32, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((16, 64), "float16")
            for t in T.serial(2):
                T.copy(A[t * 16, 0], S)
                T.copy(S, B[t * 32, 0])
                T.clear(S)
                T.copy(S, B[t * 32 + 16, 0])

    a, b = numbers(32, 64), poison(64, 64)
    kernel = ready(main)
    assert body_of(kernel).count(STORE) == 2
    kernel(a, b)
    for t in range(2):
        assert np.array_equal(b[t * 32 : t * 32 + 16], a[t * 16 : t * 16 + 16])
        assert (b[t * 32 + 16 : t * 32 + 32] == 0).all()


# Pipelines, roles and barriers


def product(k, trips, wait=None, roles=False, threads=128):
    """A product over several iterations; its operands by bulk copies."""

    @T.prim_func
    def main(A: T.Tensor((64, k), "float16"), B: T.Tensor((k, 32), "float16"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(1, threads=threads):
            S = T.alloc_shared((64, 32), "float16")
            R = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((64, 32), "float32")
            if roles:
                with T.ws(0):
                    T.clear(c)
                    for t in T.Pipelined(trips, num_stages=3):
                        T.copy(A[0, t * 32], S)
                        T.copy(B[t * 32, 0], R)
                        T.gemm(S, R, c)
                    T.copy(c, C)
            else:
                T.clear(c)
                for t in T.Pipelined(trips, num_stages=3):
                    T.copy(A[0, t * 32], S)
                    T.copy(B[t * 32, 0], R)
                    T.gemm(S, R, c)
                T.copy(c, C)

    return main


def multiplies(kernel, k):
    a, b, c = numbers(64, k), numbers(k, 32), poison(64, 32, dtype="float32")
    kernel(a, b, c)
    return np.array_equal(c, a.astype("float32") @ b.astype("float32"))


@pytest.mark.parametrize("roles", [False, True])
@pytest.mark.parametrize("trips", [1, 2, 3, 4])
def test_2566_one_iteration(trips, roles):
    """A specialized pipelined loop of exactly one iteration never returns."""
    kernel = ready(product(32 * trips, trips, roles=roles, threads=256 if roles else 128))
    assert LOAD in body_of(kernel)
    assert multiplies(kernel, 32 * trips)


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_2566_dynamic_trip_count(n):
    """The same with a dynamic trip count."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), trips: T.int32):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((8, 64), "float16")
            for t in T.Pipelined(trips, num_stages=3):
                T.copy(A[t * 8, 0], S)
                for i, j in T.Parallel(8, 64):
                    B[t * 8 + i, j] = S[7 - i, j]

    kernel = ready(main)
    assert LOAD in body_of(kernel)
    a, b = numbers(64, 64), poison(64, 64)
    kernel(a, b, n)
    assert np.array_equal(b[: n * 8].reshape(n, 8, 64), a[: n * 8].reshape(n, 8, 64)[:, ::-1])
    assert (b[n * 8 :] == 77).all()


@pytest.mark.parametrize("stages", [(2, 4), (4, 2), (3, 1), (3, 3)])
def test_2309_two_loops_share_their_tiles(stages):
    """Shared buffers of loops with other stage counts: an error in layout inference."""
    first, second = stages

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((8, 64), "float16")
            for t in T.Pipelined(8, num_stages=first):
                T.copy(A[t * 8, 0], S)
                T.copy(S, B[t * 8, 0])
            for t in T.Pipelined(8, num_stages=second):
                T.copy(A[56 - t * 8, 0], S)
                T.copy(S, C[t * 8, 0])

    kernel = ready(main)
    assert body_of(kernel).count(STORE) == 2
    a, b, c = numbers(64, 64), poison(64, 64), poison(64, 64)
    kernel(a, b, c)
    assert np.array_equal(b, a)
    assert np.array_equal(c, a.reshape(8, 8, 64)[::-1].reshape(64, 64))


def test_3039_an_operand_that_is_read_after_the_loop():
    """Tile of a three-stage loop read after the loop: mismatched shapes."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((8, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((8, 64), "float16")
            for t in T.Pipelined(8, num_stages=3):
                T.copy(A[t * 8, 0], S)
                T.copy(S, C[t * 8, 0])
            T.copy(S, B)

    a, b, c = numbers(64, 64), poison(8, 64), poison(64, 64)
    ready(main)(a, b, c)
    assert np.array_equal(b, a[56:])
    assert np.array_equal(c, a)


def test_2547_products_before_and_in_the_loop_add_to_one_fragment():
    """Products before and in a pipelined loop on one accumulator: conflicting layouts."""

    @T.prim_func
    def main(A: T.Tensor((64, 128), "float16"), B: T.Tensor((128, 32), "float16"), C: T.Tensor((64, 32), "float32")):
        with T.Kernel(1, threads=128):
            S = T.alloc_shared((64, 32), "float16")
            R = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((64, 32), "float32")
            T.clear(c)
            T.copy(A[0, 0], S)
            T.copy(B[0, 0], R)
            T.gemm(S, R, c)
            for t in T.Pipelined(3, num_stages=2):
                T.copy(A[0, t * 32 + 32], S)
                T.copy(B[t * 32 + 32, 0], R)
                T.gemm(S, R, c)
            T.copy(c, C)

    kernel = ready(main)
    assert body_of(kernel).count(LOAD) >= 4
    assert multiplies(kernel, 128)


@pytest.mark.parametrize("length", [250, 256])
def test_2567_rows_that_are_no_multiples_of_16_bytes(length):
    """A sequence of 250 elements, whose rows the engine cannot address: a hang."""
    trips = T.ceildiv(length, 32)

    @T.prim_func
    def main(A: T.Tensor((8, length), "float32"), B: T.Tensor((8, length), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((8, 32), "float32")
            for t in T.Pipelined(trips, num_stages=3):
                T.copy(A[0, t * 32], S)
                T.copy(S, B[0, t * 32])

    kernel = ready(main)
    assert (LOAD in body_of(kernel)) == (length == 256)
    a, b = numbers(8, length, dtype="float32"), poison(8, length, dtype="float32")
    kernel(a, b)
    assert np.array_equal(b, a)


def test_2876_a_condition_from_memory_in_the_loop():
    """Pipelined loop body under a condition loaded from a buffer: an internal error."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), On: T.Tensor((8,), "int32"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((8, 64), "float16")
            for t in T.Pipelined(8, num_stages=2):
                if On[t] != 0:
                    T.copy(A[t * 8, 0], S)
                    T.copy(S, B[t * 8, 0])

    a, b, on = numbers(64, 64), poison(64, 64), np.array([1, 0, 1, 1, 0, 0, 1, 0], "int32")
    ready(main)(a, on, b)
    wanted = np.where(np.repeat(on, 8)[:, None] != 0, a, 77)
    assert np.array_equal(b, wanted)


def test_1792_a_variable_selects_the_next_tile():
    """A mutable scalar indexes a tensor inside a pipelined loop."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((8, 64), "float16")
            at = T.alloc_var("int32", init=0)
            for t in T.Pipelined(8, num_stages=2):
                T.copy(A[at * 8, 0], S)
                T.copy(S, B[t * 8, 0])
                at = (at + 3) % 8

    a, b = numbers(64, 64), poison(64, 64)
    ready(main)(a, b)
    order = [t * 3 % 8 for t in range(8)]
    assert np.array_equal(b, a.reshape(8, 8, 64)[order].reshape(64, 64))


def test_2556_2612_a_tile_and_threads_under_conditions():
    """Shared memory exchanged across threads under ``tid < 48``: barrier lost or moved."""

    @T.prim_func
    def main(A: T.Tensor((8, 64), "float16"), B: T.Tensor((64,), "float16"), C: T.Tensor((8, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((8, 64), "float16")
            tid = T.get_thread_binding(0)
            T.copy(A, S)
            T.copy(S, C)
            if tid < 48:
                S[0, tid] = S[1, tid] + 1
                B[tid] = S[0, 47 - tid]

    a, b, c = numbers(8, 64), poison(64), poison(8, 64)
    ready(main)(a, b, c)
    assert np.array_equal(c, a)
    assert np.array_equal(b[:48], a[1, 47::-1] + 1)


def test_2416_tiles_that_share_bytes():
    """Barriers disabled while tiles share memory: a race."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64, 64), "float16")
            R = T.alloc_shared((64, 64), "float16")
            T.copy(A, S)
            T.copy(S, B)
            T.copy(B, R)
            T.copy(R, C)

    kernel = ready(main)
    assert body_of(kernel).count("= (f16*)smem;") == 2
    a, b, c = numbers(64, 64), poison(64, 64), poison(64, 64)
    kernel(a, b, c)
    assert np.array_equal(b, a)
    assert np.array_equal(c, a)
