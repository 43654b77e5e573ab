"""What has no meaning is an error with the user's line when memory is watched."""

import numpy as np
import pytest

import tile_core.language as T
from tile_core.errors.execution import DataRace, OutsideScratch, ReadUnwritten
from tile_core.reference import execute


def test_a_forgotten_clear():
    @T.prim_func
    def forgotten(A: T.Tensor((8, 8), "float32"), B: T.Tensor((8, 8), "float32")):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((8, 8), "float32")
            total = T.alloc_fragment((8, 8), "float32")
            T.copy(A, a)
            T.gemm(a, a, total)
            T.copy(total, B)

    with pytest.raises(ReadUnwritten, match=r"total\[0, 0\]") as info:
        execute(forgotten, [np.ones((8, 8), "float32"), np.ones((8, 8), "float32")])
    assert info.value.where.source == "T.gemm(a, a, total)"
    execute(forgotten, [np.ones((8, 8), "float32"), np.ones((8, 8), "float32")], check=False)


def test_only_what_is_read_must_be_written():
    @T.prim_func
    def rows(A: T.Tensor((5,), "float32"), B: T.Tensor((5,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((8,), "float32")
            for i in T.Parallel(5):
                s[i] = A[i]
            T.copy(s[0:8], B[0])  # the last three are dropped
            for i in T.Parallel(5):
                B[i] = T.if_then_else(i < 5, s[i], s[7]) + T.if_then_else(i > 8, s[6], 0.0)

    b = np.zeros(5, "float32")
    execute(rows, [np.arange(5, dtype="float32"), b])
    assert b.tolist() == [0, 1, 2, 3, 4]


def test_outputs_hold_nothing():
    @T.prim_func
    def accumulate(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=4):
            for i in T.Parallel(4):
                B[i] += A[i]

    arrays = [np.ones(4, "int32"), np.ones(4, "int32")]
    execute(accumulate, arrays)
    assert arrays[1].tolist() == [2] * 4
    with pytest.raises(ReadUnwritten, match="B"):
        execute(accumulate, arrays, unwritten=[1])


def test_a_variable_that_threads_wrote_in_part():
    @T.prim_func
    def part(B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=4):
            t = T.get_thread_binding(0)
            mine = T.alloc_local((1,), "int32")
            if t < 3:
                mine[0] = t
            B[t] = mine[0]

    with pytest.raises(ReadUnwritten, match="mine"):
        execute(part, [np.zeros(4, "int32")])


def test_a_read_of_what_another_iteration_writes():
    @T.prim_func
    def shifted(A: T.Tensor((8,), "int32"), n: T.int32):
        with T.Kernel(1, threads=8):
            for i in T.Parallel(8):
                A[i] = A[(i + n) % 8]

    with pytest.raises(DataRace, match="iteration") as info:
        execute(shifted, [np.arange(8, dtype="int32"), 1])
    assert "(i + n) % 8" in info.value.where.source
    execute(shifted, [np.arange(8, dtype="int32"), 8])


def test_two_values_for_one_element():
    @T.prim_func
    def folded(A: T.Tensor((8,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=8):
            for i in T.Parallel(8):
                B[i % 4] = A[i]

    with pytest.raises(DataRace, match="another value"):
        execute(folded, [np.arange(8, dtype="int32"), np.zeros(4, "int32")])
    execute(folded, [np.full(8, 3, "int32"), np.zeros(4, "int32")])


def test_iterations_may_come_back_to_what_is_theirs():
    @T.prim_func
    def rows(A: T.Tensor((8, 8), "int32")):
        with T.Kernel(1, threads=8):
            for i in T.Parallel(8):
                for k in T.serial(7):
                    A[i, k + 1] = A[i, k] + 1
                for j in T.Parallel(8):
                    A[i, j] = A[i, j] * 2
                A[i, 0] = A[i, 7]

    a = np.zeros((8, 8), "int32")
    execute(rows, [a])
    assert (a == [14, 2, 4, 6, 8, 10, 12, 14]).all()


def test_named_threads_race_within_one_statement():
    @T.prim_func
    def last(B: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=8):
            B[0] = T.get_thread_binding(0)

    with pytest.raises(DataRace, match="one thread"):
        execute(last, [np.zeros(1, "int32")])


def test_named_threads_go_in_lock_step():
    @T.prim_func
    def rotated(A: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=8):
            t = T.get_thread_binding(0)
            s = T.alloc_shared((8,), "int32")
            s[t] = A[t]
            s[t] = s[(t + 1) % 8]
            A[t] = s[t]

    a = np.arange(8, dtype="int32")
    execute(rotated, [a])
    assert a.tolist() == [1, 2, 3, 4, 5, 6, 7, 0]


def test_accesses_outside_of_scratch_on_request():
    @T.prim_func
    def edge(B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=8):
            s = T.alloc_shared((8,), "int32")
            T.fill(s, 3)
            for i in T.Parallel(8):
                B[i] = s[i + 1]

    b = np.zeros(8, "int32")
    execute(edge, [b])
    assert b.tolist() == [3] * 7 + [0]
    with pytest.raises(OutsideScratch, match=r"s of shape \(8,\) is read outside, at \[8\]"):
        execute(edge, [b], bounds=True)
