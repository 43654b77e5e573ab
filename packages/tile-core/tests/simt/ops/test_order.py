"""Sorting networks and the largest elements on threads, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tile_core.layout.fragment import spread
from tile_core.lowering.variant import Reject
from tile_core.simt.ops.sort import SortByShuffles
from tile_core.simt.ops.topk import TopKByShuffles
from tile_core.simt.variant import SimtCall

from ..bench import CTX, Bench, buffer, view

pytestmark = pytest.mark.sweep(8)

#: In registers or in memory.
_HELD = ((False, False), (True, False), (False, True), (True, True))


def _tile(bench: Bench, data: Any, name: str, held: bool, scope: str = "shared") -> Any:
    dist = spread(data.shape, bench.block.count) if held else None
    return bench.tile(data, str(data.dtype), name, "local.fragment" if held else scope, dist)


def _sorted(
    a: Any, dim: int, threads: int, held: tuple[bool, bool], descending: bool, width: int = 32, aliased: bool = False
) -> Any:
    bench = Bench(threads)
    x = _tile(bench, a, "A", held[0])
    y = x if aliased else _tile(bench, np.zeros_like(a), "B", held[1], "global")
    attrs = {"dim": dim, "descending": descending}
    bench.run(SortByShuffles("core", width), "sort", (view(x), view(y)), attrs)
    return bench.value(y)


@pytest.mark.parametrize("length", [2, 3, 8, 31, 33, 100, 256, 257, 520])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(("n", "threads"), [*enumerate((32, 48, 96, 31, 1))])
def test_lines_of_any_length(length: int, dim: int, n: int, threads: int) -> None:
    rng = np.random.default_rng([length, n])
    a = rng.integers(-40, 40, (length, 3) if dim == 0 else (3, length))
    a = a.astype((np.float32, np.int64, np.int16)[n % 3])
    descending = n % 2 == 1
    want = np.flip(np.sort(a, dim), dim) if descending else np.sort(a, dim)
    held = _HELD[(n + length) % 4]
    np.testing.assert_array_equal(_sorted(a, dim, threads, held, descending), want)
    np.testing.assert_array_equal(_sorted(a, dim, threads, held, descending, aliased=True), want)


@pytest.mark.parametrize("width", [1, 4, 32])
def test_targets_whose_threads_exchange_less(width: int) -> None:
    a = np.random.default_rng(width).integers(-9, 9, (2, 70)).astype(np.int32)
    np.testing.assert_array_equal(_sorted(a, 1, 64, (False, False), False, width), np.sort(a, 1))
    k = _found(a, 5, 1, 64, (False, False), True, width)
    np.testing.assert_array_equal(k[1], np.argsort(-a, 1, kind="stable")[:, :5])


def _found(
    a: Any, k: int, dim: int, threads: int, held: tuple[bool, bool], largest: bool, width: int = 32
) -> tuple[Any, Any]:
    bench = Bench(threads)
    shape = (k, a.shape[1]) if dim == 0 else (a.shape[0], k)
    x = _tile(bench, a, "A", held[0])
    values = _tile(bench, np.zeros(shape, a.dtype), "V", held[1], "global")
    indices = _tile(bench, np.zeros(shape, np.int64), "P", not held[1])
    attrs = {"dims": [dim] * 3, "largest": largest}
    bench.run(TopKByShuffles("core", width), "topk", (view(x), view(values), view(indices)), attrs)
    return bench.value(values), bench.value(indices)


@pytest.mark.parametrize("length", [2, 7, 32, 45, 129, 300])
@pytest.mark.parametrize("dim", [0, 1])
def test_the_largest_of_any_number(length: int, dim: int) -> None:
    rng = np.random.default_rng(length)
    shape = (length, 3) if dim == 0 else (3, length)
    for n, threads in enumerate((32, 48, 96, 31, 1)):
        a = rng.integers(-20, 20, shape).astype((np.float32, np.int64, np.int16)[n % 3])
        largest, k = n % 2 == 0, min(length, n + 1)
        order = np.argsort(-a if largest else a, dim, kind="stable").take(range(k), dim)
        values, indices = _found(a, k, dim, threads, _HELD[(n + length) % 4], largest)
        np.testing.assert_array_equal(indices, order)
        np.testing.assert_array_equal(values, np.take_along_axis(a, order, dim))


def test_registers_that_hold_too_many_keys_are_looked_at_again() -> None:
    a = np.random.default_rng(1).standard_normal((1, 3000)).astype(np.float32)
    values, indices = _found(a, 3, 1, 32, (False, False), True)
    np.testing.assert_array_equal(indices, np.argsort(-a, 1)[:, :3])
    np.testing.assert_array_equal(values, -np.sort(-a, 1)[:, :3])


def test_what_is_left_to_plain_loops() -> None:
    one, private = (view(buffer((4, n), "float32", "A", s)) for n, s in ((1, "shared"), (8, "local")))
    bench = Bench(32)
    for variant, attrs in ((SortByShuffles("core"), {"dim": 1}), (TopKByShuffles("core"), {"dims": [1] * 3})):
        for divergent, src in ((False, one), (False, private), (True, view(buffer((4, 8), "float32", "A", "shared")))):
            call = SimtCall(variant.op, (src, src, src), attrs, block=bench.block, divergent=divergent)
            assert isinstance(variant.accepts(call, CTX), Reject)
