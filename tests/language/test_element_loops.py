"""Element loops in one thread of a block: a performance warning on targets with threads."""

import warnings

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.reports import slow
from tile_core.reports.slow import SerialLoop, SlowPath

TARGETS = ["cuda:sm_80", "metal", "rocm:gfx942"]


def kernel(how, m, n):
    @T.prim_func
    def f(A: T.Tensor((m, n), "int32"), B: T.Tensor((m, n), "int32"), count: T.int32):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((m, n), "int32")
            T.copy(A, s)
            if how == "global":
                for i in range(m):
                    for j in T.unroll(n):
                        B[i, j] = A[i, j] * 3
            elif how == "shared":
                for i, j in T.grid(m, n):
                    s[i, j] = s[i, j] * 3
            elif how == "named":
                for i in range(m * n):
                    y, x = i // n, i % n
                    B[y, x] = A[y, x] * 3
            elif how == "atomic":
                T.clear(B)
                for i in range(m):
                    for j in range(n):
                        T.atomic_add(B[i, j], A[i, j] * 3)
            elif how == "parallel":
                for i, j in T.Parallel(m, n):
                    B[i, j] = A[i, j] * 3
            elif how == "rows":
                for i in range(m):
                    for j in T.Parallel(n):
                        B[i, j] = A[i, j] * 3
            elif how == "threads":
                t = T.get_thread_binding()
                for i in range(T.ceildiv(m * n, 32)):
                    if i * 32 + t < m * n:
                        B[(i * 32 + t) // n, (i * 32 + t) % n] = A[(i * 32 + t) // n, (i * 32 + t) % n] * 3
            elif how == "same element":
                for i in range(m * n):
                    s[0, 0] = s[0, 0] + i
            elif how == "runtime":
                for i in range(count):
                    s[0, i] = 3
            if how in ("shared", "same element", "runtime"):
                T.copy(s, B)

    return f


def found(how, m, n, target, monkeypatch):
    monkeypatch.setattr(slow, "_given", set())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        compiled = tile.compile(kernel(how, m, n), target, runtime="host" if target == "cpu" else "emulator")
    return compiled, [w for w in seen if issubclass(w.category, SlowPath)]


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("how", ["global", "shared", "named", "atomic"])
def test_warned_of(how, target, monkeypatch):
    compiled, (warning,) = found(how, 7, 13, target, monkeypatch)
    assert warning.category is SerialLoop
    text = str(warning.message)
    assert "one of 32 threads writes 91 elements one after the other (test_element_loops.py:" in text
    assert f"T.Parallel({'91' if how == 'named' else '7, 13'})" in text
    a = np.arange(91, dtype="int32").reshape(7, 13)
    b = np.full_like(a, -1)
    compiled(a, b, 0)
    np.testing.assert_array_equal(b, a * 3)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("how", ["parallel", "rows", "threads", "same element", "runtime"])
def test_other_loops(how, target, monkeypatch):
    assert found(how, 7, 13, target, monkeypatch)[1] == []


@pytest.mark.parametrize("how", ["global", "shared", "named", "atomic"])
def test_few_elements_and_targets_without_threads(how, monkeypatch):
    assert found(how, 3, 5, "cuda:sm_80", monkeypatch)[1] == []
    assert found(how, 7, 13, "cpu", monkeypatch)[1] == []
