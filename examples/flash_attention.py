"""Flash attention, forward: an online softmax in one pass, causal and not."""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, run

import tile_core as tile
import tile_core.language as T

LOG2_E = 1.4426950408889634


def attention(
    batch: int, heads: int, queries: int, keys: int, dim: int, causal: bool, dtype: str = "float16",
    block_M: int = 64, block_N: int = 64, threads: int = 128, num_stages: int = 2,
) -> Any:  # fmt: skip
    scale = LOG2_E / dim**0.5  # exp(x / sqrt(dim)) is exp2(x * scale)
    past = keys - queries  # with a causal mask the last query sees the last key

    @T.prim_func
    def main(
        Q: T.Tensor((batch, heads, queries, dim), dtype),
        K: T.Tensor((batch, heads, keys, dim), dtype),
        V: T.Tensor((batch, heads, keys, dim), dtype),
        Output: T.Tensor((batch, heads, queries, dim), dtype),
    ) -> None:
        with T.Kernel(T.ceildiv(queries, block_M), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            scores = T.alloc_fragment((block_M, block_N), "float32")
            weights = T.alloc_fragment((block_M, block_N), dtype)
            output = T.alloc_fragment((block_M, dim), "float32")
            top = T.alloc_fragment((block_M,), "float32")
            top_before = T.alloc_fragment((block_M,), "float32")
            correction = T.alloc_fragment((block_M,), "float32")
            row_sum = T.alloc_fragment((block_M,), "float32")
            total = T.alloc_fragment((block_M,), "float32")

            T.copy(Q[bz, by, bx * block_M : (bx + 1) * block_M, :], Q_shared)
            T.clear(output)
            T.clear(total)
            T.fill(top, -T.infinity("float32"))
            # A block of queries sees no key after its last query.
            seen = T.min(keys, (bx + 1) * block_M + past) if causal else keys
            for n in T.Pipelined(T.ceildiv(seen, block_N), num_stages=num_stages):
                T.copy(K[bz, by, n * block_N : (n + 1) * block_N, :], K_shared)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(block_M, block_N):
                    visible = n * block_N + j < keys
                    if causal:
                        visible = T.all_of(visible, bx * block_M + i + past >= n * block_N + j)
                    scores[i, j] = T.if_then_else(visible, scores[i, j] * scale, -T.infinity("float32"))
                T.copy(top, top_before)
                T.reduce_max(scores, top, dim=1, clear=False)
                correction[...] = T.exp2(top_before - top)
                scores[...] = T.exp2(scores - top[:, None])
                T.reduce_sum(scores, row_sum, dim=1)
                total[...] = total * correction + row_sum
                T.copy(scores, weights)
                output *= correction[:, None]
                T.copy(V[bz, by, n * block_N : (n + 1) * block_N, :], V_shared)
                T.gemm(weights, V_shared, output)
            output /= total[:, None]
            T.copy(output, Output[bz, by, bx * block_M : (bx + 1) * block_M, :])

    return main


def reference(q: Any, k: Any, v: Any, causal: bool) -> Any:
    """Return softmax(q k^T / sqrt(dim)) v in float64."""
    q, k, v = (x.astype("float64") for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(q.shape[-2], k.shape[-2], k.shape[-2] - q.shape[-2]) > 0, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def one(batch: int, heads: int, queries: int, keys: int, dim: int, causal: bool, target: str) -> bool:
    sizes: dict[str, Any] = {
        "batch": batch,
        "heads": heads,
        "queries": queries,
        "keys": keys,
        "dim": dim,
        "causal": causal,
    }
    tiles = tile.tilings(attention, sizes, target=target, most=1)[0]
    kernel = for_numpy(tile.compile(attention(**sizes, **tiles), target=target, out_idx=-1))
    rng = np.random.default_rng(queries + keys)
    q, k, v = (rng.standard_normal((batch, heads, n, dim), "float32").astype("float16") for n in (queries, keys, keys))
    out = kernel(q, k, v)
    name = f"attention {batch}x{heads}, {queries} queries, {keys} keys, dim {dim}{', causal' if causal else ''}"
    # The weights and the result are rounded to float16: 2**-11 each.
    return check(name, out, reference(q, k, v, causal), 2.0**-10)


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    return [
        one(1, 2, 128, 128, 64, False, target),
        one(1, 2, 128, 128, 64, True, target),
        one(2, 1, 77, 133, 40, False, target),
        one(2, 1, 77, 133, 40, True, target),
    ]


if __name__ == "__main__":
    run(main, __doc__)
