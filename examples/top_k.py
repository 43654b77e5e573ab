"""The largest elements of rows: in order, with their indices, and routing by them.

A router of experts chooses few of many scores this way. Softmax over the chosen ones follows in the same kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, run

import tile_core as tile
import tile_core.language as T


def route(M: int, N: int, K: int, dtype: str = "float32", block_M: int = 8) -> Any:
    """Choose each row's K largest of N scores, and weights with a total of 1."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), W: T.Tensor((M, K), "float32"), E: T.Tensor((M, K), "int32")) -> None:
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_shared((block_M, N), dtype)
            values, experts = T.alloc_fragment((block_M, K), dtype), T.alloc_fragment((block_M, K), "int32")
            weights, total = T.alloc_fragment((block_M, K), "float32"), T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.topk(x, values, experts, dim=1)
            weights[...] = T.exp(T.cast(values, "float32") - T.cast(values[:, 0:1], "float32"))
            T.reduce_sum(weights, total, dim=1)
            weights /= total[:, None]
            T.copy(weights, W[bx * block_M, 0])
            T.copy(experts, E[bx * block_M, 0])

    return main


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    passed = []
    for M, N, K, dtype in ((64, 256, 8, "float32"), (13, 100, 3, "float16"), (5, 60, 60, "float32")):
        x = np.random.default_rng(N).standard_normal((M, N)).astype(dtype)
        weights, experts = for_numpy(tile.compile(route(M, N, K, dtype), target=target, out_idx=[1, 2]))(x)
        order = np.argsort(-x.astype("float64"), axis=1, kind="stable")[:, :K]
        values = np.take_along_axis(x, order, 1).astype("float64")
        powers = np.exp(values - values[:, :1])
        passed.append(check(f"places of the {K} largest of {N} {dtype}", experts, order, 0.0))
        passed.append(check(f"their weights, {M} rows", weights, powers / powers.sum(1, keepdims=True), 1e-5))
    return passed


if __name__ == "__main__":
    run(main, __doc__)
