"""Attention to a long cache: split-KV decoding, combined by a second launch.

Every block of the first launch takes a part of the keys, and keeps the largest score, the sum of the exponentials and
the weighted values of its part. The second launch scales the parts to one largest score and adds them up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, poisoned, run

import tile_core as tile
import tile_core.language as T


def decode(heads: int, width: int, splits: int, dtype: str = "float16", block: int = 64) -> Any:
    n = T.dynamic("n")
    scale = 1.4426950408889634 / width**0.5  # exponentials to base 2

    @T.prim_func
    def attention(
        Q: T.Tensor((heads, width), dtype), K: T.Tensor((n, width), dtype), V: T.Tensor((n, width), dtype),
        Out: T.Tensor((heads, width), dtype),
    ) -> None:  # fmt: skip
        parts = T.alloc_global((splits, heads, width), "float32")
        tops = T.alloc_global((splits, heads), "float32")
        totals = T.alloc_global((splits, heads), "float32")
        with T.Kernel(splits, threads=128) as (split,):
            q = T.alloc_shared((heads, width), dtype)
            k = T.alloc_shared((block, width), dtype)
            v = T.alloc_shared((block, width), dtype)
            s = T.alloc_fragment((heads, block), "float32")
            p = T.alloc_shared((heads, block), dtype)
            acc = T.alloc_fragment((heads, width), "float32")
            top = T.alloc_fragment((heads,), "float32")
            total = T.alloc_fragment((heads,), "float32")
            part = T.alloc_fragment((heads,), "float32")
            T.copy(Q, q)
            T.clear(acc)
            T.clear(total)
            T.fill(top, -1e30)
            for t in T.serial(T.ceildiv(n, block * splits)):
                first = (t * splits + split) * block
                T.copy(K[first, 0], k)
                T.copy(V[first, 0], v)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True)
                for i, j in T.Parallel(heads, block):
                    s[i, j] = T.if_then_else(first + j < n, s[i, j] * scale, -1e30)
                before = top + 0.0
                T.reduce_max(s, top, dim=1, clear=False)
                for i, j in T.Parallel(heads, block):
                    s[i, j] = T.if_then_else(first + j < n, T.exp2(s[i, j] - top[i]), 0)
                T.reduce_sum(s, part, dim=1)
                total = total * T.exp2(before - top) + part
                acc *= T.exp2(before[:, None] - top[:, None])
                T.copy(s, p)
                T.gemm(p, v, acc)
            T.copy(acc, parts[split, 0, 0])
            tops[split, :] = top
            totals[split, :] = total
        with T.Kernel(heads, threads=64) as h:
            top = T.alloc_var("float32", -1e30)
            for i in T.serial(splits):
                top = T.max(top, tops[i, h])
            total = T.alloc_var("float32", 0)
            acc = T.alloc_fragment((width,), "float32")
            T.clear(acc)
            for i in T.serial(splits):
                weight = T.exp2(tops[i, h] - top)
                total += weight * totals[i, h]
                acc += parts[i, h, :] * weight
            Out[h, :] = acc / total

    return attention


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    passed = []
    kernel = for_numpy(tile.compile(decode(16, 64, 5), target=target))
    for n in (1, 320, 777):
        rng = np.random.default_rng(n)
        q = rng.standard_normal((16, 64)).astype("float16")
        k, v = (rng.standard_normal((n, 64)).astype("float16") for _ in range(2))
        out = poisoned((16, 64), "float16")
        kernel(q, k, v, out)
        scores = q.astype("float64") @ k.astype("float64").T / 8
        weights = np.exp(scores - scores.max(1, keepdims=True))
        expected = weights / weights.sum(1, keepdims=True) @ v.astype("float64")
        passed.append(check(f"attention to {n} keys in 5 parts", out, expected, 4e-3, 1.0))
    return passed


if __name__ == "__main__":
    run(main, __doc__)
