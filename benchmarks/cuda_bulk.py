"""Bulk copies by one thread against copies by all threads, from sm_90 on.

    python benchmarks/cuda_bulk.py [--size 4096] [--only TEXT] [--export FOLDER | --artefacts FOLDER] [--json FILE]

Three comparisons, each with all sides in one run: a pipelined float16 product by mma.sync with loads of either kind;
large copies through shared memory, beside torch's; what a launch with tensor maps costs the host. Demands: the product
at least 0.97 times the one whose threads copy, the copies at least 0.95 times torch's, a launch at most 1 us more.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from typing import Any

from cuda_gemm import Config, product
from cuda_sides import Candidate, compare, device_of, export, fault, kernels, options, poisoned
from sides import Row, run

import tile_core.language as T

_TILES = (Config(128, 128, 32, 128), Config(128, 128, 64, 128, stages=4), Config(128, 256, 32, 256))
_BOXES = ((32, 64, 128), (64, 64, 128), (64, 128, 256), (128, 128, 256))
_KINDS = ("never", "always")


def through(size: int, rows: int, columns: int, threads: int) -> Any:
    """Return the program that copies a matrix of float16 through shared memory."""

    @T.prim_func
    def copy(X: T.Tensor((size, size), "float16"), Y: T.Tensor((size, size), "float16")) -> None:
        with T.Kernel(T.ceildiv(size, columns), T.ceildiv(size, rows), threads=threads) as (bx, by):
            x = T.alloc_shared((rows, columns), "float16")
            T.copy(X[by * rows, bx * columns], x)
            T.copy(x, Y[by * rows, bx * columns])

    return copy


def candidates(size: int) -> list[Candidate]:
    """Return all kernels, each with both kinds of copies."""
    made = []
    for kind in _KINDS:
        wish = {"tma": kind}
        for c in _TILES:
            how = {**wish, "wgmma": "never"}
            made.append(Candidate(f"gemm_{size}_{c}_{kind}", functools.partial(product, size, c), how))
        for rows, columns, threads in _BOXES:
            name = f"copy_{4 * size}_{rows}x{columns}_t{threads}_{kind}"
            made.append(Candidate(name, functools.partial(through, 4 * size, rows, columns, threads), wish))
        made.append(Candidate(f"launch_64_{kind}", functools.partial(through, 64, 64, 64, 128), wish))
    return made


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per kernel, and one for each way of torch."""
    every = candidates(arguments.size)
    if arguments.export is not None:
        return export(arguments, every)
    import torch

    print(device_of(torch))
    found = kernels(arguments, every)
    products = [x for x in found if x[0].startswith("gemm")]
    copies = [x for x in found if x[0].startswith("copy")]
    launches = [x for x in found if x[0].startswith("launch")]
    return [*_products(torch, arguments, products), *_copies(torch, arguments, copies), *_launches(torch, launches)]


def _products(torch: Any, arguments: argparse.Namespace, found: list[tuple[str, Any]]) -> list[Row]:
    """Compare products; ratios are to the best one whose threads copy."""
    size = arguments.size
    a, b = (torch.randn(size, size, device="cuda").half() for _ in range(2))
    c = poisoned(torch, (size, size), torch.float32)
    expected = a.double() @ b.double()
    bound = 2.0**-23 * size * (a.double().abs() @ b.double().abs())
    right = [x for x in found if _right(torch, x, (a, b, c), c, expected, bound)]
    sides = [(name, functools.partial(kernel, a, b, c)) for name, kernel in right]
    boxes = [side for side in sides if side[0].endswith("always")]
    threads = [side for side in sides if side[0].endswith("never")]
    return compare(torch, boxes, threads, arguments.seconds, 2.0 * size**3, "TFLOP/s") if boxes else []


def _copies(torch: Any, arguments: argparse.Namespace, found: list[tuple[str, Any]]) -> list[Row]:
    """Compare copies with torch's."""
    size = 4 * arguments.size
    x = torch.randn(size, size, device="cuda").half()
    y = poisoned(torch, (size, size), torch.float16)
    right = [one for one in found if _right(torch, one, (x, y), y, x.double(), 0.0)]
    sides: list[tuple[str, Callable[[], object]]] = [(n, functools.partial(kernel, x, y)) for n, kernel in right]
    others = [("torch copy_", lambda: y.copy_(x))]
    return compare(torch, sides, others, arguments.seconds, 4.0 * x.numel(), "TB/s") if sides else []


def _launches(torch: Any, found: list[tuple[str, Any]]) -> list[Row]:
    """Return the host time of a launch, from interleaved rounds."""
    x, y = (torch.zeros(64, 64, device="cuda", dtype=torch.float16) for _ in range(2))
    times: dict[str, list[float]] = {name: [] for name, _ in found}
    for _ in range(60):
        for name, kernel in found:
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(200):
                kernel(x, y)
            times[name].append((time.perf_counter() - begin) / 200)
    return [{"kernel": name, "us a launch": sorted(spent)[len(spent) // 2] * 1e6} for name, spent in times.items()]


def _right(torch: Any, named: tuple[str, Any], arrays: Any, out: Any, expected: Any, bound: Any) -> bool:
    """Return whether a kernel's results are right; print an error otherwise."""
    name, kernel = named
    out.fill_(float("nan"))
    kernel(*arrays)
    wrong = fault(torch, out, expected, bound)
    if wrong:
        print(f"WRONG: {name}: {wrong}")
    return not wrong


if __name__ == "__main__":
    run("bulk copies on a GPU", measure, options)
