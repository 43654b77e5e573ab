"""Matrix products on the CPU against NumPy (its BLAS), both sides in one run.

    python benchmarks/cpu_gemm.py [--size 1024 ...] [--dtype float32 ...] [--json FILE]

Demands: float32 at 1024 at least 0.7 of NumPy on all cores; float16 and bfloat16 inputs at least 0.6 of our float32.
NumPy multiplies float16, bfloat16 and int8 in scalar loops, so those are compared with our own float32 instead.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sides import Row, demanded, example, interleaved, run

import tile_core as tile
import tile_core.language as T

ACCUMULATORS = {
    "float32": "float32",
    "float16": "float32",
    "bfloat16": "float32",
    "int8": "int32",
    "float64": "float64",
}
BLAS = ("float32", "float64")


def operands(dtype: str, size: int) -> tuple[Any, Any, Any]:
    """Return A, B and an output for one element type."""
    rng = np.random.default_rng(size)
    element, accum = T.dtype(dtype).numpy(), T.dtype(ACCUMULATORS[dtype]).numpy()
    if dtype == "int8":
        a, b = (rng.integers(-128, 128, (size, size)).astype(element) for _ in range(2))
    else:
        a, b = (rng.standard_normal((size, size)).astype(element) for _ in range(2))
    return a, b, np.empty((size, size), accum)


def compiled(dtype: str, size: int) -> Any:
    """Return the kernel of examples/gemm.py for one element type."""
    matmul = example("gemm").matmul
    program = matmul(size, size, size, False, False, dtype, ACCUMULATORS[dtype], block_M=128, block_N=128, block_K=32)
    return tile.compile(program, target="cpu")


def compare(dtype: str, size: int, seconds: float) -> Row:
    """Time one element type and size: ours, NumPy (or BLAS on float32), and our float32."""
    a, b, c = operands(dtype, size)
    kernel = compiled(dtype, size)
    a32, b32 = a.astype("float32"), b.astype("float32")
    c32 = np.empty((size, size), "float32")
    float32 = compiled("float32", size)
    blas = (a, b, np.empty_like(c)) if dtype in BLAS else (a32, b32, c32)
    ours, numpy, ours32 = interleaved(
        lambda: kernel(a, b, c), lambda: np.matmul(blas[0], blas[1], out=blas[2]), lambda: float32(a32, b32, c32),
        seconds=seconds,
    )  # fmt: skip
    rate = 2e-9 * size**3
    row: Row = {
        "dtype": dtype, "size": size, "GFLOP/s": rate / ours, "BLAS": rate / numpy, "BLAS type": str(blas[0].dtype),
        "ours/BLAS": numpy / ours, "ours/our float32": ours32 / ours, "demand": None,
    }  # fmt: skip
    if dtype == "float32" and size == 1024:
        row["demand"] = demanded(row["ours/BLAS"], 0.7)
    if dtype in ("float16", "bfloat16"):
        row["demand"] = demanded(row["ours/our float32"], 0.6)
    return row


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per element type and size."""
    return [compare(d, s, arguments.seconds) for s in arguments.size for d in arguments.dtype]


def options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--size", type=int, nargs="+", default=[512, 1000, 1024])
    parser.add_argument("--dtype", nargs="+", default=list(ACCUMULATORS), choices=list(ACCUMULATORS))
    parser.add_argument("--seconds", type=float, default=3.0, help="per row")


if __name__ == "__main__":
    run("square matrix products, all cores", measure, options)
