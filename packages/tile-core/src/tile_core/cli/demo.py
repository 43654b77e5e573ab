"""``tile demo``: a dense and a sparse product, from source to timings in seconds."""

from __future__ import annotations

import inspect
import statistics
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tile_core.cli.console import Verbose, console
from tile_core.compat.types import Array
from tile_core.errors.launch import VerifyMismatch

if TYPE_CHECKING:
    from rich.console import Console

    from tile_core.runtime.kernel import Kernel

#: Rows of A, columns of B, inner length: multiples of no block, so that every tail is taken.
SIZES = (1000, 1000, 500)

#: The same for the sparse product, whose K is made of whole words of metadata.
SPARSE_SIZES = (1000, 1000, 496)

#: Largest relative error of a sum of 500 float32 products in any order, with a margin for the rounding of the products.
TOLERANCE = 1e-4

#: Both sides are timed in alternate rounds, so that a busy machine slows both. Seconds of a round, of which the first
#: half does not count: the threads of the other side spin for tens of milliseconds after its last run.
ROUNDS, ROUND_SECONDS = 3, 0.3


def demo(verbose: Verbose = False) -> None:
    """Compile a dense and a 2:4 sparse GEMM, check both, and compare their speed."""
    out, progress = console(), console(stderr=True)
    from tile_core.cli.demo_kernel import matmul

    _show_kernel(out, matmul)
    with progress.status("loading the compiler"):
        import numpy as np

        import tile_core as tile
        from tile_core.plugins.contexts import make_context

        target = make_context("cpu").target.text
    M, N, K = SIZES
    with progress.status(f"compiling for {target}"):
        start = time.perf_counter()
        kernel = tile.compile(matmul(M, N, K), target, out_idx=-1)
        seconds = time.perf_counter() - start
    out.print(f"Compiled for {target} in {seconds:.2f} s: {kernel.signature}", markup=False)
    out.print()
    _show_choices(out, kernel)
    rng = np.random.default_rng()
    a, b = rng.standard_normal((M, K), dtype="float32"), rng.standard_normal((K, N), dtype="float32")
    with progress.status("checking"):
        error = _check(kernel(a, b), a, b)
    size = f"all {M * N:,} elements against a float64 reference"
    out.print(f"Check: {size}, largest relative error {error:.1e}", markup=False)
    ours, theirs = _race(lambda: kernel(a, b), lambda: a @ b)  # nothing else runs meanwhile, no progress bar either
    rate = 2 * M * N * K / 1e9
    out.print(
        f"Speed: {rate / ours:.0f} GFLOP/s; NumPy {np.__version__} in the same run {rate / theirs:.0f} GFLOP/s; "
        f"ratio {theirs / ours:.2f}",
        markup=False,
    )
    _sparse(out, progress, target)
    out.print()
    out.print("Next: `tile run`, `tile explain` and `tile compile` do this for a kernel file of yours.", markup=False)


def _sparse(out: Console, progress: Console, target: str) -> None:
    """The same product with half of A pruned away: prune, compress, multiply, check, compare."""
    import numpy as np

    import tile_core as tile
    from tile_core import sparse
    from tile_core.cli.demo_kernel import matmul, matmul_sp

    out.print()
    _show_kernel(out, matmul_sp)
    M, N, K = SPARSE_SIZES
    rng = np.random.default_rng()
    pruned = sparse.prune(rng.standard_normal((M, K)).astype("float16"))
    a, e = sparse.compress(pruned)
    b = rng.standard_normal((K, N)).astype("float16")
    with progress.status(f"compiling for {target}"):
        kernel = tile.compile(matmul_sp(M, N, K), target, out_idx=-1)
        dense = tile.compile(matmul(M, N, K, dtype="float16"), target, out_idx=-1)
    _show_choices(out, kernel)
    stored = (a.nbytes + e.nbytes) / pruned.nbytes
    out.print(f"A, 2 of every 4 pruned: {pruned.nbytes:,} bytes, compressed to {stored:.0%} of that", markup=False)
    with progress.status("checking"):
        error = _check(kernel(a, e, b), pruned, b)
    size = f"all {M * N:,} elements against a float64 reference"
    out.print(f"Check: {size}, largest relative error {error:.1e}", markup=False)
    ours, theirs = _race(lambda: kernel(a, e, b), lambda: dense(pruned, b))
    out.print(f"Speed: {theirs / ours:.2f} times our dense float16 product of the same matrices", markup=False)


def _show_kernel(out: Console, factory: Callable[..., object]) -> None:
    from rich.syntax import Syntax

    text = textwrap.dedent(inspect.getsource(factory))
    out.print(f"The kernel ({Path(inspect.getfile(factory)).name}):", markup=False)
    if out.is_terminal:
        out.print(Syntax(text, "python", background_color="default"))
    else:
        print(text)


def _show_choices(out: Console, kernel: Kernel) -> None:
    """Print the first parts of a kernel's report: its launch and its instruction selection."""
    print("\n\n".join(kernel.explain().split("\n\n")[:2]))
    out.print("(kernel.explain() goes on with memory, vectors and passes)", markup=False)
    out.print()


def _check(found: Array, a: Array, b: Array) -> float:
    """Compare with the product in float64; return the largest relative error.

    It is relative to the total of the products' magnitudes.

    Raises
    ------
    VerifyMismatch
        If an element is wrong.
    """
    import numpy as np

    exact = a.astype("float64") @ b.astype("float64")
    error = np.abs(found - exact) / (np.abs(a).astype("float64") @ np.abs(b).astype("float64"))
    error = np.where(np.isnan(error), np.inf, error)
    worst = np.unravel_index(int(error.argmax()), error.shape)
    if error[worst] > TOLERANCE:
        raise VerifyMismatch(
            kernel="gemm", name="C", wrong=int((error > TOLERANCE).sum()), elements=error.size,
            index=tuple(map(int, worst)), found=found[worst].item(), expected=exact[worst].item(), rtol=TOLERANCE,
            atol=0.0,
        )  # fmt: skip
    return float(error[worst])


def _race(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
    """Median seconds of both."""
    samples: dict[Callable[[], object], list[float]] = {ours: [], theirs: []}
    for _ in range(ROUNDS):
        for run, times in samples.items():
            times += _timed_round(run)
    return statistics.median(samples[ours]), statistics.median(samples[theirs])


def _timed_round(run: Callable[[], object]) -> list[float]:
    begin = time.perf_counter()
    times: list[float] = []
    while time.perf_counter() < begin + ROUND_SECONDS or not times:
        start = time.perf_counter()
        run()
        if start >= begin + ROUND_SECONDS / 2:
            times.append(time.perf_counter() - start)
    return times
