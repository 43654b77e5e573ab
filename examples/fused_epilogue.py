"""Matrix product with a fused epilogue: bias and activation on the accumulator in registers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from checks import check, for_numpy, run

import tile_core as tile
import tile_core.language as T

ACTIVATIONS = ("relu", "gelu", "silu")


@T.macro
def activate(kind: str, x: Any) -> Any:
    if kind == "relu":
        return T.max(x, 0.0)
    if kind == "gelu":
        return 0.5 * x * (1.0 + T.erf(x * math.sqrt(0.5)))
    return x * T.sigmoid(x)


def linear(
    M: int, N: int, K: int, activation: str,
    block_M: int = 64, block_N: int = 64, block_K: int = 32, threads: int = 128, num_stages: int = 3,
) -> Any:  # fmt: skip
    dtype = "float16"

    @T.prim_func
    def main(
        X: T.Tensor((M, K), dtype), W: T.Tensor((N, K), dtype), Bias: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)
    ) -> None:
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            X_shared = T.alloc_shared((block_M, block_K), dtype)
            W_shared = T.alloc_shared((block_N, block_K), dtype)
            bias = T.alloc_fragment((block_N,), "float32")
            y = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(y)
            T.copy(Bias[bx * block_N], bias)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(X[by * block_M, k * block_K], X_shared)
                T.copy(W[bx * block_N, k * block_K], W_shared)
                T.gemm(X_shared, W_shared, y, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                y[i, j] = activate(activation, y[i, j] + bias[j])
            T.copy(y, Y[by * block_M, bx * block_N])

    return main


def reference(activation: str, x: Any) -> Any:
    """Return the activation of float64 numbers."""
    if activation == "relu":
        return np.maximum(x, 0)
    if activation == "gelu":
        return 0.5 * x * (1 + np.vectorize(math.erf)(x * math.sqrt(0.5)))
    return x / (1 + np.exp(-x))


def one(M: int, N: int, K: int, activation: str, target: str) -> bool:
    sizes: dict[str, Any] = {"M": M, "N": N, "K": K, "activation": activation}
    tiles = tile.tilings(linear, sizes, target=target, most=1)[0]
    kernel = for_numpy(tile.compile(linear(**sizes, **tiles), target=target, out_idx=-1))
    rng = np.random.default_rng(M + N + K)
    x, w, bias = (rng.standard_normal(s, "float32").astype("float16") for s in ((M, K), (N, K), (N,)))
    y = kernel(x, w, bias)
    exact = x.astype("float64") @ w.astype("float64").T + bias.astype("float64")
    # The result is rounded to float16; the accumulator is float32.
    return check(f"linear {M}x{N}x{K} + bias, {activation}", y, reference(activation, exact), 2.0**-10)


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    return [one(M, N, K, a, target) for a in ACTIVATIONS for M, N, K in ((128, 128, 64), (65, 77, 100))]


if __name__ == "__main__":
    run(main, __doc__)
