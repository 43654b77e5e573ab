"""Helpers of tile-op tests: covering samples, launches that look after guarded memory, equality."""

from __future__ import annotations

import itertools
import random

import numpy as np

import tile_core as tile
from tile_core.dtypes import DTYPES
from tile_core.testing.data import FLOATS, INTEGERS, NARROW, anything, numbers, stored, unharmed, values
from tile_core.testing.data import TYPES as ALL_TYPES
from tile_core.testing.data import poisoned as guarded
from tile_core.testing.data import seed_of as seed

__all__ = [
    "ALL_TYPES", "DTYPES", "FLOATS", "INTEGERS", "NARROW", "SIZES", "THREADS", "anything", "covering", "guarded",
    "label", "launch", "numbers", "same", "seed", "stored", "unharmed", "values",
]  # fmt: skip

SIZES = (1, 7, 8, 17, 24, 48, 63, 96, 127, 129)
THREADS = (1, 31, 32, 96, 128, 384)


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
