"""``tile.jit(runtime=)``: factories, eager kernels and searches load their kernels by it."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.setup import UnknownRuntime

pytest.importorskip("tile_emulator")
pytest.importorskip("tile_cuda")
TARGET = "cuda:sm_80"


def doubled(N, block=64):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                Y[bx * block + i] = X[bx * block + i] * 2.0

    return main


def jit(**how):
    return tile.jit(target=TARGET, out_idx=-1, **how)(doubled)


def test_a_factory():
    kernel = jit(runtime="emulator")(67)
    x = np.random.default_rng().standard_normal(67).astype("float32")
    np.testing.assert_array_equal(kernel(x), x * 2)
    assert kernel.adapter.name == "emulator"


def test_an_eager_kernel():
    @tile.jit(target=TARGET, runtime="emulator")
    def twice(X, block=32):
        N = T.const("N")
        X: T.Tensor[(N,), "float32"]
        Y = T.empty((N,), "float32")
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            for i in T.Parallel(block):
                Y[bx * block + i] = X[bx * block + i] * 2.0
        return Y

    x = np.random.default_rng().standard_normal(37).astype("float32")
    np.testing.assert_array_equal(twice(x), x * 2)


def test_a_search_measures_by_the_runtime(tmp_path):
    tuned = tile.autotune([{"block": 32}, {"block": 64}], repeat=1, warmup=1)(jit(runtime="emulator"))
    found = tuned.tune(67)
    assert all(trial.seconds is not None for trial in found.trials), found.trials
    assert found.kernel.adapter.name == "emulator"


def test_a_changed_function_keeps_it():
    assert jit(runtime="emulator").changed(target="cuda:sm_90a").runtime == "emulator"


def test_an_unknown_one_is_refused():
    with pytest.raises(UnknownRuntime, match="emulater"):
        jit(runtime="emulater")(67)
