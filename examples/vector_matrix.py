"""A vector times a quantized matrix: 4 or 8-bit integers, or 8-bit floats.

Elements are decoded in registers.

Each group of threads has rows of its own, each thread adjacent elements; nothing is staged in shared memory and threads
synchronize only in the reductions of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, run

import tile_core as tile
import tile_core.language as T
from tile_core.numerics import codecs


def vector_matrix(
    N: int, K: int, dtype: str, group: int = 64, block_N: int = 8, block_K: int = 512, threads: int = 64
) -> Any:
    """Return the product of W, scaled per ``group`` elements of a row, with a vector."""

    @T.prim_func
    def main(
        x: T.Tensor((K,), "float16"),
        W: T.Tensor((N, K), dtype),
        scale: T.Tensor((N, T.ceildiv(K, group)), "float16"),
        y: T.Tensor((N,), "float32"),
    ) -> None:
        with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bx:
            part = T.alloc_fragment((block_K,), "float16")
            total = T.alloc_reducer((block_N,), "float32", "sum")
            for k in T.serial(T.ceildiv(K, block_K)):
                T.copy(x[k * block_K], part)
                for i, j in T.Parallel(block_N, block_K):
                    n, kk = bx * block_N + i, k * block_K + j
                    w = T.cast(W[n, kk], "float32") * T.cast(scale[n, kk // group], "float32")
                    total[i] += T.cast(part[j], "float32") * w
            T.finalize_reducer(total)
            T.copy(total, y[bx * block_N])

    return main


def one(N: int, K: int, dtype: str, target: str) -> bool:
    rng = np.random.default_rng(N + K)
    element = T.dtype(dtype)
    x = rng.standard_normal(K).astype("float16")
    scale = (2.0 ** rng.integers(-4, 1, (N, -(-K // 64)))).astype("float16")
    if element.is_integer:
        low = -(2 ** (element.bits - 1))
        w = rng.integers(low, -low, (N, K))
        stored = codecs.pack4((w & 15).astype("uint8")) if element.bits == 4 else w.astype("int8")
    else:
        stored = rng.standard_normal((N, K)).astype(element.numpy())
        w = stored.astype("float64")
    # An iteration reads 8 bytes of a row in each of 32 threads.
    program = vector_matrix(N, K, dtype, block_K=32 * 8 * 8 // element.bits)
    y = for_numpy(tile.compile(program, target=target, out_idx=-1))(x, stored, scale)
    wide = w * np.repeat(scale.astype("float64"), 64, 1)[:, :K]
    magnitude = np.abs(wide) @ np.abs(x.astype("float64"))
    return check(f"{dtype} weights {N}x{K} times a vector", y, wide @ x.astype("float64"), K * 2.0**-24, magnitude)


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    return [
        one(64, 1024, "int4", target),
        one(64, 1024, "int8", target),
        one(64, 1024, "float8_e4m3fn", target),
        one(37, 1000, "int4", target),
        one(5, 70, "float8_e5m2", target),
    ]


if __name__ == "__main__":
    run(main, __doc__)
