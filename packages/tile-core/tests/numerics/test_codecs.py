"""Codecs against ml_dtypes (an independent implementation) and NumPy, exhaustively where the type is small."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tile_core.numerics.codecs import decode, encode, pack4, round_to, unpack4
from tile_runtime.numerics.formats import FORMATS

NARROW = [n for n in FORMATS if n.startswith(("float8", "float4"))]
ALL = [*NARROW, "bfloat16", "float16"]


def all_codes(name: str) -> np.ndarray:
    return np.arange(1 << FORMATS[name].bits).astype(np.uint8 if FORMATS[name].bits <= 8 else np.uint16)


def oracle_type(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def oracle_decode(codes: np.ndarray, name: str) -> np.ndarray:
    return codes.view(oracle_type(name)).astype(np.float32)


def oracle_encode(values: np.ndarray, name: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        codes = values.astype(oracle_type(name)).view(np.uint16 if FORMATS[name].bits > 8 else np.uint8)
    # The sign of a NaN means nothing in the language; ml_dtypes makes +0 of a negative one.
    return np.where(np.isnan(values), np.uint8(8), codes) if name == "float4_e2m1fn" else codes


def same_codes(ours: np.ndarray, theirs: np.ndarray, name: str) -> None:
    if name == "float16":  # NumPy keeps the payload of a NaN; the language does not guarantee one
        nan = (theirs & 0x7FFF) > 0x7C00
        np.testing.assert_array_equal((ours & 0x7FFF) > 0x7C00, nan)
        ours, theirs = ours[~nan], theirs[~nan]
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ALL)
def test_decode_all_codes(name: str) -> None:
    codes = all_codes(name)
    np.testing.assert_array_equal(decode(codes, name), oracle_decode(codes, name))
    ours, theirs = decode(codes, name), oracle_decode(codes, name)
    number = ~np.isnan(ours)
    np.testing.assert_array_equal(np.signbit(ours[number]), np.signbit(theirs[number]))
    assert decode(codes, name, "float64").dtype == np.float64


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ALL)
def test_encode_matches_ml_dtypes(edge_values: Any, name: str, seed: int) -> None:
    values = edge_values(name, seed)
    same_codes(encode(values, name), oracle_encode(values, name), name)


@pytest.mark.parametrize("name", [n for n in ALL if n != "float8_e8m0fnu"])
def test_float64_rounds_once(name: str) -> None:
    values = np.unique(decode(all_codes(name), name, "float64"))
    values = values[np.isfinite(values)]
    middle = (values[1:] + values[:-1]) / 2
    above, below = np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)
    np.testing.assert_array_equal(decode(encode(above, name), name), values[1:].astype(np.float32))
    np.testing.assert_array_equal(decode(encode(below, name), name), values[:-1].astype(np.float32))


@pytest.mark.parametrize("name", NARROW)
def test_saturate(name: str) -> None:
    form = FORMATS[name]
    top = float(decode([form.largest], name)[0])
    values = np.array([top * 1.9, 3e38, np.inf, np.nan], np.float32)
    codes = encode(values, name, saturate=True)
    assert codes[0] == codes[1] == form.largest if top < 1e38 else codes[0] == form.largest
    np.testing.assert_array_equal(codes[2:], encode(values[2:], name))
    if form.signed:
        assert encode([-top * 1.9], name, saturate=True)[0] == form.largest | form.sign
        np.testing.assert_array_equal(encode([-np.inf], name, saturate=True), encode([-np.inf], name))


def test_e8m0_rules() -> None:
    values = [0.0, -0.0, -1.0, 2.0**-149, 2.0**-128, 3.0, 1.5, 1e-300, 2.0**127 * 1.49, 2.0**127 * 1.5, np.nan]
    expected = [255, 255, 255, 0, 0, 129, 128, 0, 254, 255, 255]
    assert encode(np.array(values), "float8_e8m0fnu").tolist() == expected


@pytest.mark.parametrize("seed", [2])
def test_tfloat32(seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 1 << 32, 100_000, dtype=np.uint32).view(np.float32)
    ours = round_to(values, "tfloat32")
    assert not (ours.view(np.uint32) & 0x1FFF).any()
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(values))
    fine = np.isfinite(ours)
    step = np.abs(ours[fine].astype(np.float64) - values[fine])
    with np.errstate(all="ignore"):
        unit = np.maximum(np.abs(np.spacing(values[fine]).astype(np.float64)) * 2**13, 2.0**-136)
    assert (step <= unit / 2).all()
    tie = np.array([0x3F801000, 0x3F803000, 0x3F801001], np.uint32).view(np.float32)
    assert round_to(tie, "tfloat32").view(np.uint32).tolist() == [0x3F800000, 0x3F804000, 0x3F802000]


def test_shapes_and_scalars() -> None:
    assert encode(np.float32(1.5), "float8_e4m3fn").shape == ()
    assert encode(np.float32("nan"), "float8_e8m0fnu") == 255
    assert encode(np.ones((2, 3, 4)), "float8_e5m2").shape == (2, 3, 4)
    assert decode(np.uint8(0x38), "float8_e4m3fn") == 1.0


@pytest.mark.parametrize("name", ["int4", "uint4"])
def test_int4(name: str) -> None:
    values = decode(np.arange(16), name)
    assert values.tolist() == (list(range(8)) + list(range(-8, 0)) if name == "int4" else list(range(16)))
    np.testing.assert_array_equal(encode(values, name), np.arange(16))


@pytest.mark.parametrize("count", [1, 2, 7, 8])
def test_pack_round_trip(count: int) -> None:
    nibbles = np.random.default_rng(count).integers(0, 16, (3, count)).astype(np.uint8)
    packed = pack4(nibbles)
    assert packed.shape == (3, (count + 1) // 2)
    assert packed[0, 0] & 15 == nibbles[0, 0]
    np.testing.assert_array_equal(unpack4(packed, count), nibbles)


def test_codecs_do_not_load_tvm() -> None:
    code = "import sys, tile_core.numerics.codecs; print({'tvm', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("shape", [(0, 12), (3, 0), (0,)])
def test_arrays_without_elements_are_packed_and_unpacked(shape):
    packed = pack4(np.zeros((*shape[:-1], 2 * shape[-1]), np.uint8))
    assert packed.shape == shape
    assert unpack4(packed, 2 * shape[-1]).shape == (*shape[:-1], 2 * shape[-1])
