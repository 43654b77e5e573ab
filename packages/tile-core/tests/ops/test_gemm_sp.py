"""T.gemm_sp beyond testing/tables/sparse.py: plain meaning, accumulation, every nibble, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.ops import BadElementType, GemmTypes, SparseShape

pytestmark = pytest.mark.sweep(5)

TYPES = [
    ("float16", "float32"), ("bfloat16", "float32"), ("float16", "float16"), ("float32", "float32"), ("int8", "int32"),
    ("tfloat32", "float32"), ("uint8", "int32"), ("float8_e4m3fn", "float32"), ("float8_e5m2", "float32"),
]  # fmt: skip


def group_of(dtype: str) -> int:
    return 2 if to_dtype(dtype).bits == 32 else 4


def factor_of(dtype: str, metadata: str) -> int:
    return to_dtype(metadata).bits // 4 * group_of(dtype)


def sparse_matrix(rng: np.random.Generator, rows: int, cols: int, dtype: str) -> np.ndarray:
    """Small integers with at most 2 of 4 (1 of 2) non-zeros, fewer in some groups."""
    group = group_of(dtype)
    low = 0 if dtype.startswith("u") else -4
    dense = rng.integers(low, 5, (rows, cols // group, group))
    keep = rng.random(dense.shape).argsort(-1) < rng.integers(0, group // 2 + 1, dense.shape[:2])[..., None]
    return (dense * keep).reshape(rows, cols)


def compress(matrix: np.ndarray, dtype: str, metadata: str) -> tuple[np.ndarray, np.ndarray]:
    """A compressor of the tests' own: the lowest kept indices, filled up from below."""
    group = group_of(dtype)
    rows, cols = matrix.shape
    groups = matrix.reshape(rows, cols // group, group)
    order = np.argsort(groups == 0, axis=-1, kind="stable")[..., : group // 2]
    order.sort(-1)
    values = np.take_along_axis(groups, order, -1).reshape(rows, -1)
    if group == 4:
        nibbles = order[..., 0] | order[..., 1] << 2
    else:
        nibbles = np.where(order[..., 0] == 1, 0xE, 0x4)
    per = to_dtype(metadata).bits // 4
    words = nibbles.reshape(rows, -1, per).astype(np.uint64) << (4 * np.arange(per, dtype=np.uint64))
    unsigned = np.bitwise_or.reduce(words, -1).astype(f"uint{per * 4}")
    return values.astype(to_dtype(dtype).numpy()), unsigned.view(metadata)


def kernel(
    m: int, n: int, k: int, types: tuple[str, str, str], trans: tuple[bool, bool, bool] = (False,) * 3,
    tile_shape: tuple[int, int, int] = (32, 32, 64), clear: bool = False,
) -> Any:  # fmt: skip
    """A sparse GEMM in the usual form."""
    dtype, metadata, accumulate = types
    ta, te, tb = trans
    bm, bn, bk = tile_shape
    e = factor_of(dtype, metadata)

    def sides(rows: int, cols: int, swap: bool) -> tuple[int, int]:
        return (cols, rows) if swap else (rows, cols)

    @T.prim_func
    def gemm_sp(
        A: T.Tensor(sides(m, k // 2, ta), dtype),
        E: T.Tensor(sides(m, k // e, te), metadata),
        B: T.Tensor(sides(k, n, tb), dtype),
        C: T.Tensor((m, n), accumulate),
    ):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=128) as (bx, by):
            A_s = T.alloc_shared(sides(bm, bk // 2, ta), dtype)
            E_s = T.alloc_shared(sides(bm, bk // e, te), metadata)
            B_s = T.alloc_shared(sides(bk, bn, tb), dtype)
            C_f = T.alloc_fragment((bm, bn), accumulate)
            T.clear(C_f)
            for i in T.Pipelined(T.ceildiv(k, bk), num_stages=2):
                T.copy(A[i * (bk // 2), by * bm] if ta else A[by * bm, i * (bk // 2)], A_s)
                T.copy(E[i * (bk // e), by * bm] if te else E[by * bm, i * (bk // e)], E_s)
                T.copy(B[bx * bn, i * bk] if tb else B[i * bk, bx * bn], B_s)
                T.gemm_sp(A_s, E_s, B_s, C_f, ta, te, tb, clear_accum=clear)
            T.copy(C_f, C[by * bm, bx * bn])

    return gemm_sp


def check(seed: int, m: int, n: int, k: int, types: tuple[str, str, str], **choices: Any) -> None:
    options = choices.pop("options", None)
    trans = choices.get("trans", (False,) * 3)
    dtype, metadata, accumulate = types
    rng = np.random.default_rng(seed)
    dense = sparse_matrix(rng, m, k, dtype)
    values, words = compress(dense, dtype, metadata)
    b = rng.integers(0 if dtype.startswith("u") else -4, 5, (k, n)).astype(to_dtype(dtype).numpy())
    arrays = [np.ascontiguousarray(x.T) if swap else x for x, swap in zip((values, words, b), trans, strict=True)]
    c = np.full((m, n), 77, to_dtype(accumulate).numpy())
    tile.compile(kernel(m, n, k, types, **choices), target="cpu", options=options)(*arrays, c)
    assert np.array_equal(c.astype(np.float64), dense.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize(("dtype", "accumulate"), TYPES[:5])
def test_the_plain_meaning_agrees(dtype: str, accumulate: str) -> None:
    check(5, 9, 11, 64, (dtype, "int8", accumulate), tile_shape=(8, 8, 32), options={"generic": True})


def test_clear_accum_keeps_the_last_product_only() -> None:
    rng = np.random.default_rng(6)
    dense = sparse_matrix(rng, 16, 64, "float16")
    values, words = compress(dense, "float16", "int16")
    b = rng.integers(-4, 5, (64, 16)).astype(np.float16)
    c = np.full((16, 16), np.nan, np.float32)
    program = kernel(16, 16, 64, ("float16", "int16", "float32"), tile_shape=(16, 16, 32), clear=True)
    tile.compile(program, target="cpu")(values, words, b, c)
    assert np.array_equal(c, dense[:, 32:].astype(np.float64) @ b[32:].astype(np.float64))


def test_every_nibble_of_the_hardware_selects_its_elements() -> None:
    """Nibbles 4 8 9 C D E keep (0,1) (0,2) (1,2) (0,3) (1,3) (2,3)."""
    pairs = {0x4: (0, 1), 0x8: (0, 2), 0x9: (1, 2), 0xC: (0, 3), 0xD: (1, 3), 0xE: (2, 3)}
    codes = [*pairs, 0x4, 0xE]
    words = np.array([[sum(c << 4 * i for i, c in enumerate(codes))]], np.uint32).view(np.int32)
    values = np.arange(1, 17, dtype=np.float16)[None]
    b = np.eye(32, dtype=np.float16)
    c = np.full((1, 32), np.nan, np.float32)
    program = kernel(1, 32, 32, ("float16", "int32", "float32"), tile_shape=(1, 32, 32))
    tile.compile(program, target="cpu")(values, words, b, c)
    want = np.zeros(32)
    for g, code in enumerate(codes):
        for slot, index in enumerate(pairs[code]):
            want[4 * g + index] = values[0, 2 * g + slot]
    assert np.array_equal(c[0], want)


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (
            ((16, 16), (16, 2), (48, 8), (16, 8)),
            "K of B must be twice the stored columns of A_sparse (found 48, expected 32)",
        ),
        (
            ((16, 16), (16, 1), (32, 8), (16, 8)),
            "each of which describes 16 elements of K = 32, (found 16, expected 32)",
        ),
        (((16, 16), (8, 2), (32, 8), (16, 8)), "M of E must be M of A_sparse (found 8, expected 16)"),
        (((16, 16), (16, 2), (32, 8), (8, 8)), "M of C must be M of A_sparse (found 8, expected 16)"),
        (((16, 16), (16, 2), (32, 8), (16, 4)), "N of C must be N of B (found 4, expected 8)"),
        (((16, 12), (16, 2), (24, 8), (16, 8)), "choose K as a multiple of 16 (nearest: 16 or 32)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_while_tracing(shapes: Any, text: str) -> None:
    with pytest.raises(SparseShape) as refused:

        @T.prim_func
        def wrong(X: T.Tensor((1,), "float32")):
            with T.Kernel(1, threads=128):
                a, b, c = (T.alloc_shared(shapes[i], "float16") for i in (0, 2, 3))
                e = T.alloc_shared(shapes[1], "int16")
                T.gemm_sp(a, e, b, c)  # here

    assert refused.value.code == "K219"
    assert text in str(refused.value)
    assert refused.value.where is not None
    assert refused.value.where.source.endswith("# here")


@pytest.mark.parametrize(
    ("types", "error"),
    [
        (("float64", "int16", "float64", "float64"), BadElementType),
        (("float16", "float16", "float16", "float32"), BadElementType),
        (("float16", "int64", "float16", "float32"), BadElementType),
        (("float16", "int16", "int8", "float32"), GemmTypes),
        (("int8", "int32", "int8", "float32"), GemmTypes),
    ],
)
def test_types_that_do_not_fit_are_refused(types: tuple[str, ...], error: type[Exception]) -> None:
    with pytest.raises(error):

        @T.prim_func
        def wrong(X: T.Tensor((1,), "float32")):
            with T.Kernel(1, threads=128):
                shapes = ((16, 32), (16, 2), (64, 8), (16, 8))
                a, e, b, c = (T.alloc_shared(s, t) for s, t in zip(shapes, types, strict=True))
                T.gemm_sp(a, e, b, c)
