"""Grouped products with expert weights of more than 2**31 elements, against ``torch._grouped_mm``.

    python benchmarks/cuda_experts.py [--rows 4096] [--only TEXT] [--export FOLDER | --artefacts FOLDER] [--json FILE]

The weights are (256, 4096, 7168) bfloat16, 15 GB. Sides whose name ends in ``symbolic`` have the number of experts as
a symbol: the call compiles their version with 64-bit offsets. A file has no such version.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any

from cuda_sides import Candidate, compare, device_of, export, fault, kernels, options, poisoned
from sides import Row, run

import tile_core.language as T

_EXPERTS, _N, _K = 256, 4096, 7168
_TILES = ((64, 64, 128, 128, 3), (64, 128, 64, 128, 4), (64, 128, 128, 128, 3), (64, 256, 64, 256, 3))


def grouped(rows: int, tile: tuple[int, int, int, int, int], symbolic: bool) -> Any:
    """Return the program: rows sorted by expert, and the end of each expert's rows."""
    block_M, block_N, block_K, threads, stages = tile
    experts = T.dynamic("experts") if symbolic else _EXPERTS

    @T.prim_func
    def main(
        X: T.Tensor((rows, _K), "bfloat16"), W: T.Tensor((experts, _N, _K), "bfloat16"),
        ends: T.Tensor((experts,), "int32"), Y: T.Tensor((rows, _N), "bfloat16"),
    ) -> None:  # fmt: skip
        with T.Kernel(_N // block_N, T.ceildiv(rows, block_M) + experts, threads=threads) as (bx, by):
            x = T.alloc_shared((block_M, block_K), "bfloat16")
            w = T.alloc_shared((block_N, block_K), "bfloat16")
            y = T.alloc_fragment((block_M, block_N), "float32")
            left = T.alloc_var("int32", by)
            group = T.alloc_var("int32", 0)
            first = T.alloc_var("int32", 0)
            end = T.alloc_var("int32", 0)
            begin = T.alloc_var("int32", 0)
            for g in T.serial(experts):
                tiles = T.ceildiv(ends[g] - begin, block_M)
                if left >= 0 and left < tiles:
                    group = g
                    first = begin + left * block_M
                    end = ends[g]
                left -= tiles
                begin = ends[g]
            if first < end:
                T.clear(y)
                for k in T.Pipelined(_K // block_K, num_stages=stages):
                    T.copy(X[first, k * block_K], x)
                    T.copy(W[group, bx * block_N, k * block_K], w)
                    T.gemm(x, w, y, transpose_B=True)
                for i, j in T.Parallel(block_M, block_N):
                    if first + i < end:
                        Y[first + i, bx * block_N + j] = y[i, j]

    return main


def candidates(rows: int, files: bool) -> list[Candidate]:
    """Return all kernels."""
    made = []
    for tile in _TILES:
        for symbolic in (False,) if files else (False, True):
            name = f"experts_{rows}_{'x'.join(map(str, tile))}{'_symbolic' * symbolic}"
            made.append(Candidate(name, functools.partial(grouped, rows, tile, symbolic)))
    return made


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per kernel, and torch's."""
    every = candidates(arguments.rows, arguments.export is not None or arguments.artefacts is not None)
    if arguments.export is not None:
        return export(arguments, every)
    import torch

    print(device_of(torch))
    x = torch.randn(arguments.rows, _K, device="cuda", dtype=torch.bfloat16)
    w = torch.empty(_EXPERTS, _N, _K, device="cuda", dtype=torch.bfloat16)
    for expert in w:
        expert.normal_()
    sizes = torch.bincount(torch.randint(_EXPERTS, (arguments.rows,), device="cuda"), minlength=_EXPERTS)
    ends = sizes.cumsum(0).int()
    y = poisoned(torch, (arguments.rows, _N), torch.bfloat16)
    expected, bound = _expected(torch, x, w, ends.tolist())
    right: list[tuple[str, Callable[[], object]]] = []
    for name, kernel in kernels(arguments, every):
        y.fill_(float("nan"))
        kernel(x, w, ends, y)
        wrong = fault(torch, y, expected, bound)
        print(f"{'WRONG' if wrong else 'right'}: {name} {wrong}", flush=True)
        if not wrong:
            right.append((name, functools.partial(kernel, x, w, ends, y)))
    others = [("torch._grouped_mm", lambda: torch._grouped_mm(x, w.transpose(1, 2), offs=ends))]
    return compare(torch, right, others, arguments.seconds, 2.0 * w.numel(), "TB/s")


def _expected(torch: Any, x: Any, w: Any, ends: list[int]) -> tuple[Any, Any]:
    """Return the product in float64, and the bound of its rounding error."""
    made, bounds = [], []
    for expert, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        a, b = x[begin:end].double(), w[expert].double().T
        made.append(a @ b)
        bounds.append(2.0**-22 * _K * (a.abs() @ b.abs()) + 2.0**-8 * made[-1].abs())
    return torch.cat(made), torch.cat(bounds)


def _options(parser: argparse.ArgumentParser) -> None:
    options(parser)
    parser.add_argument("--rows", type=int, default=4096)


if __name__ == "__main__":
    run("grouped products with large weights", measure, _options)
