"""Elementwise arithmetic: one kernel for vectors and matrices of every runtime size."""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, run

import tile_core as tile
import tile_core.language as T


def scaled_add(dtype: str = "float32", block: int = 1024) -> Any:
    n = T.dynamic("n")

    @T.prim_func
    def main(alpha: T.float32, X: T.Tensor((n,), dtype), Y: T.Tensor((n,), dtype), Z: T.Tensor((n,), dtype)) -> None:
        with T.Kernel(T.ceildiv(n, block), threads=128) as bx:
            for i in T.Parallel(block):
                Z[bx * block + i] = alpha * X[bx * block + i] + Y[bx * block + i]

    return main


def swish_gate(dtype: str = "float16", block_M: int = 16, block_N: int = 128) -> Any:
    m, n = T.dynamic("m, n")

    @T.prim_func
    def main(X: T.Tensor((m, n), dtype), G: T.Tensor((m, n), dtype), Y: T.Tensor((m, n), dtype)) -> None:
        with T.Kernel(T.ceildiv(n, block_N), T.ceildiv(m, block_M), threads=128) as (bx, by):
            x = T.alloc_fragment((block_M, block_N), "float32")
            g = T.alloc_fragment((block_M, block_N), "float32")
            T.copy(X[by * block_M, bx * block_N], x)
            T.copy(G[by * block_M, bx * block_N], g)
            x[...] = x * g * T.sigmoid(g)
            T.copy(x, Y[by * block_M, bx * block_N])

    return main


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    passed = []
    rng = np.random.default_rng(0)
    kernel = for_numpy(tile.compile(scaled_add(), target=target, out_idx=-1))
    for n in (1, 1023, 1024, 5000):
        x, y = rng.standard_normal(n, "float32"), rng.standard_normal(n, "float32")
        z = kernel(0.3, x, y)
        expected = np.float64(np.float32(0.3)) * x + y.astype("float64")
        passed.append(check(f"scaled add of {n}, one kernel for all", z, expected, 2.0**-23))
    kernel = for_numpy(tile.compile(swish_gate(), target=target, out_idx=-1))
    for m, n in ((16, 128), (33, 70), (1, 1)):
        x, g = (rng.standard_normal((m, n), "float32").astype("float16") for _ in range(2))
        y = kernel(x, g)
        g64 = g.astype("float64")
        passed.append(check(f"swish gate {m}x{n} float16", y, x * g64 / (1 + np.exp(-g64)), 2.0**-10))
    return passed


if __name__ == "__main__":
    run(main, __doc__)
