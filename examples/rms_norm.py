"""RMS normalization: one block per row, times a weight per column.

Each row is divided by the root of its mean square.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, run, threads_for

import tile_core as tile
import tile_core.language as T


def rms_norm(M: int, N: int, dtype: str = "float32", block_M: int = 1, eps: float = 1e-6, threads: int = 0) -> Any:
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)) -> None:
        with T.Kernel(T.ceildiv(M, block_M), threads=threads or threads_for(N)) as bx:
            x = T.alloc_fragment((block_M, N), "float32")
            total = T.alloc_reducer((block_M,), "float32", "sum")
            T.copy(X[bx * block_M, 0], x)
            for i, j in T.Parallel(block_M, N):
                total[i] += x[i, j] * x[i, j]
            T.finalize_reducer(total)
            x[...] = x * T.rsqrt(total / N + eps)[:, None] * T.cast(W, "float32")
            T.copy(x, Y[bx * block_M, 0])

    return main


def one(M: int, N: int, dtype: str, tolerance: float, target: str) -> bool:
    kernel = for_numpy(tile.compile(rms_norm(M, N, dtype), target=target, out_idx=-1))
    rng = np.random.default_rng(N)
    x, w = rng.standard_normal((M, N), "float32").astype(dtype), rng.standard_normal(N, "float32").astype(dtype)
    y = kernel(x, w)
    x64, w64 = x.astype("float64"), w.astype("float64")
    expected = x64 / np.sqrt(np.mean(x64 * x64, axis=1, keepdims=True) + 1e-6) * w64
    return check(f"rms_norm {M}x{N} {dtype}", y, expected, tolerance)


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    return [
        one(64, 512, "float32", 1e-6, target),
        one(37, 1000, "float32", 1e-6, target),
        one(5, 129, "float16", 1e-3, target),
    ]


if __name__ == "__main__":
    run(main, __doc__)
