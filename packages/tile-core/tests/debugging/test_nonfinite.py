"""Test ``tile.find_nan``: the first operation that makes a NaN, or an infinity, from numbers."""

import numpy as np
import pytest
from expected_errors import raises_error

import tile_core as tile
import tile_core.language as T
from tile_core.errors.launch import BadSetting

INF = float("inf")


def quotient(dtype="float32"):
    @T.prim_func
    def quotient(A: T.Tensor((4, 8), dtype), C: T.Tensor((4, 8), dtype), B: T.Tensor((4, 8), dtype)):
        with T.Kernel(2, threads=32) as bx:
            for i, j in T.Parallel(2, 8):
                x = A[bx * 2 + i, j] / C[bx * 2 + i, j]
                B[bx * 2 + i, j] = x + 1

    return quotient


def arrays(count=3, dtype="float32"):
    return [np.ones((4, 8), dtype) for _ in range(count)]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("row", "column"), [(0, 0), (1, 7), (3, 5)])
def test_a_division_is_found_with_its_operands_block_and_index(dtype, row, column):
    from tile_core.dtypes import DTYPES

    a, c, b = (x.astype(DTYPES[dtype].numpy()) for x in arrays())
    a[row, column] = c[row, column] = 0
    found = tile.find_nan(quotient(dtype), a, c, b)
    assert (found.what, found.operation, found.operands) == ("NaN", "division", (0, 0))
    assert (found.block, found.buffer, found.index) == ((row // 2,), "B", (row, column))
    assert found.where.source == "B[bx * 2 + i, j] = x + 1"
    text = f"line {found.where.line}: division of 0 and 0 makes NaN, first in B[{row}, {column}] of block {row // 2}"
    assert str(found) == text


def test_nothing_is_found_where_numbers_stay_numbers():
    assert tile.find_nan(quotient(), *arrays(), infinities=True) is None


def test_nan_and_infinities_of_the_arguments_only_propagate():
    a, c, b = arrays()
    a[1, 2], c[2, 2], a[3, 3] = np.nan, np.nan, INF
    assert tile.find_nan(quotient(), a, c, b, infinities=True) is None
    c[3, 3] = INF  # of two infinities a NaN is made, but of numbers nothing
    assert tile.find_nan(quotient(), a, c, b).operands == (INF, INF)
    assert tile.find_nan(quotient(), a, c, b, infinities=True) is None


def test_an_infinity_is_made_before_the_nan():
    a, c, b = arrays()
    c[2, 1] = 0
    assert tile.find_nan(quotient(), a, c, b) is None
    found = tile.find_nan(quotient(), a, c, b, infinities=True)
    assert (found.what, found.operands, found.index) == ("an infinity", (1, 0), (2, 1))


def test_values_that_a_condition_discards_do_not_count():
    @T.prim_func
    def guarded(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i] = T.Select(A[i] != 0, 1 / A[i], 0)

    a = np.arange(8, dtype="float32")
    assert tile.find_nan(guarded, a, np.ones(8, "float32"), infinities=True) is None


def test_lanes_that_a_branch_leaves_out_do_not_count():
    @T.prim_func
    def branch(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                if i > 3:
                    B[i] = T.sqrt(A[i])

    a = np.ones(8, "float32")
    a[:4] = -1
    assert tile.find_nan(branch, a, np.ones(8, "float32")) is None
    a[6] = -4
    found = tile.find_nan(branch, a, np.ones(8, "float32"))
    assert (found.operation, found.operands, found.index) == ("sqrt", (-4,), (6,))


@pytest.mark.parametrize(("op", "name"), [("gemm", "T.gemm"), ("reduce", "T.reduce_sum"), ("copy", "T.copy")])
def test_tile_ops_are_found_by_their_results(op, name):
    @T.prim_func
    def ops(A: T.Tensor((16, 16), "float32"), B: T.Tensor((16, 16), "float16")):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((16, 16), "float32")
            c, r = T.alloc_fragment((16, 16), "float32"), T.alloc_fragment((16,), "float32")
            T.copy(A, a)
            T.gemm(a, a, c, clear_accum=True)
            T.reduce_sum(c, r, dim=1)
            for i, j in T.Parallel(16, 16):
                c[i, j] = r[i] * 1e-30
            T.copy(a, B)

    value = {"gemm": 1e20, "reduce": 3e18, "copy": 1e5}[op]
    a = np.full((16, 16), value, "float32")
    found = tile.find_nan(ops, a, np.zeros((16, 16), "float16"), infinities=True)
    assert (found.operation, found.index, found.operands) == (name, (0,) * (1 if op == "reduce" else 2), ())


def test_updates_of_a_value_before_the_loop_keep_its_origin():
    @T.prim_func
    def outside(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            x = A[0] - A[1]
            A[0] = 1
            for i in T.Parallel(8):
                B[i] = A[i] * x

    a = np.full(8, INF, "float32")
    found = tile.find_nan(outside, a, np.zeros(8, "float32"))
    assert (found.operation, found.operands, found.index) == ("subtraction", (INF, INF), (0,))


@pytest.mark.parametrize("given", [INF, np.nan])
def test_values_that_move_between_lanes_keep_their_origin(given):
    @T.prim_func
    def moved(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding(0)
            x = A[tx] - 1
            B[tx] = T.shfl_down(x * 2, 3) + 1

    a = np.ones(32, "float32")
    a[7] = given
    assert tile.find_nan(moved, a, np.zeros(32, "float32"), infinities=True) is None
    a[7] = 3e38
    found = tile.find_nan(moved, a, np.zeros(32, "float32"), infinities=True)
    assert (found.operation, found.index, found.block) == ("multiplication", (4,), (0,))


def test_a_break_is_a_statement():
    @T.prim_func
    def left(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=1):
            for i in T.serial(8):
                if A[i] > 2:
                    break
                B[i] = 1 / A[i]

    a = np.array([1, 2, 1, 0, 3, 0, 0, 0], "float32")
    found = tile.find_nan(left, a, np.zeros(8, "float32"), infinities=True)
    assert (found.index, found.operands) == ((3,), (1, 0))


def test_arguments_are_not_written():
    a, c, b = arrays()
    tile.find_nan(tile.compile(quotient(), "cpu"), a, c, b)
    assert (b == 1).all()


def test_other_objects_are_refused():
    with raises_error(BadSetting, function="find_nan", name="kernel", found="of type int"):
        tile.find_nan(3)
