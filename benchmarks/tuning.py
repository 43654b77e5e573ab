"""A search of 60 GEMM configurations, here and on a local dask cluster.

    python benchmarks/tuning.py [--size 256] [--workers 4]

Needs ``tile-core[dask]``. One worker is killed while it works, and two further configurations cannot work. The searches
are repeated from their databases, and the two winners are timed interleaved, because workers disturb each other's
times.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import distributed
import numpy as np

import tile_core as tile
import tile_core.language as T

CONFIGS = [
    {"block_M": m, "block_N": n, "block_K": k}
    for m in (16, 32, 64, 128, 256)
    for n in (16, 32, 64, 128)
    for k in (32, 64, 128)
]
#: A tile without elements, and one that is larger than the memory of a block may be.
FAILING = [{"block_M": 0, "block_N": 64, "block_K": 64}, {"block_M": 2**20, "block_N": 2**20, "block_K": 64}]
#: Outcomes after which a worker is killed.
KILL_AFTER = 10
#: Interleaved runs of the two winners.
ROUNDS = 15


@tile.jit(target="cpu", out_idx=-1)
def matmul(size: int, block_M: int = 64, block_N: int = 64, block_K: int = 64) -> Any:
    """A square product."""

    @T.prim_func
    def gemm(
        A: T.Tensor((size, size), "float32"), B: T.Tensor((size, size), "float32"), C: T.Tensor((size, size), "float32")
    ):
        with T.Kernel(T.ceildiv(size, block_N), T.ceildiv(size, block_M), threads=128) as (bx, by):
            A_s, B_s = T.alloc_shared((block_M, block_K), "float32"), T.alloc_shared((block_K, block_N), "float32")
            C_f = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(size, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_s)
                T.copy(B[k * block_K, bx * block_N], B_s)
                T.gemm(A_s, B_s, C_f)
            T.copy(C_f, C[by * block_M, bx * block_N])

    return gemm


def main() -> None:
    """Run both searches and print their results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=256)
    parser.add_argument("--workers", type=int, default=4)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    serial = search("one process", folder / "serial.sqlite", given.size)
    with (
        distributed.LocalCluster(n_workers=given.workers, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        seen: list[Any] = []

        def watch(trial: Any, total: int) -> None:
            seen.append(trial)
            if len(seen) == KILL_AFTER:
                os.kill(pids[0], signal.SIGKILL)
                print(f"worker {pids[0]} killed after {len(seen)} of {total} outcomes")

        title = f"{given.workers} workers of dask"
        there = search(title, folder / "dask.sqlite", given.size, executor=client.get_executor(), watch=watch)
        after = list(client.run(os.getpid).values())
        print(f"workers that were there before and after: {len(set(pids) & set(after))} of {given.workers}")
    compare(serial, there, given.size)


def search(title: str, file: Path, size: int, **how: Any) -> Any:
    """Search twice, the second time from the database, and print both."""
    found: Any = None
    for attempt in ("first", "second"):
        start = time.perf_counter()
        found = tile.autotune(CONFIGS + FAILING, warmup=2, repeat=7, results=file, **how)(matmul).tune(size)
        how = {}
        seconds, trials = time.perf_counter() - start, found.trials
        works, known = sum(t.seconds is not None for t in trials), sum(t.known for t in trials)
        print(f"{title}, {attempt} search: {seconds:.3f} s, {works} work, {known} known before, won {found.config}")
        assert works == len(CONFIGS), [str(t) for t in trials if t.seconds is None]
    for trial in found.trials[len(CONFIGS) :]:
        print(f"  {str(trial).splitlines()[0]}")
    return found


def compare(serial: Any, there: Any, size: int) -> None:
    """Print the difference of the winners, timed interleaved."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, size, size), dtype="float32")
    times: dict[Any, list[float]] = {serial.kernel: [], there.kernel: []}
    for _ in range(ROUNDS):
        for kernel, samples in times.items():
            samples.append(kernel.bench(a, b, warmup=1, repeat=3).median)
    ours, theirs = (statistics.median(times[found.kernel]) for found in (serial, there))
    quarter = statistics.quantiles(times[serial.kernel], n=4)
    ranked = sorted(serial.trials[: len(CONFIGS)], key=lambda t: t.seconds)
    rank = next(n for n, t in enumerate(ranked, 1) if t.config == there.config)
    print(
        f"interleaved: serial winner {ours * 1e6:.1f} us, quartiles {quarter[0] * 1e6:.1f} and {quarter[2] * 1e6:.1f};"
    )
    print(f"cluster's winner {theirs * 1e6:.1f} us, {theirs / ours:.3f} times that; place {rank} in the serial search")


if __name__ == "__main__":
    main()
