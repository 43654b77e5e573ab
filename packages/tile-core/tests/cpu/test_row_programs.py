"""Programs of rows with guards and odd widths: no whole loop runs one element at a time."""

from __future__ import annotations

from typing import Any

import pytest

import tile_core.language as T
from tile_core.compat.tvm import tirx
from tile_core.cpu import pipeline
from tile_core.cpu.isa import Isa
from tile_core.ir import nodes
from tile_core.ir.visit import collect, role
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.reports.timing import timed

DTYPES = ("bfloat16", "float16", "float32")
UNITS = {
    "avx512": Isa("avx512", 512, 32, True, True, "znver4"),
    "avx2": Isa("avx2", 256, 16, True, True, "x86-64-v3"),
    "neon": Isa("neon", 128, 32, True, True, "neoverse-n1"),
}
BLOCK, F32 = 1024, "float32"


def swiglu(n: int, dtype: str) -> Any:
    @T.prim_func
    def main(X: T.Tensor((8, 2 * n), dtype), Y: T.Tensor((8, n), dtype)):
        with T.Kernel(T.ceildiv(n, BLOCK), 8, threads=256) as (bx, r):
            for j in T.Parallel(BLOCK):
                c = bx * BLOCK + j
                if c < n:
                    gate = T.cast(X[r, c], F32)
                    Y[r, c] = T.cast(gate / (1 + T.exp(-gate)) * T.cast(X[r, n + c], F32), dtype)

    return main


def rope(n: int, dtype: str) -> Any:
    @T.prim_func
    def main(
        X: T.Tensor((8, 2 * n), dtype),
        C: T.Tensor((8, n), F32),
        S: T.Tensor((8, n), F32),
        Y: T.Tensor((8, 2 * n), dtype),
    ):
        with T.Kernel(T.ceildiv(n, BLOCK), 8, threads=256) as (bx, r):
            for j in T.Parallel(BLOCK):
                c = bx * BLOCK + j
                if c < n:
                    a, b = T.cast(X[r, c], F32), T.cast(X[r, n + c], F32)
                    Y[r, c] = T.cast(a * C[r, c] - b * S[r, c], dtype)
                    Y[r, n + c] = T.cast(b * C[r, c] + a * S[r, c], dtype)

    return main


def softmax(n: int, dtype: str) -> Any:
    @T.prim_func
    def main(X: T.Tensor((8, n), dtype), L: T.Tensor((8,), "int32"), Y: T.Tensor((8, n), dtype)):
        with T.Kernel(8, threads=256) as r:
            x = T.alloc_fragment((1, n), F32)
            most, total = T.alloc_fragment((1,), F32), T.alloc_fragment((1,), F32)
            T.copy(X[r : r + 1, :], x)
            for i, j in T.Parallel(1, n):
                x[i, j] = T.if_then_else(j < L[r], x[i, j], -T.infinity(F32))
            T.reduce_max(x, most, dim=1)
            for i, j in T.Parallel(1, n):
                x[i, j] = T.exp(x[i, j] - most[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(1, n):
                if j < L[r]:
                    Y[r + i, j] = T.cast(x[i, j] / total[i], dtype)

    return main


def rms_norm(n: int, dtype: str) -> Any:
    @T.prim_func
    def main(X: T.Tensor((8, n), dtype), W: T.Tensor((n,), dtype), Y: T.Tensor((8, n), dtype)):
        with T.Kernel(8, threads=256) as r:
            x, square = T.alloc_fragment((1, n), F32), T.alloc_fragment((1, n), F32)
            total = T.alloc_fragment((1,), F32)
            T.copy(X[r : r + 1, :], x)
            for i, j in T.Parallel(1, n):
                square[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(square, total, dim=1)
            for i, j in T.Parallel(1, n):
                Y[r + i, j] = T.cast(x[i, j] * T.rsqrt(total[i] / n + 1e-6) * T.cast(W[j], F32), dtype)

    return main


@pytest.mark.sweep(12)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("n", [4093, 1000, 131071])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", [swiglu, rope, softmax, rms_norm])
def test_loops_are_vectors(monkeypatch: Any, make: Any, dtype: str, n: int, unit: str) -> None:
    isa = UNITS[unit]
    monkeypatch.setattr(pipeline, "isa_of", lambda _: isa)
    body = timed(make(n, dtype), make_context("cpu", {}), installed()).body
    loops = collect(body, tirx.For)
    assert any(s.kind == tirx.ForKind.VECTORIZED for s in loops)
    for s in loops:
        # A vector at the end of a row whose lanes do not all meet a condition, or what is left of a loop.
        alone = role(s) == "parallel" and not collect(s.body, tirx.For)
        assert not alone or nodes.as_int(s.extent) <= isa.vector_bits // 8, s
