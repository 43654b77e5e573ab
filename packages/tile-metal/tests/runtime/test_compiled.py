"""Kernels from language to results: compiled for metal, launched through both doubles."""

import sys

import numpy as np
import pytest
from zoo.case import example

import tile_core as tile
import tile_core.compat.tvm  # TVM looks for torch when it is imported: before a double is in its place
import tile_core.language as T
from tile_core.plugins.manager import installed
from tile_metal import versions
from tile_metal.runtime import libraries

from .fake_mlx import Mlx
from .fake_torch import Torch


@pytest.fixture(params=["mlx", "torch"])
def library(request, monkeypatch):
    """A double in place of a library, where the backend's own runtimes find it."""
    module = Mlx() if request.param == "mlx" else Torch()
    monkeypatch.setitem(sys.modules, "torch", module if request.param == "torch" else None)
    monkeypatch.setitem(libraries.FIND, request.param, lambda: module)
    for adapter in installed().runtimes(installed().resolve_target("metal")):
        monkeypatch.setattr(adapter, "_used", {})
    monkeypatch.setattr(versions, "system_version", lambda: module.system)
    return module


def there(library, array):
    return library.array(array) if isinstance(library, Mlx) else library.tensor(array)


def back(library, array):
    return np.array(array) if isinstance(library, Mlx) else array.cpu().numpy()


@T.prim_func
def shifted(A: T.Tensor((T.dynamic("n"),), "float16"), B: T.Tensor((T.dynamic("n"),), "float16"), by: T.float16):
    with T.Kernel(T.ceildiv(A.shape[0], 256), threads=64) as bx:
        for i in T.Parallel(256):
            B[bx * 256 + i] = A[bx * 256 + i] + by


@pytest.mark.sweep(1)
@pytest.mark.parametrize("start", [0, 1, 8])
def test_vectors_are_for_aligned_views_only(library, start):
    kernel = tile.compile(shifted, target="metal", out_idx=1)
    values = np.arange(300, dtype=np.float16)
    out = kernel(there(library, values)[start:], 0.5)
    np.testing.assert_array_equal(back(library, out), values[start:] + np.float16(0.5))


@pytest.mark.sweep(1)
def test_a_product(library):
    @T.prim_func
    def gemm(A: T.Tensor((40, 24), "float16"), B: T.Tensor((24, 33), "float16"), C: T.Tensor((40, 33), "float32")):
        with T.Kernel(T.ceildiv(33, 16), T.ceildiv(40, 16), threads=64) as (bx, by):
            A_s, B_s = T.alloc_shared((16, 16), "float16"), T.alloc_shared((16, 16), "float16")
            C_f = T.alloc_fragment((16, 16), "float32")
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(24, 16), num_stages=2):
                T.copy(A[by * 16, k * 16], A_s)
                T.copy(B[k * 16, bx * 16], B_s)
                T.gemm(A_s, B_s, C_f)
            T.copy(C_f, C[by * 16, bx * 16])

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((40, 24), (24, 33)))
    c = there(library, np.full((40, 33), np.nan, np.float32))
    tile.compile(gemm, target="metal")(there(library, a), there(library, b), c)
    np.testing.assert_array_equal(back(library, c), a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("gemm", (20, 36, 24, False, True)),  # allocates its result
        ("kv_cache", (16, 24, 7)),  # writes into an array that it is given
        ("vector_matrix", (9, 130, "int4")),
    ],
)
def test_an_example_on_a_mac(library, name, given, capsys):
    """Examples have NumPy arrays: the device gets copies, and results are copied back."""
    passed = example(name).one(*given, "metal")
    assert np.all(passed), capsys.readouterr().out


def test_verify_on_the_device(library):
    """The way of the conformance kit: arrays are copied there, guarded, and back."""

    @T.prim_func
    def half(A: T.Tensor((5, 7), "float32"), B: T.Tensor((5, 7), "float32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(5, 7):
                B[i, j] = A[i, j] * T.float32(0.5)

    report = tile.compile(half, target="metal", out_idx=1).verify()
    assert report.outputs[0].elements == 35


@T.prim_func
def accumulate(X: T.Tensor((64,), "float32"), State: T.Tensor((64,), "float32"), Out: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            State[i] = State[i] + X[i]
            Out[i] = State[i] * 2.0


class TestOutputsComeBack:
    """A call's output is the next one's argument, whichever kernel allocated it."""

    def test_as_state(self, library):
        step = tile.compile(accumulate, "metal", out_idx=-1)
        x, state = there(library, np.ones(64, np.float32)), there(library, np.full(64, 10, np.float32))
        expected = 10.0
        for _ in range(3):
            state = step(x, state)
            expected = 2 * (expected + 1)
            np.testing.assert_array_equal(back(library, state), np.full(64, expected))

    def test_as_an_array_that_is_written_in_part(self, library):
        n = T.dynamic("n")

        @T.prim_func
        def fill(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32"), value: T.float32, first: T.int32):
            with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
                for i in T.Parallel(32):
                    if bx * 32 + i >= first:
                        Y[bx * 32 + i] = X[bx * 32 + i] * value

        new, onto = (tile.compile(fill, "metal", out_idx=out) for out in ((1,), ()))
        x = there(library, np.arange(100, dtype=np.float32))
        out = new(x, 2.0, 0)
        onto(x, out, 3.0, 61)
        np.testing.assert_array_equal(back(library, out), np.arange(100) * np.where(np.arange(100) < 61, 2, 3))

    def test_after_bench(self, library):
        step = tile.compile(accumulate, "metal", out_idx=-1)
        x, state = there(library, np.zeros(64, np.float32)), there(library, np.full(64, 1, np.float32))
        out = step(x, state)
        step.bench(x, state, warmup=1, repeat=1)
        np.testing.assert_array_equal(back(library, step(x, out)), np.full(64, 4))

    def test_within_a_call(self, library):
        @T.prim_func
        def twice(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=32):
                T.copy(X, Y)
            with T.Kernel(2, threads=32) as bx:
                for i in T.Parallel(32):
                    if i % 2 == 0:
                        Y[bx * 32 + i] = Y[bx * 32 + i] + 1

        kernel = tile.compile(twice, "metal", out_idx=1)
        x = np.arange(64, dtype=np.float32)
        for _ in range(3):
            np.testing.assert_array_equal(back(library, kernel(there(library, x))), x + (np.arange(64) % 2 == 0))

    @pytest.mark.sweep(0.25)
    @pytest.mark.parametrize("start", [1, 3, 8])
    def test_renewed_by_a_view_at_another_address(self, library, start):
        if not isinstance(library, Mlx):
            return  # arrays of torch are memory: assigning to one copies
        kernel = tile.compile(shifted, "metal", out_idx=1)
        values = there(library, np.arange(300, dtype=np.float16))
        out = kernel(values[:128], 0.0)
        out[...] = values[start : start + 128]
        np.testing.assert_array_equal(back(library, kernel(out, 0.5)), np.arange(start, start + 128) + np.float16(0.5))
