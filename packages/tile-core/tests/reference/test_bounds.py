"""Test that bounds of ``verify`` allow either neighbour of a tie, no other value."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_core.errors.launch import VerifyMismatch
from tile_core.reference import execute
from tile_core.reference.elements import decode, encode
from tile_core.reference.rounding import Shaker
from tile_core.runtime.kernel import Origin
from tile_core.testing.data import stored, values

ROWS, TERMS = 67, 61
NARROW = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "int16")
STORAGE = ("global", "shared", "fragment")
REDUCED = ("sum", "product")


def program(dtype, storage, how):
    """Return a program that rounds totals to a narrow type and outputs the direction."""

    @T.macro
    def show(narrow, C, B):
        for i in T.Parallel(ROWS):
            B[i] = (T.cast(narrow[i], "float32") - C[i]) * 100.0

    @T.prim_func
    def rounded(
        A: T.Tensor((ROWS, TERMS), "float32"), V: T.Tensor((TERMS, 1), "float32"), C: T.Tensor((ROWS,), "float32"),
        B: T.Tensor((ROWS,), "float32"),
    ):  # fmt: skip
        W = T.alloc_global((ROWS,), dtype) if storage == "global" else None
        with T.Kernel(1, threads=64):
            a, v = T.alloc_shared((ROWS, TERMS), "float32"), T.alloc_shared((TERMS, 1), "float32")
            total, dots = T.alloc_fragment((ROWS,), "float32"), T.alloc_fragment((ROWS, 1), "float32")
            T.copy(A, a)
            T.copy(V, v)
            if how == "sum":
                T.reduce_sum(a, total, dim=1)
            else:
                T.gemm(a, v, dots, clear_accum=True)
                for i in T.Parallel(ROWS):
                    total[i] = dots[i, 0]
            narrow = W
            if storage == "shared":
                narrow = T.alloc_shared((ROWS,), dtype)
            elif storage == "fragment":
                narrow = T.alloc_fragment((ROWS,), dtype)
            for i in T.Parallel(ROWS):
                narrow[i] = T.cast(total[i], dtype)
            if storage != "global":
                show(narrow, C, B)
        if storage == "global":
            with T.Kernel(1, threads=64):
                show(W, C, B)

    return rounded


def beside_ties(rng, dtype):
    """Return terms whose totals are at or near a tie, and a neighbour."""
    kind = DTYPES[dtype]
    low = rng.uniform(1, 100, ROWS)
    if kind.is_float:
        low = values(stored(low, dtype), dtype)
        step = 2.0 ** (np.floor(np.log2(low)) - kind.mantissa)
        middle = low + step / 2
    else:
        low, middle = np.floor(low), np.floor(low)  # conversions truncate
    a = (rng.standard_normal((ROWS, TERMS)) * middle[:, None]).astype(np.float32)
    a[:, -1] = middle - a[:, :-1].sum(axis=1, dtype=np.float64)
    return a, low.astype(np.float32)


def differing(kernel, change):
    """Return a kernel whose output is changed after its launch."""

    def launch(a, v, c, b, *workspaces):
        b[...] = kernel(a, v, c)
        change(b)

    origin = Origin(program=kernel.program, reference=kernel._origin.reference)
    return tile.Kernel(kernel.signature, launch, origin=origin)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("how", REDUCED)
@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("dtype", NARROW)
def test_either_neighbour_of_a_tie_is_right(dtype, storage, how, seed):
    kernel = tile.compile(program(dtype, storage, how), "cpu", out_idx=3)
    a, c = beside_ties(np.random.default_rng(seed), dtype)
    kernel.verify(a, np.ones((TERMS, 1), "float32"), c)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_another_neighbour_is_a_mismatch(dtype, storage):
    kernel = tile.compile(program(dtype, storage, "sum"), "cpu", out_idx=3)
    a, c = beside_ties(np.random.default_rng(7), dtype)
    ones = np.ones((TERMS, 1), "float32")
    step = np.abs(kernel(a, ones, c)).max()

    def beyond(b):
        b[5] += 2.5 * step

    with pytest.raises(VerifyMismatch, match="differs from its reference at 1 of 67"):
        differing(kernel, beyond).verify(a, ones, c)


def elementwise(dtype, function):
    @T.prim_func
    def elementwise(A: T.Tensor((997,), "float32"), D: T.Tensor((997,), "float32"), B: T.Tensor((997,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(997):
                B[i] = T.cast(T.cast(function(A[i], D[i]), dtype), "float32") * 1000.0

    return elementwise


FUNCTIONS = {
    "a product and an addition": lambda a, d: a * d + d,
    "a quotient": lambda a, d: a / d,
    "a function": lambda a, d: T.exp(a) * T.tanh(d),
}


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_roundings_that_targets_may_choose_pass_through_storage(dtype, name):
    """The kernel's operations are off by one unit in the last place, upwards or downwards."""
    program = elementwise(dtype, FUNCTIONS[name])
    made = tile.compile(program, "cpu", out_idx=2)
    rng = np.random.default_rng(3)
    a, d = (rng.uniform(1, 4, 997).astype(np.float32) for _ in range(2))
    for seed in (11, 12):

        def launch(a, d, b, seed=seed):
            execute(program, [a, d, b], check=False, shake=seed)

        kernel = tile.Kernel(
            made.signature, launch, origin=Origin(program=program, reference=made._origin.reference)
        )  # fmt: skip
        kernel.verify(a, d)


def test_results_are_changed_within_their_type():
    rng = np.random.default_rng(2)
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        x = np.array([0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 2.0**-14, *rng.standard_normal(40)])
        x = encode(x, dtype) if dtype == "bfloat16" else x.astype(dtype)
        for seed, sign in ((0, 1), (1, -1)):
            moved = Shaker(seed).nudged(x, dtype, 2)
            before, after = (np.asarray(decode(v, dtype)).astype(np.float64) for v in (x, moved))
            same = ~np.isfinite(before) | (before == 0)
            np.testing.assert_array_equal(after[same], before[same])
            assert (np.sign(after[~same] - before[~same]) == sign).all()
            limit = 2.0 ** (1 - DTYPES[dtype].mantissa) * np.abs(before[~same])
            assert (np.abs(after[~same] - before[~same]) <= limit).all()
        largest = {"bfloat16": np.uint16(0x7F7F)}.get(dtype) or np.finfo(dtype).max
        assert np.isfinite(np.asarray(decode(Shaker(0).nudged(np.array([largest]), dtype, 2), dtype))).all()
