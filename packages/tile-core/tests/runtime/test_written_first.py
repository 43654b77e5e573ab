"""Outputs that a kernel reads: those that it writes before are allocated, the others are refused (K427)."""

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.launch import BadOutIdx

N = 37


@T.prim_func
def the_same_element(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            C[i] = A[i]
            C[i] = C[i] * 2.0


@T.prim_func
def a_later_loop(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(T.ceildiv(N, 16), threads=32) as b:
        for i in T.Parallel(16):
            C[b * 16 + i] = A[b * 16 + i]
        for j in T.Parallel(16):
            C[b * 16 + j] += A[b * 16 + j]


@T.prim_func
def a_part_that_is_cleared(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(T.ceildiv(N, 16), threads=32) as b:
        s = T.alloc_shared((16,), "float32")
        T.clear(C[b * 16 : b * 16 + 16])
        T.copy(C[b * 16 : b * 16 + 16], s)
        for i in T.Parallel(16):
            s[i] += 2.0 * A[b * 16 + i]
        T.copy(s, C[b * 16 : b * 16 + 16])


@T.prim_func
def the_whole_tensor(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=32):
        T.clear(C)
        for _ in T.serial(2):
            for i in T.Parallel(N):
                C[i] += A[i]


@T.prim_func
def in_a_branch(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            if A[0] > 0.0:
                C[i] = A[i]
        for i in T.Parallel(N):
            C[i] = C[i] + A[i]


@T.prim_func
def a_shorter_loop(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N - 1):
            C[i] = A[i]
        for i in T.Parallel(N):
            C[i] = C[i] + A[i]


@T.prim_func
def another_element(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=1):
        for i in T.serial(N - 1):
            C[i] = A[i]
            C[i] = C[i + 1] + A[i]


@T.prim_func
def a_loop_that_may_not_run(A: T.Tensor((N,), "float32"), n: T.int32, C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=1):
        for _ in T.serial(n):
            C[0] = A[0]
        C[0] = C[0] + A[1]


@T.prim_func
def a_loop_that_ends_early(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=1):
        for i in T.serial(N):
            if A[i] > 0.0:
                break
            C[i] = A[i]
        for i in T.serial(N):
            C[i] = C[i] + A[i]


@T.prim_func
def in_the_next_trip(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=1):
        for i in T.serial(N):
            C[0] = C[0] + A[i]
            C[0] = A[i]


@T.prim_func
def an_index_that_changes(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=1):
        j = T.alloc_var("int32", init=2)
        C[j] = A[0]
        j = 5
        C[j] = C[j] + 1.0


@T.prim_func
def a_while_loop(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=1):
        i = T.alloc_var("int32", init=0)
        while i < N - 1:
            C[i] = A[i]
            i = i + 1
            C[i] = C[i] * 2.0


@T.prim_func
def a_corner_that_changes(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=32):
        n = T.alloc_var("int32", init=8)
        f = T.alloc_fragment((8,), "float32")
        T.copy(A[0:8], f)
        T.copy(f, C[n : n + 8])
        n = 0
        T.copy(C[n : n + 8], f)


@T.prim_func
def a_bound_that_changes(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
    with T.Kernel(1, threads=1):
        n = T.alloc_var("int32", init=3)
        for i in range(n):
            C[i] = A[i]
        n = 8
        for i in range(n):
            C[i] += 1.0


@pytest.mark.parametrize("program", [the_same_element, a_later_loop, a_part_that_is_cleared, the_whole_tensor])
def test_an_output_that_is_written_first_is_allocated(program):
    a = np.random.default_rng(0).standard_normal(N).astype("float32")
    kernel = tile.compile(program, target="cpu", out_idx=-1)
    np.testing.assert_array_equal(kernel(a), 2 * a)
    kernel.verify(a)


@pytest.mark.parametrize(
    "program",
    [
        in_a_branch,
        a_shorter_loop,
        another_element,
        a_loop_that_may_not_run,
        a_loop_that_ends_early,
        in_the_next_trip,
        an_index_that_changes,
        a_while_loop,
        a_corner_that_changes,
        a_bound_that_changes,
    ],
)
def test_an_output_that_may_be_read_first_is_refused(program):
    with pytest.raises(BadOutIdx, match="K427"):
        tile.compile(program, target="cpu", out_idx=-1)
