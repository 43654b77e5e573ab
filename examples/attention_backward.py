"""Flash attention, backward: dK and dV stay in the block, dQ is accumulated atomically."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from checks import check, for_numpy, run

import tile_core as tile
import tile_core.language as T

LOG2_E = 1.4426950408889634


def row_products(batch: int, heads: int, queries: int, dim: int, dtype: str = "float16", block_M: int = 64) -> Any:
    """Return the program of row reductions of output times gradient, shared by all keys."""

    @T.prim_func
    def main(
        Output: T.Tensor((batch, heads, queries, dim), dtype),
        Gradient: T.Tensor((batch, heads, queries, dim), dtype),
        Products: T.Tensor((batch, heads, queries), "float32"),
    ) -> None:
        with T.Kernel(T.ceildiv(queries, block_M), heads, batch, threads=128) as (bx, by, bz):
            o = T.alloc_fragment((block_M, dim), dtype)
            g = T.alloc_fragment((block_M, dim), dtype)
            both = T.alloc_fragment((block_M, dim), "float32")
            totals = T.alloc_fragment((block_M,), "float32")
            T.copy(Output[bz, by, bx * block_M, 0], o)
            T.copy(Gradient[bz, by, bx * block_M, 0], g)
            for i, j in T.Parallel(block_M, dim):
                both[i, j] = T.cast(o[i, j], "float32") * T.cast(g[i, j], "float32")
            T.reduce_sum(both, totals, dim=1)
            T.copy(totals, Products[bz, by, bx * block_M])

    return main


def backward(
    batch: int, heads: int, queries: int, keys: int, dim: int, causal: bool, dtype: str = "float16",
    block_M: int = 32, block_N: int = 32, threads: int = 128, stages: int = 2,
) -> Any:  # fmt: skip
    """Return the gradients' program; ``Logs`` are base-2 logarithms of the weights' row totals."""
    scale = LOG2_E / dim**0.5  # exp(x / sqrt(dim)) is exp2(x * scale)
    past = keys - queries  # with a causal mask the last query sees the last key
    Row = Annotated[T.Buffer, T.Tensor((batch, heads, queries, dim), dtype)]
    Line = Annotated[T.Buffer, T.Tensor((batch, heads, queries), "float32")]
    Key = Annotated[T.Buffer, T.Tensor((batch, heads, keys, dim), dtype)]
    Totals = Annotated[T.Buffer, T.Tensor((batch, heads, queries, dim), "float32")]

    @T.prim_func
    def main(Q: Row, K: Key, V: Key, Gradient: Row, Logs: Line, Products: Line, dQ: Totals, dK: Key, dV: Key) -> None:
        with T.Kernel(T.ceildiv(keys, block_N), heads, batch, threads=threads) as (bx, by, bz):
            K_shared, V_shared = T.alloc_shared((block_N, dim), dtype), T.alloc_shared((block_N, dim), dtype)
            Q_shared, G_shared = T.alloc_shared((block_M, dim), dtype), T.alloc_shared((block_M, dim), dtype)
            logs, products = T.alloc_shared((block_M,), "float32"), T.alloc_shared((block_M,), "float32")
            # Tiles of weights have keys as rows: so they are operands of the gradients of keys and values as they are.
            scores = T.alloc_fragment((block_N, block_M), "float32")
            slopes = T.alloc_fragment((block_N, block_M), "float32")
            weights, W_shared = T.alloc_fragment((block_N, block_M), dtype), T.alloc_shared((block_N, block_M), dtype)
            dk, dv = T.alloc_fragment((block_N, dim), "float32"), T.alloc_fragment((block_N, dim), "float32")
            dq, dq_shared = T.alloc_fragment((block_M, dim), "float32"), T.alloc_shared((block_M, dim), "float32")
            T.copy(K[bz, by, bx * block_N, 0], K_shared)
            T.copy(V[bz, by, bx * block_N, 0], V_shared)
            T.clear(dk)
            T.clear(dv)
            # No query before the first that sees the block's first key is looked at.
            first = T.max(bx * block_N - past, 0) // block_M if causal else 0
            for n in T.Pipelined(T.ceildiv(queries, block_M) - first, num_stages=stages):
                m = (first + n) * block_M
                T.copy(Q[bz, by, m, 0], Q_shared)
                T.copy(Gradient[bz, by, m, 0], G_shared)
                T.copy(Logs[bz, by, m], logs)
                T.copy(Products[bz, by, m], products)
                T.gemm(K_shared, Q_shared, scores, transpose_B=True, clear_accum=True)
                T.gemm(V_shared, G_shared, slopes, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_N, block_M):
                    visible = T.all_of(bx * block_N + i < keys, m + j < queries)
                    if causal:
                        visible = T.all_of(visible, m + j + past >= bx * block_N + i)
                    scores[i, j] = T.if_then_else(visible, T.exp2(scores[i, j] * scale - logs[j]), 0.0)
                T.copy(scores, weights)
                T.gemm(weights, G_shared, dv)
                for i, j in T.Parallel(block_N, block_M):
                    slopes[i, j] = scores[i, j] * (slopes[i, j] - products[j])
                T.copy(slopes, weights)
                T.copy(weights, W_shared)
                T.gemm(weights, Q_shared, dk)
                T.gemm(W_shared, K_shared, dq, transpose_A=True, clear_accum=True)
                for i, j in T.Parallel(block_M, dim):
                    dq_shared[i, j] = dq[i, j] / dim**0.5
                T.atomic_add(dQ[bz, by, m, 0], dq_shared)
            for i, j in T.Parallel(block_N, dim):
                dk[i, j] = dk[i, j] / dim**0.5
            T.copy(dk, dK[bz, by, bx * block_N, 0])
            T.copy(dv, dV[bz, by, bx * block_N, 0])

    return main


def reference(q: Any, k: Any, v: Any, g: Any, causal: bool) -> tuple[Any, ...]:
    """Return the output, its rows' logarithms, and float64 gradients of q, k, v."""
    q, k, v, g = (x.astype("float64") for x in (q, k, v, g))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(q.shape[-2], k.shape[-2], k.shape[-2] - q.shape[-2]) > 0, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    totals = np.exp(scores - top).sum(-1, keepdims=True)
    weights = np.exp(scores - top) / totals
    out = weights @ v
    slopes = weights * (g @ v.swapaxes(-1, -2) - (out * g).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1])
    logs = LOG2_E * (top + np.log(totals))[..., 0]
    return out, logs, slopes @ k, slopes.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ g


def one(batch: int, heads: int, queries: int, keys: int, dim: int, causal: bool, target: str) -> list[bool]:
    rng = np.random.default_rng(queries + keys)
    shapes = [(batch, heads, n, dim) for n in (queries, keys, keys, queries)]
    q, k, v, g = (rng.standard_normal(s, "float32").astype("float16") for s in shapes)
    out, logs, *wanted = reference(q, k, v, g, causal)
    products = for_numpy(tile.compile(row_products(batch, heads, queries, dim), target=target, out_idx=-1))(
        out.astype("float16"), g
    )
    found = [np.zeros(shapes[0], "float32"), np.empty(shapes[1], "float16"), np.empty(shapes[1], "float16")]
    shape: dict[str, Any] = {
        "batch": batch,
        "heads": heads,
        "queries": queries,
        "keys": keys,
        "dim": dim,
        "causal": causal,
    }
    tiles = tile.tilings(backward, shape, target=target, most=1)[0]
    kernel = for_numpy(tile.compile(backward(**shape, **tiles), target=target))
    kernel(q, k, v, g, logs.astype("float32"), products, *found)
    sizes = f"{batch}x{heads}, {queries} queries, {keys} keys, dim {dim}{', causal' if causal else ''}"
    # Weights, their gradients and the results are rounded to float16; reductions over `queries` or `keys` of them
    # cancel.
    return [check(f"d{name} {sizes}", got, want, 2.0**-8) for name, got, want in zip("qkv", found, wanted, strict=True)]


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    sizes = (
        (1, 2, 128, 128, 64, False), (1, 1, 128, 128, 64, True), (1, 2, 67, 75, 40, False), (2, 1, 67, 75, 32, True),
    )  # fmt: skip
    return [passed for each in sizes for passed in one(*each, target)]


if __name__ == "__main__":
    run(main, __doc__)
