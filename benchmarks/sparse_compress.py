"""How fast ``tile_core.sparse.compress`` is beside a copy of the same matrix.

    python benchmarks/sparse_compress.py [--size 4096] [--seconds 2] [--json FILE]

Demand: compressing a 4096 x 4096 float16 matrix runs at 0.3 of the speed of ``np.copyto`` of that matrix, or faster.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sides import Row, demanded, interleaved, run

from tile_core import sparse

DEMAND = 0.3
CASES = [("float16", False), ("float16", True), ("bfloat16", False), ("int8", False), ("float8_e4m3fn", False),
         ("float32", False)]  # fmt: skip


def measure(arguments: argparse.Namespace) -> list[Row]:
    """One row per operand type; the demand is on the first."""
    return [case(name, transposed, arguments) for name, transposed in CASES]


def case(name: str, transposed: bool, arguments: argparse.Namespace) -> Row:
    """Return both sides of one operand type, interleaved."""
    size = arguments.size
    matrix = sparse.randn_semi_sparse((size, size), name, seed=1, transposed=transposed)
    target = np.empty_like(matrix)

    def compress() -> Any:
        return sparse.compress(matrix, transposed)

    values, metadata = compress()
    restored = sparse.decompress(values, metadata, transposed)
    assert (restored.view(np.uint8) == matrix.view(np.uint8)).all()
    copy, ours = interleaved(lambda: np.copyto(target, matrix), compress, seconds=arguments.seconds)
    wanted = name == "float16" and not transposed
    return {
        "operand": name + (" transposed" if transposed else ""),
        "copy ms": copy * 1e3,
        "compress ms": ours * 1e3,
        "GB/s of A": matrix.nbytes / ours / 1e9,
        "copy / compress": copy / ours,
        "demand": demanded(copy / ours, DEMAND) if wanted else None,
    }


def options(parser: Any) -> None:
    """Options of the command line."""
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=2.0)


if __name__ == "__main__":
    run("compress", measure, options)
