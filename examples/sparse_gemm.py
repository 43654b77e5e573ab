"""Sparse matrix product, 2 of 4: prune, compress, multiply kept values only, check."""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, run

import tile_core as tile
import tile_core.language as T
from tile_core import sparse


def matmul_sp(
    M: int, N: int, K: int, dtype: str = "float16", meta_dtype: str = "int16", accum: str = "float32",
    block_M: int = 64, block_N: int = 64, block_K: int = 64, threads: int = 128, num_stages: int = 3,
    trans_B: bool = False,
) -> Any:  # fmt: skip
    e_factor = sparse.E_FACTOR_MAP[dtype][meta_dtype]

    @T.prim_func
    def main(
        A_sparse: T.Tensor((M, K // 2), dtype),
        E: T.Tensor((M, K // e_factor), meta_dtype),
        B: T.Tensor((N, K) if trans_B else (K, N), dtype),
        C: T.Tensor((M, N), accum),
    ) -> None:
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K // 2), dtype)
            E_shared = T.alloc_shared((block_M, block_K // e_factor), meta_dtype)
            B_shared = T.alloc_shared((block_N, block_K) if trans_B else (block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A_sparse[by * block_M, k * block_K // 2], A_shared)
                T.copy(E[by * block_M, k * block_K // e_factor], E_shared)
                T.copy(B[bx * block_N, k * block_K] if trans_B else B[k * block_K, bx * block_N], B_shared)
                T.gemm_sp(A_shared, E_shared, B_shared, C_local, transpose_B=trans_B)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def one(
    M: int, N: int, K: int, dtype: str, meta_dtype: str, accum: str, target: str, trans_B: bool = False
) -> bool:  # fmt: skip
    rng = np.random.default_rng(M + K)
    if dtype.startswith("int"):
        dense, b = rng.integers(-9, 10, (M, K)).astype(dtype), rng.integers(-9, 10, (K, N)).astype(dtype)
    else:
        dense, b = rng.standard_normal((M, K)).astype(dtype), rng.standard_normal((K, N)).astype(dtype)
    pruned = sparse.prune(dense)
    a_sparse, e = sparse.compress(pruned, meta_dtype=meta_dtype)
    assert np.array_equal(sparse.decompress(a_sparse, e), pruned)
    problem: dict[str, Any] = {"M": M, "N": N, "K": K, "dtype": dtype, "meta_dtype": meta_dtype, "accum": accum}
    problem["trans_B"] = trans_B
    tiles = tile.tilings(matmul_sp, problem, target=target, most=1)[0]
    kernel = for_numpy(tile.compile(matmul_sp(**problem, **tiles), target=target, out_idx=-1))
    c = kernel(a_sparse, e, np.ascontiguousarray(b.T) if trans_B else b)
    a64, b64 = pruned.astype("float64"), b.astype("float64")
    bound = K / 2 * 2.0**-24 if accum == "float32" else 0.0
    name = f"gemm_sp {M}x{N}x{K} {dtype}, metadata {meta_dtype}"
    return check(name, c, a64 @ b64, bound, np.maximum(np.abs(a64) @ np.abs(b64), 1))


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    return [
        one(128, 128, 256, "float16", "int16", "float32", target),
        one(100, 72, 160, "float16", "int8", "float32", target),
        one(77, 130, 192, "float32", "int16", "float32", target),
        one(65, 33, 128, "int8", "int32", "int32", target, trans_B=True),
    ]


if __name__ == "__main__":
    run(main, __doc__)
