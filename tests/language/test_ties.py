"""Conversions round once: values at and next to midpoints, on every target."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_core.errors.ops import BadElementType
from tile_core.numerics.codecs import decode
from tile_core.reference import execute
from tile_core.testing.data import NARROW, near_ties, poisoned, values
from tile_core.testing.plain.numbers import Number, convert
from tile_runtime.numerics.formats import FORMATS

from .targets import TARGETS, compiled

WIDE = ("float64", "float32", "int32", "uint32", "int64", "uint64")
TYPES = ("tfloat32", "float16", "bfloat16", *NARROW)
COUNT = 512


def nearest(x: float, dtype: str) -> float:
    """Return an in-range number in a type, exactly, by the list of its values."""
    form = FORMATS[dtype]
    every = _numbers(dtype)
    at = bisect_right(every, abs(x)) - 1
    if at < 0:
        return every[0]
    low = Fraction(every[at])
    if abs(x) == low:
        return float(np.copysign(every[at], x))
    twice = 2 * Fraction(abs(x)) - low - Fraction(every[at + 1])
    up = twice > 0 or (twice == 0 and (at % 2 == 1 or not form.signed))
    if not form.signed and at == 0:
        up = True
    return float(np.copysign(every[at + up], x))


_kept: dict[str, list[float]] = {}


def _numbers(dtype: str) -> list[float]:
    if dtype not in _kept:
        _kept[dtype] = decode(np.arange(FORMATS[dtype].largest + 1), dtype, "float64").tolist()
    return _kept[dtype]


def program(source: str, dtype: str) -> Any:
    """Elements, saturated elements, tiles by way of registers, and values of a variable."""
    named = {"round": "rn"} if source == "float32" else {}

    @T.prim_func
    def main(
        A: T.Tensor((COUNT,), source),
        B: T.Tensor((COUNT,), dtype),
        C: T.Tensor((COUNT,), dtype),
        D: T.Tensor((COUNT,), dtype),
        E: T.Tensor((COUNT,), dtype),
    ):
        with T.Kernel(1, threads=64):
            tiled = T.alloc_fragment((COUNT,), dtype)
            T.copy(A, tiled)
            T.copy(tiled, B)
            T.copy(A, E)
            for i in T.Parallel(COUNT):
                C[i] = T.cast(A[i], dtype, sat=True, **named)
                D[i] = A[i]

    return main


def tried(source: str, dtype: str) -> Any:
    """Numbers beside ties that the type does not overflow from."""
    a = near_ties(np.random.default_rng([WIDE.index(source), TYPES.index(dtype)]), (8 * COUNT,), source, dtype)
    with np.errstate(all="ignore"):
        inside = np.abs(a.astype(np.float64)) <= _numbers(dtype)[-1]
    if not FORMATS[dtype].signed:
        inside &= a > 0
    found = a[inside]
    return np.resize(found, COUNT) if len(found) else None


@pytest.mark.sweep(20)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("source", WIDE)
@pytest.mark.parametrize("target", TARGETS)
def test_conversions_round_once(target: str, source: str, dtype: str) -> None:
    if target == "metal" and source == "float64":
        pytest.skip("Metal has no float64")
    a = tried(source, dtype)
    if a is None:
        pytest.skip("the type holds all of these integers")
    want = np.array([nearest(x, dtype) for x in a.tolist()])
    second = np.array([convert(Number(x, source), dtype).value for x in a.tolist()])
    np.testing.assert_array_equal(second, want)
    made = program(source, dtype)
    kernel = compiled(made, target)
    for run in (kernel, lambda *arrays: execute(made, arrays)):
        outs = [poisoned((COUNT,), dtype) for _ in range(4)]
        run(a, *outs)
        for out in outs:
            found = values(out, dtype, (COUNT,))
            np.testing.assert_array_equal(found, want)
            np.testing.assert_array_equal(np.signbit(found[want != 0]), np.signbit(want[want != 0]))


@pytest.mark.sweep(0.25)
def test_there_are_numbers_that_two_roundings_get_wrong() -> None:
    """Through float32, each of these conversions is wrong for some of the tested values."""
    for source in ("float64", "int32", "uint32", "int64", "uint64"):
        for dtype in ("tfloat32", "bfloat16", "float8_e8m0fnu", *(TYPES if source == "float64" else ())):
            a = tried(source, dtype)
            twice = [nearest(float(np.float32(x)), dtype) for x in a.tolist() if np.float32(x) <= _numbers(dtype)[-1]]
            once = [nearest(x, dtype) for x in a.tolist() if np.float32(x) <= _numbers(dtype)[-1]]
            assert twice != once, (source, dtype)


def constants(number: float, dtype: str) -> Any:
    """Stores, fills, casts and variables of a constant, and a scalar argument where supported."""
    scalar = "float32" if DTYPES[dtype].is_narrow else dtype

    @T.prim_func
    def main(s: T.dtype(scalar), B: T.Tensor((16,), dtype)):
        with T.Kernel(1, threads=32):
            B[0] = number
            B[1] = T.cast(number, dtype)
            B[2] = T.cast(number, dtype, sat=True)
            B[3] = s if scalar == dtype else number
            x = T.alloc_var(dtype, init=number)
            B[4] = x
            y: T.dtype(dtype) = number
            B[5] = y
            B[6] = -T.cast(-number, dtype, round="rn")
            B[7] = T.cast(T.cast(number, dtype), "float32")
            T.fill(B[8:], number)

    return main


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", TARGETS)
def test_python_numbers_round_once(target: str) -> None:
    """Of a number just above a tie, on which float32 would round it."""
    for dtype in set(TYPES) - {"float8_e8m0fnu"}:
        digits = DTYPES[dtype].mantissa
        number, want = 1 + 2.0 ** -(digits + 1) + 2.0**-40, 1 + 2.0**-digits
        made = constants(number, dtype)
        kernel = compiled(made, target)
        for run in (kernel, lambda *given, made=made: execute(made, given)):
            out = poisoned((16,), dtype)
            run(number, out)
            np.testing.assert_array_equal(values(out, dtype, (16,)), np.full(16, want), dtype)


def test_python_integers_of_many_bits_round_once() -> None:
    """``float`` would round them first, onto the tie."""
    number = (2**11 + 1) * 2**50 + 1

    @T.prim_func
    def main(B: T.Tensor((4,), "tfloat32"), C: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            B[0] = number
            B[1] = T.cast(number, "tfloat32")
            T.fill(B[2:], number)
            T.fill(C, (2**24 + 1) * 2**38 + 1)

    b, c = tile.compile(main, "cpu", out_idx=[0, 1])()
    np.testing.assert_array_equal(b.astype(np.float64), float((2**11 + 2) * 2**50))
    np.testing.assert_array_equal(c.astype(np.float64), float((2**24 + 2) * 2**38))


def test_a_constant_that_is_zero_in_its_type_is_a_zero() -> None:
    @T.prim_func
    def main(n: T.int32, B: T.Tensor((2,), "float32")):
        with T.Kernel(1, threads=32):
            zero = T.cast(n, "float32")
            B[0] = T.min(zero * -1.0, 1e-60)
            B[1] = T.max(zero, -1e-60)

    for target in TARGETS:
        b = np.zeros(2, np.float32)
        compiled(main, target)(0, b)
        assert np.signbit(b).tolist() == [True, False]


@pytest.mark.parametrize(
    "op",
    [
        lambda A, B, r, rows: T.transpose(A, B),
        lambda A, B, r, rows: T.gather(A, rows, B),
        lambda A, B, r, rows: T.scatter(A, B, rows),
        lambda A, B, r, rows: T.reduce_sum(A, r, dim=1),
        lambda A, B, r, rows: T.reduce_max(A, r, dim=1),
        lambda A, B, r, rows: T.cumsum(A, B, dim=1),
        lambda A, B, r, rows: T.alloc_reducer((8,), "tfloat32"),
    ],
)
def test_what_would_not_round_to_tfloat32_is_refused(op: Any) -> None:
    with pytest.raises(BadElementType, match=r"(?s)tfloat32.*float32"):

        @T.prim_func
        def main(A: T.Tensor((8, 8), "float32"), rows: T.Tensor((8,), "int32"), B: T.Tensor((8, 8), "tfloat32")):
            with T.Kernel(1, threads=32):
                r = T.alloc_fragment((8,), "tfloat32")
                op(A, B, r, rows)


def test_reductions_over_lanes_of_tfloat32_are_float32() -> None:
    @T.prim_func
    def main(A: T.Tensor((32,), "tfloat32"), B: T.Tensor((32,), "tfloat32"), C: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            total = T.warp_reduce_sum(A[t])
            B[t] = total
            C[t] = total

    a = np.full(32, 1 + 2.0**-10, np.float32)
    a[0] = 1
    b, c = np.zeros(32, np.float32), np.zeros(32, np.float32)
    compiled(main, "cuda:sm_80")(a, b, c)
    assert c[0] == np.float32(a.sum())
    assert b[0] == values(np.float32(nearest(float(a.sum()), "tfloat32")), "float32")
