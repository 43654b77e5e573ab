"""The references themselves, against plain Python loops on small inputs."""

from __future__ import annotations

import itertools
import math

import ml_dtypes
import numpy as np
import pytest

from tile_core.testing import oracles


@pytest.mark.parametrize(("ta", "tb", "clear"), list(itertools.product([False, True], repeat=3)))
def test_gemm(ta: bool, tb: bool, clear: bool) -> None:
    rng = np.random.default_rng(41)
    a, b, c = rng.integers(-4, 5, (3, 5)), rng.integers(-4, 5, (5, 2)), rng.integers(-4, 5, (3, 2))
    got = oracles.gemm(a.T if ta else a, b.T if tb else b, c, transpose_a=ta, transpose_b=tb, clear_accum=clear)
    for i, j in np.ndindex(3, 2):
        assert got[i, j] == sum(int(a[i, k]) * int(b[k, j]) for k in range(5)) + (0 if clear else c[i, j])
    assert got.dtype == np.int64


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(
    "kind", ["sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor", "prod", "any", "all"]
)
def test_reduce(kind: str, dim: int) -> None:
    x = np.random.default_rng(42).integers(-9, 9, (4, 3))
    before = np.random.default_rng(43).integers(-9, 9, (x.shape[1 - dim],))
    step = {"sum": lambda a, b: a + b, "abssum": lambda a, b: a + abs(b), "max": max, "min": min,
            "absmax": lambda a, b: max(a, abs(b)), "bitand": lambda a, b: a & b, "bitor": lambda a, b: a | b,
            "bitxor": lambda a, b: a ^ b, "prod": lambda a, b: a * b, "any": lambda a, b: int(a != 0 or b != 0),
            "all": lambda a, b: int(a != 0 and b != 0)}[kind]  # fmt: skip
    got = oracles.reduce(kind, x, dim, before=before)
    for i, row in enumerate(x if dim == 1 else x.T):
        total = int(before[i])
        for value in row:
            total = step(total, int(value))
        assert got[i] == total


def test_reduce_nan() -> None:
    x = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(oracles.reduce("max", x), [3, -np.inf])
    np.testing.assert_array_equal(oracles.reduce("absmax", x), [3, 0])
    np.testing.assert_array_equal(oracles.reduce("min", x, nan_propagate=True), [np.nan, np.nan])
    accumulated = oracles.reduce("max", x, before=np.array([-1.0, -1.0]), nan_propagate=True)
    np.testing.assert_array_equal(accumulated, [np.nan, np.nan])


@pytest.mark.parametrize("reverse", [False, True])
def test_scans(reverse: bool) -> None:
    x = np.array([[3.0, 1.0, np.nan], [np.nan, 5.0, 4.0]])
    rows = x[:, ::-1] if reverse else x
    totals, maxima = np.empty_like(x), np.empty_like(x)
    for i, row in enumerate(rows):
        total, top = 0.0, -math.inf
        for j, value in enumerate(row):
            total, top = total + value, max(top, value) if not math.isnan(value) else top
            totals[i, j], maxima[i, j] = total, top
    flip = (slice(None), slice(None, None, -1 if reverse else 1))
    np.testing.assert_array_equal(oracles.cumsum(x, reverse=reverse), totals[flip])
    np.testing.assert_array_equal(oracles.cummax(x, reverse=reverse), maxima[flip])
    np.testing.assert_array_equal(oracles.cumsum(x, dim=0), np.cumsum(x, axis=0))


@pytest.mark.parametrize("mins", [(0, 0), (-2, 1), (3, 4), (9, 0), (-9, -9), (2, -1)])
def test_regions(mins: tuple[int, int]) -> None:
    source = np.arange(1, 21).reshape(4, 5)
    region = oracles.copy_region(source, mins, (3, 2), fill=-1)
    for i, j in np.ndindex(3, 2):
        p = (mins[0] + i, mins[1] + j)
        inside = 0 <= p[0] < 4 and 0 <= p[1] < 5
        assert region[i, j] == (source[p] if inside else -1)


def test_cast() -> None:
    x = np.array([1.06, -3.7, 300.0, 1e6, np.nan, np.inf])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(oracles.cast(x, "float16"), x.astype(np.float16).astype(np.float32))
        expected = x.astype(ml_dtypes.float8_e5m2).astype(np.float32)
    np.testing.assert_array_equal(oracles.cast(x, "float8_e5m2"), expected)
    assert oracles.cast(x[:3], "int32").tolist() == [1, -3, 300]
    assert oracles.cast(np.array([7, 8, -9]), "int4").tolist() == [7, -8, 7]
    assert oracles.cast(np.array([0.0, -0.0, 2.0]), "bool").tolist() == [False, False, True]
    assert oracles.cast(np.array([(1 << 62) + 1 + (1 << 54)]), "bfloat16")[0] == 2.0**62 * (1 + 2.0**-7)
    assert oracles.cast(1e6, "float8_e4m3fn", saturate=True) == 448
