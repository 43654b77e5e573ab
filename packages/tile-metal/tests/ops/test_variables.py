"""Variables of a thread: initialized, or assigned by the kernel."""

from __future__ import annotations

import re

import numpy as np
import pytest
from zoo.case import poisoned

import tile_core.language as T

from .kit import right


def test_with_and_without_a_value():
    @T.prim_func
    def variables(Y: T.Tensor((64, 3), "int32")):
        with T.Kernel(1, threads=64):
            tid = T.get_thread_binding(0)
            x = T.alloc_var("int32", init=3)
            y = T.alloc_var("int32")
            z = T.alloc_var("int32", init=0)
            y = tid * 2
            for i in T.serial(tid % 4):
                x += i
                z += 1
            Y[tid, 0] = x
            Y[tid, 1] = y
            Y[tid, 2] = z

    found, out = right(variables, poisoned((64, 3), "int32"))
    tid = np.arange(64)
    iterations = tid % 4
    np.testing.assert_array_equal(out["Y"], np.stack([3 + iterations * (iterations - 1) // 2, tid * 2, iterations], 1))
    # Scalars, no arrays; the value is set once, and not in each iteration of a loop.
    assert len(re.findall(r"\bint (x|y|z)\b;", found.text)) + len(re.findall(r"\bint (x|y|z)\b = ", found.text)) == 3
    assert not re.search(r"\bint [xyz]\[", found.text)
    assert len(re.findall(r"\bx = 3;", found.text)) == 1


def test_inside_a_loop_the_value_is_set_in_each_iteration():
    @T.prim_func
    def again(Y: T.Tensor((4, 32), "float32")):
        with T.Kernel(1, threads=32):
            tid = T.get_thread_binding(0)
            for k in T.serial(4):
                x = T.alloc_var("float32", init=1.5)
                x += T.cast(k, "float32")
                Y[k, tid] = x

    _, out = right(again, poisoned((4, 32), "float32"))
    np.testing.assert_array_equal(out["Y"], np.repeat(1.5 + np.arange(4.0)[:, None], 32, 1))


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(("kind", "value"), [("float16", 0.5), ("bool", True), ("int64", 1 << 40), ("uint8", 255)])
def test_types(kind, value):
    numpy = T.dtype(kind).numpy()

    @T.prim_func
    def typed(Y: T.Tensor((32,), kind)):
        with T.Kernel(1, threads=32):
            tid = T.get_thread_binding(0)
            x = T.alloc_var(kind, init=value)
            Y[tid] = x

    _, out = right(typed, poisoned((32,), numpy))
    np.testing.assert_array_equal(out["Y"], np.full(32, value, numpy))
