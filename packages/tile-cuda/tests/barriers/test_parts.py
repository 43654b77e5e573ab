"""``T.sync_threads(number, count)``: barriers of roles, selected threads, and the whole block."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError

from .programs import at

TARGET = "cuda:sm_80"


@T.prim_func
def of_roles(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=128):
        s = T.alloc_shared((64,), "float32")
        r = T.alloc_shared((64,), "float32")
        with T.ws(0, size=64):
            T.copy(A, s)
            T.sync_threads(1, 64)
            for i in T.Parallel(64):
                B[i] = s[63 - i]
        with T.ws(1, size=64):
            T.copy(A, r)
            T.sync_threads(2, 64)
            for i in T.Parallel(64):
                C[i] = r[63 - i] + 1
        T.sync_threads(3, 128)


@T.prim_func
def of_threads(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=128):
        t = T.get_thread_binding(0)
        s = T.alloc_shared((128,), "float32")
        if t < 64:
            for _ in range(2):
                s[t] = A[t]
                T.sync_threads(1, 64)
            B[t] = s[63 - t]
        elif T.get_warp_idx() >= 2:
            s[t] = A[t - 64] + 1
            T.sync_threads(2, 64)
            C[t - 64] = s[191 - t]


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("program", [of_roles, of_threads], ids=lambda p: p.name)
@pytest.mark.parametrize("target", [TARGET, "cpu"])
def test_results_are_the_same_without_it(program, target):
    a = np.random.default_rng(4).integers(-9, 10, 64).astype("float32")
    b, c = np.full_like(a, np.nan), np.full_like(a, np.nan)
    kernel = tile.compile(program, target, **({"runtime": "emulator"} if target != "cpu" else {}))
    kernel(a, b, c)
    np.testing.assert_array_equal(b, a[::-1])
    np.testing.assert_array_equal(c, a[::-1] + 1)
    kernel.verify(a, b, c)


def test_parts_wait_for_themselves_only():
    roles = at(tile.compile(of_roles, TARGET, runtime="emulator").source)
    assert "__syncthreads" not in roles[: roles.rindex("bar_sync")]
    assert roles.count("bar_sync(1, 64);") == 1
    assert roles.count("bar_sync(2, 64);") == 1
    threads = at(tile.compile(of_threads, TARGET, runtime="emulator").source)
    assert threads.count("bar_sync(1, 64);") == 1
    assert threads.count("bar_sync(2, 64);") == 1


def chosen(condition, count, other=None):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), n: T.int32):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding(0)
            if condition(t, A, n):
                T.sync_threads(1, count)
            elif other is not None:
                T.sync_threads(*other)

    return main


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (lambda: chosen(lambda t, A, n: t < 32, 64), "32 threads execute it"),
        (lambda: chosen(lambda t, A, n: t < 48, 48), "not whole groups of 32 threads"),
        (lambda: chosen(lambda t, A, n: t % 2 == 0, 32), "not whole groups of 32 threads"),
        (lambda: chosen(lambda t, A, n: A[t] > 0.0, 32), "the threads that execute it are unknown"),
        (lambda: chosen(lambda t, A, n: t < n, 32), "the threads that execute it are unknown"),
        (lambda: chosen(lambda t, A, n: t < 32, 32, (1, 32)), "other threads wait at the barrier 1 too"),
    ],
)
@pytest.mark.parametrize("target", [TARGET, "cpu"])
def test_other_threads_than_are_counted_are_refused(program, reason, target):
    with pytest.raises(TileError) as caught:
        tile.compile(program(), target, **({"runtime": "emulator"} if target != "cpu" else {}))
    assert caught.value.code == "K232", caught.value
    assert reason in str(caught.value)


def test_a_number_above_the_limit_of_the_target():
    with pytest.raises(TileError) as caught:
        tile.compile(chosen(lambda t, A, n: t < 32, 32, (16, 32)), TARGET, runtime="emulator")
    assert caught.value.code == "U118"
    assert "15 barriers of parts of a block" in str(caught.value)


@pytest.mark.parametrize("given", [(0, 32), (1, 0), (1,), (1.5, 32), ("a", 32)])
def test_numbers_are_checked(given):
    with pytest.raises(TileError) as caught:
        chosen(lambda t, A, n: t < 32, 32, given)
    assert caught.value.code == "K128"
