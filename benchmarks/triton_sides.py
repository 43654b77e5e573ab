"""Plain Triton kernels beside ours in the benchmarks: pointers and ``tl.dot``.

Imported only where Triton is. Configurations: (block of M, of N, of K, warps, stages), or (queries, keys, warps,
stages).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

GEMM = ((128, 256, 64, 8, 4), (128, 256, 64, 8, 3), (128, 128, 64, 4, 4), (256, 128, 64, 8, 4), (128, 128, 64, 8, 4))
ATTENTION = ((128, 128, 8, 2), (128, 64, 8, 3), (128, 64, 4, 3), (64, 64, 4, 3), (128, 128, 8, 3))


@triton.jit
def _gemm(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PANEL: tl.constexpr):
    at, rows, columns = tl.program_id(0), m // BM, n // BN
    panel = at // (PANEL * columns)
    height = min(rows - panel * PANEL, PANEL)
    within = at % (PANEL * columns)
    row, column = panel * PANEL + within % height, within // height
    i, j, s = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
    at_a, at_b = a + i[:, None] * k + s[None, :], b + s[:, None] * n + j[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, k, BK):
        total = tl.dot(tl.load(at_a), tl.load(at_b), total)
        at_a += BK
        at_b += BK * n
    tl.store(c + i[:, None] * n + j[None, :], total.to(tl.float16))


@triton.jit
def _attention(q, k, v, o, length, scale, DIM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    first = tl.program_id(0) * BM
    base = tl.program_id(1).to(tl.int64) * length * DIM
    i, j, d = first + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, DIM)
    queries = tl.load(q + base + i[:, None] * DIM + d[None, :])
    top = tl.full((BM,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    result = tl.zeros((BM, DIM), dtype=tl.float32)
    at_k, at_v = k + base + j[None, :] * DIM + d[:, None], v + base + j[:, None] * DIM + d[None, :]
    whole = first if CAUSAL else length
    for n in range(0, whole, BN):
        scores = tl.dot(queries, tl.load(at_k + n * DIM))
        above = tl.maximum(top, tl.max(scores, 1) * scale)
        weights = tl.exp2(scores * scale - above[:, None])
        less = tl.exp2(top - above)
        total = total * less + tl.sum(weights, 1)
        result = tl.dot(weights.to(tl.float16), tl.load(at_v + n * DIM), result * less[:, None])
        top = above
    if CAUSAL:
        for n in range(whole, first + BM, BN):
            scores = tl.dot(queries, tl.load(at_k + n * DIM))
            scores = tl.where(i[:, None] >= n + j[None, :], scores * scale, -float("inf"))
            above = tl.maximum(top, tl.max(scores, 1))
            weights = tl.exp2(scores - above[:, None])
            less = tl.exp2(top - above)
            total = total * less + tl.sum(weights, 1)
            result = tl.dot(weights.to(tl.float16), tl.load(at_v + n * DIM), result * less[:, None])
            top = above
    tl.store(o + base + i[:, None] * DIM + d[None, :], (result / total[:, None]).to(tl.float16))


@triton.jit
def _square(x, w, y, count, columns, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    value = tl.load(x + at, mask=inside)
    tl.store(y + at, value * value * tl.load(w + at % columns, mask=inside), mask=inside)


def square(x, w):
    """Return ``x * x * w`` of a matrix and a row, in a new tensor."""
    y = torch.empty_like(x)
    _square[(triton.cdiv(x.numel(), 512),)](x, w, y, x.numel(), x.shape[1], BLOCK=512)
    return y


def square_operator():
    """Return the same kernel as an operator of torch."""

    @torch.library.triton_op("tile_benchmarks::triton_square", mutates_args=(), schema="(Tensor x, Tensor w) -> Tensor")
    def traced(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 512),)
        torch.library.wrap_triton(_square)[grid](x, w, y, x.numel(), x.shape[1], BLOCK=512)
        return y

    return traced


def gemm(a, b, c, config):
    """Return a function for the float16 product of sizes divisible by the tile's."""
    bm, bn, bk, warps, stages = config
    (m, k), n = a.shape, b.shape[1]
    grid = (m // bm * (n // bn),)
    return lambda: _gemm[grid](
        a, b, c, m, n, k, BM=bm, BN=bn, BK=bk, PANEL=8, num_warps=warps, num_stages=stages
    )  # fmt: skip


def attention(q, k, v, o, causal, config):
    """Return a function for attention on contiguous (batch, heads, positions, dim).

    Positions are a multiple of the tiles'.
    """
    bm, bn, warps, stages = config
    batch, heads, length, dim = q.shape
    return lambda: _attention[(length // bm, batch * heads)](
        q, k, v, o, length, 1.4426950408889634 / dim**0.5, DIM=dim, BM=bm, BN=bn, CAUSAL=causal,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
