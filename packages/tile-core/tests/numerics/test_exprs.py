"""Conversion expressions, compiled for this machine in vectorised loops, against the NumPy codecs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tile_core.compat.tvm import tirx
from tile_core.numerics.codecs import decode, encode, round_to
from tile_core.numerics.exprs import (
    decode_expr,
    encode_expr,
    int4_expr,
    round_tfloat32_expr,
    widen_expr,
)  # fmt: skip
from tile_runtime.numerics.formats import FORMATS

pytestmark = pytest.mark.sweep(4)

CODED = [n for n in FORMATS if n != "tfloat32"]


def storage(name: str) -> str:
    return "uint8" if FORMATS[name].bits <= 8 else "uint16"


@pytest.mark.parametrize("name", CODED)
@pytest.mark.parametrize("to", ["float32", "float64", "float16"])
def test_decode(elementwise: Any, name: str, to: str) -> None:
    codes = np.arange(1 << FORMATS[name].bits).astype(storage(name))
    got = elementwise(lambda c: decode_expr(c, name, to), [storage(name)], to)(codes)
    with np.errstate(all="ignore"):
        expected = decode(codes, name).astype(to)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(expected[~np.isnan(got)]))


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize("name", CODED)
def test_encode_float32(elementwise: Any, edge_values: Any, name: str, saturate: bool) -> None:
    values = edge_values(name, 3)
    got = elementwise(lambda v: encode_expr(v, name, saturate), ["float32"], storage(name))(values)
    np.testing.assert_array_equal(got, encode(values, name, saturate))


@pytest.mark.parametrize("name", CODED)
def test_encode_float64(elementwise: Any, edge_values: Any, name: str) -> None:
    with np.errstate(all="ignore"):
        values = edge_values(name, 4).astype(np.float64)
    up, down = np.nextafter(values, np.inf), np.nextafter(values, -np.inf)
    wide = np.random.default_rng(5).integers(0, 1 << 64, 20_000, dtype=np.uint64).view(np.float64)
    values = np.concatenate([values, up, down, wide])
    got = elementwise(lambda v: encode_expr(v, name), ["float64"], storage(name))(values)
    np.testing.assert_array_equal(got, encode(values, name))


@pytest.mark.sweep(0.25)
def test_bfloat16_nan_of_a_known_peer_bug(elementwise: Any) -> None:
    values = np.array([0x7FFF8C22, 0xFFFF8C22, 0x7F7FFFFF, 0x3F808000], np.uint32).view(np.float32)
    got = elementwise(lambda v: encode_expr(v, "bfloat16"), ["float32"], "uint16")(values)
    assert [hex(c) for c in got] == ["0x7fc0", "0xffc0", "0x7f80", "0x3f80"]
    back = elementwise(lambda c: decode_expr(c, "bfloat16"), ["uint16"], "float32")(got)
    np.testing.assert_array_equal(back, [np.nan, np.nan, np.inf, 1.0])


@pytest.mark.parametrize("lanes", [1, 4])
def test_other_lane_counts(elementwise: Any, edge_values: Any, lanes: int) -> None:
    values = edge_values("float8_e4m3fn", 6)[:1000]
    kernel = elementwise(lambda v: encode_expr(v, "float8_e4m3fn"), ["float32"], "uint8", lanes)
    np.testing.assert_array_equal(kernel(values), encode(values, "float8_e4m3fn"))


def test_expressions_accept_vectors() -> None:
    vector = tirx.Var("v", "float32x4")
    assert str(encode_expr(vector, "float8_e5m2").ty) == "uint8x4"
    assert str(decode_expr(encode_expr(vector, "float8_e5m2"), "float8_e5m2").ty) == "float32x4"
    assert str(round_tfloat32_expr(vector).ty) == "float32x4"


def test_tfloat32(elementwise: Any, edge_values: Any) -> None:
    values = np.concatenate([edge_values("bfloat16", 7), edge_values("float16", 8)])
    got = elementwise(round_tfloat32_expr, ["float32"], "float32")(values)
    np.testing.assert_array_equal(got, round_to(values, "tfloat32"))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e8m0fnu", "float8_e5m2"])
@pytest.mark.parametrize("source", ["int8", "int32", "uint32", "int64", "uint64", "float16"])
def test_from_other_types(elementwise: Any, name: str, source: str) -> None:
    rng = np.random.default_rng(9)
    if source == "float16":
        values = np.arange(1 << 16).astype(np.uint16).view(np.float16)
        expected = encode(values.astype(np.float32), name)
    else:
        info = np.iinfo(source)
        values = rng.integers(info.min, info.max, 4000, dtype=source, endpoint=True)
        values >>= rng.integers(0, info.bits, 4000).astype(source)
        hard = (np.int64(0x101) << 55) + np.array([0, 1, -1, 2048])  # a tie in bfloat16 that float64 cannot represent
        if info.bits == 64:
            values[:4] = hard >> 1
        expected = np.array([encode_integer(int(v), name) for v in values])
    got = elementwise(lambda v: encode_expr(widen_expr(v), name), [source], storage(name))(values.astype(source))
    np.testing.assert_array_equal(got, expected)


def encode_integer(value: int, name: str) -> int:
    """Exact: shift big integers down with a sticky bit; the codec rounds once."""
    size, shift = abs(value), 0
    while size >= 1 << 50:
        size, shift = (size >> 1) | (size & 1), shift + 1
    return int(encode(np.float64(np.ldexp(float(size), shift) * (-1 if value < 0 else 1)), name))


def test_int4(elementwise: Any) -> None:
    values = np.arange(-300, 300, dtype=np.int32)
    got = elementwise(lambda v: int4_expr(v, "int4"), ["int32"], "int8")(values)
    np.testing.assert_array_equal(got, ((values + 8) % 16) - 8)
    np.testing.assert_array_equal(elementwise(lambda v: int4_expr(v, "uint4"), ["int32"], "uint8")(values), values % 16)
