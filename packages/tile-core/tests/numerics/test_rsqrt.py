"""The reciprocal square root in float32 through float64 rounds once, for every significand."""

from __future__ import annotations

import numpy as np

_CHUNK = 1 << 20


def _products(m, x):
    """Return ``m * m * x`` as two parts, the lower one of 26 bits."""
    square = m * m
    low = (square & np.uint64(2**26 - 1)) * x
    return (square >> np.uint64(26)) * x + (low >> np.uint64(26)), low & np.uint64(2**26 - 1)


def test_every_significand():
    """Check even and odd exponents: powers of four only change the result's exponent.

    A result is the nearest if 1/sqrt(x) lies between the points halfway to its neighbours: if the squares of these,
    times x, lie around 1. All are integers here.
    """
    for exponent in (0, 1):
        for start in range(2**23, 2**24, _CHUNK):
            x = np.arange(start, start + _CHUNK, dtype=np.uint64)
            value = np.ldexp(x.astype(np.float64), exponent - 23)
            assert (value.astype(np.float32) == value).all()
            found = np.ldexp((1.0 / np.sqrt(value)).astype(np.float32).astype(np.float64), 25).astype(np.uint64)
            one = np.uint64(1 << (73 - exponent - 26))
            below, rest = _products(found - np.uint64(1), x)
            assert (below < one).all(), "the result is too large"
            above, rest = _products(found + np.uint64(1), x)
            assert ((above > one) | ((above == one) & (rest > 0))).all(), "the result is too small"
