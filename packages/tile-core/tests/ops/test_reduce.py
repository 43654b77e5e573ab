"""T.reduce_*: kinds, widths, dimensions, element types, NaN, slices and accumulation."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_core.testing import oracles

from . import kit

pytestmark = pytest.mark.sweep(5)

KINDS = ("sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor", "any", "all", "prod")
ORDERED = ("max", "min", "absmax")


def program(dtype, out_type, shape, dim, kinds, *, clear=True, nan=False, threads=128, scope="fragment"):
    """All kinds of reductions of one tile, each into its own part of the output."""
    kept = (*shape[:dim], *shape[dim + 1 :]) or (1,)
    alloc = {"shared": T.alloc_shared, "fragment": T.alloc_fragment, "local": T.alloc_local}[scope]

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), S: T.Tensor(kept, out_type), B: T.Tensor((len(kinds), *kept), out_type)):
        with T.Kernel(1, threads=threads):
            s = alloc(shape, dtype)
            T.copy(A, s)
            for n, kind in enumerate(kinds):
                r = T.alloc_fragment(kept, out_type)
                T.copy(S, r)
                flags = {"nan_propagate": nan} if kind in ORDERED else {}
                getattr(T, f"reduce_{kind}")(s, r, dim=dim, clear=clear, **flags)
                T.copy(r, B[(n, *[slice(None)] * len(kept))])

    return main


def kinds_for(dtype, out_type):
    if DTYPES[dtype].is_float:
        return tuple(k for k in KINDS if not k.startswith("bit") and k not in ("any", "all", "prod"))
    return KINDS if out_type != "bool" else tuple(k for k in KINDS if not k.endswith("sum") and k != "prod")


def check(kernel, dtype, out_type, shape, dim, kinds, data, start, clear, nan):
    kept = np.shape(start)
    out = kit.launch(kernel, [data, start], [kit.guarded((len(kinds), *kept), out_type)])
    before = None if clear else kit.values(start, out_type)
    source = (
        oracles.cast(kit.values(data, dtype, shape), out_type)
        if out_type != "float32"
        else kit.values(data, dtype, shape)
    )
    for kind, found in zip(kinds, out, strict=True):
        with np.errstate(all="ignore"):
            expected = oracles.reduce(kind, source, dim, before=before, nan_propagate=nan)
            expected = oracles.cast(np.reshape(expected, kept), out_type)
        kit.same(
            kit.values(found, out_type),
            np.asarray(expected) + (0.0 if DTYPES[out_type].is_float else 0) if out_type != "bool" else expected,
        )


AXES = {
    "rows": kit.SIZES,
    "width": kit.SIZES,
    "dim": (0, 1),
    "threads": kit.THREADS,
    "clear": (True, False),
    "scope": ("fragment", "shared", "local"),
    "types": (
        ("float32", "float32"),
        ("float16", "float16"),
        ("bfloat16", "bfloat16"),
        ("int32", "int32"),
        ("int8", "int8"),
        ("uint16", "uint16"),
        ("int64", "int64"),
        ("float64", "float64"),
        ("int8", "int32"),
        ("float8_e4m3fn", "float32"),
        ("bool", "int32"),
        ("bool", "bool"),
        ("uint64", "uint64"),
        ("float16", "float32"),
    ),
}


def check_case(case):
    (dtype, out_type), shape, dim, clear = case["types"], (case["rows"], case["width"]), case["dim"], case["clear"]
    kinds = kinds_for(dtype, out_type)
    kernel = tile.compile(
        program(dtype, out_type, shape, dim, kinds, clear=clear, threads=case["threads"], scope=case["scope"]),
        target="cpu",
    )
    rng = np.random.default_rng(kit.seed(case))
    data = kit.numbers(rng, shape, dtype, -3, 3)
    start = kit.numbers(rng, (shape[1 - dim],), out_type, 0, 3)
    check(kernel, dtype, out_type, shape, dim, kinds, data, start, clear, False)


@pytest.mark.sweep(22)
@pytest.mark.parametrize("case", kit.covering(4, **AXES), ids=kit.label)
def test_awkward_tiles(case):
    check_case(case)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("clear", [False, True])
def test_nan_infinities_and_zeros(dtype, nan, clear):
    """#2697: a NaN counts or is left out, also with an accumulator; the row is wider than the vectors."""
    shape = (9, 70)
    rng = np.random.default_rng(5)
    values = rng.choice([1.0, -2.0, 0.0, -0.0, 3.5, np.inf, -np.inf], shape)
    values[0, 3] = values[1, 69] = values[2, 0] = np.nan
    values[3] = np.nan
    start = kit.stored(np.array([-1.0, 2.0, np.nan, 1.0, np.nan, 0, 5, -np.inf, np.inf]), dtype)
    kinds = ("max", "min", "absmax")
    kernel = tile.compile(program(dtype, dtype, shape, 1, kinds, clear=clear, nan=nan), target="cpu")
    out = kit.launch(kernel, [kit.stored(values, dtype), start], [kit.guarded((3, 9), dtype)])
    for kind, found in zip(kinds, out, strict=True):
        before = None if clear else kit.values(start, dtype)
        expected = oracles.reduce(kind, values, 1, before=before, nan_propagate=nan)
        kit.same(kit.values(found, dtype) + 0.0, expected + 0.0)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("kind", ["max", "min"])
def test_signs_of_zeros(dtype, kind):
    """One zero decides: a row of zeros of the other sign has its own in each lane once."""
    width, other = 70, -0.0 if kind == "max" else 0.0
    values = np.full((width + 3, width), other)
    np.fill_diagonal(values, -other)
    values[width] = -other
    values[width + 2, ::2] = np.nan
    values[::3, 1::5] = -1e-30 if kind == "max" else 1e-30  # no zeros, and below them
    start = kit.stored(np.zeros(width + 3), dtype)
    kernel = tile.compile(program(dtype, dtype, values.shape, 1, (kind,)), target="cpu")
    (found,) = kit.launch(kernel, [kit.stored(values, dtype), start], [kit.guarded((1, width + 3), dtype)])
    found = kit.values(found, dtype).reshape(-1)
    decides = (values == 0) & (np.signbit(values) != np.signbit(other))
    negative = np.where(decides.any(1), np.signbit(-other), np.signbit(other))
    np.testing.assert_array_equal(found, np.zeros(width + 3))
    np.testing.assert_array_equal(np.signbit(found), negative)


def test_reductions_of_floats_are_accurate():
    """16-bit floats accumulate in float32: the sum of 129 values is off by one rounding, not by 129."""
    rng = np.random.default_rng(6)
    for dtype, ulp in (("float16", 2.0**-10), ("bfloat16", 2.0**-7), ("float32", 2.0**-20), ("float64", 2.0**-50)):
        data = kit.stored(rng.random((17, 129)), dtype)
        kernel = tile.compile(program(dtype, dtype, (17, 129), 1, ("sum", "abssum")), target="cpu")
        out = kit.launch(kernel, [data, kit.guarded((17,), dtype)], [kit.guarded((2, 17), dtype)])
        for found in out:
            np.testing.assert_allclose(kit.values(found, dtype), kit.values(data, dtype).sum(1), rtol=ulp)


@pytest.mark.parametrize("width", [48, 96, 100, 120, 127])
def test_widths_of_issues(width):
    """#2399, #2542: sum(1..48) is 1176 with every number of threads."""
    data = np.broadcast_to(np.arange(1, width + 1, dtype=np.float32), (4, width)).copy()
    out = kit.launch(
        program("float32", "float32", (4, width), 1, ("sum",), threads=48),
        [data, np.zeros(4, np.float32)],
        [kit.guarded((1, 4), "float32")],
    )
    kit.same(out[0], np.full(4, width * (width + 1) / 2, np.float32))


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_three_dimensions_and_kept_dimensions(dim):
    shape = (5, 6, 19)
    kept = tuple(1 if d == dim % 3 else e for d, e in enumerate(shape))
    dropped = tuple(e for d, e in enumerate(shape) if d != dim % 3)

    @T.prim_func
    def main(A: T.Tensor(shape, "int32"), B: T.Tensor(kept, "int32"), C: T.Tensor(dropped, "int32")):
        with T.Kernel(1, threads=96):
            s = T.alloc_shared(shape, "int32")
            k = T.alloc_fragment(kept, "int32")
            T.copy(A, s)
            T.reduce_sum(s, k, dim=dim)
            T.copy(k, B)
            T.reduce_max(A, C, dim=dim)

    a = kit.anything(np.random.default_rng(7), shape, "int32")
    b, c = kit.launch(main, [a], [kit.guarded(kept, "int32"), kit.guarded(dropped, "int32")])
    kit.same(b, a.sum(dim, keepdims=True, dtype=np.int32))
    kit.same(c, a.max(dim))


def test_slices_on_both_sides():
    """#3022: a slice of a vector, a block of a matrix, an element as destination."""

    @T.prim_func
    def main(A: T.Tensor((40, 80), "float32"), B: T.Tensor((20,), "float32"), C: T.Tensor((3,), "float32"), z: T.int32):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((40, 80), "float32")
            v = T.alloc_fragment((80,), "float32")
            one = T.alloc_fragment((1,), "float32")
            T.copy(A, s)
            T.reduce_sum(s[4:24, 10:77], B, dim=1)
            T.copy(s[z, :], v)
            T.reduce_sum(v[3:67], one)
            T.copy(one, C[0])
            T.reduce_max(s[z, 5:75], C[1:2])
            T.reduce_min(s[z : z + 7, 2], C[2])

    a = kit.numbers(np.random.default_rng(8), (40, 80), "float32", -99, 99)
    b, c = kit.guarded((20,), "float32"), kit.guarded((3,), "float32")
    kernel = tile.compile(main, target="cpu")
    for z in (0, 33, 36):
        kernel(a, b, c, z)
        kit.same(b, a[4:24, 10:77].sum(1))
        last = np.concatenate([a[z : z + 7, 2], np.zeros(max(0, z + 7 - 40), np.float32)])
        kit.same(c, np.array([a[z, 3:67].sum(), a[z, 5:75].max(), last.min()], np.float32))


def test_reducing_into_its_own_source():
    @T.prim_func
    def main(A: T.Tensor((9, 40), "float32"), B: T.Tensor((9, 40), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((9, 40), "float32")
            T.copy(A, s)
            T.reduce_sum(s, s[:, 3], dim=1)
            T.reduce_sum(s[0:9, 0:9], s[2, 0:9], dim=0)
            T.copy(s, B)

    a = kit.numbers(np.random.default_rng(9), (9, 40), "float32")
    expected = a.copy()
    expected[:, 3] = a.sum(1)
    expected[2, :9] = expected[:, :9].sum(0)
    kit.same(kit.launch(main, [a], [kit.guarded((9, 40), "float32")]), expected)


def test_reducers():
    @T.prim_func
    def main(A: T.Tensor((17, 40), "float32"), B: T.Tensor((2, 17), "float32")):
        with T.Kernel(1, threads=128):
            total = T.alloc_reducer((17,), "float32", op="sum")
            top = T.alloc_reducer((17,), "float32", op="max", replication="all")
            for i, j in T.Parallel(17, 40):
                total[i] += A[i, j]
                top[i] = T.max(top[i], A[i, j])
            T.finalize_reducer(total)
            T.finalize_reducer(top)
            T.copy(total, B[0, :])
            T.copy(top, B[1, :])

    a = kit.numbers(np.random.default_rng(10), (17, 40), "float32", -99, 99)
    kit.same(kit.launch(main, [a], [kit.guarded((2, 17), "float32")]), np.stack([a.sum(1), a.max(1)]))


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize("kind", KINDS)
def test_long_rows_of_four_bits(kind, dtype):
    """As many columns as several vectors have; results wrap."""

    @T.prim_func
    def main(A: T.Tensor((3, 256), "int8"), B: T.Tensor((3,), "int8")):
        with T.Kernel(1, threads=32):
            s, r = T.alloc_shared((3, 256), dtype), T.alloc_fragment((3,), dtype)
            T.copy(A, s)
            getattr(T, f"reduce_{kind}")(s, r, dim=1)
            T.copy(r, B)

    low = -8 if dtype == "int4" else 0
    a = np.random.default_rng(11).integers(low, low + 16, (3, 256)).astype("int8")
    a[0] = low + 3
    size = np.where(a == -8, a, abs(a))  # the absolute value of the least integer wraps
    found = {
        "sum": a.sum(1), "max": a.max(1), "min": a.min(1), "abssum": size.sum(1), "absmax": size.max(1),
        "bitand": np.bitwise_and.reduce(a, 1), "bitor": np.bitwise_or.reduce(a, 1),
        "bitxor": np.bitwise_xor.reduce(a, 1), "any": (a != 0).any(1), "all": (a != 0).all(1),
        "prod": [functools.reduce(lambda x, y: x * y % 16, map(int, row), 1) for row in a],
    }[kind]  # fmt: skip
    expected = ((np.asarray(found, "int64") - low) % 16 + low).astype("int8")
    kit.same(kit.launch(main, [a], [kit.guarded((3,), "int8")]), expected)
