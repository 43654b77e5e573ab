"""Sparse products, compression, narrow types and gathers on the CPU, in one run.

    python benchmarks/cpu_sparse.py [--seconds 3] [--json FILE]

Demands: gemm_sp of float16 at 1024 at least as fast as our dense float16 product, and 1.3 times as fast in code for
AVX2 (which processors with AVX-512 run too), 1.4 times in bfloat16 and int8; compress of 4096 x 4096 float16 at least
0.3 of copying the matrix; an fp8 product at least 0.5 of our float16; gather at least 0.8 of numpy.take; reads of 4-bit
elements at least 0.5 of reads of the same number of 8-bit ones. With ``TVM_NUM_THREADS=1`` the processor time of sparse
products counts, which other work on the machine disturbs little.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import numpy as np
from cpu_dots import fastest
from sides import Row, demanded, example, interleaved, run

import tile_core as tile
import tile_core.language as T
from tile_core import sparse

SIZE = 1024


def dense_kernel(dtype: str, target: str = "cpu") -> Any:
    """Return the dense product of examples/gemm.py."""
    accum = "int32" if dtype == "int8" else "float32"
    program = example("gemm").matmul(SIZE, SIZE, SIZE, False, False, dtype, accum, 128, 128, 64)
    return tile.compile(program, target=target)


def sparse_product(seconds: float, target: str = "cpu", least: float = 1.0, dtype: str = "float16") -> Row:
    """Time the sparse product of examples/sparse_gemm.py beside the dense one of the same matrices."""
    rng, accum = np.random.default_rng(0), "int32" if dtype == "int8" else "float32"
    a, b = (rng.integers(-4, 5, (SIZE, SIZE)).astype(T.dtype(dtype).numpy()) for _ in range(2))
    pruned = sparse.prune(a)
    c, other = np.empty((SIZE, SIZE), accum), np.empty((SIZE, SIZE), accum)
    values, words = sparse.compress(pruned, meta_dtype="int16")
    program = example("sparse_gemm").matmul_sp(
        SIZE, SIZE, SIZE, dtype, accum=accum, block_M=128, block_N=128, block_K=64
    )  # fmt: skip
    kernel, dense = tile.compile(program, target=target), dense_kernel(dtype, target)
    kernel(values, words, b, c)
    dense(pruned, b, other)
    assert np.array_equal(c, other)
    sides = (lambda: kernel(values, words, b, c)), (lambda: dense(pruned, b, c))
    alone = os.environ.get("TVM_NUM_THREADS") == "1"
    ours, theirs = fastest(sides, seconds, 0.0, 1) if alone else interleaved(*sides, seconds=seconds)
    name = f"gemm_sp {dtype} 1024" + (f" ({target})" if target != "cpu" else "")
    return row(name, ours, f"our dense {dtype}", theirs, least)


def sparse_product_bfloat16(seconds: float) -> Row:
    """Time the same in bfloat16, whose dense product takes dot-product instructions."""
    return sparse_product(seconds, least=1.4, dtype="bfloat16")


def sparse_product_int8(seconds: float) -> Row:
    """Time the same in int8."""
    return sparse_product(seconds, least=1.4, dtype="int8")


def sparse_product_avx2(seconds: float) -> Row:
    """Time the same in code for AVX2."""
    return sparse_product(seconds, "cpu:x86-64-v3", 1.3)


def compression(seconds: float) -> Row:
    """Time compressing a matrix beside copying it."""
    rng = np.random.default_rng(1)
    pruned = sparse.prune(rng.standard_normal((4096, 4096)).astype("float16"))
    copy = np.empty_like(pruned)
    ours, theirs = interleaved(lambda: sparse.compress(pruned), lambda: np.copyto(copy, pruned), seconds=seconds)
    return row("compress float16 4096", ours, "numpy.copyto", theirs, 0.3)


def fp8_product(seconds: float) -> Row:
    """Time a product of 8-bit floats beside one of float16."""
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal((SIZE, SIZE)) for _ in range(2))
    c = np.empty((SIZE, SIZE), "float32")
    e4m3 = T.float8_e4m3fn.numpy()
    small, half = [x.astype(e4m3) for x in (a, b)], [x.astype("float16") for x in (a, b)]
    kernel, dense = dense_kernel("float8_e4m3fn"), dense_kernel("float16")
    ours, theirs = interleaved(lambda: kernel(*small, c), lambda: dense(*half, c), seconds=seconds)
    return row("gemm float8_e4m3fn 1024", ours, "our float16", theirs, 0.5)


def row_gather(seconds: float) -> Row:
    """Time a gather of rows beside ``numpy.take``."""
    height, width, count = 16384, 256, 8192

    @T.prim_func
    def gather(
        A: T.Tensor((height, width), "float32"), R: T.Tensor((count,), "int32"), B: T.Tensor((count, width), "float32")
    ):
        with T.Kernel(T.ceildiv(count, 64), threads=128) as bx:
            T.gather(A, R[bx * 64 : bx * 64 + 64], B[bx * 64 : bx * 64 + 64, 0:width])

    rng = np.random.default_rng(3)
    table = rng.standard_normal((height, width)).astype("float32")
    rows = rng.integers(0, height, count).astype("int32")
    out = np.empty((count, width), "float32")
    kernel = tile.compile(gather, target="cpu")
    ours, theirs = interleaved(
        lambda: kernel(table, rows, out), lambda: np.take(table, rows, axis=0, out=out, mode="clip"), seconds=seconds
    )
    return row(f"gather {count} rows of {width} float32", ours, "numpy.take", theirs, 0.8)


def packed_reads(seconds: float, narrow: str, wide: str) -> Row:
    """Time copies of a matrix of 4-bit elements into floats beside those of 8-bit elements."""

    def copied(dtype: str) -> Any:
        @T.prim_func
        def main(A: T.Tensor((2048, 2048), dtype), B: T.Tensor((2048, 2048), "float32")):
            with T.Kernel(8, 128, threads=128) as (bx, by):
                scratch = T.alloc_shared((16, 256), "float32")
                T.copy(A[by * 16, bx * 256], scratch)
                T.copy(scratch, B[by * 16, bx * 256])

        return tile.compile(main, target="cpu")

    rng = np.random.default_rng(4)
    codes = rng.integers(0, 128, (2048, 2048)).astype("uint8")
    out = np.empty((2048, 2048), "float32")
    of_4, of_8, pairs, bytes_ = copied(narrow), copied(wide), codes[:, :1024].copy(), codes.view(T.dtype(wide).numpy())
    ours, theirs = interleaved(lambda: of_4(pairs, out), lambda: of_8(bytes_, out), seconds=seconds)
    return row(f"read {narrow} as float32, 2048", ours, f"our {wide}", theirs, 0.5)


PACKED = (("uint4", "uint8"), ("int4", "int8"), ("float4_e2m1fn", "float8_e4m3fn"))


def row(name: str, ours: float, other: str, theirs: float, least: float) -> Row:
    """Return one line of the table."""
    ratio = theirs / ours
    return {
        "what": name, "ours ms": ours * 1e3, "beside": other, "theirs ms": theirs * 1e3, "ratio": ratio,
        "demand": demanded(ratio, least),
    }  # fmt: skip


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return all rows."""
    products = sparse_product, sparse_product_avx2, sparse_product_bfloat16, sparse_product_int8
    whole = [f(arguments.seconds) for f in (*products, compression, fp8_product, row_gather)]
    return [*whole, *(packed_reads(arguments.seconds, *pair) for pair in PACKED)]


if __name__ == "__main__":
    run(
        "sparse and narrow operators, all cores", measure,
        lambda parser: parser.add_argument("--seconds", type=float, default=3.0, help="per row"),
    )  # fmt: skip
