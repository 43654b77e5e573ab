# Kernels bind names that only the trace looks at, and call an output O.
# ruff: noqa: F841, E741
"""``T.macro``: hygiene, arguments, nesting, methods."""

import numpy as np

import tile_core.language as T
from tile_core.errors.language import (
    OutsideKernel,
)


def ints(n):
    return np.full(n, -1, dtype="int32")


@T.macro
def scale_row(A, O, row, factor):
    i = 5
    for i in T.serial(4):
        v = A[row, i] * factor
        if v > 10:
            O[row, i] = v
        else:
            O[row, i] = -v


@T.macro
def power_of(x, n):
    if n == 0:
        return x * 0 + 1
    return power_of(x, n - 1) * x


@T.macro
def count_up(c: T.Ref, other):
    c += 1
    other = other + 100
    return other


def test_macros_are_hygienic_and_return_values(execute):
    @T.prim_func
    def k(A: T.Tensor((2, 4), "int32"), O: T.Tensor((2, 4), "int32"), P: T.Tensor((4,), "int32")):
        with T.Kernel(2) as row:
            i = 1
            v = 3
            scale_row(A, O, row, v)
            P[0] = i + v
            P[1] = power_of(A[0, 1], 3)
            c = T.alloc_var("int32", init=1)
            d = T.alloc_var("int32", init=1)
            e = count_up(c, d)
            P[2] = c * 10 + d
            P[3] = e

    a, out, p = np.arange(8, dtype="int32").reshape(2, 4), np.zeros((2, 4), "int32"), ints(4)
    execute(k, a, out, p)
    assert (out == np.where(a * 3 > 10, a * 3, -a * 3)).all()
    assert list(p) == [4, 1, 21, 101]


def test_nested_macros_and_helpers(execute):
    def helper(x):
        return T.max(x, 2) * 10

    @T.prim_func
    def k(O: T.Tensor((8,), "int32"), n: T.int32):
        with T.Kernel(1) as bx:

            @T.macro
            def put(at, value):
                if value > 0:
                    O[at] = value
                else:
                    O[at] = 0

            def twice(x):
                y = x + x
                return y if y > 4 else 4

            put(0, n)
            put(1, helper(n))
            put(2, twice(n))
            pick = lambda a, b=2: a + b  # noqa: E731
            put(3, pick(n))

    out = ints(8)
    execute(k, out, np.int32(3))
    assert list(out[:4]) == [3, 30, 6, 5]


def test_macro_arguments_are_computed_once():
    @T.macro
    def use_twice(x, O):
        O[0] = x
        O[1] = x

    @T.prim_func
    def k(A: T.Tensor((4,), "float32"), O: T.Tensor((4,), "float32")):
        with T.Kernel(1) as bx:
            use_twice(A[0] * 2.0, O)

    assert k.script().count("A[0]") == 1


def test_macro_as_a_method(execute):
    class Emitter:
        def __init__(self, width):
            self.width = width

        @T.macro
        def store(self, O, value):
            for i in T.serial(self.width):
                O[i] = value

    emitter = Emitter(3)

    @T.prim_func
    def k(O: T.Tensor((4,), "int32")):
        with T.Kernel(1) as bx:
            emitter.store(O, 5)

    out = ints(4)
    execute(k, out)
    assert list(out) == [5, 5, 5, -1]


def test_macro_outside_of_a_kernel(refused):
    refused(OutsideKernel, "K102", "the macro scale_row is used outside a kernel", lambda: scale_row(1, 2, 3, 4))
