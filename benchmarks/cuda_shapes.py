"""float16 products of random shapes and few rows beside torch.mm (cuBLAS).

    python benchmarks/cuda_shapes.py [--seed N] [--shapes 10] [--most 1] [--export FOLDER | --artefacts FOLDER]

Ten shapes of three multiples of 8 between 256 and 12,000, drawn anew each time (kernels from files need the ``--seed``
that they were exported with), and M of 1, 8, 16 and 64 with N = K = 8192. The kernel is an ordinary one; its blocks are
what ``tile.tilings`` ranks first, or with ``--most`` the first few, beside their estimated times.
"""

from __future__ import annotations

import argparse
import functools
import math
import random
import time
from collections.abc import Callable
from typing import Any

from cuda_sides import Candidate, Side, compare, device_of, export, fault, kernels, options, poisoned
from sides import Row, run

import tile_core as tile
import tile_core.language as T

Shape = tuple[int, int, int]

SKINNY: tuple[Shape, ...] = tuple((m, 8192, 8192) for m in (1, 8, 16, 64))


def matmul(
    M: int, N: int, K: int, block_M: int, block_N: int, block_K: int, threads: int, num_stages: int,
    dtype: str = "float16",
) -> Any:  # fmt: skip
    """Return the program of a product."""

    @T.prim_func
    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)) -> None:
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_K, block_N), dtype)
            C_f = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_s)
                T.copy(B[k * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_f)
            T.copy(C_f, C[by * block_M, bx * block_N])

    return gemm


def split_matmul(
    M: int, N: int, K: int, block_M: int, block_N: int, block_K: int, threads: int, num_stages: int, splits: int,
    dtype: str = "float16",
) -> Any:  # fmt: skip
    """Return the program of a split-K product, reduced in order by a second launch."""
    steps = -(-K // (block_K * splits))

    @T.prim_func
    def gemm(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)) -> None:
        parts = T.alloc_global((splits, M, N), "float32")
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), splits, threads=threads) as (bx, by, s):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_K, block_N), dtype)
            C_f = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_f)
            for k in T.Pipelined(steps, num_stages=num_stages):
                T.copy(A[by * block_M, (s * steps + k) * block_K], A_s)
                T.copy(B[(s * steps + k) * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_f)
            T.copy(C_f, parts[s, by * block_M, bx * block_N])
        with T.Kernel(T.ceildiv(N, 256), T.ceildiv(M, 4), threads=256) as (bx, by):
            total = T.alloc_fragment((4, 256), "float32")
            T.clear(total)
            for s in T.unroll(splits):
                total += parts[s, by * 4 : by * 4 + 4, bx * 256 : bx * 256 + 256]
            T.copy(total, C[by * 4, bx * 256])

    return gemm


def drawn(seed: int, count: int) -> list[Shape]:
    """Return shapes (M, N, K) of multiples of 8 between 256 and 12,000."""
    source = random.Random(seed)
    numbers = [8 * source.randint(32, 1500) for _ in range(3 * count)]
    return [(numbers[i], numbers[i + 1], numbers[i + 2]) for i in range(0, 3 * count, 3)]


def candidates(shape: Shape, arguments: argparse.Namespace) -> list[tuple[Candidate, float]]:
    """Return the kernels for a shape with their estimated microseconds, the best first."""
    found: list[tuple[Candidate, float]] = []
    for kind in (matmul, split_matmul):
        sizes = dict(zip("MNK", shape, strict=True))
        for tiling in tile.tilings(kind, sizes, target=arguments.target or "cuda:sm_90a", most=arguments.most):
            if tiling.get("splits", 2) > 1:
                found.append((_candidate(kind, shape, tiling), tiling.microseconds or 0.0))
    return sorted(found, key=lambda pair: pair[1])[: arguments.most]


def _candidate(kind: Callable[..., Any], shape: Shape, config: dict[str, int]) -> Candidate:
    tiles = "x".join(str(config[f"block_{axis}"]) for axis in "MNK")
    split = f"_split{config['splits']}" if "splits" in config else ""
    name = f"{'x'.join(map(str, shape))}_{tiles}_t{config['threads']}_s{config['num_stages']}{split}"
    return Candidate(name, functools.partial(kind, *shape, **config))


def one(torch: Any, arguments: argparse.Namespace, shape: Shape) -> list[Row]:
    """Return the rows of one shape."""
    (m, n, k), every = shape, candidates(shape, arguments)
    a, b = torch.randn(m, k, device="cuda").half(), torch.randn(k, n, device="cuda").half()
    c, out = poisoned(torch, (m, n), torch.float16), poisoned(torch, (m, n), torch.float16)
    exact = a.double() @ b.double()
    bound = 2.0**-23 * k * (a.double().abs() @ b.double().abs()) + 2.0**-11 * exact.abs()
    ours: list[tuple[str, Side]] = []
    for name, kernel in kernels(arguments, [candidate for candidate, _ in every]):
        c.fill_(float("nan"))
        kernel(a, b, c)
        wrong = fault(torch, c, exact, bound)
        if wrong:
            print(f"WRONG: {name}: {wrong}", flush=True)
        else:
            ours.append((name, functools.partial(kernel, a, b, c)))
    del exact, bound
    others: list[tuple[str, Side]] = [("torch.mm", lambda: torch.mm(a, b, out=out))]
    rows = compare(torch, ours, others, arguments.seconds, 2.0 * m * n * k, "TFLOP/s")
    estimates = {candidate.name: microseconds / 1e3 for candidate, microseconds in every}
    for row in rows:
        row["estimated ms"] = estimates.get(row["kernel"])
    return rows


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per kernel; print geometric means of the first-ranked ratios."""
    shapes = (*drawn(arguments.seed, arguments.shapes), *SKINNY)
    print("seed", arguments.seed)
    if arguments.export is not None:
        return [r for s in shapes for r in export(arguments, [c for c, _ in candidates(s, arguments)])]
    import torch

    print(device_of(torch))
    found = [one(torch, arguments, shape) for shape in shapes]
    for what, of in (("random shapes", found[: -len(SKINNY)]), ("few rows", found[-len(SKINNY) :])):
        ratios = [rows[0]["ratio"] for rows in of if len(rows) > 1]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{what}: geometric mean of {len(ratios)} ratios {mean:.3f}, from {min(ratios):.3f}")
    return [row for rows in found for row in rows]


def own_options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32, help="of the shapes")
    parser.add_argument("--shapes", type=int, default=10)
    parser.add_argument("--most", type=int, default=1, help="kernels of each shape")
    options(parser)


if __name__ == "__main__":
    run("float16 products of any shape on a GPU", measure, own_options)
