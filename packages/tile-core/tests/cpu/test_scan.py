"""Scans of a vector at a time, against scans of one element at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T


def scanned(op: str, size: int, dtype: str, out: str, reverse: bool, nan: bool) -> Any:
    """Return a program that scans three rows."""
    more = {"nan_propagate": nan} if op == "cummax" else {}

    @T.prim_func
    def main(X: T.Tensor((3, size), dtype), Y: T.Tensor((3, size), out)):
        with T.Kernel(1, threads=32):
            x = T.alloc_shared((3, size), dtype)
            y = T.alloc_shared((3, size), out)
            T.copy(X, x)
            getattr(T, op)(x, y, dim=1, reverse=reverse, **more)
            T.copy(y, Y)

    return main


def numbers(op: str, size: int, dtype: str) -> Any:
    """Return numbers whose scans are exact, with NaN, infinities and zeros of both signs for maxima."""
    rng = np.random.default_rng(size)
    if op == "cumprod":
        values = rng.choice([1.0, -1.0], (3, size))
        values[:, :: size // 5] = rng.choice([2.0, -2.0], values[:, :: size // 5].shape)
    else:
        values = rng.integers(-3, 4, (3, size)).astype("float64")
    found = values.astype(T.dtype(dtype).numpy())
    if op == "cummax" and not dtype.startswith(("int", "uint")):
        found[0, ::7], found[1, :9], found[1, 4], found[2, size // 2] = np.nan, -0.0, 0.0, np.inf
    return found


@pytest.mark.sweep(2)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [31, 32, 33, 63, 100, 257])
@pytest.mark.parametrize(
    ("dtype", "out"),
    [
        ("float32", "float32"), ("float64", "float64"), ("float16", "float16"), ("bfloat16", "float32"),
        ("float16", "bfloat16"), ("int32", "int32"), ("int8", "int32"), ("int64", "int64"), ("uint8", "uint8"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("op", ["cumsum", "cumprod", "cummax", "cummax with NaN"])
def test_scans_are_those_of_single_elements(op: str, dtype: str, out: str, size: int, reverse: bool) -> None:
    name, _, nan = op.partition(" ")
    program = scanned(name, size, dtype, out, reverse, bool(nan))
    x = numbers(name, size, dtype)
    found, wanted = (np.full((3, size), 7, T.dtype(out).numpy()) for _ in range(2))
    tile.compile(program, "cpu")(x, found)
    tile.compile(program, "cpu", options={"generic": True})(x, wanted)
    assert np.array_equal(np.isnan(found.astype("float64")), np.isnan(wanted.astype("float64")))
    numeric = ~np.isnan(wanted.astype("float64"))
    assert found[numeric].tobytes() == wanted[numeric].tobytes()


def test_rows_are_scanned_in_lanes() -> None:
    report = str(tile.explain(scanned("cumsum", 64, "float32", "float32", False, False), "cpu"))
    assert "cpu.scan.lanes" in report


def test_strict_scans_stay_in_order() -> None:
    report = str(
        tile.explain(scanned("cumsum", 64, "float32", "float32", False, False), "cpu", options={"numerics": "strict"})
    )
    assert "cpu.scan.loops" in report
