"""Host costs of a kernel's call with arrays of other libraries, beside one with NumPy's arrays.

    python benchmarks/array_calls.py [--seconds 2] [--json FILE]

The kernel computes ``x * x * w`` of 8 x 16 floats into a given array. Demand: a call with three arrays that have DLPack
only, here those of TVM's FFI, takes at most four times as long as one with NumPy's arrays. Arrays of JAX and MLX are
measured where these are installed, and not demanded: their own exports take most of the time, which is a row, too.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tvm_ffi
from sides import Row, at_most, interleaved, run

import tile_core as tile
import tile_core.language as T

_CALLS = 200


def kernel() -> Any:
    """Return the kernel."""
    m, N, block = T.dynamic("m"), 16, 32

    @T.prim_func
    def square(X: T.Tensor((m, N), "float32"), w: T.Tensor((N,), "float32"), Y: T.Tensor((m, N), "float32")):
        with T.Kernel(T.ceildiv(m, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                Y[bx * block + i, j] = X[bx * block + i, j] * X[bx * block + i, j] * w[j]

    return tile.compile(square, "cpu")


def libraries() -> Iterator[tuple[str, Callable[[Any], Any], float | None]]:
    """Yield the name of each library, the function that makes its arrays, and the demand."""
    yield "tvm_ffi", tvm_ffi.from_dlpack, 4.0
    if importlib.util.find_spec("torch"):
        import torch

        yield "torch", torch.from_numpy, 4.0
    if importlib.util.find_spec("mlx"):
        mx: Any = importlib.import_module("mlx.core")

        def computed(array: Any) -> Any:
            made = mx.array(array)
            mx.eval(made)
            return made

        yield "MLX", computed, None
    if importlib.util.find_spec("jax"):
        jax: Any = importlib.import_module("jax.numpy")
        yield "JAX", jax.asarray, None


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return a row for each library."""
    square, rng = kernel(), np.random.default_rng()
    x, w = (rng.standard_normal(shape).astype("float32") for shape in ((8, 16), (16,)))
    y = np.empty_like(x)

    def plain() -> None:
        square(x, w, y)

    def multiply() -> None:
        np.multiply(x * x, w, out=y)

    rows = [_row("NumPy; other: np.multiply(x * x, w, out=y)", plain, multiply, arguments.seconds, None)]
    for name, make, most in libraries():
        a, b = make(x), make(w)
        # Arrays of MLX and JAX are immutable values: the result is NumPy's.
        c = y if name in ("MLX", "JAX") else make(y)
        y.fill(np.nan)
        square(a, b, c)
        np.testing.assert_allclose(y, x * x * w, rtol=1e-6)

        def call(a: Any = a, b: Any = b, c: Any = c) -> None:
            square(a, b, c)

        def export(a: Any = a, b: Any = b) -> None:
            np.from_dlpack(a), np.from_dlpack(b)

        rows.append(_row(f"{name}; other: NumPy", call, plain, arguments.seconds, most))
        rows.append(_row(f"two calls of np.from_dlpack, {name}; other: NumPy", export, plain, arguments.seconds, None))
    return rows


def _row(name: str, one: Callable[[], object], other: Callable[[], object], seconds: float, most: float | None) -> Row:
    sides = [lambda call=call: _repeated(call) for call in (one, other)]  # type: ignore[misc]
    ours, theirs = (t / _CALLS * 1e6 for t in interleaved(*sides, seconds=seconds))
    demand = None if most is None else at_most(ours / theirs, most)
    return {"call with arrays of": name, "us": ours, "other us": theirs, "ratio": ours / theirs, "demand": demand}


def _repeated(call: Callable[[], object]) -> None:
    for _ in range(_CALLS):
        call()


def options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--seconds", type=float, default=2.0, help="for each row")


if __name__ == "__main__":
    run("calls with arrays of other libraries", measure, options)
