"""Stochastic rounding: 8-bit integers with a scale per row.

The mean of many roundings is the value itself.

A number between two integers becomes the upper one with the probability of its distance from the lower one. Small
changes are then not lost, as they are when a number is always rounded to the nearest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, run

import tile_core as tile
import tile_core.language as T


def quantize(M: int, N: int, block_M: int = 4) -> Any:
    """Quantise rows to int8: the largest size of a row becomes 127."""

    @T.prim_func
    def main(
        X: T.Tensor((M, N), "float32"), seed: T.int64, Q: T.Tensor((M, N), "int8"), S: T.Tensor((M,), "float32")
    ) -> None:
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x, top = T.alloc_fragment((block_M, N), "float32"), T.alloc_fragment((block_M,), "float32")
            T.copy(X[bx * block_M, 0], x)
            T.reduce_absmax(x, top, dim=1)
            for i in T.Parallel(block_M):
                top[i] = T.max(top[i], 2.0**-100) / 127
            for i, j in T.Parallel(block_M, N):
                word = T.philox(seed, bx * block_M + i, j)[0]
                Q[bx * block_M + i, j] = T.cast(x[i, j] / top[i], "int8", round="rs", rbits=word)
            T.copy(top, S[bx * block_M])

    return main


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    passed = []
    for M, N in ((8, 300), (5, 77)):
        x = np.random.default_rng(N).standard_normal((M, N), dtype="float32")
        kernel = for_numpy(tile.compile(quantize(M, N), target=target, out_idx=[2, 3]))
        draws = [kernel(x, seed) for seed in range(40)]
        scale = draws[0][1].astype("float64")[:, None]
        passed.append(check(f"scales of {M} rows", draws[0][1], np.abs(x).max(1).astype("float64") / 127, 1e-6))
        nearest = np.abs(draws[0][0] - x / scale).max(keepdims=True).reshape(1)
        passed.append(check("each is one of the two integers around it", np.minimum(nearest, 1), nearest, 1e-3))
        # The mean of 40 roundings deviates by less than six of its standard deviations, which are at most 1/2 over 40.
        mean = np.mean([q for q, _ in draws], axis=0)
        passed.append(check("the mean of many is the number", mean, x / scale, 6 * 0.5 / 40**0.5, np.ones((M, N))))
    return passed


if __name__ == "__main__":
    run(main, __doc__)
