"""Test that operators of typed constants wrap as those of runtime values."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

pytestmark = pytest.mark.sweep(3)

DTYPES = ("int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")

#: name -> (of tile values, of Python ints, of two operands, whether the second must not be 0)
OPERATORS = {
    "+": (lambda a, b: a + b, lambda a, b, bits: a + b),
    "-": (lambda a, b: a - b, lambda a, b, bits: a - b),
    "*": (lambda a, b: a * b, lambda a, b, bits: a * b),
    "//": (lambda a, b: a // b, lambda a, b, bits: a // b),
    "%": (lambda a, b: a % b, lambda a, b, bits: a % b),
    "ceildiv": (T.ceildiv, lambda a, b, bits: -(-a // b)),
    "truncdiv": (T.truncdiv, lambda a, b, bits: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)),
    "truncmod": (T.truncmod, lambda a, b, bits: a - b * (abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))),
    "&": (lambda a, b: a & b, lambda a, b, bits: a & b),
    "|": (lambda a, b: a | b, lambda a, b, bits: a | b),
    "^": (lambda a, b: a ^ b, lambda a, b, bits: a ^ b),
    "~": (lambda a, b: ~a, lambda a, b, bits: ~a),
    "negative": (lambda a, b: -a, lambda a, b, bits: -a),
    "abs": (lambda a, b: T.abs(a), lambda a, b, bits: abs(a)),
    "<< 2": (lambda a, b: T.shift_left(a, 2), lambda a, b, bits: a << 2),
    "<< last": (lambda a, b: a << (a.dtype.bits - 1), lambda a, b, bits: a << (bits - 1)),
    "<< 70": (lambda a, b: a << 70, lambda a, b, bits: 0),
    ">> 1": (lambda a, b: a >> 1, lambda a, b, bits: a >> 1),
    ">> 70": (lambda a, b: a >> 70, lambda a, b, bits: a >> 70),
    "max": (T.max, lambda a, b, bits: max(a, b)),
    "min": (T.min, lambda a, b, bits: min(a, b)),
}  # fmt: skip


def limits(dtype):
    bits = int(dtype.lstrip("uint"))
    return (0, 2**bits - 1, bits) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, bits)


def wrapped(x, dtype):
    low, _, bits = limits(dtype)
    return (x - low) % 2**bits + low


def kernel(applied, dtype, values, count):
    @T.prim_func
    def constants(X: T.Tensor((len(values), 2), dtype), C: T.Tensor((count,), dtype), R: T.Tensor((count,), dtype)):
        with T.Kernel(1, threads=32):
            for n in T.static_range(len(values)):
                for m in T.static_range(len(applied)):
                    a = T.cast(values[n][0], dtype)
                    b = T.cast(values[n][1], dtype)
                    C[n * len(applied) + m] = T.cast(applied[m](a, b), dtype)
                    R[n * len(applied) + m] = T.cast(applied[m](X[n, 0], X[n, 1]), dtype)

    return constants


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_wrap(dtype):
    low, high, bits = limits(dtype)
    picks = (low, low + 1, high, high - 1, high // 2 + 1, 3, 1)
    values = [(a, b) for a in picks for b in (high, 3, *((-1, low) if low else ()))]
    applied = [f for f, _ in OPERATORS.values()]
    count = len(values) * len(applied)
    expected = [wrapped(python(a, b, bits), dtype) for a, b in values for _, python in OPERATORS.values()]
    compiled = tile.compile(kernel(applied, dtype, values, count), target="cpu")
    if bits < 8:
        flat = np.array(values).ravel() & 15
        given = (flat[::2] | flat[1::2] << 4).astype(np.uint8).view("int8" if low else "uint8").reshape(-1, 1)
        found = [np.zeros((count + 1) // 2, given.dtype) for _ in "ab"]
    else:
        given = np.array(values, dtype)
        found = [np.zeros(count, dtype) for _ in "ab"]
    compiled(given, *found)
    for kind, array in zip(("constants", "runtime values"), found, strict=True):
        got = [int(x) for x in array]
        if bits < 8:
            got = [wrapped(x >> s & 15, dtype) for x in got for s in (0, 4)][:count]
        names = [(values[k // len(applied)], list(OPERATORS)[k % len(applied)]) for k in range(count)]
        wrong = [(n, g, e) for n, g, e in zip(names, got, expected, strict=True) if g != e]
        assert not wrong, f"{kind} of {dtype}: {wrong[:5]}"
