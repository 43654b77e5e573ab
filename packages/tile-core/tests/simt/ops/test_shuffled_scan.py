"""Prefix sums and maxima on threads, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tile_core.ir import nodes
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import FragmentLayout, spread
from tile_core.lowering.variant import Reject
from tile_core.simt.ops.scan import ScanByShuffles
from tile_core.simt.variant import SimtCall
from tile_core.testing import oracles

from ..bench import CTX, Bench, buffer, check, numbers, numpy_type, view

pytestmark = pytest.mark.sweep(4)


def scan(
    a: Any, dim: int, threads: int, *, src: Any = None, dst: Any = None, op: str = "cumsum", reverse: bool = False,
    out: str = "", dtype: str = "", nan: bool = False, aliased: bool = False,
) -> Any:  # fmt: skip
    """Run one scan and return what the destination holds."""
    bench = Bench(threads)
    dtype = dtype or str(a.dtype)
    out = out or dtype
    x = bench.tile(a, dtype, "A", "local.fragment" if src else "shared", src)
    y = (
        x
        if aliased
        else bench.tile(np.zeros(a.shape, numpy_type(out)), out, "B", "local.fragment" if dst else "shared", dst)
    )
    kind = {"cumsum": "sum", "cumprod": "prod", "cummax": "max"}[op]
    attrs = {"kind": kind, "dim": dim, "reverse": reverse, "nan_propagate": nan}
    bench.run(ScanByShuffles("core"), "scan", (view(x), view(y)), attrs)
    return bench.value(y)


@pytest.mark.parametrize("width", [1, 7, 31, 32, 33, 48, 127, 229])
@pytest.mark.parametrize("dim", [0, 1])
def test_widths_and_threads(width: int, dim: int) -> None:
    rng = np.random.default_rng(width)
    all_threads = (32, 48, 64, 96, 128, 31)
    for n in range(2):
        threads = all_threads[(width + dim + 3 * n) % 6]
        shape = (5, width) if dim == 1 else (width, 5)
        a = rng.integers(-50, 50, shape).astype(np.float32)
        dist, reverse = spread(shape, threads), n == 1
        want = np.flip(np.cumsum(np.flip(a, dim), dim), dim) if reverse else np.cumsum(a, dim)
        check(scan(a, dim, threads, reverse=reverse), want)
        check(scan(a, dim, threads, reverse=reverse, aliased=True), want)
        check(scan(a, dim, threads, src=dist, dst=dist, reverse=reverse), want)
        check(scan(a, dim, threads, dst=spread(shape, threads, 1), reverse=reverse), want)
        check(scan(a, dim, threads, src=dist, reverse=reverse, aliased=True), want)


@pytest.mark.parametrize("shape", [(130, 3), (3, 130), (70, 4), (64,), (1, 1)])
def test_many_and_few_lines(shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(4).integers(-9, 9, shape).astype(np.int32)
    for dim in range(len(shape)):
        for threads in (96, 1) if a.size < 99 else (64, 96):
            check(scan(a, dim, threads), np.cumsum(a, dim))


@pytest.mark.parametrize("dtype", ["float16", "int32", "int8", "uint64", "bfloat16", "float64", "int16"])
def test_types(dtype: str) -> None:
    a = numbers(np.random.default_rng(8), (6, 45), dtype)
    wide = a if "int" in dtype else a.astype(np.float64)
    for op, function in (("cumsum", oracles.cumsum), ("cummax", oracles.cummax)):
        for reverse in (False, True):
            want = np.asarray(function(wide, 1, reverse)).astype(numpy_type(dtype))
            check(scan(a, 1, 48, op=op, reverse=reverse, dtype=dtype), want)
            check(scan(a, 1, 48, op=op, reverse=reverse, dtype=dtype, src=spread((6, 45), 48)), want)


def test_types_that_differ() -> None:
    a = numbers(np.random.default_rng(8), (6, 45), "int8")
    check(scan(a, 1, 64, out="int32"), np.cumsum(a, 1, dtype=np.int32))
    check(
        scan(a, 1, 64, src=spread((6, 45), 64), dst=spread((6, 45), 64), out="int32"), np.cumsum(a, 1, dtype=np.int32)
    )


@pytest.mark.parametrize("nan", [False, True])
def test_nan(nan: bool) -> None:
    rng = np.random.default_rng(7)
    a = rng.choice([1.0, -2.0, 0.0, 3.5, np.inf, -np.inf], (5, 70)).astype(np.float32)
    a[0, 3] = a[1, 69] = a[2, 0] = a[2, 40] = np.nan
    a[3] = np.nan
    want = oracles.cummax(a, 1, nan_propagate=nan)
    for dist in (None, spread(a.shape, 64)):
        np.testing.assert_array_equal(scan(a, 1, 64, src=dist, op="cummax", nan=nan), want)
        np.testing.assert_array_equal(scan(a.T.copy(), 0, 64, op="cummax", nan=nan), want.T)


@pytest.mark.parametrize("reverse", [False, True])
def test_lines_inside_of_threads_need_no_scratch(reverse: bool) -> None:
    t, r = "thread", "register"
    dist = FragmentLayout((33, 5), ((Digit(64, 1, t),), (Digit(2, 4, r), Digit(4, 1, r))), 64)
    a = np.random.default_rng(1).integers(-9, 9, (33, 5)).astype(np.int32)
    want = np.flip(np.cumsum(np.flip(a, 1), 1), 1) if reverse else np.cumsum(a, 1)
    check(scan(a, 1, 64, src=dist, dst=dist, reverse=reverse), want)
    bench = Bench(64)
    x = bench.tile(a, "int32", "A", "local.fragment", dist)
    free = buffer(a.shape, "int32", "B", "local.fragment")
    attrs = {"kind": "sum", "dim": 1, "reverse": reverse, "nan_propagate": False}
    call = SimtCall("scan", (view(x), view(free)), attrs, block=bench.block, placement=bench.placement)
    assert ScanByShuffles("core").layouts(call, CTX) == {1: dist}
    bench.hold(free, dist)
    assert "shared" not in str(ScanByShuffles("core").lower(call, CTX))


def test_rows_at_an_offset_that_is_not_known() -> None:
    bench = Bench(96)
    a = np.random.default_rng(1).integers(-9, 9, (128, 8)).astype(np.float32)
    x = bench.tile(a, "float32", "A", "shared")
    z = nodes.fresh("z")
    bench.machine.values[z] = np.full(96, 100, np.int32)
    attrs = {"kind": "sum", "dim": 0, "reverse": False, "nan_propagate": False}
    bench.run(ScanByShuffles("core"), "scan", (view(x, [z, 0], [64, 8]), view(x, [z, 0], [64, 8])), attrs)
    want = a.copy()
    want[100:] = np.cumsum(a[100:], 0)
    check(bench.value(x), want)


def test_refuses_what_one_thread_does() -> None:
    bench = Bench(32)
    a, b = buffer((8,), "float32", "A", "shared"), buffer((8,), "float32", "B", "local")
    attrs = {"kind": "sum", "dim": 0, "reverse": False, "nan_propagate": False}
    for call in (
        SimtCall("scan", (view(a), view(a)), attrs, block=bench.block, divergent=True),
        SimtCall("scan", (view(a), view(b)), attrs, block=bench.block),
    ):
        assert isinstance(ScanByShuffles("core").accepts(call, CTX), Reject)
