"""T.cumsum and T.cummax: sizes, dimensions, directions, element types, scopes, slices, in place."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_core.testing import oracles

from . import kit

pytestmark = pytest.mark.sweep(5)

ALLOC = {"shared": T.alloc_shared, "fragment": T.alloc_fragment, "local": T.alloc_local}


def program(dtype, out_type, shape, dim, threads, first, second):
    """Both scans in both directions, from one scope into another, and one in place."""

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor((5, *shape), out_type)):
        with T.Kernel(1, threads=threads):
            s = ALLOC[first](shape, dtype)
            T.copy(A, s)
            for n, (scan, reverse) in enumerate(
                ((T.cumsum, False), (T.cumsum, True), (T.cummax, False), (T.cummax, True))
            ):
                d = ALLOC[second](shape, out_type)
                scan(s, d, dim=dim, reverse=reverse)
                T.copy(d, B[(n, *[slice(None)] * len(shape))])
            if dtype == out_type:
                T.cumsum(s, dim=dim)
            T.copy(s, B[(4, *[slice(None)] * len(shape))])

    return main


def check(case):
    (dtype, out_type), shape, dim = case["types"], (case["rows"], case["width"]), case["dim"]
    kernel = tile.compile(program(dtype, out_type, shape, dim, case["threads"], *case["scopes"]), target="cpu")
    data = kit.numbers(np.random.default_rng(kit.seed(case)), shape, dtype, 0 if out_type == "float16" else -3, 1)
    out = kit.launch(kernel, [data], [kit.guarded((5, *shape), out_type)])
    x = kit.values(data, dtype, shape)
    expected = [
        oracles.cumsum(x, dim),
        oracles.cumsum(x, dim, True),
        oracles.cummax(x, dim),
        oracles.cummax(x, dim, True),
    ]
    expected.append(oracles.cumsum(x, dim) if dtype == out_type else x)
    for found, want in zip(out, expected, strict=True):
        kit.same(kit.values(found, out_type), oracles.cast(want + (0.0 if DTYPES[out_type].is_float else 0), out_type))


AXES = {
    "rows": kit.SIZES,
    "width": kit.SIZES,
    "dim": (0, 1, -1, -2),
    "threads": kit.THREADS,
    "scopes": (("shared", "shared"), ("shared", "fragment"), ("fragment", "shared"), ("local", "fragment")),
    "types": (
        ("float32", "float32"),
        ("float16", "float16"),
        ("bfloat16", "bfloat16"),
        ("int32", "int32"),
        ("int8", "int8"),
        ("uint8", "uint32"),
        ("int64", "int64"),
        ("float64", "float64"),
        ("float8_e5m2", "float32"),
    ),
}


@pytest.mark.sweep(16)
@pytest.mark.parametrize("case", kit.covering(4, **AXES), ids=kit.label)
def test_awkward_tiles(case):
    check(case)


def test_slices_start_where_they_say():
    """#2536: rows 64..127 of a tile, a vector's part, and a destination elsewhere in the same buffer."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 8), "float32"), B: T.Tensor((128, 8), "float32"), C: T.Tensor((20,), "int32"), z: T.int32
    ):
        with T.Kernel(1, threads=96):
            s = T.alloc_shared((128, 8), "float32")
            v = T.alloc_shared((20,), "int32")
            T.copy(A, s)
            T.cumsum(s[64:128, :], dim=0)
            T.cumsum(s[z, 0:8], dim=0)
            T.copy(s, B)
            T.fill(v, 1)
            T.cumsum(v[2:12], v[5:15])
            T.copy(v, C)

    a = kit.numbers(np.random.default_rng(1), (128, 8), "float32")
    kernel = tile.compile(main, target="cpu")
    b, c = kit.guarded((128, 8), "float32"), kit.guarded((20,), "int32")
    kernel(a, b, c, 7)
    expected = a.copy()
    expected[64:] = np.cumsum(a[64:], 0)
    expected[7] = np.cumsum(a[7])
    kit.same(b, expected)
    ones = np.ones(20, np.int32)
    ones[5:15] = np.arange(1, 11)
    kit.same(c, ones)


def test_threads_and_columns():
    """#2284, #2576: columns of (32, 64) with 256 threads, and 96 of them."""
    for threads in (96, 256):
        data = kit.numbers(np.random.default_rng(2), (32, 64), "float32")
        out = kit.launch(
            program("float32", "float32", (32, 64), 0, threads, "shared", "fragment"),
            [data],
            [kit.guarded((5, 32, 64), "float32")],
        )
        kit.same(out[0], np.cumsum(data, 0))


@pytest.mark.parametrize("nan", [False, True])
def test_nan_in_a_running_maximum(nan):
    @T.prim_func
    def main(A: T.Tensor((40,), "float32"), B: T.Tensor((2, 40), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((40,), "float32")
            d = T.alloc_fragment((40,), "float32")
            T.copy(A, s)
            T.cummax(s, d, nan_propagate=nan)
            T.copy(d, B[0, :])
            T.cummax(s, d, reverse=True, nan_propagate=nan)
            T.copy(d, B[1, :])

    a = np.random.default_rng(3).random(40, np.float32)
    a[[0, 1, 20]] = np.nan
    out = kit.launch(main, [a], [kit.guarded((2, 40), "float32")])
    kit.same(out, np.stack([oracles.cummax(a, 0, nan_propagate=nan), oracles.cummax(a, 0, True, nan_propagate=nan)]))
