"""Products of narrow types on the CPU, both sides in one run with equal threads.

bfloat16, int8 and 4-bit weights beside PyTorch (oneDNN); 8-bit floats and block scales, which it lacks,
beside our bfloat16 product.

    python benchmarks/cpu_dots.py [--shape 1024x1024x1024 ...] [--dtype bfloat16 int8] [--attention 1x8x1024x64 ...]
                                  [--narrow fp8 mxfp8 mxfp4 nvfp4] [--weights 1x4096x4096 ...]
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


#: Types of A, B and scales, and the elements of K for each scale.
NARROW = {
    "fp8": ("float8_e4m3fn", "", 1), "mxfp8": ("float8_e4m3fn", "float8_e8m0fnu", 32),
    "mxfp4": ("float4_e2m1fn", "float8_e8m0fnu", 32), "nvfp4": ("float4_e2m1fn", "float8_e4m3fn", 16),
}  # fmt: skip


def scaled(m: int, n: int, k: int, trans_b: bool, dtype: str, scale: str, block: int) -> Any:
    """Return a product with scales for blocks of K."""
    import tile_core.language as T

    def stored(rows: int, columns: int) -> tuple[int, int]:
        return (rows, columns) if trans_b else (columns, rows)

    @T.prim_func
    def kernel(
        A: T.Tensor((m, k), dtype), P: T.Tensor((m, k // block), scale), B: T.Tensor(stored(n, k), dtype),
        Q: T.Tensor(stored(n, k // block), scale), C: T.Tensor((m, n), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(n, 128), T.ceildiv(m, 128), threads=128) as (bx, by):
            a, p = T.alloc_shared((128, 128), dtype), T.alloc_shared((128, 128 // block), scale)
            b, q = T.alloc_shared((128, 128), dtype), T.alloc_shared(stored(128, 128 // block), scale)
            c = T.alloc_fragment((128, 128), "float32")
            T.clear(c)
            for i in T.Pipelined(T.ceildiv(k, 128), num_stages=2):
                T.copy(A[by * 128, i * 128], a)
                T.copy(P[by * 128, i * (128 // block)], p)
                if trans_b:
                    T.copy(B[bx * 128, i * 128], b)
                    T.copy(Q[bx * 128, i * (128 // block)], q)
                else:
                    T.copy(B[i * 128, bx * 128], b)
                    T.copy(Q[i * (128 // block), bx * 128], q)
                T.gemm_scaled(a, p, b, q, c, transpose_B=trans_b)
            T.copy(c, C[by * 128, bx * 128])

    return kernel


def narrow(shape: tuple[int, int, int], trans_b: bool, kind: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return our product of narrow floats and ours of bfloat16, after a comparison of their results."""
    import tile_core as tile
    import tile_core.language as T
    from tile_core.numerics import codecs

    (m, n, k), (dtype, scale, block) = shape, NARROW[kind]
    rng, out, wide = np.random.default_rng(k), np.empty((m, n), "float32"), []
    packed: list[Any] = []
    for lines, rows in ((m, True), (n, trans_b)):
        codes = codecs.encode(rng.integers(-3, 4, (lines, k)).astype("float32"), dtype)
        factors = codecs.encode(2.0 ** rng.integers(-2, 3, (lines, k // block)), scale) if scale else None
        x = codecs.decode(codes, dtype)
        x = x if factors is None else x * np.repeat(codecs.decode(factors, scale), block, axis=1)
        for one in (codes, factors):
            if one is not None:
                one = np.ascontiguousarray(one if rows else one.T)
                packed.append(codecs.pack4(one) if one.size == codes.size and "float4" in dtype else one)
        wide.append(np.ascontiguousarray(x if rows else x.T).astype(T.dtype("bfloat16").numpy()))
    plain = example("gemm").matmul
    sizes = m, n, k, False, trans_b
    program = scaled(m, n, k, trans_b, dtype, scale, block) if scale else plain(*sizes, dtype, "float32", 128, 128, 64)
    ours, base = (tile.compile(p, "cpu") for p in (program, plain(*sizes, "bfloat16", "float32", 128, 128, 64)))
    ours(*packed, out)
    found = out.copy()
    base(*wide, out)
    assert np.allclose(found, out, rtol=1e-5, atol=1e-3 * k)
    return lambda: ours(*packed, out), lambda: base(*wide, out)


def weights(m: int, n: int, k: int, group: int = 128) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return our product with 4-bit weights and PyTorch's of bfloat16, after a comparison with NumPy's."""
    import torch
    from serving_day_kernels import w4a16

    import tile_core as tile
    import tile_core.language as T
    from tile_core.numerics import codecs

    bfloat16, rng = T.dtype("bfloat16").numpy(), np.random.default_rng(k)
    a, w = rng.integers(-3, 4, (m, k)).astype(bfloat16), rng.integers(-8, 8, (n, k))
    scale = (2.0 ** rng.integers(-4, 1, (n, k // group))).astype(bfloat16)
    packed, c = codecs.pack4((w & 15).astype("uint8")), np.empty((m, n), "float32")
    kernel = tile.compile(w4a16(m, n, k, group, min(m, 32), 64, 512, 128, 2), target="cpu")
    kernel(a, packed, scale, c)
    wide = (w * np.repeat(scale.astype("float32"), group, 1)).astype(bfloat16)
    assert np.allclose(c, a.astype("float32") @ wide.astype("float32").T, rtol=1e-5, atol=1e-3)
    left, right = (torch.from_numpy(x.view("uint16")).view(torch.bfloat16) for x in (a, wide))
    return lambda: kernel(a, packed, scale, c), lambda: torch.nn.functional.linear(left, right)


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

    def measured(names: Row, sides: tuple[Callable[[], object], ...], operations: float, other: str = "torch") -> None:
        row = dict(names)
        for name, pause in (("no pause", 0.0), ("pause", PAUSE)):
            ours, theirs = fastest(sides, arguments.seconds, pause, arguments.threads)
            row |= {"beside": other, f"G/s, {name}": operations / ours, f"other, {name}": operations / theirs}
            row[f"other/ours, {name}"] = theirs / ours
        rows.append(row)

    for dtype in arguments.dtype:
        for text in arguments.shape:
            m, n, k = (int(x) for x in text.split("x"))
            for trans_b in (False, True):
                names = {"dtype": dtype, "shape": text, "B": "transposed" if trans_b else "as it is"}
                measured(names, product((m, n, k), trans_b, dtype), 2e-9 * m * n * k)
    for kind in arguments.narrow:
        for text in arguments.narrow_shape:
            m, n, k = (int(x) for x in text.split("x"))
            for trans_b in (False, True):
                names = {"dtype": kind, "shape": text, "B": "transposed" if trans_b else "as it is"}
                measured(names, narrow((m, n, k), trans_b, kind), 2e-9 * m * n * k, "bfloat16")
    for text in arguments.weights:
        m, n, k = (int(x) for x in text.split("x"))
        measured({"dtype": "int4", "shape": text, "B": "transposed"}, weights(m, n, k), 2e-9 * m * n * k)
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
    parser.add_argument("--narrow", nargs="*", default=list(NARROW))
    parser.add_argument("--narrow-shape", nargs="*", default=["1024x1024x1024"])
    parser.add_argument("--weights", nargs="*", default=[f"{m}x4096x4096" for m in (1, 8, 32)])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=3.0, help="per product and kind of pause")


if __name__ == "__main__":
    run("products of narrow types", measure, options)
