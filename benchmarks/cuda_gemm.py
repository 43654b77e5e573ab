"""Dense float16 products on an NVIDIA GPU against torch.mm (cuBLAS), both sides in one run.

    python benchmarks/cuda_gemm.py [--size 4096] [--only TEXT] [--export FOLDER | --artefacts FOLDER] [--json FILE]

Tile sizes, stages, the order of blocks and the element type of the result are data below; the best one is marked.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cuda_sides import Candidate, compare, device_of, export, fault, kernels, options, poisoned
from sides import Row, run

import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_core.layout import make_swizzled_layout


@dataclass(frozen=True)
class Config:
    """How a product is tiled.

    Attributes
    ----------
    m, n, k, threads
        A block's tile and threads.
    stages
        Of the pipeline over K.
    panel
        Rows of blocks that run together (``T.use_swizzle``); 0: blocks in order.
    out
        Element type of the result.
    dtype, accum
        Of the operands and the accumulator.
    transposed
        Whether B is stored as (N, K), which byte-wide operands of the matrix units need.
    staged
        Whether results go to a tile in shared memory first, which is then stored in whole rows.
    """

    m: int
    n: int
    k: int
    threads: int
    stages: int = 3
    panel: int = 8
    out: str = "float32"
    dtype: str = "float16"
    accum: str = "float32"
    transposed: bool = False
    staged: bool = False

    def __str__(self) -> str:
        tile = f"{self.m}x{self.n}x{self.k}_t{self.threads}_s{self.stages}_p{self.panel}"
        return f"{self.dtype}_{self.out}_{tile}{'_nt' * self.transposed}{'_st' * self.staged}"


_TILES = (
    (128, 128, 32, 128), (128, 128, 64, 128), (128, 256, 32, 256), (128, 256, 64, 256), (256, 128, 64, 256),
)  # fmt: skip

#: Every tile with both depths of the pipeline, then other orders of blocks and float16 results for three stages.
CONFIGS = (
    *(Config(*tile, stages=stages, panel=panel) for tile in _TILES for stages in (3, 4) for panel in (0, 8)),
    *(Config(*tile, panel=panel) for tile in _TILES for panel in (4, 16)),
    *(Config(*tile, out="float16") for tile in _TILES),
    *(Config(*tile, stages=4, out="float16") for tile in _TILES),
)


def product(size: int, c: Config) -> Any:
    """Return the program of a configuration."""

    @T.prim_func
    def gemm(
        A: T.Tensor((size, size), c.dtype), B: T.Tensor((size, size), c.dtype), C: T.Tensor((size, size), c.out)
    ) -> None:
        with T.Kernel(T.ceildiv(size, c.n), T.ceildiv(size, c.m), threads=c.threads) as (bx, by):
            A_s = T.alloc_shared((c.m, c.k), c.dtype)
            B_s = T.alloc_shared((c.n, c.k) if c.transposed else (c.k, c.n), c.dtype)
            C_f = T.alloc_fragment((c.m, c.n), c.accum)
            if c.panel:
                T.use_swizzle(c.panel)
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(size, c.k), num_stages=c.stages):
                T.copy(A[by * c.m, k * c.k], A_s)
                if c.transposed:
                    T.copy(B[bx * c.n, k * c.k], B_s)
                else:
                    T.copy(B[k * c.k, bx * c.n], B_s)
                T.gemm(A_s, B_s, C_f, transpose_B=c.transposed)
            if c.staged:
                C_s = T.alloc_shared((c.m, c.n), c.out)
                T.annotate_layout({C_s: make_swizzled_layout((c.m, c.n), DTYPES[c.out].bits, 128)})
                T.copy(C_f, C_s)
                T.copy(C_s, C[by * c.m, bx * c.n])
            else:
                T.copy(C_f, C[by * c.m, bx * c.n])

    return gemm


def candidates(size: int) -> list[Candidate]:
    """Return all configurations as kernels."""
    return [Candidate(f"gemm_{size}_{c}", functools.partial(product, size, c)) for c in CONFIGS]


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per kernel, and two for torch."""
    size, every = arguments.size, candidates(arguments.size)
    if arguments.export is not None:
        return export(arguments, every)
    import torch

    print(device_of(torch))
    a, b = (torch.randn(size, size, device="cuda").half() for _ in range(2))
    c32, c16 = (poisoned(torch, (size, size), t) for t in (torch.float32, torch.float16))
    expected = a.double() @ b.double()
    bound = 2.0**-23 * size * (a.double().abs() @ b.double().abs())
    ours: list[tuple[str, Callable[[], object]]] = []
    for name, kernel in kernels(arguments, every):
        c = c16 if "float16_float16" in name else c32
        c.fill_(float("nan"))
        kernel(a, b, c)
        wrong = fault(torch, c, expected, bound + (2.0**-11 * expected.abs() if c is c16 else 0.0))
        if wrong:
            print(f"WRONG: {name}: {wrong}")
        else:
            ours.append((name, functools.partial(kernel, a, b, c)))
    others = [("torch.mm to float16", lambda: torch.mm(a, b, out=c16))]
    try:
        torch.mm(a, b, out_dtype=torch.float32)
        others.append(("torch.mm to float32", lambda: torch.mm(a, b, out_dtype=torch.float32)))
    except (TypeError, RuntimeError, NotImplementedError) as error:
        print(f"torch.mm to float32 is left out: {str(error).splitlines()[0]}")
    return compare(torch, ours, others, arguments.seconds, 2.0 * size**3, "TFLOP/s")


if __name__ == "__main__":
    run("float16 products on a GPU", measure, options)
