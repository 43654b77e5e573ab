"""Products of one or four rows on the CPU against NumPy, in one run.

    python benchmarks/cpu_rows.py [--size 2048 4096] [--rows 1 4] [--dtype float32 ...] [--json FILE]

Demand: float32 at least as fast as NumPy, for B stored either way, with blocks that share the columns as in
examples/gemm.py. Such a product reads B once, so the speed of memory decides. Blocks that share the sum over K
(examples/split_k.py), which read whole rows of B, run beside them. NumPy multiplies other types in scalar loops: those
run beside its float32.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from cpu_gemm import ACCUMULATORS
from sides import Row, demanded, example, rounds_of, run

import tile_core as tile
import tile_core.language as T

#: How the blocks of a program share a product, and how its B is stored.
WAYS = (("parts of K", False), ("columns", False), ("columns", True))


def side(rows: int, size: int, way: tuple[str, bool], dtype: str) -> Callable[[Any, Any, Any], object]:
    """Return our product as a function of A, B and C."""
    accum, (shared, trans_b) = ACCUMULATORS[dtype], way
    if shared == "parts of K":
        # Contiguous rows of B; one part per core.
        splits = max(2, os.cpu_count() or 2)
        program = example("split_k").matmul(rows, size, size, splits, dtype, accum, rows, size, 64)
        return tile.compile(program, target="cpu")
    # A row of B as it is stored, or half of one: long runs for the memory, a block for each core.
    block_N, block_K = (64, size) if trans_b else (size // 2, 256)
    program = example("gemm").matmul(rows, size, size, False, trans_b, dtype, accum, rows, block_N, block_K)
    return tile.compile(program, target="cpu")


def compare(rows: int, size: int, way: tuple[str, bool], dtype: str, seconds: float) -> Row:
    """Time one product beside NumPy's float32."""
    rng = np.random.default_rng(size)
    shared, trans_b = way
    a, b = rng.integers(-8, 9, (rows, size)), rng.integers(-8, 9, (size, size))
    kind, accum = T.dtype(dtype).numpy(), ACCUMULATORS[dtype]
    product = side(rows, size, way, dtype)
    ours_of = a.astype(kind), b.astype(kind), np.empty((rows, size), T.dtype(accum).numpy())
    a32, b32, c32 = a.astype("float32"), b.astype("float32"), np.empty((rows, size), "float32")
    right = b32.T if trans_b else b32
    ours, numpy = rounds_of(
        lambda: product(*ours_of), lambda: np.matmul(a32, right, out=c32), seconds=seconds
    )  # fmt: skip
    assert np.array_equal(ours_of[2], c32)
    ratio = min(numpy) / min(ours)
    demand = dtype == "float32" and shared == "columns"
    return {
        "rows": rows, "size": size, "B": "transposed" if trans_b else "as it is", "blocks share": shared,
        "dtype": dtype, "ours ms": min(ours) * 1e3, "NumPy ms": min(numpy) * 1e3,
        "ours GB/s": ours_of[1].nbytes / min(ours) / 1e9,
        "NumPy/ours": ratio, "median of rounds": float(np.median(np.divide(numpy, ours))),
        "demand": demanded(ratio, 1.0) if demand else None,
    }  # fmt: skip


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per product."""
    return [
        compare(rows, size, way, dtype, arguments.seconds)
        for dtype in arguments.dtype for size in arguments.size for rows in arguments.rows for way in WAYS
    ]  # fmt: skip


def options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--size", type=int, nargs="+", default=[2048, 4096])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--dtype", nargs="+", default=["float32", "float16", "bfloat16", "int8"])
    parser.add_argument("--seconds", type=float, default=2.0, help="per row")


if __name__ == "__main__":
    run("products of few rows, all cores", measure, options)
