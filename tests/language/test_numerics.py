"""Levels of numerics: results of ``"strict"`` are equal on all targets; others keep the promise of the level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError
from tile_core.errors.plugins import InvalidOptions
from tile_core.numerics.levels import LEVELS
from tile_core.reports import report_json

pytestmark = pytest.mark.sweep(2)

#: Target -> runtime.
TARGETS = {
    "cpu": None, "cuda:sm_80": "emulator", "cuda:sm_90a": "emulator", "metal": "emulator", "rocm:gfx942": "emulator",
}  # fmt: skip
SHAPES = {"one atom": (16, 16, 32), "primes": (13, 7, 37), "one step": (5, 3, 1)}


def product(M: int, N: int, K: int, dtype: str) -> Any:
    @T.prim_func
    def k(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N))):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((M, K), dtype), T.alloc_shared((K, N), dtype)
            c = T.alloc_fragment((M, N), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c)
            T.copy(c, C)

    return k


def rows(M: int, K: int, op: str) -> Any:
    @T.prim_func
    def k(A: T.Tensor((M, K)), C: T.Tensor((M, K))):
        with T.Kernel(1, threads=64):
            a, c = T.alloc_fragment((M, K), "float32"), T.alloc_fragment((M,), "float32")
            s = T.alloc_shared((M, K), "float32")
            T.copy(A, a)
            T.copy(A, s)
            if op == "cumsum":
                T.cumsum(s, s, dim=1)
                T.copy(s, C)
            else:
                if op == "fold":
                    T.reduce_with(lambda x, y: x + y, a, c, dim=1, identity=0)
                else:
                    T.reduce_sum(a, c, dim=1)
                for i, j in T.Parallel(M, K):
                    C[i, j] = c[i]

    return k


def compiled(program: Any, target: str, **options: Any) -> Any:
    runtime = TARGETS[target]
    return tile.compile(program, target, options=options, **({"runtime": runtime} if runtime else {}))


def ascending(terms: np.ndarray) -> np.ndarray:
    """Add along the last axis, one by one, each rounded to float32."""
    return np.add.accumulate(np.concatenate([np.zeros_like(terms[..., :1]), terms], -1), -1, dtype="float32")[..., 1:]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_strict_products_add_in_ascending_order(target, shape, dtype):
    (m, n, k), rng = SHAPES[shape], np.random.default_rng()
    a, b = (rng.standard_normal(s).astype(dtype) for s in ((m, k), (k, n)))
    found = np.full((m, n), np.nan, "float32")
    compiled(product(m, n, k, dtype), target, numerics="strict")(a, b, found)
    terms = a.astype("float32")[:, None, :] * b.T.astype("float32")[None]
    np.testing.assert_array_equal(found, ascending(terms)[..., -1])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("op", ["sum", "fold", "cumsum"])
def test_strict_reductions_add_in_ascending_order(target, op):
    m, k = 5, 67
    a = np.random.default_rng().standard_normal((m, k)).astype("float32")
    found = np.full((m, k), np.nan, "float32")
    compiled(rows(m, k, op), target, numerics="strict")(a, found)
    states = ascending(a)
    np.testing.assert_array_equal(found, states if op == "cumsum" else np.repeat(states[:, -1:], k, 1))


@T.prim_func
def arithmetic(A: T.Tensor((64,)), B: T.Tensor((64,)), C: T.Tensor((64,)), D: T.Tensor((3, 64))):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            D[0, i] = A[i] * B[i] + C[i]
            D[1, i] = T.ieee_add(T.ieee_mul(A[i], B[i]), C[i])
            D[2, i] = T.ieee_mul(A[i], B[i]) - C[i]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("level", ["strict", "standard"])
def test_operations_with_a_named_rounding_are_never_fused(target, level):
    rng = np.random.default_rng()
    a, b = (rng.standard_normal(64).astype("float32") for _ in range(2))
    c = -(a * b)  # a fused operation leaves the rounding error of the product
    found = np.full((3, 64), np.nan, "float32")
    compiled(arithmetic, target, numerics=level)(a, b, c, found)
    np.testing.assert_array_equal(found[1], np.zeros(64, "float32"))
    np.testing.assert_array_equal(found[2], a * b - c)
    assert np.all(np.abs(found[0]) <= np.spacing(np.abs(c)) / (1 if level == "standard" else np.inf))


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_has_the_levels(target):
    program = rows(5, 67, "sum")  # operations with a named rounding are refused by some targets at level "fast"
    for level, promise in LEVELS.items():
        kernel = compiled(program, target, numerics=level)
        assert f"numerics {level}: {promise}" in " ".join(kernel.explain().split())
        assert report_json(program, target, options={"numerics": level})["options"]["numerics"] == level
    assert report_json(program, target)["options"]["numerics"] == "standard"
    with pytest.raises(InvalidOptions, match="'strict', 'standard', 'fast'"):
        compiled(program, target, numerics="exact")


def test_a_tensor_core_product_that_is_requested_is_refused_if_strict():
    program = product(64, 64, 64, "float16")
    assert "wgmma" in tile.compile(program, "cuda:sm_90a", options={"wgmma": "always"}).source

    @T.prim_func
    def named(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64))):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.wgmma_gemm(a, b, c, clear_accum=True)
            T.copy(c, C)

    tile.compile(named, "cuda:sm_90a")
    with pytest.raises(TileError, match="ascending order"):
        tile.compile(named, "cuda:sm_90a", options={"numerics": "strict"})
