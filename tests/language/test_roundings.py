"""``T.ieee_*``: one rounding, in the direction that is named, against exact fractions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.reference.rounded import FUNCTIONS

from .targets import TARGETS, compiled

pytestmark = pytest.mark.sweep(3)

PAIRS = ("add", "sub", "mul", "fdiv")
SINGLE = ("frcp", "fsqrt")
MODES = ("rn", "rz", "ru", "rd")


def program(count: int, dtype: str, modes: tuple[str, ...]) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((count,), dtype), B: T.Tensor((count,), dtype), C: T.Tensor((count,), dtype),
        Q: T.Tensor((len(modes), 7, count), dtype),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            for i in T.Parallel(count):
                for m, mode in enumerate(modes):
                    for n, name in enumerate(PAIRS):
                        Q[m, n, i] = getattr(T, f"ieee_{name}")(A[i], B[i], rounding_mode=mode)
                    for n, name in enumerate(SINGLE):
                        Q[m, 4 + n, i] = getattr(T, f"ieee_{name}")(A[i], mode)
                    Q[m, 6, i] = T.ieee_fma(A[i], B[i], C[i], mode)

    return main


def numbers(dtype: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).type
    info = np.finfo(kind)
    special = [0.0, -0.0, 1.0, -1.0, 1.5, 3.0, info.max, -info.max, info.tiny, info.smallest_subnormal, np.inf, np.nan]
    drawn = rng.standard_normal(60) * 2.0 ** rng.integers(-20, 20, 60)
    return rng.permutation(np.concatenate([special, drawn]).astype(kind))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", TARGETS)
def test_against_fractions(target: str, dtype: str) -> None:
    if target == "metal" and dtype == "float64":
        pytest.skip("Metal has no float64")
    modes = MODES if target.startswith("cuda") else ("rn",)
    a, b, c = (numbers(dtype, s) for s in (1, 2, 3))
    with np.errstate(all="ignore"):
        b[:9], c[9:20] = -a[:9], -(a[9:20] * b[9:20])
    q = compiled(program(len(a), dtype, modes), target, out_idx=3)(a, b, c)
    for m, mode in enumerate(modes):
        for n, name in enumerate((*PAIRS, *SINGLE, "fma")):
            args = {"fma": (a, b, c), "frcp": (a,), "fsqrt": (a,)}.get(name, (a, b))
            want = FUNCTIONS[f"ieee_{name}_{mode}_{dtype}"](*(x.astype(np.float64) for x in args)).astype(dtype)
            np.testing.assert_array_equal(q[m, n], want, err_msg=f"{name} {mode}")


@pytest.mark.parametrize("target", TARGETS)
def test_reciprocal_square_root(target: str) -> None:
    count = 64 if target != "cpu" else 4096

    @T.prim_func
    def main(A: T.Tensor((count,), "float32"), B: T.Tensor((count,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(count):
                B[i] = T.ieee_frsqrt(A[i])

    a = np.random.default_rng(4).uniform(1, 4, count).astype(np.float32)
    b = compiled(main, target, out_idx=1)(a)
    np.testing.assert_array_equal(b, FUNCTIONS["ieee_frsqrt_rn_float32"](a.astype(np.float64)).astype(np.float32))


@pytest.mark.parametrize("target", ["cpu", "metal"])
def test_roundings_that_a_target_does_not_have(target: str) -> None:
    with pytest.raises(tile.TileError, match=r"U114.*rz"):
        compiled(program(8, "float32", ("rz",)), target)


@pytest.mark.parametrize("arguments", [(1.0, 2.0, "up"), ("int", 1, "rn"), ("half", 1.0, "rn")])
def test_bad_arguments(arguments: Any) -> None:
    with pytest.raises(tile.TileError, match="K128"):

        @T.prim_func
        def main(A: T.Tensor((8,), "float32"), H: T.Tensor((8,), "float16"), N: T.Tensor((8,), "int32")):
            with T.Kernel(1, threads=32):
                first, second, mode = arguments
                A[0] = T.ieee_add({"int": N[0], "half": H[0]}.get(first, A[0]), second, mode)
