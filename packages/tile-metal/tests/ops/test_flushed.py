"""Results independent of subnormals, on a host that flushes them as MSL may."""

import dataclasses
import platform

import ml_dtypes
import numpy as np
import pytest
from zoo import launch

import tile_core.language as T
import tile_emulator
from tile_metal.emulation import dialect

from .kit import context

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the host's way to flush is that of x86-64")

#: Bits of MXCSR: subnormal results and operands are zeros.
FLUSH = """#include <xmmintrin.h>
__attribute__((constructor)) static void flush_subnormals() { _mm_setcsr(_mm_getcsr() | 0x8040); }
"""


@pytest.fixture
def flushed(tmp_path):
    """A function that runs a program with subnormals flushed, and returns its arrays."""
    header = tmp_path / "flush.h"
    header.write_text(FLUSH)

    def run(program, *args):
        text = launch.lowered(program, context("metal"))
        own = dialect(context("metal").target)
        own = dataclasses.replace(own, flags=(*own.flags, "-include", str(header)))
        values = {p.name: a for p, a in zip(text.facts.params, args, strict=True)}
        result = tile_emulator.run(text.text, text.facts, values, own)
        assert result.ok, "\n".join(map(str, result.reports))
        return result.outputs

    return run


SMALL = [1e-40, -1e-40, 3e-45, 1e-45, -3e-45, 7e-45, 2e-38, -2e-38]
SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1, -1, *SMALL], np.float32)
PAIRS = [x.reshape(-1).copy() for x in np.meshgrid(SPECIAL, SPECIAL)]
COUNT = PAIRS[0].size


def ordered(a, b, kind):
    """The maximum or minimum of IEEE 754-2019: ordered zeros, numbers before NaN."""
    bits = [x.view(np.int32).astype(np.int64) for x in (a, b)]
    keys = [np.where(x < 0, -(x & 0x7FFFFFFF) - 1, x) for x in bits]
    first = keys[0] > keys[1] if kind == "max" else keys[0] < keys[1]
    return np.where(np.isnan(a), b, np.where(np.isnan(b) | first, a, b))


def test_the_host_flushes(flushed):
    @T.prim_func
    def halved(A: T.Tensor((32,), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[i] = A[i] * 0.5

    found = flushed(halved, np.full(32, 1.5e-38, np.float32), np.ones(32, np.float32))
    assert not found["B"].any()


@pytest.mark.parametrize("kind", ["max", "min"])
def test_the_larger_and_the_smaller(flushed, kind):
    @T.prim_func
    def extreme(A: T.Tensor((COUNT,), "float32"), B: T.Tensor((COUNT,), "float32"), C: T.Tensor((COUNT,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(COUNT):
                C[i] = getattr(T, kind)(A[i], B[i])

    found = flushed(extreme, *PAIRS, np.zeros(COUNT, np.float32))["C"]
    expected = ordered(*PAIRS, kind)
    number = ~np.isnan(expected)
    assert np.isnan(found[~number]).all()
    np.testing.assert_array_equal(found[number].view(np.uint32), expected[number].view(np.uint32))


@pytest.mark.parametrize("kind", ["max", "min"])
def test_of_a_row(flushed, kind):
    rows = np.random.default_rng(5).permuted(np.tile(np.array([-0.0, *SMALL], np.float32), (8, 4)), axis=1)
    rows[3:] = np.abs(rows[3:]) if kind == "min" else -np.abs(rows[3:])
    M, N = rows.shape

    @T.prim_func
    def reduced(A: T.Tensor((M, N), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(1, threads=64):
            a, b = T.alloc_fragment((M, N), "float32"), T.alloc_fragment((M,), "float32")
            T.copy(A, a)
            getattr(T, f"reduce_{kind}")(a, b)
            T.copy(b, B)

    found = flushed(reduced, rows, np.zeros(M, np.float32))["B"]
    expected = rows[:, 0].copy()
    for column in range(1, N):
        expected = ordered(expected, rows[:, column].copy(), kind)
    np.testing.assert_array_equal(found.view(np.uint32), expected.astype(np.float32).view(np.uint32))


@pytest.mark.parametrize("kind", ["max", "min", "absmax"])
@pytest.mark.parametrize("held", [True, False])
def test_rows_of_special_numbers(flushed, kind, held):
    """Rows whose extreme is a zero or subnormal, beside NaN of both signs and infinities, and rows of NaN alone."""
    rng = np.random.default_rng()
    negative = np.array([0xFFC00000, 0xFF800001, 0x80800000, 0xFF7FFFFF], np.uint32).view(np.float32)
    small = np.array([0.0, -0.0, *SMALL[:6]], np.float32)
    others = np.array([np.nan, -np.inf, -1, *negative], np.float32)
    rows = np.stack([
        rng.choice(np.concatenate([rng.choice(small, rng.integers(0, 4)), rng.choice(others, 5)]), 48)
        for _ in range(160)
    ])  # fmt: skip
    rows[0] = np.nan
    rows = -rows if kind == "min" else rows
    M, N = rows.shape

    @T.prim_func
    def reduced(A: T.Tensor((M, N), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(1, threads=64):
            b = T.alloc_fragment((M,), "float32")
            if held:
                a = T.alloc_fragment((M, N), "float32")
                T.copy(A, a)
                getattr(T, f"reduce_{kind}")(a, b)
            else:
                getattr(T, f"reduce_{kind}")(A, b)
            T.copy(b, B)

    found = flushed(reduced, rows, np.ones(M, np.float32))["B"]
    numbers = np.abs(rows) if kind == "absmax" else rows
    expected = np.full(M, 0 if kind == "absmax" else -np.inf if kind == "max" else np.inf, np.float32)
    for column in range(N):
        expected = ordered(expected, numbers[:, column].copy(), kind.removeprefix("abs")).astype(np.float32)
    np.testing.assert_array_equal(found.view(np.uint32), expected.view(np.uint32))


def test_copies_and_narrow_floats(flushed):
    codes = np.arange(256, dtype=np.uint8)

    @T.prim_func
    def moved(A: T.Tensor((256,), "float8_e5m2"), B: T.Tensor((256,), "float32"), C: T.Tensor((256,), "float8_e5m2"),
              D: T.Tensor((256,), "float32"), E: T.Tensor((256,), "float32")):  # fmt: skip
        with T.Kernel(1, threads=64):
            for i in T.Parallel(256):
                B[i] = A[i]
                C[i] = B[i]
            T.copy(D, E)

    small = (np.arange(256, dtype=np.uint32) * 32768 + 1).view(np.float32)
    found = flushed(moved, codes, np.ones(256, np.float32), codes[::-1].copy(), small, np.ones(256, np.float32))
    expected = codes.view(ml_dtypes.float8_e5m2).astype(np.float32)
    np.testing.assert_array_equal(found["B"], expected)
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(found["C"].view(np.uint8)[number], codes[number])
    np.testing.assert_array_equal(found["E"].view(np.uint32), small.view(np.uint32))
