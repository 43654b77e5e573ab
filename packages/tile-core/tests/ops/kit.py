"""Helpers of tile-op tests: data of every type, guarded memory, covering samples."""

from __future__ import annotations

import itertools
import random
import zlib

import numpy as np

import tile_core as tile
from tile_core.dtypes import DTYPES
from tile_core.numerics import codecs

SIZES = (1, 7, 8, 17, 24, 48, 63, 96, 127, 129)
THREADS = (1, 31, 32, 96, 128, 384)

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
NARROW = (
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
)
ALL_TYPES = ("bool", "int4", "uint4", *INTEGERS, "tfloat32", *FLOATS, *NARROW)

_CANARY = 256


def covering(seed, **axes):
    """Cases (dicts) in which every pair of values of any two axes occurs together."""
    rng = random.Random(seed)
    names = list(axes)
    missing = {
        (a, x, b, y)
        for a, b in itertools.combinations(names, 2)
        for x in range(len(axes[a]))
        for y in range(len(axes[b]))
    }
    cases = []
    while missing:
        best, gain = None, -1
        a, x, b, y = min(missing)
        for _ in range(30):
            pick = {n: rng.randrange(len(axes[n])) for n in names}
            pick[a], pick[b] = x, y
            covered = sum((p, pick[p], q, pick[q]) in missing for p, q in itertools.combinations(names, 2))
            if covered > gain:
                best, gain = pick, covered
        missing -= {(p, best[p], q, best[q]) for p, q in itertools.combinations(names, 2)}
        cases.append({n: axes[n][i] for n, i in best.items()})
    return cases


def label(case):
    """Name of a parametrised case."""
    return "-".join(f"{k}{v}" for k, v in case.items())


def guarded(shape, dtype):
    """An array full of 0xFF bytes (NaN, where there is one) between two canaries; 4-bit types as packed bytes."""
    d = DTYPES[dtype]
    if d.is_packed:
        assert shape[-1] % 2 == 0
        shape, kind = (*shape[:-1], shape[-1] // 2), np.dtype("uint8")
    else:
        kind = d.numpy()
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    raw = np.full(size + 2 * _CANARY, 0xFF, np.uint8)
    return raw[_CANARY : _CANARY + size].view(kind).reshape(shape)


def stored(values, dtype):
    """A guarded array that holds the given (representable) values."""
    out = guarded(np.shape(values), dtype)
    if DTYPES[dtype].is_packed:
        codes = codecs.encode(values, dtype) if dtype == "float4_e2m1fn" else np.asarray(values).astype(np.int64)
        out[...] = codecs.pack4(np.asarray(codes).astype(np.uint8) & 0xF)
    else:
        with np.errstate(all="ignore"):
            out[...] = np.asarray(values).astype(out.dtype)
    return out


def values(array, dtype, shape=None):
    """Values that an array holds: float64, or integers and bools as they are."""
    if DTYPES[dtype].is_packed:
        nibbles = codecs.unpack4(array, shape[-1] if shape is not None else 2 * array.shape[-1])
        if dtype == "float4_e2m1fn":
            return codecs.decode(nibbles, dtype).astype(np.float64)
        wide = nibbles.astype(np.int64)
        return (wide ^ 8) - 8 if dtype == "int4" else wide
    if DTYPES[dtype].is_float:
        with np.errstate(all="ignore"):
            return array.astype(np.float64)
    return array


def anything(rng, shape, dtype):
    """Stored random bit patterns: NaN, infinities, subnormals and both zeros included."""
    out = guarded(shape, dtype)
    if dtype == "bool":
        out[...] = rng.integers(0, 2, shape)
        return out
    as_bytes = out.view(np.uint8)
    as_bytes[...] = rng.integers(0, 256, as_bytes.shape)
    if DTYPES[dtype].is_float and not DTYPES[dtype].is_packed and out.size >= 8:
        with np.errstate(all="ignore"):
            special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.5, 2.0]).astype(out.dtype)
        out.reshape(-1)[rng.permutation(out.size)[:8]] = special
    return out


def numbers(rng, shape, dtype, low=-4, high=4):
    """Stored small integers that the type holds exactly."""
    d = DTYPES[dtype]
    if dtype == "bool":
        return stored(rng.integers(0, 2, shape), dtype)
    if dtype == "float8_e8m0fnu":
        return stored(2.0 ** rng.integers(0, 3, shape), dtype)
    low = max(low, 0 if d.kind == "uint" else -4 if d.bits == 4 else low)
    drawn = rng.integers(low, high + 1, shape)
    if dtype == "float4_e2m1fn":
        drawn = np.clip(drawn, -4, 4)
    return stored(drawn, dtype)


def unharmed(array):
    """Whether the canaries around a guarded array are intact."""
    raw = array
    while raw.base is not None:
        raw = raw.base
    return bool((raw[:_CANARY] == 0xFF).all() and (raw[-_CANARY:] == 0xFF).all())


def launch(kernel, inputs, outputs):
    """Call a kernel (or compile a program for the CPU and call it); inputs must survive, canaries too."""
    if not isinstance(kernel, tile.Kernel):
        kernel = tile.compile(kernel, target="cpu")
    before = [x.tobytes() if isinstance(x, np.ndarray) else x for x in inputs]
    kernel(*inputs, *outputs)
    for n, (x, old) in enumerate(zip(inputs, before, strict=True)):
        if isinstance(x, np.ndarray):
            assert x.tobytes() == old, f"input {n} was written"
    for n, x in enumerate(outputs):
        assert unharmed(x), f"output {n} was written outside its bounds"
    return outputs[0] if len(outputs) == 1 else outputs


def seed(*parts):
    """A number that depends on the case and not on the process."""
    return zlib.crc32(repr(parts).encode())


def _plain(x):
    x = np.asarray(x)
    with np.errstate(all="ignore"):
        return x.astype(np.float64) if x.dtype.kind == "V" or x.dtype.kind == "f" else x


def same(found, expected):
    """Assert equality; NaN equals NaN, and zeros keep their sign."""
    found, expected = _plain(found), _plain(expected)
    assert found.shape == expected.shape
    if found.dtype.kind == "f" or expected.dtype.kind == "f":
        equal = (found == expected) & (np.signbit(found) == np.signbit(expected)) | (
            np.isnan(found) & np.isnan(expected)
        )
    else:
        equal = found == expected
    if not equal.all():
        at = tuple(int(i) for i in np.argwhere(~equal)[0])
        count = int((~equal).sum())
        raise AssertionError(f"{count} of {equal.size} wrong, first at {at}: {found[at]!r}, expected {expected[at]!r}")
