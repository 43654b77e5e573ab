"""Matrix product with equal work per block: any number of tiles (stream-K).

The steps over K of all tiles of C form one sequence, cut into equal parts, one per block. A part may begin and end
within a tile: its partial tile goes to a workspace, and a second launch reduces the partial tiles of a tile, always in
the same order. Tiles computed by one block are written at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, poisoned, run

import tile_core as tile
import tile_core.language as T


def matmul(
    M: int, N: int, K: int, blocks: int, dtype: str = "float32", accum: str = "float32",
    block_M: int = 64, block_N: int = 64, block_K: int = 32, threads: int = 128,
) -> Any:  # fmt: skip
    """The product on a number of blocks, with at most ``share`` steps each."""
    across, steps = -(-N // block_N), -(-K // block_K)
    tiles = across * -(-M // block_M)
    share = -(-tiles * steps // blocks)

    @T.prim_func
    def stream_k(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), accum)) -> None:
        # A part has partial tiles at its begin and end; tiles between them are whole.
        partials = T.alloc_global((blocks, 2, block_M, block_N), accum)
        with T.Kernel(blocks, threads=threads) as b:
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum)
            for s in T.serial(-(-share // steps) + 1):
                t = b * share // steps + s
                first = T.max(b * share, t * steps)
                end = T.min(T.min((b + 1) * share, tiles * steps), (t + 1) * steps)
                if first < end:
                    T.clear(C_local)
                    for i in T.Pipelined(end - first, num_stages=3):
                        k = first - t * steps + i
                        T.copy(A[t // across * block_M, k * block_K], A_shared)
                        T.copy(B[k * block_K, t % across * block_N], B_shared)
                        T.gemm(A_shared, B_shared, C_local)
                    if end - first == steps:
                        T.copy(C_local, C[t // across * block_M, t % across * block_N])
                    else:
                        T.copy(C_local, partials[b, T.if_then_else(s == 0, 0, 1), 0, 0])
        with T.Kernel(tiles, threads=threads) as t:
            total = T.alloc_fragment((block_M, block_N), accum)
            first = t * steps // share
            last = ((t + 1) * steps - 1) // share
            if first < last:
                T.clear(total)
                for i in T.serial(last - first + 1):
                    b = first + i
                    total += partials[b, T.if_then_else(b * share // steps == t, 0, 1), 0:block_M, 0:block_N]
                T.copy(total, C[t // across * block_M, t % across * block_N])

    return stream_k


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    passed = []
    for M, N, K, blocks in ((128, 192, 256, 4), (131, 67, 307, 5), (131, 67, 307, 1), (64, 64, 320, 7), (1, 1, 1, 3)):
        rng = np.random.default_rng(M + N)
        a, b = rng.standard_normal((M, K), "float32"), rng.standard_normal((K, N), "float32")
        c = poisoned((M, N), "float32")
        for_numpy(tile.compile(matmul(M, N, K, blocks), target=target))(a, b, c)
        a64, b64 = a.astype("float64"), b.astype("float64")
        # A sum of K rounded products is off by at most K/2 units of the last place of the sum of their magnitudes.
        name = f"stream-K gemm {M}x{N}x{K} on {blocks} blocks"
        passed.append(check(name, c, a64 @ b64, K * 2.0**-24, np.abs(a64) @ np.abs(b64)))
    return passed


if __name__ == "__main__":
    run(main, __doc__)
