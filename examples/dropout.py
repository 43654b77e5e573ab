"""Dropout without a mask in memory: each element draws its random number.

It is the same on every target.

The backward pass computes the same numbers again from the seed, so nothing has to be kept. An element's number depends
on the seed and its place alone, not on the size of a block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, run

import tile_core as tile
import tile_core.language as T


def dropout(N: int, rate: float, dtype: str = "float32", block: int = 256) -> Any:
    """Zero a part of the elements and scale the others; four share a counter."""
    scale = 1 / (1 - rate)

    @T.prim_func
    def main(X: T.Tensor((N,), dtype), seed: T.int64, Y: T.Tensor((N,), dtype)) -> None:
        with T.Kernel(T.ceildiv(N, block), threads=64) as bx:
            for i in T.Parallel(block // 4):
                first = bx * block + i * 4
                words = T.philox(seed, 0, first // 4)
                for j in T.static_range(4):
                    keep = T.uniform_of(words[j]) >= rate
                    Y[first + j] = T.if_then_else(keep, X[first + j] * scale, 0)

    return main


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    passed = []
    for N, rate in ((100_000, 0.25), (4099, 0.5)):
        x = np.random.default_rng(N).standard_normal(N, dtype="float32")
        kernel = for_numpy(tile.compile(dropout(N, rate), target=target, out_idx=-1))
        y = kernel(x, 42)
        kept = y != 0
        passed.append(check(f"kept elements of {N} are scaled", y[kept], x[kept].astype("float64") / (1 - rate), 1e-6))
        # The part that is kept is binomial: within six standard deviations.
        part = np.array([kept.mean()])
        passed.append(check(f"a part of {1 - rate} is kept", part, np.array([1 - rate]), 6 * 0.5 / N**0.5 / (1 - rate)))
        other = for_numpy(tile.compile(dropout(N, rate, block=64), target=target, out_idx=-1))(x, 42)
        passed.append(check("blocks of another size choose the same elements", other, y.astype("float64"), 0.0))
    return passed


if __name__ == "__main__":
    run(main, __doc__)
