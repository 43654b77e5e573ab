"""bfloat16 linear layers of Llama-3 (weights as (N, K)) beside torch.mm (cuBLAS), tiles by ``tile.tilings``.

    python benchmarks/cuda_linear.py [--most 1] [--rounds 12] [--processes 16] [--only 70B] [--json FILE]

For each layer and M from 256 to 8192 the first-ranked tiling is compiled, in a pool of processes that fill the disk
cache, checked on 64 rows against float64, and timed beside cuBLAS. All kernels take turns in one run, in an order that
is drawn anew for each round, and medians are compared. ``--most`` also times the next tilings. ``--plan`` only prints
the tilings, without a device.
"""

from __future__ import annotations

import argparse
import functools
import math
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from cuda_sides import Side, device_of, fault, shuffled_medians
from sides import Row, run

import tile_core as tile
import tile_core.language as T

#: Name and (N, K) of the weights.
LAYERS = {
    "8B qkv": (6144, 4096), "8B out": (4096, 4096), "8B gate_up": (28672, 4096), "8B down": (4096, 14336),
    "70B qkv": (10240, 8192), "70B out": (8192, 8192), "70B gate_up": (57344, 8192), "70B down": (8192, 28672),
}  # fmt: skip
ROWS = (256, 512, 1024, 2048, 4096, 8192)
_CHECKED = 64


def linear(
    M: int, N: int, K: int, block_M: int = 128, block_N: int = 128, block_K: int = 64, num_stages: int = 3,
    threads: int = 128, dtype: str = "bfloat16",
) -> Any:  # fmt: skip
    """Return the program of x (M, K) times w (N, K) transposed."""

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), dtype)) -> None:
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_s = T.alloc_shared((block_M, block_K), dtype)
            B_s = T.alloc_shared((block_N, block_K), dtype)
            C_f = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_s)
                T.copy(B[bx * block_N, k * block_K], B_s)
                T.gemm(A_s, B_s, C_f, transpose_B=True)
            T.copy(C_f, C[by * block_M, bx * block_N])

    return main


@dataclass(frozen=True)
class Case:
    """A layer, its rows, and one of its ranked tilings."""

    layer: str
    M: int
    rank: int
    config: dict[str, int]
    microseconds: float

    @property
    def sizes(self) -> tuple[int, int, int]:
        """M, N and K."""
        return (self.M, *LAYERS[self.layer])

    @property
    def tile(self) -> str:
        """The configuration as text."""
        c = self.config
        return f"{c['block_M']}x{c['block_N']}x{c['block_K']}_t{c['threads']}_s{c['num_stages']}"

    def compiled(self, target: str) -> Any:
        """Return the kernel."""
        return tile.compile(linear(*self.sizes, **self.config), target=target)


def ranked(layer: str, M: int, most: int, target: str) -> list[Case]:
    """Return the first-ranked tilings of a layer."""
    N, K = LAYERS[layer]
    found = tile.tilings(linear, {"M": M, "N": N, "K": K}, target=target, most=most)
    return [Case(layer, M, n, dict(t), t.microseconds or 0.0) for n, t in enumerate(found, 1)]


def built(job: tuple[str, int, int, str, bool]) -> list[Case]:
    """Return the cases of a job, with their kernels in the disk cache."""
    layer, M, most, target, build = job
    cases = ranked(layer, M, most, target)
    for case in cases if build else ():
        case.compiled(target)
    return cases


def sides_of(torch: Any, cases: list[Case], target: str) -> dict[tuple[Any, ...], Side]:
    """Return the checked kernels and cuBLAS, by case or by sizes."""
    x = {k: torch.randn(max(ROWS), k, device="cuda", dtype=torch.bfloat16) for k in {c.sizes[2] for c in cases}}
    w = {nk: torch.randn(*nk, device="cuda", dtype=torch.bfloat16) for nk in {c.sizes[1:] for c in cases}}
    out = torch.empty(max(c.M * c.sizes[1] for c in cases), device="cuda", dtype=torch.bfloat16)
    found: dict[tuple[Any, ...], Side] = {}
    for case in cases:
        m, n, k = case.sizes
        a, b, c = x[k][:m], w[n, k], out[: m * n].view(m, n)
        kernel = case.compiled(target)
        c.fill_(float("nan"))
        kernel(a, b, c)
        rows = torch.randint(m, (_CHECKED,), device="cuda")
        exact = a[rows].double() @ b.double().T
        bound = 2.0**-23 * k * (a[rows].double().abs() @ b.double().abs().T) + 2.0**-8 * exact.abs()
        wrong = fault(torch, c[rows], exact, bound) or ("NaN" if bool(c.isnan().any()) else "")
        if wrong:
            print(f"WRONG: {case.layer} M={m} {case.tile}: {wrong}", flush=True)
            continue
        found[case.layer, m, case.rank] = functools.partial(kernel, a, b, c)
        found[case.layer, m, 0] = functools.partial(torch.mm, a, b.T, out=c)
    return found


def summary(name: str, ratios: list[float]) -> str:
    """Return the geometric mean and the worst of some ratios."""
    if not ratios:
        return f"{name}: none"
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"{name}: geometric mean of {len(ratios)} ratios {mean:.3f}, from {min(ratios):.3f} to {max(ratios):.3f}"


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per tiling; print means of the first-ranked ratios."""
    begin = time.perf_counter()
    target = arguments.target or ("cuda:sm_90a" if arguments.plan else "cuda")
    jobs = [(name, M, arguments.most, target, not arguments.plan) for name in LAYERS if arguments.only in name
            for M in ROWS]  # fmt: skip
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.processes, mp_context=context) as pool:
        cases = [case for found in pool.map(built, jobs) for case in found]
    print(f"{len(cases)} kernels after {time.perf_counter() - begin:.0f} s", flush=True)
    if arguments.plan:
        return [{"layer": c.layer, "M": c.M, "rank": c.rank, "tile": c.tile, "estimated ms": c.microseconds / 1e3}
                for c in cases]  # fmt: skip
    import torch

    print(device_of(torch))
    sides = sides_of(torch, cases, target)
    times = dict(zip(sides, shuffled_medians(torch, list(sides.values()), arguments.rounds), strict=True))
    rows: list[Row] = []
    for c in cases:
        mine, theirs = times.get((c.layer, c.M, c.rank)), times.get((c.layer, c.M, 0))
        if mine is not None and theirs is not None:
            rows.append({
                "layer": c.layer, "M": c.M, "rank": c.rank, "tile": c.tile, "ms": mine, "cuBLAS ms": theirs,
                "ratio": theirs / mine, "estimated ms": c.microseconds / 1e3,
            })  # fmt: skip
    first = [r for r in rows if r["rank"] == 1]
    print(summary("first-ranked", [r["ratio"] for r in first]))
    print(summary("first-ranked, M = 256", [r["ratio"] for r in first if r["M"] == min(ROWS)]))
    print(summary("first-ranked, M > 256", [r["ratio"] for r in first if r["M"] > min(ROWS)]))
    if arguments.most > 1:
        best: dict[tuple[str, int], float] = {}
        for r in rows:
            best[r["layer"], r["M"]] = max(r["ratio"], best.get((r["layer"], r["M"]), 0.0))
        print(summary(f"best of {arguments.most}", list(best.values())))
    print(f"{time.perf_counter() - begin:.0f} s in all")
    return rows


def own_options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--target", default="", help="this machine's device by default")
    parser.add_argument("--most", type=int, default=1, help="tilings of each layer")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--processes", type=int, default=16, help="that compile")
    parser.add_argument("--only", default="", help="only layers whose name contains this")
    parser.add_argument("--plan", action="store_true", help="print the tilings only")


if __name__ == "__main__":
    run("bfloat16 linear layers on a GPU", measure, own_options)
