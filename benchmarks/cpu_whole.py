"""Whole-tile expressions on the CPU against their element loops, in one run.

    python benchmarks/cpu_whole.py [NAME ...] [--size 512] [--json FILE]

Demand: as fast as the loops, within 3 %. One thread computes, and processor times are compared pair by pair
(`sides.paired`), so that a busy machine does not hide such a difference. Where both have one text, nothing can differ.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from sides import Row, at_most, paired, run

import tile_core as tile
import tile_core.language as T

_ROWS = 8


def gelu(size: int, whole: bool) -> Any:
    """A bias and an activation, from float16 to float16."""

    @T.prim_func
    def main(
        X: T.Tensor((size, size), "float16"), B: T.Tensor((size,), "float32"), Y: T.Tensor((size, size), "float16")
    ) -> None:
        with T.Kernel(size // _ROWS, threads=128) as bx:
            x, b = T.alloc_fragment((_ROWS, size), "float32"), T.alloc_fragment((size,), "float32")
            T.copy(X[bx * _ROWS, 0], x)
            T.copy(B, b)
            if whole:
                x += b
                x[...] = 0.5 * x * (1 + T.erf(x * 2**-0.5))
            else:
                for i, j in T.Parallel(_ROWS, size):
                    x[i, j] = x[i, j] + b[j]
                for i, j in T.Parallel(_ROWS, size):
                    x[i, j] = 0.5 * x[i, j] * (1 + T.erf(x[i, j] * 2**-0.5))
            T.copy(x, Y[bx * _ROWS, 0])

    return main


def softmax(size: int, whole: bool) -> Any:
    """Softmax of rows, from float16 to float16."""

    @T.prim_func
    def main(X: T.Tensor((size, size), "float16"), B: T.Tensor((size,), "float32"),
             Y: T.Tensor((size, size), "float16")) -> None:  # fmt: skip
        with T.Kernel(size // _ROWS, threads=128) as bx:
            x = T.alloc_fragment((_ROWS, size), "float32")
            top, total = T.alloc_fragment((_ROWS,), "float32"), T.alloc_fragment((_ROWS,), "float32")
            T.copy(X[bx * _ROWS, 0], x)
            T.reduce_max(x, top, dim=1)
            if whole:
                x[...] = T.exp(x - top[:, None])
            else:
                for i, j in T.Parallel(_ROWS, size):
                    x[i, j] = T.exp(x[i, j] - top[i])
            T.reduce_sum(x, total, dim=1)
            if whole:
                x /= total[:, None]
            else:
                for i, j in T.Parallel(_ROWS, size):
                    x[i, j] = x[i, j] / total[i]
            T.copy(x, Y[bx * _ROWS, 0])

    return main


def mixed(size: int, whole: bool) -> Any:
    """Choices, slices of tensors and a rounding that is named."""

    @T.prim_func
    def main(X: T.Tensor((size, size), "float16"), B: T.Tensor((size,), "float32"),
             Y: T.Tensor((size, size), "float16")) -> None:  # fmt: skip
        with T.Kernel(size // _ROWS, threads=128) as bx:
            r = bx * _ROWS
            if whole:
                x = T.cast(X[r : r + _ROWS, :], "float32") * B[None, :]
                Y[r : r + _ROWS, :] = T.cast(T.where(x > 0, x, x * 0.125), "float16", round="rz")
            else:
                y = T.alloc_fragment((_ROWS, size), "float32")
                for i, j in T.Parallel(_ROWS, size):
                    y[i, j] = T.cast(X[r + i, j], "float32") * B[j]
                for i, j in T.Parallel(_ROWS, size):
                    chosen = T.Select(y[i, j] > 0, y[i, j], y[i, j] * 0.125)
                    Y[r + i, j] = T.cast(chosen, "float16", round="rz")

    return main


OPS: dict[str, Callable[[int, bool], Any]] = {f.__name__: f for f in (gelu, softmax, mixed)}


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per kernel."""
    rows, size = [], arguments.size
    rng = np.random.default_rng(size)
    x, b = rng.standard_normal((size, size), "float32").astype("float16"), rng.standard_normal(size, "float32")
    for name in arguments.ops or OPS:
        whole, loops = (tile.compile(OPS[name](size, kind), target="cpu") for kind in (True, False))
        y, z = np.empty_like(x), np.empty_like(x)
        whole(x, b, y)
        loops(x, b, z)
        np.testing.assert_array_equal(y, z)
        ratio, low, high = paired(
            lambda k=whole, y=y: k(x, b, y), lambda k=loops, y=y: k(x, b, y), arguments.seconds
        )  # fmt: skip
        same = whole.source == loops.source
        rows.append({
            "kernel": name, "size": size, "whole/loops": f"{ratio:.4f}", "from": f"{low:.4f}", "to": f"{high:.4f}",
            "one text": "yes" if same else "no", "demand": at_most(high, 1.03),
        })  # fmt: skip
    return rows


def options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("ops", nargs="*", choices=[*OPS, []], help="all by default")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=4.0, help="per row")


if __name__ == "__main__":
    os.environ["TILE_NUM_THREADS"] = "1"
    run("expressions of whole tiles, one thread, processor time", measure, options)
