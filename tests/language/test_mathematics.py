"""Functions of floats agree with NumPy on every target, to a stated accuracy.

Special values are included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_core.errors.language import BadArgument
from tile_core.vocabulary import NAMES

from .targets import TARGETS as COMMON
from .targets import compiled

pytestmark = pytest.mark.sweep(4)

TARGETS = (*COMMON, "rocm:gfx942")

UNARY: dict[str, Callable[..., Any]] = {
    "atan": np.arctan, "asin": np.arcsin, "acos": np.arccos, "sinh": np.sinh, "cosh": np.cosh, "tan": np.tan,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "log1p": np.log1p, "expm1": np.expm1,
    "cbrt": np.cbrt, "rint": np.rint,
}  # fmt: skip
BINARY: dict[str, Callable[..., Any]] = {
    "atan2": np.arctan2, "hypot": np.hypot, "fmod": np.fmod, "copysign": np.copysign, "nextafter": np.nextafter,
}  # fmt: skip
EXACT = ("rint", "fmod", "copysign", "nextafter")
#: Units in the last place of float32: our own functions on the CPU, the devices' functions by their tables.
ULPS = {"cpu": 2.0, "cuda:sm_80": 4.0, "metal": 6.0, "rocm:gfx942": 2.0}
#: Units in the last place of the C libraries' float64; the types of 16 bits are float32 rounded once.
OTHERS = {"float64": 4.0, "float16": 0.51, "bfloat16": 0.51}
SPECIAL = [
    0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 2.5, -2.5, 1.5, 3.0, 27.0, -27.0, 1e-45,
    -1e-45, 1e-40, 1.1754944e-38, 3.4028235e38, -3.4028235e38, 88.7, -88.7, 89.5, -104.0, 1e-4, -1e-4, 1e-9, 1e10, 7.0,
]  # fmt: skip


def arguments(dtype: str, count: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    kind = DTYPES[dtype].numpy()
    parts: list[Any] = [SPECIAL, rng.uniform(-1, 1, count), rng.uniform(-20, 20, count)]
    parts.append(rng.standard_normal(count) * 10.0 ** rng.integers(-30, 30, count))
    parts.append(1 + rng.uniform(-1, 1, count) * 2.0 ** rng.integers(-23, 0, count))
    with np.errstate(all="ignore"):
        return np.concatenate(parts).astype(kind)


def program(names: list[str], count: int, dtype: str, binary: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor((count,), dtype), B: T.Tensor((count,), dtype), Q: T.Tensor((len(names), count), dtype)):
        with T.Kernel(T.ceildiv(count, 128), threads=128) as b:
            for i in T.Parallel(128):
                at = b * 128 + i
                for n, name in enumerate(names):
                    if at < count:
                        Q[n, at] = getattr(T, name)(A[at], B[at]) if binary else getattr(T, name)(A[at])

    return main


def check(name: str, found: Any, args: tuple[Any, ...], dtype: str, limit: float) -> None:
    kind = found.dtype
    with np.errstate(all="ignore"):
        if name == "nextafter":
            exact = np.where(
                args[0] == args[1], args[1], np.nextafter(*args)
            )  # NumPy's of float16 keeps the first zero
        elif name == "copysign":
            exact = np.copysign(*args)
        else:
            wide = [np.asarray(a).astype(np.longdouble if dtype == "float64" else np.float64) for a in args]
            exact = ({**UNARY, **BINARY}[name])(*wide)
        rounded = exact.astype(kind)
        have, want = found.astype(np.longdouble), rounded.astype(np.longdouble)
        np.testing.assert_array_equal(np.isnan(have), np.isnan(want), err_msg=name)
        same = (have == want) | np.isnan(want)
        zero = (exact == 0) & same
        np.testing.assert_array_equal(np.signbit(have[zero]), np.signbit(want[zero]), err_msg=f"{name}: sign of zero")
        if name in EXACT:
            assert same.all(), (
                f"{name}: {[(*[a[i] for a in args], found[i], rounded[i]) for i in np.where(~same)[0][:5]]}"
            )
            return
        size = np.minimum(np.abs(rounded), np.finfo(kind).max if dtype != "bfloat16" else kind.type(3e38))
        unit = np.maximum(np.spacing(size).astype(np.longdouble), np.finfo(np.float32).smallest_subnormal)
        if dtype in ("float16", "bfloat16"):
            unit = np.abs(np.nextafter(size, kind.type(0)).astype(np.longdouble) - size.astype(np.longdouble))
            unit = np.where(unit == 0, 1, unit)
        off = np.where(same, 0, np.abs(have - exact.astype(np.longdouble)) / unit)
        worst = int(np.argmax(off))
    at = [a[worst] for a in args]
    assert off[worst] <= limit, f"{name}{at}: {found[worst]} is {off[worst]:.2f} ulp from {exact[worst]}"


def limit_of(target: str, dtype: str) -> float:
    return ULPS[target] if dtype == "float32" else OTHERS[dtype]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("target", TARGETS)
def test_one_argument(target: str, dtype: str) -> None:
    if target == "metal" and dtype == "float64":
        pytest.skip("Metal has no float64")
    a = arguments(dtype, 4000 if target == "cpu" else 200, 5)
    if "16" in dtype and target == "cpu":
        a = np.arange(2**16, dtype=np.uint16).view(DTYPES[dtype].numpy())
    kernel = compiled(program(list(UNARY), len(a), dtype, False), target)
    out = np.full((len(UNARY), len(a)), 7, a.dtype)
    kernel(a, a, out)
    for name, row in zip(UNARY, out, strict=True):
        values = a
        if name == "tan":  # beyond, the library's own reduction of float64 is what counts
            with np.errstate(all="ignore"):
                small = np.abs(a.astype(np.float64)) < 1e5
            values, row = a[small], row[small]
        check(name, row, (values,), dtype, limit_of(target, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("target", TARGETS)
def test_two_arguments(target: str, dtype: str) -> None:
    if target == "metal" and dtype == "float64":
        pytest.skip("Metal has no float64")
    drawn = arguments(dtype, 3000 if target == "cpu" else 100, 6)
    special = drawn[: len(SPECIAL)]
    pairs = [g.ravel() for g in np.meshgrid(special, special)]
    rng = np.random.default_rng(9)
    a = np.concatenate([pairs[0], drawn, rng.permutation(drawn)])
    b = np.concatenate([pairs[1], rng.permutation(drawn), drawn])
    out = np.full((len(BINARY), len(a)), 7, a.dtype)
    compiled(program(list(BINARY), len(a), dtype, True), target)(a, b, out)
    for name, row in zip(BINARY, out, strict=True):
        check(name, row, (a, b), dtype, limit_of(target, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("target", [*TARGETS, "cuda:sm_90a"])
def test_every_function_has_a_text_on_every_target(target: str, dtype: str) -> None:
    """Every function has a text on every target, except for missing element types."""
    unary = [*(n for n, (module, _) in NAMES.items() if module == "values.math"), "abs"]
    unary.remove("fma")
    binary = [*(n for n, (module, _) in NAMES.items() if module == "language.binary"), "pow", "max", "min"]
    n = len(unary) + len(binary)

    @T.prim_func
    def main(A: T.Tensor((8,), dtype), B: T.Tensor((8,), dtype), Q: T.Tensor((n, 8), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                for k, name in enumerate(unary):
                    Q[k, i] = T.cast(getattr(T, name)(A[i]), dtype)
                for k, name in enumerate(binary):
                    Q[len(unary) + k, i] = T.cast(getattr(T, name)(A[i], B[i]), dtype)

    if target == "metal" and dtype == "float64":
        with pytest.raises(tile.TileError, match="U116"):
            compiled(main, target)
        return
    a = np.linspace(0.1, 0.9, 8).astype(DTYPES[dtype].numpy())
    kernel, q = compiled(main, target), np.full((n, 8), -7, a.dtype)
    kernel(a, a, q)
    expected = np.full((n, 8), -7, a.dtype)
    compiled(main, "cpu")(a, a, expected)
    np.testing.assert_allclose(
        q.astype("float64"),
        expected.astype("float64"),
        rtol={"float64": 1e-14, "float32": 1e-5}.get(dtype, 1e-2),
        atol=1e-6,
    )


def test_python_numbers_and_integers() -> None:
    assert T.atan2(1, 1) == math.pi / 4
    assert T.cbrt(-27.0) == -3.0
    assert T.fmod(-7.5, 2) == -1.5
    assert math.isnan(T.fmod(1.0, 0.0))
    assert math.isnan(T.acos(2.0))
    assert T.atanh(-1.0) == -math.inf
    assert T.sinh(-1000.0) == -math.inf
    assert T.copysign(3, -0.0) == -3.0
    assert math.copysign(1.0, T.rint(-0.4)) == -1.0

    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((2, 8), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[0, i] = T.atan(A[i])
                B[1, i] = T.hypot(A[i], 4)

    a = np.arange(8, dtype=np.int32)
    b = tile.compile(main, "cpu", out_idx=1)(a)
    np.testing.assert_allclose(b, [np.arctan(a), np.hypot(a, 4)], rtol=3e-7)


def test_bits_of_integers_have_no_sign_to_copy() -> None:
    with pytest.raises(BadArgument):

        @T.prim_func
        def main(A: T.Tensor((8,), "int32")):
            with T.Kernel(1, threads=32):
                A[0] = T.copysign(A[1], A[2])
