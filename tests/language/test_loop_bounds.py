"""Loop bounds are evaluated once, before the first iteration, as in Python."""

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T


@T.prim_func
def an_end_that_shrinks(J: T.Tensor((2,), "int32"), B: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=32):
        n = T.alloc_var("int32", init=5)
        c = T.alloc_var("int32", init=0)
        for _ in range(n):
            c += 1
            n = 2
        B[0] = c
        for _ in T.serial(n * 2 + 1):
            c += 1
            n = n + 10
        B[1] = c
        for _ in range(J[0]):
            c += 1
            J[0] = 1
        B[2] = c
        n = 3
        for _i, _j in T.grid(n, 2):
            c += 1
            n = 1
        B[3] = c


@T.prim_func
def a_start_that_grows(J: T.Tensor((2,), "int32"), B: T.Tensor((4,), "int32")):
    with T.Kernel(1, threads=32):
        n = T.alloc_var("int32", init=5)
        c = T.alloc_var("int32", init=0)
        for i in range(n, 12):
            c += i
            n = 11
        B[0] = c
        n = 0
        for i in range(n, 9, 2):
            c += i
            n = 4
        B[1] = c
        for _ in T.Pipelined(J[0], num_stages=2):
            c += 1
        B[2] = c
        local = T.alloc_local((1,), "int32")
        local[0] = 3
        for _ in range(local[0]):
            local[0] = 1
            c += 1
        B[3] = c


@pytest.mark.sweep(2)
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "metal"])
@pytest.mark.parametrize(
    ("program", "expected"), [(an_end_that_shrinks, [5, 10, 14, 20]), (a_start_that_grows, [56, 76, 80, 83])]
)
def test_bounds_are_evaluated_once(program, expected, target):
    kernel = tile.compile(program, target=target, runtime="host" if target == "cpu" else "emulator")
    found = np.zeros(4, "int32")
    kernel(np.array([4, 0], "int32"), found)
    np.testing.assert_array_equal(found, expected)
    kernel.verify(np.array([4, 0], "int32"), np.zeros(4, "int32"))


@T.prim_func
def a_loop_that_never_runs(X: T.Tensor((8, 12), "float32"), B: T.Tensor((12,), "float32")):
    with T.Kernel(1, threads=1) as bx:
        a = T.alloc_shared((8, 12), "float32")
        T.copy(X, a)
        r = T.alloc_reducer((12,), "float32", "min", replication="all")
        for i, j in T.Parallel(bx, 12):
            if j < 11:
                r[j] = T.min(r[j], a[i, j])
        T.finalize_reducer(r)
        T.copy(r, B)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "metal"])
def test_an_extent_that_is_zero_in_the_only_block(target):
    """TVM's analyzer fails on it in a condition's scope, and crashed on leaving that scope."""
    kernel = tile.compile(a_loop_that_never_runs, target=target, runtime="host" if target == "cpu" else "emulator")
    found = np.zeros(12, "float32")
    kernel(np.ones((8, 12), "float32"), found)
    np.testing.assert_array_equal(found, np.full(12, np.inf, "float32"))
