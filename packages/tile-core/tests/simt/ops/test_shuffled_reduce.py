"""Reductions by shuffles or instructions: any width, dimension, number of threads, type and place, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import FragmentLayout, spread
from tile_core.lowering.variant import Reject
from tile_core.ops.reduce import KINDS
from tile_core.simt.ops.reduce import ReduceByShuffles
from tile_core.simt.variant import SimtCall
from tile_core.testing import oracles

from ..bench import CTX, RICH, Bench, buffer, check, numbers, numpy_type, view

pytestmark = pytest.mark.sweep(4)

WIDTHS = (1, 7, 31, 32, 33, 48, 96, 127, 229, 257)
THREADS = (32, 48, 64, 96, 128, 256, 1, 31)


@pytest.fixture(autouse=True, params=[CTX, RICH], ids=["shuffles", "instructions"])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "ctx", request.param)


def reduce(
    src: Any, out: str, kind: str, dim: int, threads: int, *, dist: Any = None, to: Any = "derived",
    scope: str = "shared", clear: bool = True, nan: bool = False, start: Any = None, source: str = "",
) -> Any:  # fmt: skip
    """Run one reduction and return what the destination holds."""
    bench = Bench(threads)
    source = source or str(src.dtype)
    a = bench.tile(src, source, "A", "local.fragment" if dist else scope, dist)
    kept = tuple(n for d, n in enumerate(src.shape) if d != dim) or (1,)
    start = np.zeros(kept, numpy_type(out)) if start is None else start
    variant = ReduceByShuffles("core")
    attrs = {"kind": kind, "dim": dim, "clear": clear, "nan_propagate": nan}
    if isinstance(to, str) and to == "derived":
        probe = buffer(kept, out, "B", "local.fragment")
        call = SimtCall("reduce", (view(a), view(probe)), attrs, block=bench.block, placement=bench.placement)
        to = variant.layouts(call, CTX).get(1)
        assert (to is not None) == (dist is not None)
    b = bench.tile(start, out, "B", "local.fragment" if to else scope, to)
    bench.run(variant, "reduce", (view(a), view(b)), attrs)
    return bench.value(b)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dim", [0, 1])
def test_widths_and_threads(width: int, dim: int) -> None:
    rng = np.random.default_rng(width)
    first = WIDTHS.index(width) + dim
    for n, threads in enumerate((THREADS * 2)[first % 8 : first % 8 + 3]):
        shape = (5, width) if dim == 1 else (width, 5)
        a = rng.integers(-50, 50, shape).astype(np.float32)
        vector = (1, 2, 4)[n % 3]
        dist = spread(shape, threads, vector if shape[1] % vector == 0 else 1)
        other = spread((5,), threads)
        check(reduce(a, "float32", "sum", dim, threads, dist=dist), a.sum(dim))
        check(reduce(a, "float32", "max", dim, threads, dist=dist, to=None), a.max(dim))
        check(reduce(a, "float32", "min", dim, threads, dist=dist, to=other), a.min(dim))
        check(reduce(a, "float32", "absmax", dim, threads, to=other), np.abs(a).max(dim))
        check(reduce(a, "float32", "sum", dim, threads, to=None, scope="global"), a.sum(dim))


@pytest.mark.parametrize("threads", [31, 48, 96, 128, 256, 288, 1024])
def test_one_dimension(threads: int) -> None:
    rng = np.random.default_rng(threads)
    for n in (1, 5, 31, 100, 257):
        a = rng.integers(-50, 50, (n,)).astype(np.int32)
        for dist in (None, spread((n,), threads)):
            assert reduce(a, "int32", "sum", 0, threads, dist=dist)[0] == a.sum()
            assert reduce(a, "int32", "max", 0, threads, dist=dist, to=None)[0] == a.max()


PAIRS = [
    ("float32", "float32"), ("float16", "float16"), ("bfloat16", "bfloat16"), ("int32", "int32"), ("int8", "int8"),
    ("uint16", "uint16"), ("int64", "int64"), ("float64", "float64"), ("int8", "int32"), ("bool", "int32"),
    ("bool", "bool"), ("uint64", "uint64"), ("float16", "float32"), ("uint8", "uint32"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "out"), PAIRS)
@pytest.mark.parametrize("clear", [True, False])
def test_kinds_and_types(source: str, out: str, clear: bool) -> None:
    rng = np.random.default_rng(len(source) + len(out))
    for n, kind in enumerate(KINDS):
        if (kind.startswith("bit") and DTYPES[source].is_float) or (out == "bool" and kind.endswith(("sum", "prod"))):
            continue
        if kind in ("any", "all") and DTYPES[out].is_float:
            continue
        a, start = numbers(rng, (6, 45), source), numbers(rng, (6,), out)
        threads = (64, 96, 48, 128)[n % 4]
        data = a.astype(numpy_type(out)) if not DTYPES[source].is_float else np.asarray(a, np.float64)
        before = (
            None if clear else (start if DTYPES[out].is_integer or out == "bool" else np.asarray(start, np.float64))
        )
        want = oracles.reduce(kind, data, 1, before=before)
        for dist in (None, spread((6, 45), threads)):
            found = reduce(a, out, kind, 1, threads, dist=dist, clear=clear, start=start, source=source)
            check(found, np.asarray(want).astype(numpy_type(out)) if DTYPES[out].is_integer else want)


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("kind", ["max", "min", "absmax"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_nan(nan: bool, clear: bool, kind: str, dtype: str) -> None:
    rng = np.random.default_rng(7)
    a = rng.choice([1.0, -2.0, 0.0, -0.0, 3.5, np.inf, -np.inf], (8, 70))
    a[0, 3] = a[1, 69] = a[2, 0] = np.nan
    a[3] = np.nan
    a[4] = -0.0
    a[4, 50] = 0.0
    start = np.array([-1.0, 2.0, np.nan, 1.0, -0.0, 0, 5, -np.inf])
    want = oracles.reduce(kind, a, 1, before=None if clear else start, nan_propagate=nan)
    for dist in (None, spread((8, 70), 96, 2)):
        found = reduce(
            a.astype(numpy_type(dtype)), dtype, kind, 1, 96, dist=dist, clear=clear, nan=nan,
            start=start.astype(numpy_type(dtype)), source=dtype,
        ).astype(np.float64)  # fmt: skip
        np.testing.assert_array_equal(found, want)
        assert bool(np.signbit(found[4])) == (kind == "min")  # of the zeros, the positive one is larger


@pytest.mark.parametrize("threads", [32, 96, 256, 288])
@pytest.mark.parametrize("kind", ["max", "min"])
def test_zeros_and_subnormals_are_in_order(kind: str, threads: int) -> None:
    """Also where the machine's own instruction flushes them."""
    rng = np.random.default_rng(threads)
    tiny = np.array([0.0, -0.0, 1e-45, -1e-45, 3e-40, -3e-40, 1.1e-38, -1.1e-38, np.nan], np.float32)
    a = rng.choice(tiny, (40, 300))
    a[:9] = tiny[:, None]
    a[9:20] = -np.abs(a[9:20])
    a[20:30] = np.abs(a[20:30])
    a[30:] = np.where(rng.random((10, 300)) < 0.5, a[30:], 2.0 if kind == "min" else -2.0)
    key = a.view(np.int32).astype(np.int64)
    key = np.where(np.isnan(a), np.iinfo(np.int64).min if kind == "max" else np.iinfo(np.int64).max, key)
    order = np.where(np.signbit(a) & ~np.isnan(a), -(key & 0x7FFFFFFF) - 1, key)
    at = order.argmax(1) if kind == "max" else order.argmin(1)
    want = np.where(np.isnan(a).all(1), np.float32(-np.inf if kind == "max" else np.inf), a[np.arange(40), at])
    for dist in (None, spread((40, 300), threads), spread((40, 300), threads, 4)):
        found = reduce(a, "float32", kind, 1, threads, dist=dist)
        np.testing.assert_array_equal(found.view(np.int32), want.astype(np.float32).view(np.int32))


@pytest.mark.parametrize("threads", [32, 64, 128, 256, 1024])
@pytest.mark.parametrize(
    ("dtype", "kind"), [("float32", "sum"), ("float32", "max"), ("int32", "min"), ("uint32", "bitor")]
)
def test_instructions_are_used_where_there_are_any(dtype: str, kind: str, threads: int) -> None:
    rng = np.random.default_rng(threads)
    a = rng.integers(0, 99, (3, 2048)).astype(dtype)
    bench = Bench(threads)
    src = bench.tile(a, dtype, "A", "local.fragment", spread(a.shape, threads, 2))
    out = bench.tile(np.zeros(3, dtype), dtype, "B", "global")
    attrs = {"kind": kind, "dim": 1, "clear": True, "nan_propagate": False}
    bench.run(ReduceByShuffles("core"), "reduce", (view(src), view(out)), attrs)
    check(bench.value(out), oracles.reduce(kind, a, 1))
    exchanges = {"group_reduce"} if bench.ctx is RICH else {"shuffle"}
    assert bench.calls & {"group_reduce", "shuffle"} == exchanges


def test_fragment_of_a_product() -> None:
    """Rows on groups of four lanes, columns on lanes, registers and two groups of threads; and the other dimension."""
    t, r = "thread", "register"
    dist = FragmentLayout(
        (48, 50),
        ((Digit(3, 4, r), Digit(2, 2, r), Digit(8, 4, t)),
         (Digit(2, 32, t), Digit(4, 12, r), Digit(4, 1, t), Digit(2, 1, r))),
        64,
    )  # fmt: skip
    a = np.random.default_rng(5).integers(-99, 99, (48, 50)).astype(np.float32)
    for dim in (0, 1):
        kept = spread((a.shape[1 - dim],), 64)
        check(reduce(a, "float32", "sum", dim, 64, dist=dist), a.sum(dim))
        check(reduce(a, "float32", "max", dim, 64, dist=dist, to=kept), a.max(dim))


def test_three_dimensions_and_slices() -> None:
    rng = np.random.default_rng(11)
    a = rng.integers(-99, 99, (5, 6, 19)).astype(np.int32)
    for dim in range(3):
        for dist in (None, spread(a.shape, 96)):
            check(reduce(a, "int32", "sum", dim, 96, dist=dist), a.sum(dim))
    bench = Bench(64)
    data = rng.integers(-99, 99, (40, 80)).astype(np.float32)
    src, out = (
        bench.tile(data, "float32", "A", "shared"),
        bench.tile(np.zeros((3, 20), np.float32), "float32", "B", "global"),
    )
    z = nodes.fresh("z")
    bench.machine.values[z] = np.full(64, 35, np.int32)
    attrs = {"kind": "sum", "dim": 1, "clear": False, "nan_propagate": False}
    bench.run(ReduceByShuffles("core"), "reduce", (view(src, [z, 10], [20, 67]), view(out, [1, 0], [1, 20])), attrs)
    want = np.zeros((3, 20))
    want[1, :5] = data[35:, 10:77].sum(1)
    check(bench.value(out), want)


def test_safe_values_are_what_is_read_outside() -> None:
    bench = Bench(32)
    src = bench.tile(np.ones((4, 8), np.float32), "float32", "A", "global")
    out = bench.tile(np.zeros(4, np.float32), "float32", "B", "shared")
    bench.placement.safe_values[src] = nodes.const(7, "float32")
    attrs = {"kind": "max", "dim": 1, "clear": True, "nan_propagate": False}
    bench.run(ReduceByShuffles("core"), "reduce", (view(src, [0, 5], [4, 8]), view(out)), attrs)
    check(bench.value(out), np.full(4, 7))


def test_keep_dimension() -> None:
    a = np.random.default_rng(2).integers(-99, 99, (9, 33)).astype(np.int32)
    for dim in (0, 1):
        bench = Bench(64)
        src = bench.tile(a, "int32", "A", "local.fragment", spread(a.shape, 64))
        shape = tuple(1 if d == dim else n for d, n in enumerate(a.shape))
        b = buffer(shape, "int32", "B", "local.fragment")
        variant = ReduceByShuffles("core")
        attrs = {"kind": "sum", "dim": dim, "clear": True, "nan_propagate": False}
        to = variant.layouts(
            SimtCall("reduce", (view(src), view(b)), attrs, block=bench.block, placement=bench.placement), CTX
        )[1]
        b = bench.tile(np.zeros(shape, np.int32), "int32", "B", "local.fragment", to)
        bench.run(variant, "reduce", (view(src), view(b)), attrs)
        check(bench.value(b), a.sum(dim, keepdims=True))


def test_refuses_what_one_thread_does() -> None:
    bench = Bench(32)
    a, b = buffer((8,), "float32", "A", "shared"), buffer((1,), "float32", "B", "local")
    attrs = {"kind": "sum", "dim": 0, "clear": True, "nan_propagate": False}
    alone = SimtCall("reduce", (view(a), view(a, [0], [1])), attrs, block=bench.block, divergent=True)
    assert isinstance(ReduceByShuffles("core").accepts(alone, CTX), Reject)
    private = SimtCall("reduce", (view(a), view(b)), attrs, block=bench.block)
    assert isinstance(ReduceByShuffles("core").accepts(private, CTX), Reject)
