"""T.reduce_* beyond testing/tables/reductions.py: signs of zeros, accuracy, long rows of 4 bits."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

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
