"""Test T.Parallel: private memory carries no data between iterations or out."""

from __future__ import annotations

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.language import ReboundInBranch
from tile_core.errors.ops import ParallelRace


def total_in_a_variable(A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32")):
    with T.Kernel(1, threads=32):
        v = T.alloc_var("float32", init=0)
        for i in T.Parallel(40):
            v = v + A[i]
        B[0] = v


def total_in_an_array(A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32")):
    with T.Kernel(1, threads=32):
        s = T.alloc_local((1,), "float32")
        s[0] = 0
        for i in T.vectorized(40):
            s[0] += A[i]
        B[0] = s[0]


def greatest(A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32")):
    with T.Kernel(1, threads=32):
        v = T.alloc_var("float32", init=0)
        for i in T.Parallel(40):
            if A[i] > v:
                v = A[i]
        for i in T.Parallel(40):
            B[i] = A[i] / v


def the_last_one(A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32")):
    with T.Kernel(1, threads=32):
        s = T.alloc_local((1,), "float32")
        for i in T.Parallel(40):
            s[0] = A[i]
        T.copy(s, B[0:1])


def elements_of_another_loop(A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32")):
    with T.Kernel(1, threads=32):
        s = T.alloc_local((40,), "float32")
        for i in T.Parallel(40):
            s[i] = A[i]
        for i in T.serial(40):
            B[i] = s[39 - i]


def of_the_iteration_before(A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32")):
    with T.Kernel(1, threads=32):
        v = T.alloc_var("float32", init=0)
        for k in T.serial(2):
            B[k] = v
            for i in T.Parallel(40):
                v = A[i]


def within_an_iteration(A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32")):
    with T.Kernel(1, threads=32):
        s = T.alloc_local((4,), "float32")
        v = T.alloc_var("float32", init=0)
        for _ in T.serial(2):
            for i in T.Parallel(40):
                for j in T.serial(4):
                    s[j] = A[i] * j
                v = 0.0
                for j in T.serial(4):
                    v = v + s[j]
                B[i] = v
        v = 1.0
        s[0] = v
        B[0] = B[0] + s[0] - v


def before_the_loop(A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32")):
    with T.Kernel(1, threads=32):
        v = T.alloc_var("float32", init=3)
        for i in T.Parallel(40):
            B[i] = A[i] * v


def one_thread_each(A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32")):
    with T.Kernel(1, threads=10):
        t = T.get_thread_binding(0)
        s = T.alloc_local((4,), "float32")
        for i in T.vectorized(4):
            s[i] = A[t * 4 + i]
        for i in T.vectorized(4):
            B[t * 4 + i] = s[3 - i]


REFUSED = (
    total_in_a_variable,
    total_in_an_array,
    greatest,
    the_last_one,
    elements_of_another_loop,
    of_the_iteration_before,
)
ACCEPTED = (within_an_iteration, before_the_loop, one_thread_each)


@pytest.mark.parametrize("kernel", REFUSED, ids=lambda f: f.__name__)
def test_refused(kernel):
    with pytest.raises(ParallelRace) as caught:
        tile.compile(T.prim_func(kernel), target="cpu")
    assert caught.value.where is not None
    assert "T.alloc_reducer" in caught.value.help


@pytest.mark.parametrize("kernel", ACCEPTED, ids=lambda f: f.__name__)
def test_accepted(kernel):
    tile.compile(T.prim_func(kernel), target="cpu")


def test_a_total_in_a_python_name_is_not_sent_there():
    with pytest.raises(ReboundInBranch) as caught:

        @T.prim_func
        def main(A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32")):
            with T.Kernel(1, threads=32):
                total = T.float32(0)
                for i in T.Parallel(40):
                    total += A[i]
                B[0] = total

    assert "T.alloc_var" not in caught.value.help
    assert "T.alloc_reducer" in caught.value.help
