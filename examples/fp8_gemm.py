"""Products of 8-bit floats: scales per tensor, row and column, or block (MX).

Operands are 8-bit floats, or codes in uint8 storage.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, run

import tile_core as tile
import tile_core.language as T
from tile_core.numerics import codecs


def scaled_matmul(
    M: int, N: int, K: int, fmt: str, a_scales: tuple[int, ...], b_scales: tuple[int, ...], scale: str = "float32",
    block_M: int = 32, block_N: int = 32,
) -> Any:  # fmt: skip
    """Scaled per tensor, row or block; parts of the operands along K are staged by the product."""
    per_row, per_block = len(a_scales) > 1 or a_scales == (M,), len(a_scales) == 2

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "uint8"),
        A_scale: T.Tensor(a_scales, scale),
        B: T.Tensor((N, K), "uint8"),
        B_scale: T.Tensor(b_scales, scale),
        C: T.Tensor((M, N), "bfloat16"),
    ) -> None:
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_rows, B_rows = A[by * block_M : (by + 1) * block_M, :], B[bx * block_N : (bx + 1) * block_N, :]
            rows, columns = (1, 1) if not per_row else (block_M, block_N)
            blocks = K // 32 if per_block else 1
            A_s = T.alloc_shared((rows, blocks) if per_block else (rows,), scale)
            B_s = T.alloc_shared((columns, blocks) if per_block else (columns,), scale)
            T.copy(A_scale[by * block_M, 0] if per_block else A_scale[by * block_M] if per_row else A_scale, A_s)
            T.copy(B_scale[bx * block_N, 0] if per_block else B_scale[bx * block_N] if per_row else B_scale, B_s)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.fp8_scaled_matmul(A_rows, A_s, B_rows, B_s, C_local, transpose_B=True, A_format=fmt, B_format=fmt)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def row_scaled_matmul(
    M: int, N: int, K: int, fmt: str,
    block_M: int = 64, block_N: int = 64, block_K: int = 64, threads: int = 128, num_stages: int = 3,
) -> Any:  # fmt: skip
    """Pipelined over K; the scales of rows and columns multiply the accumulators."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), fmt),
        A_scale: T.Tensor((M,), "float32"),
        B: T.Tensor((N, K), fmt),
        B_scale: T.Tensor((N,), "float32"),
        C: T.Tensor((M, N), "bfloat16"),
    ) -> None:
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), fmt)
            B_shared = T.alloc_shared((block_N, block_K), fmt)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[bx * block_N, k * block_K], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] *= A_scale[by * block_M + i] * B_scale[bx * block_N + j]
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def rows(M: int, N: int, K: int, fmt: str, target: str) -> bool:
    sizes: dict[str, Any] = {"M": M, "N": N, "K": K, "fmt": fmt}
    tiles = tile.tilings(row_scaled_matmul, sizes, target=target, most=1)[0]
    kernel = for_numpy(tile.compile(row_scaled_matmul(**sizes, **tiles), target=target, out_idx=-1))
    rng = np.random.default_rng(K)
    a, b = (rng.standard_normal(s).astype(T.dtype(fmt).numpy()) for s in ((M, K), (N, K)))
    sa, sb = (2.0 ** rng.integers(-3, 4, n) for n in (M, N))
    c = kernel(a, sa.astype("float32"), b, sb.astype("float32"))
    wide_a, wide_b = a.astype("float64") * sa[:, None], b.astype("float64") * sb[:, None]
    # Tensor cores keep 14 bits of an accumulator over 128 of K, four instructions.
    expected, magnitude = wide_a @ wide_b.T, np.abs(wide_a) @ np.abs(wide_b).T
    name = f"fp8 {M}x{N}x{K} {fmt}, scale per row, in a loop"
    return check(name, c, expected, 2.0**-8 + 4 * 2.0**-13 + K * 2.0**-24, magnitude)


def one(M: int, N: int, K: int, fmt: str, kind: str, target: str) -> bool:
    rng = np.random.default_rng(M + N)
    a = codecs.encode(rng.standard_normal((M, K)).astype("float32"), fmt)
    b = codecs.encode(rng.standard_normal((N, K)).astype("float32"), fmt)
    kinds: dict[str, Any] = {"tensor": ((1,), (1,)), "row": ((M,), (N,)), "block": ((M, K // 32), (N, K // 32))}
    shapes = kinds[kind]
    scale = "float8_e8m0fnu" if kind == "block" else "float32"
    sa, sb = (2.0 ** rng.integers(-3, 4, s) for s in shapes)
    kernel = for_numpy(
        tile.compile(scaled_matmul(M, N, K, fmt, shapes[0], shapes[1], scale), target=target, out_idx=-1)
    )
    stored = tile.language.float8_e8m0fnu.numpy() if kind == "block" else "float32"
    c = kernel(a, sa.astype(stored), b, sb.astype(stored))
    a64, b64 = (codecs.decode(x, fmt).astype("float64") for x in (a, b))
    wide_a = a64 * (np.repeat(sa, 32, 1) if kind == "block" else sa.reshape(-1, 1))
    wide_b = b64 * (np.repeat(sb, 32, 1) if kind == "block" else sb.reshape(-1, 1))
    # One rounding to bfloat16, and accumulation over K in float32.
    expected, magnitude = wide_a @ wide_b.T, np.abs(wide_a) @ np.abs(wide_b).T
    return check(f"fp8 {M}x{N}x{K} {fmt}, scale per {kind}", c, expected, 2.0**-8 + K * 2.0**-24, magnitude)


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    return [
        one(64, 64, 128, "float8_e4m3fn", "tensor", target),
        one(33, 70, 96, "float8_e5m2", "row", target),
        one(1, 65, 256, "float8_e4m3fn", "row", target),
        one(40, 48, 128, "float8_e4m3fn", "block", target),
        rows(64, 128, 512, "float8_e4m3fn", target),
        rows(37, 70, 300, "float8_e5m2", target),
    ]


if __name__ == "__main__":
    run(main, __doc__)
