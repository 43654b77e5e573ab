"""Kernels that name their threads: barriers, lock step, warp operations, private storage, divergence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.ops import DivergentBarrier


def run(program: Any, *arrays: np.ndarray) -> None:
    tile.compile(program, target="cpu")(*arrays)


@pytest.mark.parametrize(("threads", "active"), [(64, 48), (31, 31), (96, 7)])
def test_shared_memory_is_seen_in_lock_step_inside_a_divergent_branch(threads: int, active: int) -> None:
    """Peer bug #2556: a read of what other threads wrote, inside ``if tx < n``."""

    @T.prim_func
    def reverse(A: T.Tensor((threads,), "float32"), B: T.Tensor((threads,), "float32")):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding(0)
            s = T.alloc_shared((threads,), "float32")
            if tx < active:
                s[tx] = A[tx]
                B[tx] = s[active - 1 - tx]

    a = np.random.default_rng(0).random(threads, dtype=np.float32)
    b = np.full(threads, -1, np.float32)
    run(reverse, a, b)
    assert np.array_equal(b[:active], a[:active][::-1])
    assert (b[active:] == -1).all()


@pytest.mark.parametrize("condition", ["mask", "modulo"])
def test_a_loop_under_a_divergent_branch_keeps_its_order(condition: str) -> None:
    """Peer bug #2612: write and cross-thread read in a loop under a divergent condition.

    The condition is ``if Mask[tx] != 0`` or ``if tx % 4 == 0``.
    """
    n, trips = 64, 3

    @T.prim_func
    def rotate(M: T.Tensor((n,), "int32"), A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(1, threads=n):
            tx = T.get_thread_binding(0)
            s = T.alloc_shared((n,), "int32")
            s[tx] = A[tx]
            if (M[tx] != 0) if condition == "mask" else (tx % 4 == 0):
                for _ in T.serial(trips):
                    s[tx] = s[(tx + 4) % n] + 1
                B[tx] = s[(tx + 8) % n]

    mask = (np.arange(n) % 4 == 0).astype(np.int32)
    a = np.arange(n, dtype=np.int32) * 10
    b = np.full(n, -1, np.int32)
    run(rotate, mask, a, b)
    s = a.copy()
    at = np.flatnonzero(mask)
    for _ in range(trips):
        s[at] = s[(at + 4) % n] + 1
    want = np.full(n, -1, np.int32)
    want[at] = s[(at + 8) % n]
    assert np.array_equal(b, want)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("threads", [1, 7, 31, 32, 48, 96])
def test_warp_operations_with_warps_that_are_not_full(threads: int) -> None:
    """Peer bug #2599: only the lanes that exist take part."""

    @T.prim_func
    def votes(
        A: T.Tensor((threads,), "float32"),
        S: T.Tensor((threads,), "float32"),
        X: T.Tensor((threads,), "float32"),
        Y: T.Tensor((threads,), "bool"),
        Z: T.Tensor((threads,), "bool"),
        W: T.Tensor((threads,), "uint64"),
        L: T.Tensor((threads,), "int32"),
    ):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding(0)
            S[tx] = T.warp_reduce_sum(A[tx])
            X[tx] = T.warp_reduce_max(A[tx])
            Y[tx] = T.any_sync(A[tx] > 40.0)
            Z[tx] = T.all_sync(A[tx] < 40.0)
            W[tx] = T.ballot(A[tx] > 3.0)
            L[tx] = T.get_warp_idx() * 100 + T.get_lane_idx()

    a = np.arange(threads, dtype=np.float32)
    out = [np.zeros(threads, t) for t in (np.float32, np.float32, bool, bool, np.uint64, np.int32)]
    run(votes, a, *out)
    for low in range(0, threads, 32):
        w = slice(low, min(threads, low + 32))
        bits = sum(1 << i for i, x in enumerate(a[w]) if x > 3)
        wants = [a[w].sum(), a[w].max(), (a[w] > 40).any(), (a[w] < 40).all(), bits]
        for found, want in zip(out[:5], wants, strict=True):
            assert (found[w] == want).all()
    assert np.array_equal(out[5], np.arange(threads) // 32 * 100 + np.arange(threads) % 32)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dtype", ["float16", "int16", "float32", "int64"])
def test_shuffles(dtype: str) -> None:
    """Peer bug #2569: also 16-bit values."""
    n = 64

    @T.prim_func
    def shuffle(A: T.Tensor((n,), dtype), B: T.Tensor((4, n), dtype)):
        with T.Kernel(1, threads=n):
            tx = T.get_thread_binding(0)
            v = A[tx]
            B[0, tx] = T.shfl_xor(v, 5)
            B[1, tx] = T.shfl_up(v, 3)
            B[2, tx] = T.shfl_down(v, 3, 16)
            B[3, tx] = T.shfl_sync(v, tx + 1)

    a = np.arange(n).astype(dtype)
    b = np.full((4, n), -1, dtype)
    run(shuffle, a, b)
    t = np.arange(n)
    lane, warp = t % 32, t // 32 * 32
    assert np.array_equal(b[0], a[warp + (lane ^ 5)])
    assert np.array_equal(b[1], a[np.where(lane >= 3, t - 3, t)])
    assert np.array_equal(b[2], a[np.where(t % 16 + 3 < 16, t + 3, t)])
    assert np.array_equal(b[3], a[warp + (t + 1) % 32])


def test_private_storage_survives_barriers_and_loops() -> None:
    @T.prim_func
    def private(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "float32"), S: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=4):
            tx = T.get_thread_binding(0)
            r = T.alloc_local((8,), "float32")
            total = T.alloc_var("float32", init=0.0)
            for i in T.serial(8):
                r[i] = A[tx, i]
                T.sync_threads()
                total += r[i]
            T.sync_threads()
            for i in T.serial(8):
                B[tx, i] = r[7 - i] * 2.0
            S[tx] = total

    a = np.random.default_rng(1).integers(0, 9, (4, 8)).astype(np.float32)
    b, s = np.full((4, 8), np.nan, np.float32), np.full(4, np.nan, np.float32)
    run(private, a, b, s)
    assert np.array_equal(b, a[:, ::-1] * 2)
    assert np.array_equal(s, a.sum(1))


def test_atomics_happen_once_per_thread_and_return_different_values() -> None:
    """Peer bug #2959: ``atomic(buffer, value)`` by 128 threads counts 128."""

    @T.prim_func
    def count(C: T.Tensor((1,), "int32"), P: T.Tensor((256,), "int32")):
        with T.Kernel(2, threads=128) as bx:
            tx = T.get_thread_binding(0)
            P[bx * 128 + tx] = T.atomic_add(C[0], 1, return_prev=True)

    c, p = np.zeros(1, np.int32), np.full(256, -1, np.int32)
    run(count, c, p)
    assert c[0] == 256
    assert np.array_equal(np.sort(p), np.arange(256))


def test_a_histogram_in_shared_memory() -> None:
    @T.prim_func
    def histogram(A: T.Tensor((256,), "int32"), H: T.Tensor((16,), "int32")):
        with T.Kernel(2, threads=128) as bx:
            tx = T.get_thread_binding(0)
            s = T.alloc_shared((16,), "int32")
            T.clear(s)
            T.atomic_add(s[A[bx * 128 + tx] % 16], 1)
            T.sync_threads()
            if tx < 16:
                T.atomic_add(H[tx], s[tx])

    a = np.random.default_rng(2).integers(0, 1000, 256).astype(np.int32)
    h = np.zeros(16, np.int32)
    run(histogram, a, h)
    assert np.array_equal(h, np.bincount(a % 16, minlength=16))


def test_tree_reduction_with_a_uniform_loop_around_barriers() -> None:
    n = 128

    @T.prim_func
    def tree(A: T.Tensor((n,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=n):
            tx = T.get_thread_binding(0)
            s = T.alloc_shared((n,), "float32")
            s[tx] = A[tx]
            T.sync_threads()
            for step in T.serial(7):
                if tx < (64 >> step):
                    s[tx] = s[tx] + s[tx + (64 >> step)]
                T.sync_threads()
            if tx == 0:
                B[0] = s[0]

    a = np.random.default_rng(3).integers(0, 9, n).astype(np.float32)
    b = np.full(1, np.nan, np.float32)
    run(tree, a, b)
    assert b[0] == a.sum()


def test_two_dimensional_blocks_of_threads() -> None:
    @T.prim_func
    def coordinates(B: T.Tensor((3, 5, 2), "int32")):
        with T.Kernel(1, threads=(2, 5, 3)):
            x, y, z = T.get_thread_bindings()
            B[z, y, x] = z * 100 + y * 10 + x

    b = np.full((3, 5, 2), -1, np.int32)
    run(coordinates, b)
    z, y, x = np.indices((3, 5, 2))
    assert np.array_equal(b, z * 100 + y * 10 + x)


def test_tile_ops_and_thread_code_alternate() -> None:
    @T.prim_func
    def mixed(A: T.Tensor((64, 16), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding(0)
            s = T.alloc_shared((64, 16), "float32")
            T.copy(A, s)
            total = T.alloc_var("float32", init=0.0)
            for j in T.serial(16):
                total += s[tx, j]
            for i, j in T.Parallel(64, 16):
                s[i, j] = s[i, j] + 1.0
            for j in T.serial(16):
                total += s[tx, j]
            B[tx] = total

    a = np.random.default_rng(4).integers(0, 9, (64, 16)).astype(np.float32)
    b = np.full(64, np.nan, np.float32)
    run(mixed, a, b)
    assert np.array_equal(b, 2 * a.sum(1) + 16)


def test_a_barrier_under_divergent_control_flow_is_refused() -> None:
    @T.prim_func
    def diverging(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding(0)
            if tx < 32:
                A[tx] = 0.0
                T.sync_threads()  # here

    with pytest.raises(DivergentBarrier) as refused:
        tile.compile(diverging, target="cpu")
    assert refused.value.code == "K218"
    assert refused.value.where is not None
    assert refused.value.where.source.endswith("# here")
    assert "T.sync_threads() is in control flow that differs" in str(refused.value)


def test_a_tile_op_under_divergent_control_flow_is_refused() -> None:
    @T.prim_func
    def diverging(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding(0)
            s = T.alloc_shared((64,), "float32")
            if tx < 32:
                T.copy(A, s)
            A[tx] = s[tx]

    with pytest.raises(DivergentBarrier, match="an operation of the whole block"):
        tile.compile(diverging, target="cpu")
