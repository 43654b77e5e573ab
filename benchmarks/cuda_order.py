"""Sorting and top-k of rows on an NVIDIA GPU, beside and against torch.

Both are in one run.

    python benchmarks/cuda_order.py [--rows 4096] [--target cuda:sm_90a] [--json FILE]

Of several numbers of rows and threads of a block, the fastest counts.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import torch
from sides import Row, run

import tile_core as tile
import tile_core.language as T

#: Rows and threads of a block.
_BLOCKS = ((1, 128), (4, 128), (1, 256))


def sort(count: int, length: int, rows: int, threads: int) -> Any:
    """Return the program that sorts rows."""

    @T.prim_func
    def main(X: T.Tensor((count, length), "float32"), Y: T.Tensor((count, length), "float32")) -> None:
        with T.Kernel(T.ceildiv(count, rows), threads=threads) as bx:
            T.sort(X[bx * rows : bx * rows + rows, :], Y[bx * rows : bx * rows + rows, :])

    return main


def topk(count: int, length: int, rows: int, threads: int, k: int) -> Any:
    """Return the program that finds the largest elements of rows, and their places."""

    @T.prim_func
    def main(
        X: T.Tensor((count, length), "float32"), V: T.Tensor((count, k), "float32"), P: T.Tensor((count, k), "int32")
    ) -> None:
        with T.Kernel(T.ceildiv(count, rows), threads=threads) as bx:
            r = bx * rows
            T.topk(X[r : r + rows, :], V[r : r + rows, :], P[r : r + rows, :])

    return main


def milliseconds(launch: Callable[[], object], repeat: int = 30) -> float:
    """Return the median time of a launch by the device's clock."""
    times = []
    for _ in range(repeat + 3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        launch()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[3:])


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per op and length."""
    rows = []
    for name, length, k in (("sort", 256, 0), ("sort", 1024, 0), ("sort", 4096, 0), ("topk", 256, 8),
                            ("topk", 4096, 8), ("topk", 4096, 64)):  # fmt: skip
        x = torch.randn(arguments.rows, length, device="cuda")
        theirs: Callable[[], Any] = (
            (lambda x=x: torch.sort(x, dim=1)) if name == "sort" else lambda x=x, k=k: torch.topk(x, k, dim=1)
        )
        found = []
        for block in _BLOCKS:
            program = sort(len(x), length, *block) if name == "sort" else topk(len(x), length, *block, k)
            kernel = tile.compile(program, arguments.target, out_idx=[1] if name == "sort" else [1, 2])
            first = kernel(x)
            if not torch.equal(first if name == "sort" else first[0], theirs().values):
                raise SystemExit(f"{name} of {length} elements is wrong")
            found.append(milliseconds(lambda kernel=kernel, x=x: kernel(x)))
        ours, other = min(found), milliseconds(theirs)
        rows.append({"op": name, "rows": len(x), "length": length, "k": k or None, "ours ms": ours, "torch ms": other,
                     "torch/ours": other / ours, "rows and threads": str(_BLOCKS[found.index(ours)])})  # fmt: skip
    return rows


def options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--target", default="cuda")


if __name__ == "__main__":
    run("order, float32", measure, options)
