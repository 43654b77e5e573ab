"""Loops inside of roles: iterations alternate where roles wait for each other."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.ops import BadRole, UnbalancedBarrier

TARGET = "cuda:sm_90a"
DEPTH = 16


def product(stages=2, trips=5, dynamic=False, first="copies", tiles=1, bulk=True, more=0):
    """A product whose roles have loops; ``tiles`` products reuse the same barriers."""
    copy = T.tma_copy if bulk else T.copy

    @T.macro
    def copies(A, B, S, R, full, free, tile_, n):
        for k in range(n):
            it = tile_ * trips + k
            T.barrier_wait(free[it % stages], (it // stages + 1) % 2)
            if bulk:
                copy(A[tile_ * 64, k * DEPTH], S[it % stages, :, :], barrier=full[it % stages])
                copy(B[k * DEPTH, 0], R[it % stages, :, :], barrier=full[it % stages])
            else:
                copy(A[tile_ * 64, k * DEPTH], S[it % stages, :, :])
                copy(B[k * DEPTH, 0], R[it % stages, :, :])
            T.barrier_arrive(full[it % stages])

    @T.macro
    def multiplies(S, R, F, C, full, free, tile_, n):
        T.clear(F)
        for j in range(n):
            it = tile_ * trips + j
            T.barrier_wait(full[it % stages], it // stages % 2)
            T.gemm(S[it % stages, :, :], R[it % stages, :, :], F)
            T.barrier_arrive(free[it % stages])
        T.copy(F, C[tile_ * 64 : tile_ * 64 + 64, :])

    @T.prim_func
    def main(
        A: T.Tensor((64 * tiles, max(DEPTH * trips, 16)), "float16"),
        B: T.Tensor((max(DEPTH * trips, 16), 64), "float16"),
        C: T.Tensor((64 * tiles, 64), "float32"), n: T.int32,
    ):  # fmt: skip
        with T.Kernel(1, threads=256):
            S = T.alloc_shared((stages, 64, DEPTH), "float16")
            R = T.alloc_shared((stages, DEPTH, 64), "float16")
            F = T.alloc_fragment((64, 64), "float32")
            full, free = T.alloc_barrier([128] * stages), T.alloc_barrier([128] * stages)
            if tiles == 1:
                if first == "copies":
                    with T.ws(0):
                        copies(A, B, S, R, full, free, 0, n if dynamic else trips)
                with T.ws(1):
                    multiplies(S, R, F, C, full, free, 0, (n if dynamic else trips) + more)
                if first != "copies":
                    with T.ws(0):
                        copies(A, B, S, R, full, free, 0, n if dynamic else trips)
            else:
                with T.ws(0):
                    for tile_ in range(tiles):
                        copies(A, B, S, R, full, free, tile_, trips)
                with T.ws(1):
                    for other in range(tiles):
                        multiplies(S, R, F, C, full, free, other, trips)

    return main


def run(program, trips, tiles=1, target=TARGET, counts=None, **how):
    kernel = tile.compile(program, target, **how)
    for n in counts or [trips]:
        rng = np.random.default_rng(n)
        a = rng.integers(-3, 4, (64 * tiles, max(DEPTH * trips, 16))).astype("float16")
        b = rng.integers(-3, 4, (max(DEPTH * trips, 16), 64)).astype("float16")
        c = np.full((64 * tiles, 64), 7, "float32")
        kernel(a, b, c, n)
        k = DEPTH * n
        np.testing.assert_array_equal(c, a[:, :k].astype("float32") @ b[:k].astype("float32"))
    return kernel


@pytest.mark.sweep(8)
@pytest.mark.parametrize(("stages", "trips"), [(1, 0), (1, 1), (1, 3), (2, 2), (2, 5), (3, 1), (3, 7), (4, 4)])
@pytest.mark.parametrize("first", ["copies", "products"])
def test_they_are_right(stages, trips, first):
    run(product(stages, trips, first=first), trips, runtime="emulator")


@pytest.mark.sweep(1)
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_dynamic_trip_counts(stages):
    run(product(stages, 6, dynamic=True), 6, runtime="emulator", counts=range(7))


@pytest.mark.sweep(1)
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_loops_in_loops(stages):
    kernel = run(product(stages, 4, tiles=3), 4, tiles=3, runtime="emulator")
    assert kernel.source.count("for (int") >= 2


def test_the_reference_and_the_cpu_alternate_roles_too():
    program = product(2, 5, bulk=False)
    run(program, 5, target="cpu")
    kernel = tile.compile(program, TARGET, runtime="emulator")
    rng = np.random.default_rng(3)
    a, b = rng.integers(-3, 4, (64, 80)).astype("float16"), rng.integers(-3, 4, (80, 64)).astype("float16")
    assert kernel.verify(a, b, np.zeros((64, 64), "float32"), 5, runtime="emulator")


def test_other_bounds_are_refused():
    with pytest.raises(UnbalancedBarrier):
        tile.compile(product(2, 5, more=1), TARGET, runtime="emulator")


def test_accesses_without_barrier_order_are_refused():
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32"), C: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((64,), "float32")
            full, free = T.alloc_barrier(32), T.alloc_barrier(32)
            with T.ws(0, size=32):
                for k in range(4):
                    T.barrier_wait(free, (k + 1) % 2)
                    T.copy(A[k, :], S)
                    T.copy(A[k, :], B[k, :])
                    T.barrier_arrive(full)
            with T.ws(1, size=32):
                for k in range(4):
                    T.barrier_wait(full, k % 2)
                    for i in T.Parallel(64):
                        C[k, i] = S[i] + B[3 - k, i]
                    T.barrier_arrive(free)

    with pytest.raises(BadRole, match="roles with merged loops share B, which no barrier of the program orders"):
        tile.compile(main, TARGET, runtime="emulator")


def test_three_roles_in_a_chain():
    @T.prim_func
    def main(A: T.Tensor((6, 64), "float32"), C: T.Tensor((6, 64), "float32")):
        with T.Kernel(1, threads=96):
            S, R = T.alloc_shared((64,), "float32"), T.alloc_shared((64,), "float32")
            full, free = T.alloc_barrier(32), T.alloc_barrier(32)
            done, taken = T.alloc_barrier(32), T.alloc_barrier(32)
            with T.ws(0, size=32):
                for k in range(6):
                    T.barrier_wait(free, (k + 1) % 2)
                    T.copy(A[k, :], S)
                    T.barrier_arrive(full)
            with T.ws(1, size=32):
                for k in range(6):
                    T.barrier_wait(full, k % 2)
                    T.barrier_wait(taken, (k + 1) % 2)
                    for i in T.Parallel(64):
                        R[i] = S[63 - i] * 2
                    T.barrier_arrive(free)
                    T.barrier_arrive(done)
            with T.ws(2, size=32):
                for k in range(6):
                    T.barrier_wait(done, k % 2)
                    T.copy(R, C[k, :])
                    T.barrier_arrive(taken)

    a, c = np.random.default_rng().standard_normal((6, 64)).astype("float32"), np.zeros((6, 64), "float32")
    tile.compile(main, TARGET, runtime="emulator")(a, c)
    assert (c == a[:, ::-1] * 2).all()
