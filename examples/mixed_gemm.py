"""Products of integers and mixed types: what the accumulator can hold is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, run

import tile_core as tile
import tile_core.language as T

Types = tuple[str, str, str]

#: Element types of A, B and C.
TYPES = (
    ("int8", "int8", "int32"),
    ("uint8", "int8", "int32"),
    ("float16", "float8_e4m3fn", "float32"),
    ("bfloat16", "float16", "float32"),
    ("float8_e5m2", "float8_e4m3fn", "float32"),
    ("float16", "float32", "float64"),
)


def matmul(
    M: int, N: int, K: int, types: Types,
    block: tuple[int, int, int] = (64, 64, 32), threads: int = 128, num_stages: int = 3,
) -> Any:  # fmt: skip
    a_type, b_type, c_type = types
    block_M, block_N, block_K = block

    @T.prim_func
    def main(A: T.Tensor((M, K), a_type), B: T.Tensor((K, N), b_type), C: T.Tensor((M, N), c_type)) -> None:
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), a_type)
            B_shared = T.alloc_shared((block_K, block_N), b_type)
            C_local = T.alloc_fragment((block_M, block_N), c_type)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def random(rng: Any, shape: tuple[int, int], dtype: str) -> Any:
    """Return random values over an integer type's range, or rounded normal ones."""
    element = T.dtype(dtype)
    if element.is_integer:
        info = np.iinfo(element.numpy())
        return rng.integers(info.min, info.max, shape, endpoint=True).astype(element.numpy())
    return rng.standard_normal(shape, "float32").astype(element.numpy())


def one(M: int, N: int, K: int, types: Types, target: str) -> bool:
    sizes: dict[str, Any] = {"M": M, "N": N, "K": K, "types": types}
    name = f"{types[0]} @ {types[1]} -> {types[2]} {M}x{N}x{K}"
    try:
        tiles = tile.tilings(matmul, sizes, target=target, most=1)[0]
    except tile.TileError as error:  # some devices have no float64
        print(f"none  {name:<52} {error.code}")
        return "float64" in types
    kernel = for_numpy(tile.compile(matmul(**sizes, **tiles), target=target, out_idx=-1))
    rng = np.random.default_rng(K)
    a, b = random(rng, (M, K), types[0]), random(rng, (K, N), types[1])
    c = kernel(a, b)
    a64, b64 = a.astype("float64"), b.astype("float64")
    tolerance = {"int32": 0.0, "float32": K * 2.0**-24, "float64": K * 2.0**-53}[types[2]]
    return check(name, c, a64 @ b64, tolerance, np.abs(a64) @ np.abs(b64) + 1e-30)


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    return [one(M, N, K, types, target) for types in TYPES for M, N, K in ((128, 64, 96), (65, 70, 33))]


if __name__ == "__main__":
    run(main, __doc__)
