"""Test ``tile debug``: a session that commands drive."""

from __future__ import annotations

import io
import re

import pytest

KERNEL = """
import numpy as np
import tile_core.language as T

@T.prim_func
def soft(A: T.Tensor((4, 8), "float32"), B: T.Tensor((4, 8), "float32")):
    with T.Kernel(2, threads=32) as bx:
        s = T.alloc_fragment((2, 8), "float32")
        total = T.alloc_fragment((2,), "float32")
        T.copy(A[bx * 2, 0], s)
        T.reduce_sum(s, total, dim=1)
        for i, j in T.Parallel(2, 8):
            s[i, j] = s[i, j] / total[i]
        for k in range(3):
            if k > 0:
                T.print(s[0, k], "is", k)
        T.copy(s, B[bx * 2, 0])

def inputs():
    a = np.ones((4, 8), "float32")
    a[3] = 0
    return a

@T.prim_func
def forgotten(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=32):
        c = T.alloc_fragment((8,), "float32")
        x = A[0] + 1
        for i in T.Parallel(8):
            B[i] = A[i] + x + c[i]

@T.prim_func
def branch(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(8):
            if i > 5:
                B[i] = A[i]  # in a branch
"""
LINES = {text.strip(): n for n, text in enumerate(KERNEL.splitlines(), 1)}
DIVISION, PRINT, LAST = LINES["s[i, j] = s[i, j] / total[i]"], LINES['T.print(s[0, k], "is", k)'], 17


@pytest.fixture
def debug(tile, kernel_file):
    path = kernel_file(KERNEL)

    def call(*commands, name="soft", more=("--inputs", f"{path}:inputs")):
        options = [x for c in commands for x in ("--command", c)]
        return tile("debug", f"{path}:{name}", *more, *options)

    return call


def stops(result):
    """Return the lines and blocks of the stops."""
    return [(int(n), int(b)) for n, b in re.findall(r"^\S+\.py:(\d+), block (\d+)", result.out, re.MULTILINE)]


def test_next_goes_over_loops_and_step_into_them(debug):
    result = debug("next", "next", "next", "next")
    assert result.status == 0, result.err
    assert [line for line, _ in stops(result)] == [10, 11, 12, 14, 17]
    result = debug(*["step"] * 8)
    assert [line for line, _ in stops(result)] == [10, 11, 12, 13, 14, 15, 15, 16, 15]
    assert "13, block 0, 16 iterations\n-> s[i, j] = s[i, j] / total[i]" in result.out


def test_the_end_is_announced(debug):
    result = debug("continue")
    assert (result.status, result.out.splitlines()[-1]) == (0, "the program ended")
    assert result.out.count(" is ") == 4  # of T.print


def test_a_breakpoint_with_a_condition(debug):
    result = debug(f"break {PRINT} if k == 2 and bx == 1", "continue", "print k", "print bx", "print s[0, :k]")
    assert stops(result) == [(10, 0), (PRINT, 1)]
    assert "k = 2" in result.out
    assert "bx = 1" in result.out
    assert "s[0, :k]: float32 (2,)\n[0.125 0.125]" in result.out


def test_a_condition_holds_for_active_iterations_only(debug):
    assert stops(debug(f"break {DIVISION} if j == 7 and i == 1", "c", "c", "c")) == [
        (10, 0),
        (DIVISION, 0),
        (DIVISION, 1),
    ]
    assert stops(debug(f"break {DIVISION} if j == 8", "continue")) == [(10, 0)]


def test_iterations_that_a_branch_leaves_out_do_not_count(debug):
    line = LINES["B[i] = A[i]  # in a branch"]
    start = [(line - 2, 0)]
    assert stops(debug(f"break {line} if i == 6", "continue", name="branch", more=())) == [*start, (line, 0)]
    result = debug(f"break {line} if i == 5", "continue", name="branch", more=())
    assert stops(result) == start
    assert "2 of 8 iterations" in debug(f"break {line}", "continue", name="branch", more=()).out


def test_deleted_breakpoints_do_not_stop(debug):
    result = debug("break 11", "break 17", "delete 1", "break", "continue", "continue", "continue")
    assert stops(result) == [(10, 0), (17, 0), (17, 1)]
    assert "2: line 17\n" in result.out
    assert "1: line 11\n" not in result.out.split("breakpoint 2: line 17\n")[1]


def test_a_watched_tile_stops_after_each_write(debug):
    result = debug("watch s", *["continue"] * 4)
    assert stops(result) == [(10, 0), (10, 0), (DIVISION, 0), (10, 1), (DIVISION, 1)]
    assert stops(debug("watch s if s[0, 0] < 1", "continue", "continue")) == [(10, 0), (DIVISION, 0), (DIVISION, 1)]


def test_one_block_only(debug):
    assert stops(debug("block 1", "next", "next", "next")) == [(10, 0), (10, 1), (11, 1), (12, 1)]


def test_nan_stops_where_it_is_made(debug):
    result = debug("nan", "tiles")
    assert stops(result) == [(10, 0), (DIVISION, 1)]
    assert f"line {DIVISION}: division of 0 and 0 makes NaN, first in s[1, 0] of block 1" in result.out
    (row,) = (line.split() for line in result.out.splitlines() if line.split()[:2] == ["s", "local.fragment"])
    assert row == ["s", "local.fragment", "float32", "(2,", "8)", "0.125", "0.125", "8"]


def test_where_and_list(debug):
    result = debug(f"break {PRINT}", "continue", "where", "list")
    assert "  bx = 0\n  k = 1\n" in result.out
    assert f"->   {PRINT}                  T.print" in result.out


def test_an_error_of_the_program_can_be_looked_at(debug):
    result = debug("continue", "print x", "tiles", "step", name="forgotten", more=())
    assert result.status == 1
    assert "error[K441]: c[0] is read before it is written" in result.err
    assert re.search(r"x = [-\d.]+", result.out)
    assert "the program ended by an error" in result.err


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("foo", "K464"), ("break 3", "the nearest line with one is 10"), ("break", ""), ("print exit()", "K462"),
        ("print q", "K461"), ("watch q", "K461"), ("delete 7", "no such breakpoint"),
        ("block a", "indices are integers"),
        ("break 12 if __import__('os')", "K462"), ("break s", "a line is missing"), ("help", ""),
    ],
)  # fmt: skip
def test_commands_that_cannot_be_executed(debug, command, text):
    result = debug(command)
    assert (result.status, text in result.err) == (1 if text else 0, True)
    assert "Traceback" not in result.err


def test_commands_come_from_standard_input(tile, kernel_file, monkeypatch):
    path = kernel_file(KERNEL)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n\nn # over it\np total\nquit\n"))
    result = tile("debug", f"{path}:soft")
    assert [line for line, _ in stops(result)] == [10, 11, 12]
    assert "total: float32 (2,)" in result.out
    assert (result.status, result.err) == (0, "")


def test_commands_and_names_are_completed(kernel_file):
    from tile_core.cli.source import find
    from tile_core.compiler import reference_kernel
    from tile_core.debugging.commands import Commands
    from tile_core.debugging.session import Quit

    class Silent:
        text = printed = table = error = staticmethod(lambda *values: None)

    program = find(f"{kernel_file(KERNEL)}:soft", {}).program
    commands = Commands(program, Silent(), ["break 13", "continue"])
    with pytest.raises(Quit):
        reference_kernel(program, 1).observe(commands.debugger)
    assert commands.completenames("n") == ["nan", "next"]
    assert commands.completedefault("t") == ["total"]
    assert commands.completedefault("") == ["A", "B", "bx", "i", "j", "s", "total"]
