"""Several MLX launches, in a call and one after the other: nothing is computed in between."""

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core import compiler

from .fake_mlx import Mlx
from .texts import adapter


@pytest.mark.sweep(1)
def test_a_workspace_goes_from_launch_to_launch(monkeypatch):
    m = T.dynamic("m")

    @T.prim_func
    def add(A: T.Tensor((m, 24), "float32"), B: T.Tensor((24,), "float32")):
        parts = T.alloc_global((T.ceildiv(m, 16), 24), "float32")
        with T.Kernel(T.ceildiv(m, 16), threads=32) as (bx,):
            rows = T.alloc_shared((16, 24), "float32")
            part = T.alloc_fragment((24,), "float32")
            T.copy(A[bx * 16, 0], rows)
            T.reduce_sum(rows, part, dim=0)
            T.copy(part, parts[bx, 0])
        with T.Kernel(threads=32):
            total = T.alloc_fragment((24,), "float32")
            T.clear(total)
            for k in T.serial(T.ceildiv(m, 16)):
                total += parts[k, :]
            T.copy(total, B)

    mx = Mlx()
    kernel = compiled(monkeypatch, add, mx, out_idx=1)
    for rows in (5, 40, 40, 40):
        a = np.random.default_rng(rows).integers(-4, 5, (rows, 24)).astype(np.float32)
        np.testing.assert_array_equal(np.array(kernel(mx.array(a))), a.sum(0))


def compiled(monkeypatch, program, mx, **how):
    monkeypatch.setattr(compiler, "find_runtime", lambda *_: adapter(mx))
    return tile.compile(program, "metal", **how)


@pytest.mark.sweep(1)
def test_a_chain_of_launches_computes_nothing(monkeypatch):
    n = T.dynamic("n")

    @T.prim_func
    def scale(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32"), factor: T.float32):
        with T.Kernel(T.ceildiv(n, 128), threads=32) as bx:
            for i in T.Parallel(128):
                Y[bx * 128 + i] = X[bx * 128 + i] * factor

    mx = Mlx()
    kernel = compiled(monkeypatch, scale, mx, out_idx=1)
    x = mx.array(np.arange(301, dtype=np.float32))[1:]
    for _ in range(12):
        x = kernel(x, 2.0)
    assert (mx.waits, mx.queued, mx.launches) == (0, 0, [])
    np.testing.assert_array_equal(np.array(x), np.arange(1, 301) * 4096.0)
    assert len(mx.launches) == 12


@pytest.mark.sweep(1)
def test_rows_are_appended_to_the_cache_that_the_kernel_returned(monkeypatch):
    rows, width = 24, 20

    @T.prim_func
    def append(
        Cache: T.Tensor((rows, width), "float16"), New: T.Tensor((4, width), "float16"), at: T.int32,
        Next: T.Tensor((rows, width), "float16"), Totals: T.Tensor((width,), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(4, width):
                Cache[at + i, j] = New[i, j]
            total = T.alloc_fragment((width,), "float32")
            T.clear(total)
            for i in T.serial(rows):
                total += T.cast(Cache[i, :], "float32")
            T.copy(total, Totals)
            T.copy(Cache, Next)

    mx = Mlx()
    kernel = compiled(monkeypatch, append, mx, out_idx=(3, 4))
    expected = np.zeros((rows, width), np.float16)
    cache, held = mx.array(expected), []
    for step in range(4):
        new = np.random.default_rng(step).integers(-8, 9, (4, width)).astype(np.float16)
        expected[4 * step + 1 : 4 * step + 5] = new
        cache, totals = kernel(cache, mx.array(new), 4 * step + 1)
        held.append((cache, totals, expected.copy()))
    assert (mx.waits, mx.queued) == (0, 0)
    for (found, totals, right), after in zip(held, [*held[1:], held[-1]], strict=True):
        # The next call writes its rows into the array, too.
        np.testing.assert_array_equal(np.array(found), after[2])
        np.testing.assert_array_equal(np.array(totals), right.astype(np.float32).sum(0))
