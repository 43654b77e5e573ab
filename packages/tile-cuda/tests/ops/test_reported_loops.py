"""Situations that broke another tile compiler, in loops: sparse metadata, tables of pointers, limited registers.

One test for each row of tile-ai/tilelang's issues (the number is the issue's): right, or refused by a typed error.
"""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core import sparse
from tile_core.dtypes import DTYPES
from tile_core.errors import TileError
from tile_core.sparse import make_cutlass_metadata_layout

BLOCK = 64


def sparse_product(k, dtype, accumulated, meta):
    """A sparse product with sm_80 metadata of another library, in a loop over K."""
    factor = {"int8": 8, "int16": 16, "int32": 32}[meta]
    depth = 128

    @T.prim_func
    def main(
        A: T.Tensor((BLOCK, k // 2), dtype), E: T.Tensor((BLOCK, k // factor), meta), B: T.Tensor((BLOCK, k), dtype),
        C: T.Tensor((BLOCK, BLOCK), accumulated),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((BLOCK, depth // 2), dtype)
            e = T.alloc_shared((BLOCK, depth // factor), meta)
            b = T.alloc_shared((BLOCK, depth), dtype)
            c = T.alloc_fragment((BLOCK, BLOCK), accumulated)
            T.annotate_layout(
                {
                    E: make_cutlass_metadata_layout(E, mma_dtype=dtype, arch="8.0"),
                    e: make_cutlass_metadata_layout(e, mma_dtype=dtype, arch="8.0"),
                }
            )
            T.clear(c)
            for i in T.Pipelined(k // depth, num_stages=2):
                T.copy(E[0, i * (depth // factor)], e)
                T.copy(A[0, i * (depth // 2)], a)
                T.copy(B[0, i * depth], b)
                T.gemm_sp(a, e, b, c, transpose_B=True)
            T.copy(c, C)

    return main


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    ("dtype", "accumulated"), [("int8", "int32"), ("float8_e5m2", "float32"), ("float16", "float32")]
)
@pytest.mark.parametrize("trips", [1, 2, 3])
@pytest.mark.parametrize("target", ["cuda:sm_89", "cpu"])
def test_3037_metadata_of_8_bit_operands_in_a_loop(dtype, accumulated, trips, target):
    """8-bit operands with sm_80 metadata, K larger than a block's: compiler abort."""
    k = 128 * trips
    rng = np.random.default_rng(trips)
    element = DTYPES[dtype].numpy()
    dense = rng.integers(-3, 4, (BLOCK, k)).astype(np.float32)
    kept = np.zeros((BLOCK, k // 4, 4), bool)
    for pair in ((0, 1), (1, 3), (0, 2)):
        chosen = rng.integers(0, 3, (BLOCK, k // 4)) == 0
        kept[chosen] = False
        kept[..., pair[0]] |= chosen
        kept[..., pair[1]] |= chosen
    dense = (dense.reshape(BLOCK, -1, 4) * kept).reshape(BLOCK, k).astype(element)
    meta = "int16" if dtype == "float16" else "int32"
    values, e = sparse.compress(dense, layout="cutlass_sm80", meta_dtype=meta)
    b = rng.integers(-3, 4, (BLOCK, k)).astype(element)
    c = np.full((BLOCK, BLOCK), 77, accumulated)
    runtime = {"runtime": "emulator"} if target != "cpu" else {}
    tile.compile(sparse_product(k, dtype, accumulated, meta), target, **runtime)(values, e, b, c)
    np.testing.assert_array_equal(c, (dense.astype("float64") @ b.astype("float64").T).astype(accumulated))


@pytest.mark.parametrize(
    ("target", "options"), [("cuda:sm_80", {}), ("cuda:sm_90a", {}), ("cuda:sm_90a", {"tma": "always"})]
)
def test_2549_operands_from_addresses(target, options):
    """Operands made in the kernel from addresses, with bulk copies: packing the arguments aborted."""

    @T.prim_func
    def main(p: T.ptr("float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            A = T.make_tensor(p, (64, 64), "float16")
            s = T.alloc_shared((64, 64), "float16")
            for _ in T.Pipelined(2, num_stages=2):
                T.copy(A, s)
                T.copy(s, C)

    with pytest.raises(TileError) as caught:
        tile.compile(main, target, runtime="emulator", options=options)
    assert caught.value.code == "U109"
    assert "main takes the address p" in str(caught.value)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("registers", [None, 128, 64])
def test_2559_roles_with_few_registers(registers):
    """Roles with a register limit for two blocks per multiprocessor: deadlock at launch."""

    @T.prim_func
    def main(A: T.Tensor((64, 96), "float16"), B: T.Tensor((96, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 64, 32), "float16")
            r = T.alloc_shared((2, 32, 64), "float16")
            f = T.alloc_fragment((64, 64), "float32")
            full, empty = T.alloc_barrier([128] * 2), T.alloc_barrier([128] * 2)
            with T.ws(1):
                T.clear(f)
            for k in range(3):
                with T.ws(0):
                    T.barrier_wait(empty[k % 2], (k // 2 + 1) % 2)
                    T.tma_copy(A[0, k * 32], s[k % 2, :, :], barrier=full[k % 2])
                    T.tma_copy(B[k * 32, 0], r[k % 2, :, :], barrier=full[k % 2])
                    T.barrier_arrive(full[k % 2])
                with T.ws(1):
                    T.barrier_wait(full[k % 2], k // 2 % 2)
                    T.gemm(s[k % 2, :, :], r[k % 2, :, :], f)
                    T.barrier_arrive(empty[k % 2])
            with T.ws(1):
                T.copy(f, C)

    options = {} if registers is None else {"max_registers": registers}
    kernel = tile.compile(main, "cuda:sm_90a", runtime="emulator", options=options)
    assert "setmaxnreg" not in kernel.source, "no role waits for registers of another one"
    rng = np.random.default_rng(9)
    a, b = rng.integers(-3, 4, (64, 96)).astype("float16"), rng.integers(-3, 4, (96, 64)).astype("float16")
    c = np.full((64, 64), np.nan, "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a.astype("float32") @ b.astype("float32"))
