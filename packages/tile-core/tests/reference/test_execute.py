"""Test the arguments and results of ``tile_core.reference.execute``."""

import pickle

import numpy as np
from expected_errors import raises_error

import tile_core.language as T
from tile_core.errors.execution import ExecutionError, NoReferenceMeaning, ReadUnwritten
from tile_core.reference import execute


def test_arguments_by_name():
    m = T.dynamic("m")

    @T.prim_func
    def scaled(A: T.Tensor((m,), "float32"), B: T.Tensor((m,), "float32"), s: T.float32):
        with T.Kernel(T.ceildiv(m, 8), threads=8) as bx:
            for i in T.Parallel(8):
                B[bx * 8 + i] = A[bx * 8 + i] * s

    a, b = np.arange(11, dtype="float32"), np.zeros(11, "float32")
    execute(scaled, {"s": 0.5, "A": a, "B": b})
    np.testing.assert_array_equal(b, a / 2)


def test_a_program_of_another_process():
    m = T.dynamic("m")

    @T.prim_func
    def doubled(A: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, 8), threads=8) as bx:
            for i in T.Parallel(8):
                A[bx * 8 + i] *= 2

    a = np.arange(11, dtype="float32")
    execute(pickle.loads(pickle.dumps(doubled)), [a])
    np.testing.assert_array_equal(a, 2 * np.arange(11))


def test_an_op_without_a_meaning(monkeypatch):
    @T.prim_func
    def copied(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=4):
            T.copy(A, B)

    monkeypatch.setattr("tile_core.reference.ops.OPS", {})
    with raises_error(NoReferenceMeaning, what="T.copy") as info:
        execute(copied, [np.zeros(4, "float32")] * 2)
    assert info.value.where.source == "T.copy(A, B)"


def test_texts_of_print_are_collected(capsys):
    @T.prim_func
    def printing(A: T.Tensor((2, 2), "float16")):
        with T.Kernel(2, threads=4) as bx:
            T.print("block", bx)
            for i in T.Parallel(2):
                T.print(A[bx, i])
            T.print(A[bx, 0:2], msg="row")

    printed = []
    execute(printing, [np.array([[1, 2], [3, 4]], "float16")], printed=printed)
    assert [text.partition(": ")[2] for text in printed] == [
        "block 0\n", "1.0\n", "2.0\n", "row [1. 2.]\n", "block 1\n", "3.0\n", "4.0\n", "row [3. 4.]\n",
    ]  # fmt: skip
    assert capsys.readouterr().out == ""


def test_errors_of_an_execution_are_one_family():
    assert issubclass(ReadUnwritten, ExecutionError)
    assert ExecutionError.code == "K440"
