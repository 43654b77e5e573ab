"""Test ``tile.watch``: a tile of the reference after each execution of a line."""

import inspect

import numpy as np
import pytest
from expected_errors import raises_error

import tile_core as tile
import tile_core.language as T
from tile_core.errors.debugging import NoSuchLine, NoSuchName
from tile_core.errors.execution import ReadUnwritten
from tile_core.errors.launch import BadSetting


@T.prim_func
def totals(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4,), "float32")):
    with T.Kernel(2, 2, threads=32) as (bx, by):
        row = T.alloc_fragment((8,), "float32")
        total = T.alloc_fragment((1,), "float32")
        T.copy(A[bx + 2 * by, 0], row)
        T.clear(total)
        for k in range(3):
            scale = row[k] * 2
            for i in T.Parallel(8):
                row[i] = row[i] + scale
        T.reduce_sum(row, total, dim=0)
        B[bx + 2 * by] = total[0]


def numbers(seed=0):
    return np.random.default_rng(seed).standard_normal((4, 8)).astype("float32")


def test_each_write_of_a_tile_is_kept():
    a = numbers()
    found = tile.watch(totals, "row", a, np.zeros(4, "float32"), block=(1, 1))
    assert [s.where.source for s in found] == ["T.copy(A[bx + 2 * by, 0], row)"] + ["row[i] = row[i] + scale"] * 3
    assert [dict(s.loops) for s in found] == [{}, {"k": 0}, {"k": 1}, {"k": 2}]
    row = a[3].copy()
    np.testing.assert_array_equal(found[0].values, row)
    for k in range(3):
        row = row + row[k] * 2
        np.testing.assert_array_equal(found[k + 1].values, row)
    assert {s.block for s in found} == {(1, 1)}


def test_blocks_come_in_order():
    a = numbers()
    found = tile.watch(tile.compile(totals, "cpu", out_idx=-1), "total", a, line=_line("T.clear(total)"))
    assert [s.block for s in found] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert all((s.values == 0).all() for s in found)


def test_a_line_shows_other_tiles_and_variables():
    a, line = numbers(), _line("scale = row[k] * 2")
    found = tile.watch(totals, "scale", a, np.zeros(4, "float32"), line=line, block=(0, 0))
    row = a[0].copy()
    for k, s in enumerate(found):
        assert s.values == row[k] * 2
        row = row + row[k] * 2
    assert len(found) == 3
    before = tile.watch(totals, "row", a, np.zeros(4, "float32"), line=line, block=(0, 0))
    np.testing.assert_array_equal(before[0].values, a[0])


def test_an_array_that_iterations_write_to_copies_of_their_own_is_one_array():
    @T.prim_func
    def private(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            v = T.alloc_local((8,), "float32")
            for k in range(8):
                v[k] = 0
            for i in T.Parallel(8):
                v[i] = A[i] * 2
                B[i] = v[i]

    a = np.arange(1, 9, dtype="float32")
    (found,) = tile.watch(private, "v", a, np.zeros(8, "float32"), line=_line("v[i] = A[i] * 2"))
    np.testing.assert_array_equal(found.values, 2 * a)


def test_the_text_names_line_block_and_loops():
    found = tile.watch(totals, "row", numbers(), np.zeros(4, "float32"), block=(1, 0))
    line = _line("row[i] = row[i] + scale")
    assert str(found[2]).startswith(f"row after line {line}, block (1, 0), k = 1:\n[")


def test_narrow_floats_are_shown_as_numbers():
    @T.prim_func
    def narrow(A: T.Tensor((8,), "float8_e4m3fn"), B: T.Tensor((8,), "bfloat16")):
        with T.Kernel(1, threads=32):
            b = T.alloc_fragment((8,), "bfloat16")
            T.copy(A, b)
            T.copy(b, B)

    a = np.arange(8, dtype="float32").astype("float8_e4m3fn")
    (found,) = tile.watch(tile.compile(narrow, "cpu", out_idx=-1), "b", a)
    assert found.values.dtype == "float32"
    np.testing.assert_array_equal(found.values, np.arange(8))


def test_names_lines_and_blocks_that_do_not_exist_are_refused():
    arguments = (numbers(), np.zeros(4, "float32"))
    with raises_error(NoSuchName, name="Row", hint="did you mean row?"):
        tile.watch(totals, "Row", *arguments)
    with raises_error(NoSuchLine, line=1, near=_line("T.copy(A[bx + 2 * by, 0], row)")):
        tile.watch(totals, "row", *arguments, line=1)
    with raises_error(BadSetting, function="watch", name="block", found="'x'"):
        tile.watch(totals, "row", *arguments, block="x")


def test_reads_of_unwritten_memory_are_errors():
    @T.prim_func
    def forgotten(B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            c = T.alloc_fragment((8,), "float32")
            for i in T.Parallel(8):
                c[i] += 1
            T.copy(c, B)

    with raises_error(ReadUnwritten, buffer="c"):
        tile.watch(forgotten, "c", np.zeros(8, "float32"))


@pytest.mark.parametrize("name", ["A", "bx", "k"])
def test_parameters_and_loop_variables_have_names(name):
    found = tile.watch(totals, name, numbers(), np.zeros(4, "float32"), line=_line("row[i] = row[i] + scale"))
    assert len(found) == 12


def _line(text):
    lines, first = inspect.getsourcelines(inspect.getmodule(_line))
    return next(n for n, line in enumerate(lines, max(first, 1)) if line.strip() == text)
