"""Memory-bound kernels on the CPU against NumPy, both sides in one run.

    python benchmarks/cpu_ops.py [NAME ...] [--size 4096] [--json FILE]

Demands: softmax and RMSNorm of 4096 x 4096 float32 at least as fast as NumPy; attention at least 0.95 of torch's flash
attention with the same number of threads, if torch is there. Where NumPy has two straightforward ways (the whole array,
or a few rows at a time, which stay in the cache), both run and the faster one counts.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from everyday_programs import transposed
from sides import Row, demanded, example, interleaved, run

import tile_core as tile

Side = Callable[[], object]


def by_rows(function: Callable[..., Any], step: int, *arrays: Any) -> Side:
    """Return a run of ``function`` over ``step`` rows at a time."""

    def run_all() -> None:
        for start in range(0, len(arrays[0]), step):
            function(*(x[start : start + step] for x in arrays))

    return run_all


def normal(size: int) -> tuple[Any, Any]:
    """Return a matrix and an output."""
    x = np.random.default_rng(size).standard_normal((size, size), "float32")
    return x, np.empty_like(x)


def softmax(size: int) -> tuple[Side, list[Side]]:
    """Softmax of rows."""
    x, y = normal(size)
    kernel = tile.compile(example("softmax").softmax(size, size), target="cpu")

    def rows(x: Any, y: Any) -> None:
        np.subtract(x, x.max(axis=1, keepdims=True), out=y)
        np.exp(y, out=y)
        np.divide(y, y.sum(axis=1, keepdims=True), out=y)

    return lambda: kernel(x, y), [lambda: rows(x, y), by_rows(rows, 16, x, y)]


def rms_norm(size: int) -> tuple[Side, list[Side]]:
    """RMS normalisation of rows."""
    x, y = normal(size)
    w = np.ones(size, "float32")
    kernel = tile.compile(example("rms_norm").rms_norm(size, size), target="cpu")

    def rows(x: Any, y: Any) -> None:
        scale = 1 / np.sqrt(np.einsum("ij,ij->i", x, x) / size + 1e-6)
        np.multiply(x, scale[:, None].astype("float32"), out=y)
        np.multiply(y, w, out=y)

    return lambda: kernel(x, w, y), [lambda: rows(x, y), by_rows(rows, 16, x, y)]


def cumsum(size: int) -> tuple[Side, list[Side]]:
    """Cumulative additions along rows."""
    x, y = normal(size)
    kernel = tile.compile(example("cumsum").cumsum(size, size), target="cpu")
    return lambda: kernel(x, y), [lambda: np.cumsum(x, axis=1, out=y)]


def elementwise(size: int) -> tuple[Side, list[Side]]:
    """A scalar times a vector plus a vector."""
    x, z = (a.reshape(-1) for a in normal(size))
    y = x[::-1].copy()
    kernel = tile.compile(example("elementwise").scaled_add(), target="cpu")
    alpha = np.float32(0.3)

    def parts(x: Any, y: Any, z: Any) -> None:
        np.multiply(x, alpha, out=z)
        np.add(z, y, out=z)

    return lambda: kernel(0.3, x, y, z), [lambda: parts(x, y, z), by_rows(parts, 2**16, x, y, z)]


def transpose(size: int) -> tuple[Side, list[Side]]:
    """Transposition."""
    x, y = normal(size)
    kernel = tile.compile(transposed(size, size), target="cpu")
    return lambda: kernel(x, y), [lambda: np.copyto(y, x.T)]


def attention(size: int) -> tuple[Side, list[Side]]:
    """Attention of 8 heads of 64, float32.

    The number of positions is a quarter of the size.
    """
    n, heads, dim = size // 4, 8, 64
    rng = np.random.default_rng(size)
    q, k, v = (rng.standard_normal((1, heads, n, dim), "float32") for _ in range(3))
    out = np.empty_like(q)
    program = example("flash_attention").attention(1, heads, n, n, dim, False, "float32")
    kernel = tile.compile(program, target="cpu")

    def heads_of(q: Any, k: Any, v: Any, out: Any) -> None:
        scores = q @ k.swapaxes(-1, -2)
        scores *= np.float32(dim**-0.5)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        total = scores.sum(axis=-1, keepdims=True)
        np.matmul(scores, v, out=out)
        np.divide(out, total, out=out)

    by_head = by_rows(heads_of, 1, q[0], k[0], v[0], out[0])
    return lambda: kernel(q, k, v, out), [lambda: heads_of(q, k, v, out), by_head]


def flash(size: int) -> tuple[Side, list[Side]]:
    """The same attention beside torch's; no side at all without torch."""
    try:
        import torch
    except ImportError:
        return lambda: None, []
    ours, _ = attention(size)
    rng = np.random.default_rng(size)
    q, k, v = (torch.from_numpy(rng.standard_normal((1, 8, size // 4, 64), "float32")) for _ in range(3))

    def theirs() -> None:
        with torch.no_grad(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            torch.nn.functional.scaled_dot_product_attention(q, k, v)

    return ours, [theirs]


OPS: dict[str, Callable[[int], tuple[Side, list[Side]]]] = {
    f.__name__: f for f in (softmax, rms_norm, cumsum, elementwise, transpose, attention, flash)
}


DEMANDS = {"softmax": 1.0, "rms_norm": 1.0, "flash": 0.95}


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per op."""
    rows = []
    for name in arguments.ops or OPS:
        ours, theirs = OPS[name](arguments.size)
        if not theirs:
            continue
        ours_s, *theirs_s = interleaved(ours, *theirs, seconds=arguments.seconds)
        ratio = min(theirs_s) / ours_s
        demand = demanded(ratio, DEMANDS[name]) if name in DEMANDS and arguments.size == 4096 else None
        rows.append({"op": name, "size": arguments.size, "ours ms": ours_s * 1e3, "NumPy ms": min(theirs_s) * 1e3,
                     "NumPy/ours": ratio, "demand": demand})  # fmt: skip
    return rows


def options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("ops", nargs="*", choices=[*OPS, []], help="all by default")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=3.0, help="per row")


if __name__ == "__main__":
    run("float32 kernels, all cores", measure, options)
