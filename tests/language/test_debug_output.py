"""``T.print`` and ``T.device_assert`` name their line, block, iterations and thread on every runtime that has them."""

import inspect

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError
from tile_core.errors.launch import DeviceAssertFailed
from tile_core.reference import execute

RUNTIMES = ["reference", "cpu", "cuda:sm_80", "cuda:sm_90a"]


@T.prim_func
def blocks(A: T.Tensor((2, 8), "float32"), B: T.Tensor((2, 8), "float32")):
    with T.Kernel(2, 2, threads=32) as (bx, by):
        s = T.alloc_shared((8,), "float32")
        T.copy(A[bx, 0], s)
        for k in range(2):
            T.print(s[0:2], "of {50%}", k)  # print tile
            for i in T.Parallel(8):
                if i == 6:
                    T.print(s[i])  # print element
                T.device_assert(s[i] < 100, "too {large} 50%")  # assert element
        if by == 0:
            T.copy(s, B[bx, 0])


@T.prim_func
def threads(A: T.Tensor((8,), "float32")):
    with T.Kernel(2, threads=(4, 2)):
        tx = T.get_thread_binding(0)
        ty = T.get_thread_binding(1)
        if tx == 3:
            T.print(A[tx + 4 * ty], "there")  # print thread
        T.device_assert(A[tx + 4 * ty] >= 0)  # assert thread


def line(mark):
    """Return the location of a line of this file as texts begin with it."""
    lines, _ = inspect.findsource(line)
    number = next(n for n, text in enumerate(lines, 1) if text.rstrip().endswith(f"# {mark}"))
    return f"test_debug_output.py:{number}"


def run(program, runtime, arguments, capfd):
    """Execute a program; return the lines that it prints, and its error."""
    error, printed = None, []
    capfd.readouterr()
    try:
        if runtime == "reference":
            execute(program, arguments, printed=printed)
        else:
            tile.compile(program, runtime, runtime=None if runtime == "cpu" else "emulator")(*arguments)
    except TileError as found:
        error = found
    return "".join([capfd.readouterr().out, *printed]).splitlines(), error


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_prints_name_line_block_and_iterations(runtime, capfd):
    a = np.arange(16, dtype="float32").reshape(2, 8)
    lines, error = run(blocks, runtime, [a, np.zeros((2, 8), "float32")], capfd)
    assert error is None
    tile_thread, thread = (", thread 0", ", thread 6") if runtime.startswith("cuda") else ("", "")
    expected = []
    for by in range(2):
        for bx in range(2):
            for k in range(2):
                first, second = (f"{x:g}" if thread else f"{x}." for x in a[bx, :2])
                shown = f"[ {first} {second}]" if thread else str(a[bx, :2])
                expected.append(f"{line('print tile')} block ({bx}, {by}), k {k}{tile_thread}: {shown} of {{50%}} {k}")
                value = f"{a[bx, 6]:g}" if thread else str(a[bx, 6])
                expected.append(f"{line('print element')} block ({bx}, {by}), k {k}, i 6{thread}: {value}")
    assert sorted(lines) == sorted(expected)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_prints_of_threads_name_them(runtime, capfd):
    lines, error = run(threads, runtime, [np.arange(8, dtype="float32")], capfd)
    assert error is None
    at = line("print thread")
    values = {3: "3", 7: "7"} if runtime.startswith("cuda") else {3: "3.0", 7: "7.0"}
    assert lines == [f"{at} block {b}, thread {t}: {values[t]} there" for b in range(2) for t in (3, 7)]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_failed_assertions_have_their_message_on_every_runtime(runtime, capfd):
    a = np.zeros((2, 8), "float32")
    a[1, 5] = 100
    _, error = run(blocks, runtime, [a, np.zeros((2, 8), "float32")], capfd)
    thread = ", thread 5" if runtime.startswith("cuda") else ""
    assert isinstance(error, DeviceAssertFailed)
    found = f"too {{large}} 50% ({line('assert element')} block (1, 0), k 0, i 5{thread})"
    assert error.message == f"device assertion failed: {found}"
    assert error.where.source.endswith("# assert element")


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_failed_assertions_of_threads_name_them(runtime, capfd):
    a = np.zeros(8, "float32")
    a[6] = -1
    _, error = run(threads, runtime, [a], capfd)
    expected = f"device assertion failed: the condition is false ({line('assert thread')} block 0, thread 6)"
    assert (type(error), error.message) == (DeviceAssertFailed, expected)
