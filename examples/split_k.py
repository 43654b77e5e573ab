"""Products with few rows: blocks share the sum over K, and a second kernel adds up what they found.

Where C is small, its tiles are too few to fill a machine. Here a block takes a part of K, and with a wide ``block_N``
whole rows of B, which a processor reads in one go from its memory. Each part has its own partial C, so the result does
not depend on which block ends first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from checks import check, poisoned, run

import tile_core as tile
import tile_core.language as T


def partial_products(
    M: int, N: int, K: int, splits: int, dtype: str = "float32", accum: str = "float32",
    block_M: int = 4, block_N: int = 64, block_K: int = 64,
) -> Any:  # fmt: skip
    """Part ``s`` of P is the product over the tiles of K from ``s * steps`` on."""
    steps = -(-K // (block_K * splits))

    @T.prim_func
    def partial(
        A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), P: T.Tensor((splits, M, N), accum)
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), splits, threads=128) as (bx, by, s):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum)
            T.clear(C_local)
            for k in T.Pipelined(steps, num_stages=3):
                T.copy(A[by * block_M, (s * steps + k) * block_K], A_shared)
                T.copy(B[(s * steps + k) * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, P[s, by * block_M, bx * block_N])

    return partial


def total(M: int, N: int, splits: int, accum: str = "float32", block_M: int = 4, block_N: int = 2048) -> Any:
    """The sum of the parts, in their order."""

    @T.prim_func
    def add_up(P: T.Tensor((splits, M, N), accum), C: T.Tensor((M, N), accum)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            C_local = T.alloc_fragment((block_M, block_N), accum)
            T.clear(C_local)
            for s in T.serial(splits):
                for i, j in T.Parallel(block_M, block_N):
                    C_local[i, j] += P[s, by * block_M + i, bx * block_N + j]
            T.copy(C_local, C[by * block_M, bx * block_N])

    return add_up


def matmul(
    M: int, N: int, K: int, splits: int, dtype: str, accum: str, target: str, blocks: tuple[int, int, int]
) -> Callable[[Any, Any, Any], None]:  # fmt: skip
    """Return the product of A and B into C as a function; it keeps the memory for the parts."""
    block_M, block_N, block_K = blocks
    partial = tile.compile(
        partial_products(M, N, K, splits, dtype, accum, block_M, block_N, block_K), target=target
    )  # fmt: skip
    add_up = tile.compile(total(M, N, splits, accum, block_M), target=target)
    parts = np.empty((splits, M, N), T.dtype(accum).numpy())

    def product(a: Any, b: Any, c: Any) -> None:
        partial(a, b, parts)
        add_up(parts, c)

    return product


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    passed = []
    for (M, N, K), splits in itertools.product(((1, 256, 512), (4, 131, 307)), (2, 5)):
        rng = np.random.default_rng(N)
        a, b = rng.standard_normal((M, K), "float32"), rng.standard_normal((K, N), "float32")
        c = poisoned((M, N), "float32")
        matmul(M, N, K, splits, "float32", "float32", target, (4, 64, 32))(a, b, c)
        a64, b64 = a.astype("float64"), b.astype("float64")
        # A sum of K rounded products is off by at most K/2 units of the last place of the sum of their magnitudes.
        name = f"split-K gemm {M}x{N}x{K} in {splits} parts"
        passed.append(check(name, c, a64 @ b64, K * 2.0**-24, np.abs(a64) @ np.abs(b64)))
    return passed


if __name__ == "__main__":
    run(main, __doc__)
