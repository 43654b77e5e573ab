"""Test that undefined behaviour is an error at the user's line."""

import numpy as np
import pytest
from expected_errors import raises_error

import tile_core.language as T
from tile_core.errors.execution import BlockRace, DataRace, OutsideScratch, ReadUnwritten
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

    with raises_error(ReadUnwritten, buffer="total", index=[0, 0]) as info:
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
    with raises_error(ReadUnwritten, buffer="B"):
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

    with raises_error(ReadUnwritten, buffer="mine"):
        execute(part, [np.zeros(4, "int32")])


def test_a_read_of_what_another_iteration_writes():
    @T.prim_func
    def shifted(A: T.Tensor((8,), "int32"), n: T.int32):
        with T.Kernel(1, threads=8):
            for i in T.Parallel(8):
                A[i] = A[(i + n) % 8]

    with raises_error(DataRace, lane="iteration") as info:
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

    with raises_error(DataRace, lane="thread"):
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
    with raises_error(OutsideScratch, buffer="s", shape=(8,), action="read", index=[8]):
        execute(edge, [b], bounds=True)


def last_block(order):
    """Each block writes a part, and the last one that counts adds all parts."""

    @T.prim_func
    def last_block(
        A: T.Tensor((6,), "int32"), P: T.Tensor((6,), "int32"), N: T.Tensor((1,), "int32"), B: T.Tensor((1,), "int32")
    ):
        with T.Kernel(6, threads=32) as bx:
            P[bx] = A[bx] * 2
            done = T.atomic_add(N[0], 1, memory_order=order, return_prev=True)
            if done == 5:
                total = T.alloc_var("int32", 0)
                for k in T.serial(6):
                    total += P[k]
                    P[k] = 0
                B[0] = total

    return last_block


@pytest.mark.parametrize("order", ["relaxed", "acquire", "release", "acq_rel", "seq_cst"])
def test_atomics_order_blocks_by_their_memory_order(order):
    arrays = [np.arange(6, dtype="int32"), *(np.zeros(n, "int32") for n in (6, 1, 1))]
    if order in ("acq_rel", "seq_cst"):
        execute(last_block(order), arrays)
        assert arrays[3] == 30
        return
    with pytest.raises(BlockRace, match=r"P\[0\] is read by block 5 and written by block 0"):
        execute(last_block(order), arrays)


def test_a_flag_orders_one_block_behind_another():
    def program(flag):
        @T.prim_func
        def handed(A: T.Tensor((4,), "int32"), F: T.Tensor((4,), "int32"), B: T.Tensor((3,), "int32")):
            with T.Kernel(4, threads=32) as bx:
                if bx > 0:
                    ready = T.atomic_load(F[bx - 1], memory_order="acquire")
                    if ready == 1:
                        B[bx - 1] = A[bx - 1]
                A[bx] = bx + 10
                T.atomic_store(F[bx], 1, memory_order=flag)

        return handed

    arrays = [np.zeros(4, "int32"), np.zeros(4, "int32"), np.zeros(3, "int32")]
    execute(program("release"), arrays)
    assert arrays[2].tolist() == [10, 11, 12]
    with pytest.raises(BlockRace):
        execute(program("relaxed"), [np.zeros_like(a) for a in arrays])


@pytest.mark.parametrize("dtype", ["int8", "float64", "bool", "int4", "bfloat16"])
def test_blocks_of_several_axes_are_named(dtype):
    @T.prim_func
    def corners(R: T.Tensor((6,), "int32"), A: T.Tensor((2, 3), dtype), B: T.Tensor((8,), dtype)):
        with T.Kernel(3, 2, threads=32) as (bx, by):
            B[R[by * 3 + bx]] = A[by, bx]

    held = {"int4": "uint8", "bfloat16": "uint16"}.get(dtype, dtype)
    a = np.array([[0x10, 1], [0x10, 0]] if dtype == "int4" else [[1, 0, 1], [0, 1, 0]]).astype(held)
    b = np.zeros(4 if dtype == "int4" else 8, a.dtype)
    execute(corners, [np.array([0, 1, 2, 3, 4, 5], "int32"), a, b])
    with pytest.raises(BlockRace, match=r"B\[2\] is written by block \(0, 1\) and written by block \(2, 0\)"):
        execute(corners, [np.array([0, 1, 2, 2, 4, 5], "int32"), a, b])


def test_pointers_of_blocks_are_one_memory():
    @T.prim_func
    def by_address(p: T.ptr, R: T.Tensor((4,), "int32")):
        with T.Kernel(4, threads=32) as bx:
            X = T.make_tensor(p, (4,), "int32")
            X[R[bx]] = bx

    data = np.zeros(4, "int32")
    execute(by_address, [data.ctypes.data, np.array([1, 0, 3, 2], "int32")])
    with raises_error(BlockRace, buffer="X", index=[0]):
        execute(by_address, [data.ctypes.data, np.array([1, 0, 3, 0], "int32")])


def test_views_and_strides_are_the_elements_below():
    @T.prim_func
    def columns(R: T.Tensor((4,), "int32"), B: T.StridedTensor((4, 4), (9, 2), "float32")):
        with T.Kernel(4, threads=32) as bx:
            s = T.alloc_shared((4,), "float32")
            T.fill(s, bx)
            T.copy(s, B[0:4, R[bx]])

    b = np.lib.stride_tricks.as_strided(np.zeros(40, "float32"), (4, 4), (36, 8))
    execute(columns, [np.array([1, 0, 3, 2], "int32"), b])
    assert b[2].tolist() == [1, 0, 3, 2]
    with pytest.raises(BlockRace, match=r"B\[0, 1\] is written by block 2 and written by block 0"):
        execute(columns, [np.array([1, 0, 1, 2], "int32"), b])


def test_iterations_of_a_large_loop_race_across_its_parts(monkeypatch):
    from tile_core.reference import parallel

    monkeypatch.setattr(parallel, "_MOST", 4)

    @T.prim_func
    def shifted(A: T.Tensor((10,), "int32"), n: T.int32):
        with T.Kernel(1, threads=8):
            for i in T.Parallel(10):
                A[i] = A[(i + n) % 10]

    with pytest.raises(DataRace):
        execute(shifted, [np.arange(10, dtype="int32"), 5])
    execute(shifted, [np.arange(10, dtype="int32"), 10])


def test_elements_that_are_never_written_are_returned():
    @T.prim_func
    def part(B: T.Tensor((5, 7), "float32"), C: T.Tensor((3,), "int8")):
        with T.Kernel(5, threads=32) as bx:
            for i in T.Parallel(6):
                if bx != 2:
                    B[bx, i] = 1.0
            if bx == 0:
                T.clear(C)

    (found,) = execute(part, [np.zeros((5, 7), "float32"), np.zeros(3, "int8")], unwritten=[0, 1])
    assert (found.position, found.name, int(found.mask.sum())) == (0, "B", 4 + 7)
    assert execute(part, [np.zeros((5, 7), "float32"), np.zeros(3, "int8")]) == ()
