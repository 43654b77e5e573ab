"""Bulk copies whose bytes a barrier of the program counts."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError

from .programs import DEPTH, TARGET, at


def product(stages=2, trips=5, dynamic=False, explicit=False, ready=128, waits=True, variant=None):
    """A product whose operands one thread copies, all of a role having arrived."""
    depth = DEPTH * trips

    @T.prim_func
    def main(
        A: T.Tensor((64, depth), "float16"), B: T.Tensor((depth, 64), "float16"), C: T.Tensor((64, 64), "float32"),
        n: T.int32,
    ):  # fmt: skip
        with T.Kernel(1, threads=256):
            As = T.alloc_shared((stages, 64, DEPTH), "float16")
            Bs = T.alloc_shared((stages, DEPTH, 64), "float16")
            F = T.alloc_fragment((64, 64), "float32")
            full, empty = T.alloc_barrier([ready] * stages), T.alloc_barrier([128] * stages)
            with T.ws(1):
                T.clear(F)
            for k in range(n if dynamic else trips):
                slot, round = k % stages, k // stages
                with T.ws(0):
                    T.barrier_wait(empty[slot], (round + 1) % 2)
                    if explicit:
                        T.mbarrier_expect_tx(full[slot], 64 * DEPTH * 2 * 2)
                    T.tma_copy(A[0, k * DEPTH], As[slot, :, :], barrier=full[slot])
                    T.tma_copy(B[k * DEPTH, 0], Bs[slot, :, :], barrier=full[slot])
                    T.barrier_arrive(full[slot])
                with T.ws(1):
                    if waits:
                        T.barrier_wait(full[slot], round % 2)
                    T.gemm(As[slot, :, :], Bs[slot, :, :], F, variant=variant)
                    T.barrier_arrive(empty[slot])
            with T.ws(1):
                T.copy(F, C)

    return main


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("trips", [1, 2, 5])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("variant", [None, "cuda.wgmma"])
@pytest.mark.sweep(6)
def test_the_product_is_right(stages, trips, dynamic, explicit, variant):
    rng = np.random.default_rng(stages)
    a = rng.integers(-3, 4, (64, DEPTH * trips)).astype("float16")
    b = rng.integers(-3, 4, (DEPTH * trips, 64)).astype("float16")
    c = np.full((64, 64), np.nan, "float32")
    program = product(stages, trips, dynamic, explicit, variant=variant)
    kernel = tile.compile(program, TARGET, runtime="emulator")
    kernel(a, b, c, trips)
    np.testing.assert_array_equal(c, a.astype("float32") @ b.astype("float32"))
    text = at(kernel.source)
    loop = text[text.index("for (int k") :]
    assert loop.count("cp_async_bulk_tensor_2d_shared_cluster") == 2
    assert loop.count("mbarrier_expect_tx_relaxed") == (1 if explicit else 2)
    assert "__syncthreads" not in loop[: loop.rindex("mbarrier_arrive")]


@pytest.mark.sweep(0.25)
def test_the_meaning_is_that_of_a_copy():
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-3, 4, s).astype("float16") for s in ((64, 80), (80, 64)))
    kernel = tile.compile(product(), TARGET, runtime="emulator")
    kernel.verify(a, b, np.zeros((64, 64), "float32"), 5)


def in_flight(early, trips=5):
    """Asynchronous products: the slot is released before, or behind, the product's wait."""
    depth = DEPTH * trips

    @T.prim_func
    def main(
        A: T.Tensor((64, depth), "float16"), B: T.Tensor((depth, 64), "float16"), C: T.Tensor((64, 64), "float32")
    ):
        with T.Kernel(1, threads=256):
            As = T.alloc_shared((2, 64, DEPTH), "float16")
            Bs = T.alloc_shared((2, DEPTH, 64), "float16")
            F = T.alloc_fragment((64, 64), "float32")
            full, empty = T.alloc_barrier([128] * 2), T.alloc_barrier([128] * 2)
            with T.ws(1):
                T.clear(F)
            for k in range(trips):
                slot, round = k % 2, k // 2
                with T.ws(0):
                    T.barrier_wait(empty[slot], (round + 1) % 2)
                    T.tma_copy(A[0, k * DEPTH], As[slot, :, :], barrier=full[slot])
                    T.tma_copy(B[k * DEPTH, 0], Bs[slot, :, :], barrier=full[slot])
                    T.barrier_arrive(full[slot])
                with T.ws(1):
                    T.barrier_wait(full[slot], round % 2)
                    T.wgmma_gemm(As[slot, :, :], Bs[slot, :, :], F)
                    if early:
                        T.barrier_arrive(empty[slot])
                    T.wait_wgmma(0)
                    if not early:
                        T.barrier_arrive(empty[slot])
            with T.ws(1):
                T.copy(F, C)

    return main


def test_a_slot_is_given_back_behind_the_wait_for_its_product():
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-3, 4, s).astype("float16") for s in ((64, 80), (80, 64)))
    c = np.full((64, 64), np.nan, "float32")
    kernel = tile.compile(in_flight(early=False), TARGET, runtime="emulator")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype("float32") @ b.astype("float32"))
    text = at(kernel.source)
    assert "__syncthreads" not in text[text.index("for (int k") : text.rindex("mbarrier_arrive")]
    with pytest.raises(TileError) as caught:
        tile.compile(in_flight(early=True), TARGET, runtime="emulator")
    assert caught.value.code == "K229"


def whole(waits=True):
    """The block copies a tile, and reads it."""

    @T.prim_func
    def main(A: T.Tensor((32, 64), "float32"), B: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((8, 64), "float32")
            f = T.alloc_fragment((8, 64), "float32")
            full = T.alloc_barrier(64)
            T.clear(f)
            for k in range(4):
                T.tma_copy(A[k * 8, 0], s, barrier=full)
                T.mbarrier_arrive(full)
                if waits:
                    T.mbarrier_wait_parity(full, k % 2)
                for i, j in T.Parallel(8, 64):
                    f[i, j] = f[i, j] + s[i, j]
            T.copy(f, B)

    return main


def test_the_block_copies_and_waits():
    a = np.random.default_rng(5).integers(-9, 10, (32, 64)).astype("float32")
    b = np.full((8, 64), np.nan, "float32")
    kernel = tile.compile(whole(), TARGET, runtime="emulator")
    kernel(a, b)
    np.testing.assert_array_equal(b, a.reshape(4, 8, 64).sum(axis=0))
    loop = at(kernel.source)
    assert "__syncthreads" in loop[loop.index("for (int k") :], "who reads the tile is waited for before the next copy"


@pytest.mark.parametrize(
    ("program", "code", "reason"),
    [
        (lambda: product(waits=False), "K233", "may end while a thread still waits"),
        (lambda: product(ready=1), "K233", "gets 128 arrivals of 1"),
        (lambda: product(ready=256), "K233", "gets 128 of 256 arrivals"),
        (lambda: whole(waits=False), "K233", "may come before phase 0 has ended"),
    ],
)
def test_unbalanced_barriers_are_refused(program, code, reason):
    with pytest.raises(TileError) as caught:
        tile.compile(program(), TARGET, runtime="emulator")
    assert caught.value.code == code, caught.value
    assert reason in str(caught.value)


def read(action):
    @T.prim_func
    def main(A: T.Tensor((8, 64), "float32"), B: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((8, 64), "float32")
            full = T.alloc_barrier(64)
            T.tma_copy(A, s, barrier=full)
            action(s, B, full)

    return main


@T.macro
def reads_at_once(s, B, full):
    T.mbarrier_arrive(full)
    T.copy(s, B)
    T.mbarrier_wait_parity(full, 0)


@T.macro
def never_waits(s, B, full):
    T.mbarrier_arrive(full)


@T.macro
def announces_other_bytes(s, B, full):
    T.mbarrier_expect_tx(full, 64)
    T.mbarrier_arrive(full)
    T.mbarrier_wait_parity(full, 0)


@T.macro
def announces_after_arriving(s, B, full):
    T.mbarrier_arrive(full)
    T.mbarrier_expect_tx(full, 8 * 64 * 4)
    T.mbarrier_wait_parity(full, 0)


@T.macro
def writes_at_once(s, B, full):
    T.clear(s)
    T.mbarrier_arrive(full)
    T.mbarrier_wait_parity(full, 0)
    T.copy(s, B)


@pytest.mark.parametrize(
    ("action", "code", "reason"),
    [
        (reads_at_once, "K229", "may still be in flight"), (writes_at_once, "K229", "may still be in flight"),
        (never_waits, "K233", "nothing waits for the copies or products of phase 0"),
        (announces_other_bytes, "K233", "expects 64 bytes and gets 2048"),
        (announces_after_arriving, "K233", "may end before its bytes are expected"),
    ],
)  # fmt: skip
def test_tiles_in_flight_are_not_touched(action, code, reason):
    with pytest.raises(TileError) as caught:
        tile.compile(read(action), TARGET, runtime="emulator")
    assert caught.value.code == code, caught.value
    assert reason in str(caught.value)


def test_copies_to_global_memory_have_no_barrier():
    with pytest.raises(TileError) as caught:

        @T.prim_func
        def main(A: T.Tensor((8, 64), "float32")):
            with T.Kernel(1, threads=64):
                s = T.alloc_shared((8, 64), "float32")
                T.tma_copy(s, A, barrier=T.alloc_barrier(64))

    assert caught.value.code == "K212"
    assert "the compiler waits for copies to global memory" in str(caught.value)
