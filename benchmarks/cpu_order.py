"""Argmax, sorting and random numbers on the CPU against NumPy, in one run.

    python benchmarks/cpu_order.py [NAME ...] [--size 4096] [--json FILE]

Demands, of 4096 x 4096 float32: argmax, the 8 largest elements and their places, and sorted rows at least as fast as
NumPy; uniform and normal numbers at least twice as fast as NumPy's generator with Philox.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from sides import Row, demanded, interleaved, run

import tile_core as tile
import tile_core.language as T

Side = Callable[[], object]
#: Elements that ``topk`` finds, and rows of a block.
_BEST, _ROWS = 8, 16


def argmax(size: int) -> tuple[Side, Side]:
    """Indices of the largest elements of rows."""

    @T.prim_func
    def main(X: T.Tensor((size, size), "float32"), Y: T.Tensor((size,), "int32")) -> None:
        with T.Kernel(size // _ROWS, threads=128) as bx:
            T.argmax(X[bx * _ROWS : bx * _ROWS + _ROWS, :], Y[bx * _ROWS : bx * _ROWS + _ROWS], dim=1)

    x, y, out = _normal(size), np.empty(size, "int32"), np.empty(size, np.intp)
    kernel = tile.compile(main, target="cpu")
    kernel(x, y)
    np.testing.assert_array_equal(y, x.argmax(axis=1))
    return lambda: kernel(x, y), lambda: np.argmax(x, axis=1, out=out)


def topk(size: int) -> tuple[Side, Side]:
    """The largest elements of rows in order, and their places."""

    @T.prim_func
    def main(
        X: T.Tensor((size, size), "float32"), V: T.Tensor((size, _BEST), "float32"), P: T.Tensor((size, _BEST), "int32")
    ) -> None:
        with T.Kernel(size // _ROWS, threads=128) as bx:
            r = bx * _ROWS
            T.topk(X[r : r + _ROWS, :], V[r : r + _ROWS, :], P[r : r + _ROWS, :])

    x, v, p = _normal(size), np.empty((size, _BEST), "float32"), np.empty((size, _BEST), "int32")
    kernel = tile.compile(main, target="cpu")

    def theirs() -> tuple[Any, Any]:
        positions = np.argpartition(x, size - _BEST, axis=1)[:, size - _BEST :]
        values = np.take_along_axis(x, positions, 1)
        order = np.argsort(-values, axis=1)
        return np.take_along_axis(values, order, 1), np.take_along_axis(positions, order, 1)

    kernel(x, v, p)
    np.testing.assert_array_equal(v, theirs()[0])
    np.testing.assert_array_equal(v, np.take_along_axis(x, p, 1))
    return lambda: kernel(x, v, p), theirs


def sort(size: int) -> tuple[Side, Side]:
    """Sorted rows."""

    @T.prim_func
    def main(X: T.Tensor((size, size), "float32"), Y: T.Tensor((size, size), "float32")) -> None:
        with T.Kernel(size // _ROWS, threads=128) as bx:
            T.sort(X[bx * _ROWS : bx * _ROWS + _ROWS, :], Y[bx * _ROWS : bx * _ROWS + _ROWS, :])

    x = _normal(size)
    y = np.empty_like(x)
    kernel = tile.compile(main, target="cpu")
    kernel(x, y)
    np.testing.assert_array_equal(y, np.sort(x, axis=1))
    return lambda: kernel(x, y), lambda: np.sort(x, axis=1)


def uniform(size: int) -> tuple[Side, Side]:
    """Numbers between 0 and 1."""
    count = size * size // 4

    @T.prim_func
    def main(seed: T.int32, Y: T.Tensor((count, 4), "float32")) -> None:
        with T.Kernel(count // size, threads=128) as bx:
            for i in T.Parallel(size):
                words = T.philox(seed, 0, bx * size + i)
                for j in T.static_range(4):
                    Y[bx * size + i, j] = T.uniform_of(words[j])

    return _generated(main, (count, 4), "random")


def normal(size: int) -> tuple[Side, Side]:
    """Numbers of the normal distribution."""
    count = size * size // 4

    @T.prim_func
    def main(seed: T.int32, Y: T.Tensor((4, count), "float32")) -> None:
        with T.Kernel(count // size, threads=128) as bx:
            for i in T.Parallel(size):
                words = T.philox(seed, 0, bx * size + i)
                for j in T.static_range(2):
                    a, b = T.normal_of(words[2 * j], words[2 * j + 1])
                    Y[2 * j, bx * size + i] = a
                    Y[2 * j + 1, bx * size + i] = b

    return _generated(main, (4, count), "standard_normal")


def _generated(program: Any, shape: tuple[int, int], method: str) -> tuple[Side, Side]:
    out = np.empty(shape, "float32")
    kernel, theirs = tile.compile(program, target="cpu"), np.random.Generator(np.random.Philox(7))
    return lambda: kernel(7, out), lambda: getattr(theirs, method)(dtype=np.float32, out=out)


def _normal(size: int) -> Any:
    return np.random.default_rng(size).standard_normal((size, size), "float32")


OPS: dict[str, Callable[[int], tuple[Side, Side]]] = {f.__name__: f for f in (argmax, topk, sort, uniform, normal)}
DEMANDS = {"argmax": 1.0, "topk": 1.0, "sort": 1.0, "uniform": 2.0, "normal": 2.0}


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per op."""
    rows = []
    for name in arguments.ops or OPS:
        ours_s, theirs_s = interleaved(*OPS[name](arguments.size), seconds=arguments.seconds)
        ratio = theirs_s / ours_s
        demand = demanded(ratio, DEMANDS[name]) if arguments.size == 4096 else None
        rows.append({"op": name, "size": arguments.size, "ours ms": ours_s * 1e3, "NumPy ms": theirs_s * 1e3,
                     "NumPy/ours": ratio, "demand": demand})  # fmt: skip
    return rows


def options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("ops", nargs="*", choices=[*OPS, []], help="all by default")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=3.0, help="per row")


if __name__ == "__main__":
    run("order and chance, float32, all cores", measure, options)
