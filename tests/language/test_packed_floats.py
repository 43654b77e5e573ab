"""Arithmetic of 16-bit floats has the same results where a target computes two by one instruction."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.numerics.codecs import encode

TYPES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
COUNT = 2048

#: An expression of elements x, y, z in the language, and its operations in NumPy, each rounded by ``r``.
FORMS: dict[str, Any] = {
    "x + y": lambda x, y, z, r: r(x + y),
    "x - y": lambda x, y, z, r: r(x - y),
    "x * y": lambda x, y, z, r: r(x * y),
    "T.max(x, y)": lambda x, y, z, r: _extreme(x, y, np.fmax),
    "T.min(x, y, nan_propagate=True)": lambda x, y, z, r: _extreme(x, y, np.minimum),
    "-x": lambda x, y, z, r: -x,
    "T.abs(x)": lambda x, y, z, r: np.abs(x),
    "(x - y) * T.max(z, 0.5)": lambda x, y, z, r: r(r(x - y) * _extreme(z, np.float32(0.5), np.fmax)),
    "T.if_then_else(x < y, x + y, -z)": lambda x, y, z, r: np.where(x < y, r(x + y), -z),
    "T.if_then_else(T.any_of(x != y, y >= z), y, x)": lambda x, y, z, r: np.where((x != y) | (y >= z), y, x),
    "T.Select(T.all_of(x <= y, y != z), x, z)": lambda x, y, z, r: np.where((x <= y) & (y != z), x, z),
    "T.cast(T.cast(x + y, 'float32') * 1.25 - 0.5, DT) + z": (
        lambda x, y, z, r: r(r(r(x + y) * np.float32(1.25) - np.float32(0.5)) + z)
    ),
    "x / y + z": lambda x, y, z, r: r(r(x / y) + z),
}  # fmt: skip
#: A product and a sum, which levels other than strict may round once: the signs of both.
FUSED = {"x * y + z": (1, 1), "z + x * y": (1, 1), "x * y - z": (1, -1), "z - x * y": (-1, 1)}


def _fused(product, addend):
    """Return a sum in float64, rounded to odd: rounding that again is rounding once."""
    total = product + addend
    back = total - product
    rest = (product - (total - back)) + (addend - back)
    bits = total.view(np.int64)
    odd = np.isfinite(total) & (rest != 0) & (bits & 1 == 0)
    return np.where(odd, bits + np.where((rest > 0) == (total > 0), 1, -1), bits).view(np.float64)


def _extreme(x, y, function):
    """Return the larger or smaller number, with -0 below 0."""
    found = function(x, y)
    signs = (np.signbit(x) & np.signbit(y)) if function is np.fmax else (np.signbit(x) | np.signbit(y))
    return np.where((x == 0) & (y == 0), np.where(signs, np.float32(-0.0), np.float32(0.0)), found)


def program(dtype: str) -> Any:
    forms = [*FORMS, *FUSED]

    def body(i: Any, given: Any, out: Any) -> None:
        names = {"T": T, "DT": dtype} | dict(zip("xyz", (g[i] for g in given), strict=True))
        for n, form in enumerate(forms):
            out[n, i] = eval(form, names)

    @T.prim_func
    def main(
        X: T.Tensor((COUNT,), dtype), Y: T.Tensor((COUNT,), dtype), Z: T.Tensor((COUNT,), dtype),
        Out: T.Tensor((len(forms), COUNT), dtype),
    ):  # fmt: skip
        with T.Kernel(COUNT // 512, threads=64) as bx:
            for v in T.Parallel(512):
                body(bx * 512 + v, (X, Y, Z), Out)

    return main


def operands(dtype: str) -> list[Any]:
    """Return numbers of all sizes: pairs of special ones, neighbours, and any bits."""
    t, rng = TYPES[dtype], np.random.default_rng(5)
    info = ml_dtypes.finfo(t)
    tiny, least, most = (float(x) for x in (info.smallest_subnormal, info.smallest_normal, info.max))
    special = [0.0, tiny, least, least - tiny, 1.0, 1 + float(info.eps), most, np.inf, np.nan]
    grid = np.array(list(itertools.product([*special, *(-x for x in special)], repeat=2)), np.float64)[: COUNT // 4]
    found = []
    for n in range(3):
        near = (rng.random(COUNT // 4) + 0.5) * 2.0 ** rng.integers(-2, 3, COUNT // 4)
        small = rng.standard_normal(COUNT // 4) * least
        bits = rng.integers(0, 2**16, COUNT - 2 * (COUNT // 4) - len(grid), np.uint16).view(t).astype(np.float64)
        column = grid[:, n] if n < 2 else rng.permutation(grid[:, 0])
        found.append(np.concatenate([column, near, small, bits]).astype(t))
    return found


def same(found: Any, expected: Any) -> Any:
    """Return where two arrays are bit-equal; a NaN is any NaN."""
    nan = np.isnan(found.astype(np.float32)) & np.isnan(expected.astype(np.float32))
    return nan | (found.view(np.uint16) == expected.view(np.uint16))


@pytest.mark.sweep(8)
@pytest.mark.parametrize("level", ["strict", "standard"])
@pytest.mark.parametrize("dtype", list(TYPES))
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "metal", "rocm:gfx942"])
@np.errstate(all="ignore")
def test_results_are_those_of_single_operations(target: str, dtype: str, level: str) -> None:
    t, given = TYPES[dtype], operands(dtype)
    out = np.zeros((len(FORMS) + len(FUSED), COUNT), t)
    tile.compile(program(dtype), target=target, runtime="emulator", options={"numerics": level})(*given, out)
    x, y, z = (g.astype(np.float32) for g in given)
    for n, (form, function) in enumerate(FORMS.items()):
        expected = np.asarray(function(x, y, z, lambda v: v.astype(t).astype(np.float32))).astype(t)
        if level == "standard" and "1.25" in form:
            continue  # the compiler of the text may fuse float32
        right = same(out[n], expected)
        assert right.all(), (form, [g[~right][:3] for g in (*given, out[n], expected)])
    product = x.astype(np.float64) * y  # exact
    for n, (form, (sign, other)) in enumerate(FUSED.items(), len(FORMS)):
        single = (sign * encode(product, dtype).view(t).astype(np.float32) + other * z).astype(t)
        once = encode(_fused(sign * product, other * z.astype(np.float64)), dtype).view(t)
        right = same(out[n], single) | (same(out[n], once) & (level == "standard"))
        assert right.all(), (form, [g[~right][:3] for g in (*given, out[n], single, once)])


def elementwise(dtype: str) -> Any:
    @T.prim_func
    def main(X: T.Tensor((4096,), dtype), Y: T.Tensor((4096,), dtype), Z: T.Tensor((4096,), dtype)):
        with T.Kernel(4, threads=128) as bx:
            for v in T.Parallel(1024):
                i = bx * 1024 + v
                Z[i] = T.max((X[i] + Y[i]) * Y[i] - X[i], 0)

    return main


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dtype", list(TYPES))
@pytest.mark.parametrize(("level", "operations"), [("strict", 4), ("standard", 3)])
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_an_ordinary_loop_has_one_instruction_for_two_elements(
    target: str, level: str, operations: int, dtype: str
) -> None:
    text = tile.compile(elementwise(dtype), target=target, options={"numerics": level}).source
    body = text[text.index('extern "C"') :]
    kind = {"float16": "f16x2", "bfloat16": "bf16x2"}[dtype]
    assert sum(body.count(f"{op}_rn_{kind}(") for op in ("add", "sub", "mul", "fma")) == operations - 1
    assert body.count(f"max_{kind}(") == 1
    assert "cvt" not in body
    assert "< 4; ++" in body  # eight elements of a thread
