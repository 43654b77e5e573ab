"""Costs of symbolic sizes on the CPU, beside constant sizes in the same run.

    python benchmarks/cpu_dynamic.py [--seconds 2] [--json FILE]

Demands: with symbolic sizes a kernel is at least 0.9 times as fast as with constant ones, compiles in at most 1.0 s of
the processor's time, and a call costs the host at most 5 microseconds. Kernels run on one core, timed by its clock, so
that neither the start of threads nor other work on the machine is measured.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sides import Row, at_most, demanded, example, run

import tile_core as tile
import tile_core.language as T

_LEAST, _SECONDS, _CALL = 0.9, 1.0, 5.0
_ALONE = {"parallel": False}


def rotary(length: Any, heads: int = 8, dim: int = 64, block: int = 16) -> Any:
    """Return rotary position embedding of a sequence."""

    @T.prim_func
    def main(
        X: T.Tensor((length, heads, dim), "float32"),
        Cos: T.Tensor((length, dim // 2), "float32"),
        Sin: T.Tensor((length, dim // 2), "float32"),
        Out: T.Tensor((length, heads, dim), "float32"),
    ):
        with T.Kernel(T.ceildiv(length, block), heads, threads=128) as (bx, h):
            for i, j in T.Parallel(block, dim // 2):
                s = bx * block + i
                a, b = X[s, h, j], X[s, h, j + dim // 2]
                Out[s, h, j] = a * Cos[s, j] - b * Sin[s, j]
                Out[s, h, j + dim // 2] = a * Sin[s, j] + b * Cos[s, j]

    return main


def added(rows: Any) -> Any:
    """Return a kernel with next to no work."""

    @T.prim_func
    def main(A: T.Tensor((rows, 4), "float32"), B: T.Tensor((rows, 4), "float32"), C: T.Tensor((rows, 4), "float32")):
        with T.Kernel(T.ceildiv(rows, 4), threads=32) as bx:
            for i, j in T.Parallel(4, 4):
                C[bx * 4 + i, j] = A[bx * 4 + i, j] + B[bx * 4 + i, j]

    return main


def cases() -> list[tuple[str, Callable[[Any], Any], int, list[tuple[Any, ...]]]]:
    """Return name, kernel by its size, that size, and the shapes of the arrays."""
    attention, product = example("flash_attention").attention, example("gemm").matmul
    found: list[tuple[str, Callable[[Any], Any], int, list[tuple[Any, ...]]]] = []
    for m in (512, 500):
        shapes = [(m, 512), (512, 512), (m, 512)]
        found.append((f"gemm {m} x 512 x 512", lambda n: product(n, 512, 512), m, shapes))
    for s in (512, 500):
        whole = [(1, 4, s, 64)] * 4
        found.append((f"attention, {s} keys", lambda n: attention(1, 4, n, n, 64, False, "float32"), s, whole))
    for s in (2048, 2000):
        found.append((f"rope, {s} positions", rotary, s, [(s, 8, 64), (s, 32), (s, 32), (s, 8, 64)]))
    return found


def compiled(program: Any) -> tuple[Any, float]:
    """Return a kernel and the processor's seconds that it took."""
    start = time.process_time()
    kernel = tile.compile(program, target="cpu", options=_ALONE)
    return kernel, time.process_time() - start


def fastest(sides: list[Callable[[], object]], seconds: float) -> list[float]:
    """Return each function's least thread time, interleaved."""
    best = [float("inf")] * len(sides)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for at, side in enumerate(sides):
            start = time.thread_time()
            side()
            best[at] = min(best[at], time.thread_time() - start)
    return best


def kernels(seconds: float) -> list[Row]:
    """Compare the two forms of each kernel."""
    rows: list[Row] = []
    rng = np.random.default_rng(0)
    for name, make, size, shapes in cases():
        arrays = [rng.standard_normal(s).astype("float32") for s in shapes]
        constant, _ = compiled(make(size))
        symbolic, spent = compiled(make(T.dynamic("n")))
        one, other = fastest([lambda k=k, a=arrays: k(*a) for k in (constant, symbolic)], seconds)  # type: ignore[misc]
        rows.append(
            {"kernel": name, "constant us": one * 1e6, "symbolic us": other * 1e6, "ratio": one / other,
             "demand": demanded(one / other, _LEAST), "compile s": spent, "of it": at_most(spent, _SECONDS)}
        )  # fmt: skip
    return rows


def calls(seconds: float) -> list[Row]:
    """Time calls that do next to nothing."""
    rows: list[Row] = []
    arrays = [np.ones((8, 4), "float32") for _ in range(3)]
    for name, size in (("constant us", 8), ("symbolic us", T.dynamic("n"))):
        kernel = tile.compile(added(size), target="cpu")

        def thousand(kernel: Any = kernel) -> None:
            for _ in range(1000):
                kernel(*arrays)

        (spent,) = fastest([thousand], seconds)
        rows.append({"kernel": "a call, host's part", name: spent * 1e3, "demand": at_most(spent * 1e3, _CALL)})
    return rows


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per kernel, and one per kind of call."""
    return [*kernels(arguments.seconds), *calls(arguments.seconds)]


def options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--seconds", type=float, default=2.0, help="per row")


if __name__ == "__main__":
    run("symbolic sizes on the CPU, one core", measure, options)
