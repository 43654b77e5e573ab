"""bfloat16 and int8 products on the CPU against PyTorch (oneDNN), both sides in one run with equal threads.

    python benchmarks/cpu_dots.py [--shape 1024x1024x1024 ...] [--dtype bfloat16 int8] [--attention 1x8x1024x64 ...]
                                  [--threads 2] [--json FILE]

Sides alternate twice: right after each other, where the threads of the other side's library still spin, and after a
pause and a warm call. On one thread the processor time of each side is compared: other work of the machine hardly
matters to it.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sides import Row, example, run

#: Seconds after which the threads of no library spin.
PAUSE = 0.02


def product(
    shape: tuple[int, int, int], trans_b: bool, dtype: str
) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return our product and PyTorch's of the same operands, after a comparison of their results."""
    import torch

    import tile_core as tile
    import tile_core.language as T

    m, n, k = shape
    rng = np.random.default_rng(k)
    accum = "int32" if dtype == "int8" else "float32"
    a, b = (rng.integers(-8, 9, s).astype(T.dtype(dtype).numpy()) for s in ((m, k), (n, k) if trans_b else (k, n)))
    c = np.empty((m, n), accum)
    program = example("gemm").matmul(m, n, k, False, trans_b, dtype, accum, min(m, 128), 128, 64)
    kernel = tile.compile(program, target="cpu")
    left, right = (
        torch.from_numpy(x) if dtype == "int8" else torch.from_numpy(x.view("uint16")).view(torch.bfloat16)
        for x in (a, b)
    )
    right = right.t() if trans_b else right
    theirs = (lambda: torch._int_mm(left, right)) if dtype == "int8" else (lambda: left @ right)
    kernel(a, b, c)
    assert np.array_equal(c, a.astype("float32") @ (b.T if trans_b else b).astype("float32"))
    return lambda: kernel(a, b, c), theirs


def attention(sizes: tuple[int, ...], causal: bool) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return our bfloat16 attention and PyTorch's of the same operands, after a comparison of their results."""
    import torch

    import tile_core as tile
    import tile_core.language as T

    batch, heads, length, dim = sizes
    bfloat16, rng = T.dtype("bfloat16").numpy(), np.random.default_rng(length)
    operands = [rng.standard_normal(sizes).astype(bfloat16) for _ in range(3)]
    out = np.empty(sizes, bfloat16)
    program = example("flash_attention").attention(batch, heads, length, length, dim, causal, "bfloat16", 128, 128)
    kernel = tile.compile(program, target="cpu")
    tensors = [torch.from_numpy(x.view("uint16")).view(torch.bfloat16) for x in operands]
    attend = torch.nn.functional.scaled_dot_product_attention
    kernel(*operands, out)
    exact = attend(*(t.float() for t in tensors), is_causal=causal).numpy()
    assert np.allclose(out.astype("float32"), exact, rtol=0.02, atol=0.02)
    return lambda: kernel(*operands, out), lambda: attend(*tensors, is_causal=causal)


def fastest(sides: tuple[Callable[[], object], ...], seconds: float, pause: float, threads: int) -> list[float]:
    """Return each side's fastest run: by the clock, or by processor time on one thread."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    best = [float("inf")] * len(sides)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for at, side in enumerate(sides):
            if pause:
                time.sleep(pause)
                side()
            begin = clock()
            side()
            best[at] = min(best[at], clock() - begin)
    return best


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per product."""
    # Both are read when the libraries start their threads.
    os.environ["TVM_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    rows: list[Row] = []

    def measured(names: Row, sides: tuple[Callable[[], object], ...], operations: float) -> None:
        row = dict(names)
        for name, pause in (("no pause", 0.0), ("pause", PAUSE)):
            ours, theirs = fastest(sides, arguments.seconds, pause, arguments.threads)
            row |= {f"G/s, {name}": operations / ours, f"torch, {name}": operations / theirs}
            row[f"torch/ours, {name}"] = theirs / ours
        rows.append(row)

    for dtype in arguments.dtype:
        for text in arguments.shape:
            m, n, k = (int(x) for x in text.split("x"))
            for trans_b in (False, True):
                names = {"dtype": dtype, "shape": text, "B": "transposed" if trans_b else "as it is"}
                measured(names, product((m, n, k), trans_b, dtype), 2e-9 * m * n * k)
    for text in arguments.attention:
        batch, heads, length, dim = sizes = tuple(int(x) for x in text.split("x"))
        for causal in (False, True):
            names = {"dtype": "bfloat16", "shape": text, "B": "causal" if causal else "attention"}
            measured(names, attention(sizes, causal), 4e-9 * batch * heads * length**2 * dim / (2 if causal else 1))
    return rows


def options(parser: Any) -> None:
    """Add this benchmark's options."""
    shapes = ["1024x1024x1024", "4096x4096x4096", "32x4096x4096", "8x4096x4096"]
    parser.add_argument("--shape", nargs="*", default=shapes)
    parser.add_argument("--attention", nargs="*", default=["1x8x1024x64", "1x8x1024x128"])
    parser.add_argument("--dtype", nargs="+", default=["bfloat16", "int8"])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=3.0, help="per product and kind of pause")


if __name__ == "__main__":
    run("products of narrow types beside PyTorch", measure, options)
