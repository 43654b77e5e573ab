"""Ordinary layers on the CPU beside PyTorch and ``torch.compile``, all sides in one run.

    python benchmarks/cpu_everyday.py [NAME ...] [--threads 1] [--size 1024x4096] [--compiled] [--json FILE]

Programs without products of matrices (`everyday_programs`, `serving_day_kernels`). Demands: a geometric mean of 1.5 of
PyTorch, none below 0.9. With one thread the processor time counts, so that other work on the machine disturbs little.
"""

from __future__ import annotations

import argparse
import functools
import os
from collections.abc import Callable
from typing import Any

import everyday_programs as programs
import numpy as np
import serving_day_kernels as serving
from cpu_dots import fastest
from sides import Row, run

import tile_core as tile
import tile_core.language as T

F32, BF16, F16 = "float32", "bfloat16", "float16"
_PAIRS = ("residual", "quantize")
"""Layers with two results."""


def _gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1.0 + T.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


Layer = tuple[Any, list[Any], Callable[..., Any]]
"""A program, the shapes and types of its arguments, outputs last, and the same by PyTorch."""


def elementwise(M: int, N: int) -> dict[str, Layer]:
    """Return layers that compute each element from others at the same index."""
    import torch
    from torch.nn import functional as F

    def one(dtype: str, function: Callable[..., Any], peer: Callable[..., Any], out: str = "", inputs: int = 1) -> Any:
        shapes = [((M, N), dtype)] * inputs
        return programs.elementwise(M, N, dtype, inputs, function, out), [*shapes, ((M, N), out or dtype)], peer

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1.0 + T.erf(x * 0.7071067811865476))

    def silu(x: Any) -> Any:
        return x / (1.0 + T.exp(-x))

    return {
        "add": one(F32, lambda x, z: x + z, lambda x, z: x + z, inputs=2),
        "add bf16": one(BF16, lambda x, z: x + z, lambda x, z: x + z, inputs=2),
        "gelu": one(F32, gelu, F.gelu),
        "gelu bf16": one(BF16, gelu, F.gelu),
        "gelu tanh bf16": one(BF16, _gelu_tanh, lambda x: F.gelu(x, approximate="tanh")),
        "silu": one(F32, silu, F.silu),
        "silu bf16": one(BF16, silu, F.silu),
        "silu f16": one(F16, silu, F.silu),
        "silu times bf16": one(BF16, lambda x, z: silu(x) * z, lambda x, z: F.silu(x) * z, inputs=2),
        "relu squared bf16": one(BF16, lambda x: T.max(x, 0.0) * T.max(x, 0.0), lambda x: F.relu(x).square()),
        "f32 to bf16": one(F32, lambda x: x, lambda x: x.bfloat16(), BF16),
        "bf16 to f32": one(BF16, lambda x: x, lambda x: x.float(), F32),
        "f16 to f32": one(F16, lambda x: x, lambda x: x.float(), F32),
        "f32 to fp8": one(F32, lambda x: x, lambda x: x.to(torch.float8_e4m3fn), "float8_e4m3fn"),
        "bf16 to fp8": one(BF16, lambda x: x, lambda x: x.to(torch.float8_e4m3fn), "float8_e4m3fn"),
    }


def by_rows(M: int, N: int) -> dict[str, Layer]:
    """Return layers that need all elements of a row or column."""
    import torch
    from torch.nn import functional as F

    def rows(program: Any, dtype: str, peer: Callable[..., Any], *others: Any) -> Any:
        return program, [((M, N), dtype), *others, ((M, N), dtype)], peer

    def reduced(dtype: str, op: str, peer: Callable[..., Any]) -> Any:
        return programs.reduced(M, N, dtype, op), [((M, N), dtype), ((M,), F32)], peer

    def residual(x: Any, r: Any, w: Any) -> Any:
        return F.rms_norm(x + r, (N,), w, 1e-6), x + r

    def quantize(x: Any) -> Any:
        scale = x.float().abs().amax(1).clamp(min=1e-8) / 127.0
        return (x.float() / scale[:, None]).round().to(torch.int8), scale

    hidden = torch.ones(M, N, dtype=torch.bool).triu(1)
    vector, matrix = ((N,), BF16), ((M, N), BF16)
    rms, norm = functools.partial(F.rms_norm, normalized_shape=(N,), eps=1e-6), (N,)
    return {
        "rms norm": rows(serving.rms(M, N, 256, F32), F32, lambda x, w: rms(x, weight=w), ((N,), F32)),
        "rms norm bf16": rows(serving.rms(M, N, 256), BF16, lambda x, w: rms(x, weight=w), vector),
        "residual rms bf16": (programs.residual_rms(M, N, BF16), [matrix, matrix, vector, matrix, matrix], residual),
        "layer norm bf16": rows(
            programs.layer_norm(M, N, BF16), BF16, lambda x, w, b: F.layer_norm(x, norm, w, b), vector, vector
        ),
        "softmax": rows(serving.softmax(M, N, 256, F32), F32, lambda x: torch.softmax(x, 1)),
        "softmax bf16": rows(serving.softmax(M, N, 256), BF16, lambda x: torch.softmax(x, 1)),
        "log softmax bf16": rows(programs.softmax(M, N, BF16, log=True), BF16, lambda x: torch.log_softmax(x, 1)),
        "causal softmax bf16": rows(
            programs.softmax(M, N, BF16, causal=True), BF16, lambda x: x.masked_fill(hidden, -torch.inf).softmax(1)
        ),
        "sum of rows bf16": reduced(BF16, "reduce_sum", lambda x: x.sum(1, dtype=torch.float32)),
        "max of rows": reduced(F32, "reduce_max", lambda x: x.amax(1)),
        "sum of columns bf16": (
            programs.column_sum(M, N, BF16), [matrix, ((N,), F32)], lambda x: x.sum(0, dtype=torch.float32),
        ),
        "argmax bf16": (programs.argmax(M, N, BF16), [matrix, ((M,), "int64")], lambda x: x.argmax(1)),
        "cumsum": rows(programs.scanned(M, N, F32), F32, lambda x: x.cumsum(1)),
        "quantize int8": (programs.quantized(M, N, BF16), [matrix, ((M, N), "int8"), ((M,), F32)], quantize),
    }  # fmt: skip


def layouts(M: int, N: int) -> dict[str, Layer]:
    """Return layers that move, gather, rotate or scale elements."""
    import torch
    from torch.nn import functional as F

    S, H, D, half = M, max(N // 128, 1), 128, N // 2
    matrix, heads, angles = ((M, N), BF16), ((1, S, H, D), BF16), ((S, D // 2), F32)

    def rotated(x: Any, c: Any, s: Any) -> Any:
        low, high = x.float().chunk(2, -1)
        c, s = c[None, :, None], s[None, :, None]
        return torch.cat((low * c - high * s, high * c + low * s), -1).to(x.dtype)

    def moved(dtype: str) -> Any:
        return programs.transposed(M, N, dtype), [((M, N), dtype), ((N, M), dtype)], lambda x: x.T.contiguous()

    return {
        "transpose": moved(F32),
        "transpose bf16": moved(BF16),
        "heads first bf16": (
            programs.heads_first(1, S, H, D, BF16), [heads, ((1, H, S, D), BF16)],
            lambda x: x.transpose(1, 2).contiguous(),
        ),
        "rope bf16": (programs.rope(1, S, H, D, BF16), [heads, angles, angles, heads], rotated),
        "embedding bf16": (
            programs.embedding(4 * M, N, M, BF16), [((4 * M, N), BF16), ((M,), "int32"), matrix],
            lambda table, at: F.embedding(at, table),
        ),
        "dequantize int8": (
            programs.dequantized(M, N, BF16), [((M, N), "int8"), ((M,), F32), matrix],
            lambda q, s: (q.float() * s[:, None]).bfloat16(),
        ),
        "swiglu bf16": (
            serving.swiglu(M, half, 256), [((M, 2 * half), BF16), ((M, half), BF16)],
            lambda g: F.silu(g[:, :half]) * g[:, half:],
        ),
    }  # fmt: skip


def sides(program: Any, shapes: list[Any], peer: Callable[..., Any], compiled: bool) -> list[Callable[[], object]]:
    """Return our run, PyTorch's and that of ``torch.compile``, after a comparison of all results."""
    import torch

    rng = np.random.default_rng(len(shapes))
    arrays = []
    for shape, dtype in shapes:
        if dtype.startswith("int") and len(shape) == 1:
            arrays.append(rng.integers(0, shape[0], shape).astype(dtype))
        elif dtype.startswith("int"):
            arrays.append(rng.integers(-127, 128, shape).astype(dtype))
        else:
            arrays.append(rng.standard_normal(shape).astype(T.dtype(dtype).numpy()))
    tensors = [_tensor(x) for x in arrays]
    count = len(arrays) - (2 if peer.__name__ in _PAIRS else 1)
    kernel = tile.compile(program, target="cpu")
    inputs = tensors[:count]
    found, wanted = tensors[count:], peer(*inputs)
    kernel(*arrays)
    for mine, theirs in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        if not mine.dtype.is_floating_point:
            assert (mine.long() - theirs.long()).abs().max() <= (1 if mine.dtype == torch.int8 else 0)
        else:
            assert torch.allclose(mine.float(), theirs.float(), rtol=0.02, atol=0.02, equal_nan=True)
    all_sides: list[Callable[[], object]] = [lambda: kernel(*arrays), lambda: peer(*inputs)]
    if compiled:
        fused = torch.compile(peer)
        fused(*inputs)
        all_sides.append(lambda: fused(*inputs))
    return all_sides


def _tensor(x: Any) -> Any:
    import torch

    kinds = {"bfloat16": (torch.bfloat16, "uint16"), "float8_e4m3fn": (torch.float8_e4m3fn, "uint8")}
    if str(x.dtype) not in kinds:
        return torch.from_numpy(x)
    kind, bits = kinds[str(x.dtype)]
    return torch.from_numpy(x.view(bits)).view(kind)


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per layer, and the geometric means."""
    os.environ["TVM_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    M, N = (int(x) for x in arguments.size.split("x"))
    rows: list[Row] = []
    for name, (program, shapes, peer) in {**elementwise(M, N), **by_rows(M, N), **layouts(M, N)}.items():
        if arguments.names and not any(wanted in name for wanted in arguments.names):
            continue
        times = fastest(
            tuple(sides(program, shapes, peer, arguments.compiled)), arguments.seconds, 0.0, arguments.threads
        )
        row: Row = {"layer": name, "us": times[0] * 1e6, "torch us": times[1] * 1e6, "torch/ours": times[1] / times[0]}
        if arguments.compiled:
            row["torch.compile/ours"] = times[2] / times[0]
        rows.append(row)
    mean: Row = {"layer": "geometric mean", "us": None, "torch us": None}
    for key in ("torch/ours", "torch.compile/ours")[: 1 + arguments.compiled]:
        mean[key] = float(np.exp(np.mean([np.log(row[key]) for row in rows])))
    return [*rows, mean]


def options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("names", nargs="*", help="parts of names of layers")
    parser.add_argument("--size", default="1024x4096")
    parser.add_argument("--compiled", action="store_true", help="measure torch.compile, too")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="per layer")


if __name__ == "__main__":
    run("ordinary layers beside PyTorch", measure, options)
