# Kernels bind names that only the trace looks at, and call an output O.
# ruff: noqa: F841, E741, RUF059, SIM113
"""Loops, branches, break, continue, conditions: what they compute, and what the IR looks like."""

import numpy as np
import pytest

import tile_core.language as T
from tile_core.errors.execution import ReadUnwritten


def ints(n):
    return np.full(n, -1, dtype="int32")


def test_ir_of_a_tile_loop():
    @T.prim_func
    def k(A: T.Tensor((64, 32), "float16"), n: T.int32):
        with T.Kernel(4, 2, threads=(32, 2)) as (bx, by):
            S = T.alloc_shared((8, 16), "float16")
            for k in T.Pipelined(n, num_stages=3):
                for i, j in T.Parallel(8, 16):
                    S[i, j] = A[by * 8 + i, k * 16 + j]

    lines = [line.strip() for line in k.script().splitlines()]
    by = 'for by in T.parallel(2, annotations={"tile.axis": 1, "tile.role": "grid", "tile.threads": [32, 2, 1]}):'
    assert by in lines
    assert 'for bx in T.parallel(4, annotations={"tile.axis": 0, "tile.role": "grid"}):' in lines
    assert 'for k in T.serial(n, annotations={"tile.num_stages": 3, "tile.role": "pipelined"}):' in lines
    assert 'for i in T.serial(8, annotations={"tile.role": "parallel"}):' in lines
    assert "S[i, j] = A[by * 8 + i, k * 16 + j]" in lines
    assert 'S = T.alloc_shared((8, 16), "float16", layout=None)' in lines


def test_every_statement_has_the_users_line():
    from tile_core.compat.tvm import tirx, tvm_ffi

    @T.prim_func
    def k(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            for i in range(8):
                if A[i] > 0:
                    A[i] = 3

    spans = []
    tvm_ffi.structural_walk(k.func.body, (tirx.Stmt, lambda s: spans.append((type(s).__name__, s.span.line))))
    base = k.where.line
    assert {(n, line - base) for n, line in spans} == {("For", 1), ("For", 2), ("IfThenElse", 3), ("BufferStore", 4)}
    assert k.where.file == __file__


@pytest.mark.parametrize(
    "bounds", [(5,), (0,), (2, 7), (7, 2), (0, 10, 3), (1, 10, 4), (9, -1, -2), (5, 0, -1), (0, 5, -1), (-4, 3, 2)]
)
@pytest.mark.parametrize("loop", [T.serial, T.unroll])
def test_bounds_and_steps_are_those_of_range(bounds, loop, execute):
    @T.prim_func
    def k(O: T.Tensor((32,), "int32"), P: T.Tensor((32,), "int32")):
        with T.Kernel(1) as bx:
            count = T.alloc_var("int32")
            for i in loop(*bounds):
                O[count] = i
                count += 1
            count = 0
            for i in range(*bounds):
                P[count] = i
                count += 1

    out, other = ints(32), ints(32)
    execute(k, out, other)
    expected = list(range(*bounds))
    assert list(out[: len(expected)]) == expected
    assert (out[len(expected) :] == -1).all()
    assert (out == other).all()


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (0, 1), (3, 9), (9, 3), (-2, 2)])
@pytest.mark.parametrize("step", [1, 3, -1, -2])
def test_runtime_bounds(start, stop, step, execute):
    @T.prim_func
    def k(O: T.Tensor((32,), "int32"), a: T.int32, b: T.int32):
        with T.Kernel(1) as bx:
            count = T.alloc_var("int32")
            for i in range(a, b, step):
                O[count] = i
                count += 1

    out = ints(32)
    execute(k, out, np.int32(start), np.int32(stop))
    expected = list(range(start, stop, step))
    assert list(out[: len(expected)]) == expected
    assert (out[len(expected) :] == -1).all()


def test_python_loops_run_while_tracing(execute):
    @T.prim_func
    def k(O: T.Tensor((32,), "int32")):
        with T.Kernel(1) as bx:
            for i in T.static_range(3):
                O[i] = [5, 6, 7][i]
            for i, (a, b) in enumerate(zip([1, 2], (3, 4))):  # noqa: B905
                O[10 + i] = a * b
            for x in [1, 2, 3, 4]:
                if x == 2:
                    continue
                if x == 4:
                    break
                O[20 + x] = x
            else:
                O[30] = 1
            for x in (1, 2):
                O[31] = x
            else:
                O[29] = 9
            values = [x * x for x in range(4) if x % 2]
            O[28] = values[1]

    out = ints(32)
    execute(k, out)
    assert list(out[:3]) == [5, 6, 7]
    assert list(out[10:12]) == [3, 8]
    assert list(out[20:25]) == [-1, 1, -1, 3, -1]
    assert out[30] == -1
    assert (out[31], out[29], out[28]) == (2, 9, 9)
    assert "for " not in k.script().partition("parallel(")[2].partition("\n")[2]


@pytest.mark.parametrize("loop", [T.serial, T.unroll])
def test_break_and_continue(loop, execute):
    @T.prim_func
    def k(A: T.Tensor((8,), "int32"), O: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            for j in T.serial(2):
                for i in loop(8):
                    if A[i] == 0:
                        continue
                    if A[i] < 0:
                        break
                    O[i] = A[i] + j

    a, out = np.array([1, 0, 3, 4, 0, 6, -1, 8], dtype="int32"), ints(8)
    execute(k, a, out)
    assert list(out) == [2, -1, 4, 5, -1, 7, -1, -1]


def test_statements_after_an_unconditional_break_are_dead(execute):
    @T.prim_func
    def k(O: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            for i in range(8):
                O[i] = i
                if True:
                    break
                O[i] = 99

    out = ints(8)
    execute(k, out)
    assert list(out[:2]) == [0, -1]
    assert "99" not in k.script()


def test_runtime_loop_else_without_break_runs(execute):
    @T.prim_func
    def k(O: T.Tensor((8,), "int32"), n: T.int32):
        with T.Kernel(1) as bx:
            for i in range(n):
                O[i] = i
            else:
                O[7] = 7
            c = T.alloc_var("int32", init=2)
            while c > 0:
                c -= 1
            else:
                O[6] = 6

    out = ints(8)
    execute(k, out, np.int32(2))
    assert list(out) == [0, 1, -1, -1, -1, -1, 6, 7]


def test_while_on_an_element_of_a_fragment(execute):
    # peer bug #2202
    @T.prim_func
    def k(O: T.Tensor((4,), "int32")):
        with T.Kernel(1, is_cpu=True) as bx:
            F = T.alloc_fragment((4,), "int32")
            F[1] = 5
            while F[1] > 2:
                F[1] -= 1
                if F[1] == 4:
                    continue
                O[0] += 1
            O[1] = F[1]

    out = np.zeros(4, "int32")
    execute(k, out)
    assert list(out[:2]) == [2, 2]


def test_while_condition_that_needs_statements(execute):
    @T.macro
    def below(x, limit):
        flag = T.alloc_var("bool", init=False)
        if x[0] < limit:
            flag = True
        return flag

    @T.prim_func
    def k(O: T.Tensor((4,), "int32")):
        with T.Kernel(1) as bx:
            c = T.alloc_local((1,), "int32")
            c[0] = 0
            while below(c, 3):
                c[0] += 1
                O[c[0]] = c[0]

    out = ints(4)
    execute(k, out)
    assert list(out) == [-1, 1, 2, 3]


def test_python_while(execute):
    @T.prim_func
    def k(O: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            n = 0
            while n < 5:
                n += 1
                if n == 2:
                    continue
                if n == 4:
                    break
                O[n] = n
            O[7] = n

    out = ints(8)
    execute(k, out)
    assert list(out) == [-1, 1, -1, 3, -1, -1, -1, 4]


def test_elif_chain_and_nested_python_conditions(execute):
    flag = True

    @T.prim_func
    def k(A: T.Tensor((4,), "int32"), O: T.Tensor((4,), "int32")):
        with T.Kernel(1) as bx:
            for i in T.Parallel(4):
                if A[i] == 0:
                    O[i] = 10
                elif A[i] == 1 and flag:
                    O[i] = 11
                elif not flag:
                    O[i] = 99
                else:
                    O[i] = 13

    out = ints(4)
    execute(k, np.array([0, 1, 2, 0], "int32"), out)
    assert list(out) == [10, 11, 13, 10]
    assert "99" not in k.script()


def test_logic_and_chained_comparisons(execute):
    seen = []

    def once(x):
        seen.append(x)
        return x

    @T.prim_func
    def k(A: T.Tensor((6,), "int32"), O: T.Tensor((6, 6), "bool")):
        with T.Kernel(1) as bx:
            for i in T.Parallel(6):
                O[i, 0] = 1 < A[i] <= once(3) < 10
                O[i, 1] = A[i] == 2 or A[i] == 4
                O[i, 2] = not (A[i] > 1 and True)
                O[i, 3] = A[i] != 0 and 12 // A[i] == 4
                O[i, 4] = (0 or A[i] > 3) if True else False
                O[i, 5] = (A[i] > 2) ^ (A[i] > 4)

    a, out = np.arange(6, dtype="int32"), np.zeros((6, 6), "bool")
    execute(k, a, out)
    assert seen == [3]
    assert list(out[:, 0]) == [False, False, True, True, False, False]
    assert list(out[:, 1]) == [False, False, True, False, True, False]
    assert list(out[:, 2]) == [True, True, False, False, False, False]
    assert list(out[:, 3]) == [False, False, False, True, False, False]
    assert list(out[:, 4]) == [False, False, False, False, True, True]
    assert list(out[:, 5]) == [False, False, False, True, True, False]


def test_what_stands_behind_and_is_not_evaluated(execute):
    @T.prim_func
    def k(O: T.Tensor((1,), "bool"), n: T.int32):
        with T.Kernel(1) as bx:
            unwritten = T.alloc_shared((4,), "int32")
            O[0] = n != 0 and unwritten[n] > 1

    out = np.ones(1, "bool")
    execute(k, out, np.int32(0))
    assert not out[0]
    with pytest.raises(ReadUnwritten):
        execute(k, out, np.int32(1))


def test_conditional_expression_evaluates_one_side(execute):
    @T.prim_func
    def k(A: T.Tensor((4,), "int32"), O: T.Tensor((4,), "int32")):
        with T.Kernel(1) as bx:
            S = T.alloc_shared((4,), "int32")  # an element that is read must be written
            for i in T.Parallel(4):
                if A[i] != 0:
                    S[i] = 12 // A[i]
            for i in T.Parallel(4):
                O[i] = S[i] if A[i] != 0 else -5

    out = ints(4)
    execute(k, np.array([0, 3, 0, 4], "int32"), out)
    assert list(out) == [-5, 4, -5, 3]


def test_grid_and_persistent_visit_every_tile_once(execute):
    @T.prim_func
    def k(O: T.Tensor((5, 3), "int32"), P: T.Tensor((5, 3), "int32")):
        with T.Kernel(4) as block:
            for i, j in T.Persistent([5, 3], 4, block):
                O[i, j] += 1
            if block == 0:
                for i, j in T.grid(5, 3):
                    P[i, j] += i * 10 + j

    out, other = np.zeros((5, 3), "int32"), np.zeros((5, 3), "int32")
    execute(k, out, other)
    assert (out == 1).all()
    assert (other == np.arange(5)[:, None] * 10 + np.arange(3)).all()


def test_shadowed_range_is_the_users(execute):
    range = lambda n: [n, n + 1]  # noqa: E731

    @T.prim_func
    def k(O: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            for i in range(3):
                O[i] = i

    out = ints(8)
    execute(k, out)
    assert list(out[2:6]) == [-1, 3, 4, -1]


def test_long_indices():
    @T.prim_func
    def k(O: T.Tensor((2**32,), "int8"), n: T.int64):
        with T.Kernel(1) as bx:
            for i in T.serial(n):
                O[i] = 1

    assert 'O: T.Buffer((T.int64(4294967296),), "int8"' in k.script()
    assert k.params[0].shape == (2**32,)
