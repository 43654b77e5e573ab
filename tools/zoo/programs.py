"""Kernels beyond the examples: products of every type, tile, stages and orientation, thread code."""

# Annotations of kernels are shapes and names of element types, no types.
# ruff: noqa: ANN202
# mypy: ignore-errors

from __future__ import annotations

from typing import Any

import numpy as np

import tile_core.language as T
from tile_core import sparse
from tile_core.numerics import codecs

from .case import Case, Wanted, example, poisoned

Types = tuple[str, str, str]
_UNITS = {"float8_e4m3fn": 4, "float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def gemm(
    M: Any, N: Any, K: Any, types: Types, block: tuple[int, int, int], stages: int, trans: tuple[bool, bool],
    threads: int = 128, out: str = "",
) -> Any:  # fmt: skip
    """Return a pipelined product, with accumulators stored as ``out`` or like the operands."""
    (a_type, b_type, c_type), (block_M, block_N, block_K), (trans_a, trans_b) = types, block, trans
    stored = (
        out or c_type if out or c_type != "float32" else types[0] if types[0] in ("float16", "bfloat16") else c_type
    )

    @T.prim_func
    def gemm(
        A: T.Tensor((K, M) if trans_a else (M, K), a_type),
        B: T.Tensor((N, K) if trans_b else (K, N), b_type),
        C: T.Tensor((M, N), stored),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            A_shared = T.alloc_shared((block_K, block_M) if trans_a else (block_M, block_K), a_type)
            B_shared = T.alloc_shared((block_N, block_K) if trans_b else (block_K, block_N), b_type)
            C_local = T.alloc_fragment((block_M, block_N), c_type)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=stages):
                if trans_a:
                    T.copy(A[k * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, k * block_K], A_shared)
                if trans_b:
                    T.copy(B[bx * block_N, k * block_K], B_shared)
                else:
                    T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_A=trans_a, transpose_B=trans_b)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm


def random(rng: Any, shape: Any, dtype: str) -> Any:
    """Return random values over an integer type's range, or rounded normal ones."""
    element = T.dtype(dtype)
    if element.is_integer:
        info = np.iinfo(element.numpy())
        return rng.integers(info.min, info.max, shape, endpoint=True).astype(element.numpy())
    return rng.standard_normal(shape).astype(element.numpy())


def gemm_case(
    M: int, N: int, K: int, types: Types, block: tuple[int, int, int] = (32, 32, 32), stages: int = 2,
    trans: tuple[bool, bool] = (False, False), threads: int = 128, dynamic: bool = False, kept: int = 0,
    out: str = "",
) -> Case:  # fmt: skip
    """Return a product, unnamed in the program if sizes are dynamic.

    ``kept`` is the number of bits of a coarser accumulator.
    """
    shape: tuple[Any, ...] = tuple(T.dynamic("m, n, k")) if dynamic else (M, N, K)
    program = gemm(*shape, types, block, stages, trans, threads, out)
    rng = np.random.default_rng(M * 7 + N * 5 + K)
    a, b = random(rng, (M, K), types[0]), random(rng, (K, N), types[1])
    given = (np.ascontiguousarray(x.T) if t else x for x, t in zip((a, b), trans, strict=True))
    c = poisoned((M, N), T.dtype(program.params[2].dtype).numpy())
    return Case(program, (*given, c), (product(program, a, b, kept),))


def product(program: Any, a: Any, b: Any, kept: int = 0) -> Wanted:
    """Return the third argument's expected product, accumulated in the types' own precision."""
    stored, summed = str(program.params[-1].dtype), a.shape[1]
    wide = [x.astype("float64") for x in (a, b)]
    scale = np.abs(wide[0]) @ np.abs(wide[1]) + 1e-30
    if T.dtype(stored).is_integer:
        return Wanted(len(program.params) - 1, wide[0] @ wide[1], 0.0)
    # Matrix units truncate accumulators where scalar units round them, and the result is rounded once more.
    accumulation = 2.0 ** -(kept or (53 if stored == "float64" else 23)) * summed
    inputs = 2.0**-10 if "tfloat32" in (str(p.dtype) for p in program.params) else 0.0
    return Wanted(len(program.params) - 1, wide[0] @ wide[1], accumulation + inputs + 2.0 ** -_UNITS[stored], scale)


def gemm_sp(
    M: int, N: int, K: int, dtype: str, cutlass: bool, block: tuple[int, int, int] = (64, 64, 64)
) -> Any:  # fmt: skip
    """Return a 2:4 sparse product, with optional CUTLASS metadata order for sm_80."""
    meta, accum = ("int32", "int32") if dtype == "int8" else ("int16", "float32")
    if cutlass:
        return example("sparse_tutorial").matmul_sp_sm80(M, N, K, *block, dtype, accum, accum, 2, 128, False, False)
    return example("sparse_gemm").matmul_sp(M, N, K, dtype, meta, accum, *block)


def gemm_sp_case(M: int, N: int, K: int, dtype: str, cutlass: bool, block: tuple[int, int, int] = (64, 64, 64)) -> Case:
    """Return a sparse product; its metadata has tails where the matrix has."""
    rng = np.random.default_rng(M + N + K)
    dense, b = (rng.integers(-9, 10, s).astype(dtype) for s in ((M, K), (K, N)))
    pruned = sparse.prune(dense)
    program = gemm_sp(M, N, K, dtype, cutlass, block)
    meta = str(program.params[1].dtype)
    values, metadata = sparse.compress(pruned, meta_dtype=meta, layout="cutlass_sm80" if cutlass else "natural")
    exact = pruned.astype("float64") @ b.astype("float64")
    c = poisoned((M, N), str(program.params[3].dtype))
    return Case(program, (values, metadata, b, c), (Wanted(3, exact, 0.0),))


def scaled_gemm(
    M: int, N: int, K: int, types: tuple[str, str], per: int, block: tuple[int, int, int], stages: int = 2
) -> Any:
    """Return a product with scales per ``per`` elements along K.

    Elements of 4 bits are two in a byte of uint8.
    """
    (dtype, scale), (block_M, block_N, block_K) = types, block
    packed = dtype == "float4_e2m1fn"
    held, row, part = ("uint8", K // 2, block_K // 2) if packed else (dtype, K, block_K)
    named = {"A_format": dtype, "B_format": dtype} if packed else {}

    @T.prim_func
    def scaled(
        A: T.Tensor((M, row), held), A_scale: T.Tensor((M, K // per), scale),
        B: T.Tensor((N, row), held), B_scale: T.Tensor((N, K // per), scale), C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared, B_shared = T.alloc_shared((block_M, part), held), T.alloc_shared((block_N, part), held)
            rows, columns = (T.alloc_shared((lines, block_K // per), scale) for lines in (block_M, block_N))
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=stages):
                T.copy(A[by * block_M, k * part], A_shared)
                T.copy(B[bx * block_N, k * part], B_shared)
                T.copy(A_scale[by * block_M, k * (block_K // per)], rows)
                T.copy(B_scale[bx * block_N, k * (block_K // per)], columns)
                T.gemm_scaled(A_shared, rows, B_shared, columns, C_local, transpose_B=True, **named)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return scaled


def scaled_case(
    M: int, N: int, K: int, types: tuple[str, str], per: int, block: tuple[int, int, int], stages: int = 2
) -> Case:
    """Return such a product of small numbers."""
    (dtype, scale), rng, given, wide = types, np.random.default_rng(M + N + K), [], []
    for lines in (M, N):
        x, factors = rng.integers(-3, 4, (lines, K)).astype("float32"), 2.0 ** rng.integers(-3, 4, (lines, K // per))
        codes = codecs.encode(x, dtype)
        given += [codecs.pack4(codes) if dtype == "float4_e2m1fn" else codes, codecs.encode(factors, scale)]
        wide.append(x.astype("float64") * np.repeat(factors, per, axis=1))
    program = scaled_gemm(M, N, K, types, per, block, stages)
    return Case(program, (*given, poisoned((M, N), "float32")), (Wanted(4, wide[0] @ wide[1].T, 0.0),))


def gemm_sp_turned_case(M: int, N: int, K: int, block: tuple[int, int, int]) -> Case:
    """Return a sparse product of float16 whose metadata is stored with rows along K."""
    m, n, k = block

    @T.prim_func
    def gemm_sp(
        A: T.Tensor((M, K // 2), "float16"),
        E: T.Tensor((K // 16, M), "int16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, n), T.ceildiv(M, m), threads=128) as (bx, by):
            A_shared = T.alloc_shared((m, k // 2), "float16")
            E_shared = T.alloc_shared((k // 16, m), "int16")
            B_shared = T.alloc_shared((k, n), "float16")
            C_local = T.alloc_fragment((m, n), "float32")
            T.clear(C_local)
            for i in T.Pipelined(T.ceildiv(K, k), num_stages=2):
                T.copy(A[by * m, i * k // 2], A_shared)
                T.copy(E[i * k // 16, by * m], E_shared)
                T.copy(B[i * k, bx * n], B_shared)
                T.gemm_sp(A_shared, E_shared, B_shared, C_local, transpose_E=True)
            T.copy(C_local, C[by * m, bx * n])

    rng = np.random.default_rng(M + N + K)
    dense, b = (rng.integers(-9, 10, s).astype("float16") for s in ((M, K), (K, N)))
    pruned = sparse.prune(dense)
    values, metadata = sparse.compress(pruned, meta_dtype="int16")
    exact = pruned.astype("float64") @ b.astype("float64")
    given = (values, np.ascontiguousarray(metadata.T), b, poisoned((M, N), "float32"))
    return Case(gemm_sp, given, (Wanted(3, exact, 0.0),))


def histogram_case(count: int, bins: int) -> Case:
    """Return counts and a maximum by atomics, which many threads aim at the same elements."""

    @T.prim_func
    def histogram(X: T.Tensor((count,), "int32"), H: T.Tensor((bins,), "int32"), Top: T.Tensor((1,), "float32")):
        with T.Kernel(T.ceildiv(count, 128), threads=128) as bx:
            for i in T.Parallel(128):
                if bx * 128 + i < count:
                    T.atomic_add(H[X[bx * 128 + i]], 1)
                    T.atomic_max(Top[0], T.cast(X[bx * 128 + i], "float32"))

    x = np.random.default_rng(count).integers(0, bins, count).astype("int32")
    wanted = (Wanted(1, np.bincount(x, minlength=bins), 0.0), Wanted(2, np.array([x.max()]), 0.0))
    return Case(histogram, (x, np.zeros(bins, "int32"), np.full(1, -1, "float32")), wanted)


def split_k_case(M: int, N: int, K: int, parts: int) -> Case:
    """Return a product whose parts along K are added to the result by atomics."""
    share = -(-K // parts)
    trip_count = -(-share // 16)

    @T.prim_func
    def split_k(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), parts, threads=64) as (bx, by, bz):
            A_shared = T.alloc_shared((32, 16), "float16")
            B_shared = T.alloc_shared((16, 32), "float16")
            C_local = T.alloc_fragment((32, 32), "float32")
            T.clear(C_local)
            for k in T.Pipelined(trip_count, num_stages=2):
                T.copy(A[by * 32, bz * trip_count * 16 + k * 16], A_shared)
                T.copy(B[bz * trip_count * 16 + k * 16, bx * 32], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(32, 32):
                if by * 32 + i < M and bx * 32 + j < N:
                    T.atomic_add(C[by * 32 + i, bx * 32 + j], C_local[i, j])

    rng = np.random.default_rng(K)
    a, b = (rng.standard_normal(s).astype("float16") for s in ((M, K), (K, N)))
    return Case(split_k, (a, b, np.zeros((M, N), "float32")), (product(split_k, a, b),))


def grouped_case(
    ends: tuple[int, ...], N: int, K: int, block: tuple[int, int, int], stages: int, threads: int = 128
) -> Case:
    """Return products of rows sorted by group, whose ends are data; rows after the last group stay."""
    (m, n, k), groups, rows = block, len(ends), max(ends) + 3

    @T.prim_func
    def grouped(
        X: T.Tensor((rows, K), "float16"),
        W: T.Tensor((groups, N, K), "float16"),
        ends_of: T.Tensor((groups,), "int32"),
        Y: T.Tensor((rows, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, n), T.ceildiv(rows, m) + groups, threads=threads) as (bx, by):
            x = T.alloc_shared((m, k), "float16")
            w = T.alloc_shared((n, k), "float16")
            y = T.alloc_fragment((m, n), "float32")
            left = T.alloc_var("int32", by)
            group = T.alloc_var("int32", 0)
            first = T.alloc_var("int32", 0)
            end = T.alloc_var("int32", 0)
            begin = T.alloc_var("int32", 0)
            for g in T.serial(groups):
                tiles = T.ceildiv(ends_of[g] - begin, m)
                if left >= 0 and left < tiles:
                    group = g
                    first = begin + left * m
                    end = ends_of[g]
                left -= tiles
                begin = ends_of[g]
            if first < end:
                T.clear(y)
                for t in T.Pipelined(T.ceildiv(K, k), num_stages=stages):
                    T.copy(X[first, t * k], x)
                    T.copy(W[group, bx * n, t * k], w)
                    T.gemm(x, w, y, transpose_B=True)
                for i, j in T.Parallel(m, n):
                    if first + i < end:
                        Y[first + i, bx * n + j] = y[i, j]

    rng = np.random.default_rng(N + K)
    x, w = (rng.integers(-2, 3, s).astype("float16") for s in ((rows, K), (groups, N, K)))
    y = np.full((rows, N), 7, "float16")
    wanted = y.astype("float64")
    for g, (begin, end) in enumerate(zip((0, *ends), ends, strict=False)):
        wanted[begin:end] = x[begin:end].astype("float64") @ w[g].astype("float64").T
    return Case(grouped, (x, w, np.array(ends, "int32"), y), (Wanted(3, wanted, 0.0),))


def block_sum_case(rows: int, columns: int) -> Case:
    """Return row reductions with explicit threads: shuffles in a warp, then shared memory."""

    @T.prim_func
    def block_sum(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows,), "float32")):
        with T.Kernel(rows, threads=96) as bx:
            tid = T.get_thread_binding(0)
            parts = T.alloc_shared((3,), "float32")
            mine = T.alloc_var("float32")
            mine = 0.0
            for k in T.serial(T.ceildiv(columns, 96)):
                if k * 96 + tid < columns:
                    mine += X[bx, k * 96 + tid]
            for s in T.unroll(5):
                mine += T.shfl_xor(mine, T.shift_left(1, s))
            if tid % 32 == 0:
                parts[tid // 32] = mine
            T.sync_threads()
            if tid == 0:
                Y[bx] = parts[0] + parts[1] + parts[2]

    x = np.random.default_rng(rows).integers(-99, 100, (rows, columns)).astype("float32")
    return Case(block_sum, (x, poisoned((rows,), "float32")), (Wanted(1, x.astype("float64").sum(1), 0.0),))


def neighbours_case(count: int, width: int = 32) -> Case:
    """Return a stencil in shared memory with a halo, and warp votes.

    Warps have ``width`` threads.
    """
    bits = f"uint{width}"

    @T.prim_func
    def neighbours(X: T.Tensor((count,), "int32"), Y: T.Tensor((count,), "int32"), V: T.Tensor((count,), bits)):
        with T.Kernel(T.ceildiv(count, 64), threads=64) as bx:
            tid = T.get_thread_binding(0)
            tile = T.alloc_shared((66,), "int32")
            at = bx * 64 + tid
            tile[tid + 1] = T.if_then_else(at < count, X[T.min(at, count - 1)], 0)
            if tid == 0:
                tile[0] = T.if_then_else(at > 0, X[T.max(at - 1, 0)], 0)
                tile[65] = T.if_then_else(at + 64 < count, X[T.min(at + 64, count - 1)], 0)
            T.sync_threads()
            votes = T.ballot(tile[tid + 1] > 0)
            if at < count:
                Y[at] = tile[tid] + tile[tid + 1] + tile[tid + 2]
                V[at] = votes

    x = np.random.default_rng(count).integers(-99, 100, count).astype("int32")
    padded = np.pad(x, 1)
    lanes = np.packbits(np.pad(x > 0, (0, -count % width)), bitorder="little").view(bits)
    votes = np.repeat(lanes, width)[:count]
    wanted = (Wanted(1, padded[:-2] + padded[1:-1] + padded[2:], 0.0), Wanted(2, votes, 0.0))
    return Case(neighbours, (x, poisoned((count,), "int32"), poisoned((count,), bits)), wanted)


def row_max_case(rows: int, columns: int) -> Case:
    """Return each row's maximum of negative values; row lengths are no powers of two."""

    @T.prim_func
    def row_max(X: T.Tensor((rows, columns), "float32"), Y: T.Tensor((rows,), "float32")):
        with T.Kernel(T.ceildiv(rows, 4), threads=64) as bx:
            x = T.alloc_fragment((4, columns), "float32")
            top = T.alloc_fragment((4,), "float32")
            T.copy(X[bx * 4, 0], x)
            T.reduce_max(x, top, dim=1)
            T.copy(top, Y[bx * 4])

    x = -1 - np.random.default_rng(rows).random((rows, columns), "float32")
    return Case(row_max, (x, poisoned((rows,), "float32")), (Wanted(1, x.max(1), 0.0),))
