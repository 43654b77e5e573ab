"""Products of a few rows with B read in place: correct at every edge."""

from __future__ import annotations

import itertools
import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx
from tile_core.compiler import lower
from tile_core.ir import nodes
from tile_core.ir.visit import collect, substitute
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed

pytestmark = pytest.mark.sweep(12)

#: A word of the report's "B is read in place, without a copy"; it breaks lines between words.
READ_THROUGH = "without"
ACCUMULATORS = {"int8": "int32", "uint8": "int32", "int16": "int32", "float64": "float64"}
DTYPES = ("float32", "float16", "bfloat16", "float64", "int8", "uint8", "int16", "float8_e4m3fn", "float8_e5m2")


@pytest.fixture
def seed() -> int:
    """A fresh seed, printed with a failure."""
    value = random.SystemRandom().randrange(2**32)
    print(f"seed {value}")
    return value


def matmul(
    M: int, N: int, K: int, blocks: tuple[int, int, int], trans_a: bool = False, trans_b: bool = False,
    dtype: str = "float32", clear: bool = False,
) -> Any:  # fmt: skip
    block_M, block_N, block_K = blocks
    accum = ACCUMULATORS.get(dtype, "float32")

    @T.prim_func
    def main(
        A: T.Tensor((K, M) if trans_a else (M, K), dtype),
        B: T.Tensor((N, K) if trans_b else (K, N), dtype),
        C: T.Tensor((M, N), accum),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_K, block_M) if trans_a else (block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K) if trans_b else (block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                if trans_b:
                    T.copy(B[bx * block_N, k * block_K], B_shared)
                else:
                    T.copy(B[k * block_K, bx * block_N], B_shared)
                if trans_a:
                    T.copy(A[k * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, k * block_K], A_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_A=trans_a, transpose_B=trans_b, clear_accum=clear)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def small(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Any:
    """Small integers, so that every sum is exact."""
    kind = np.dtype(getattr(ml_dtypes, dtype)) if hasattr(ml_dtypes, dtype) else np.dtype(dtype)
    return rng.integers(0 if dtype == "uint8" else -3, 4, shape).astype(kind)


def unaligned(array: Any) -> Any:
    """The same values at an address that is a multiple of one element only."""
    storage = np.empty(array.size + 1, array.dtype)[1:].reshape(array.shape)
    storage[...] = array
    return storage


def compare(M: int, N: int, K: int, blocks: tuple[int, int, int], seed: int, **options: Any) -> str:
    """Compare with NumPy, exactly, and return the explanation."""
    rng = np.random.default_rng(seed)
    trans_a, trans_b, dtype = (
        options.get(o, d) for o, d in (("trans_a", False), ("trans_b", False), ("dtype", "float32"))
    )
    kernel = tile.compile(matmul(M, N, K, blocks, **options), target=options.pop("target", "cpu"))
    a = unaligned(small((K, M) if trans_a else (M, K), dtype, rng))
    b = unaligned(small((N, K) if trans_b else (K, N), dtype, rng))
    c = np.full((M, N), 77, ACCUMULATORS.get(dtype, "float32"))
    kernel(a, b, c)
    wide = [x.astype("float64").T if t else x.astype("float64") for x, t in ((a, trans_a), (b, trans_b))]
    np.testing.assert_array_equal(c, (wide[0] @ wide[1]).astype(c.dtype))
    return str(kernel.explain())


@pytest.mark.parametrize("flips", [*itertools.product((False, True), repeat=2)])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
def test_every_row_count_with_primes(rows: int, flips: tuple[bool, bool], seed: int) -> None:
    options = {"trans_a": flips[0], "trans_b": flips[1]}
    text = compare(rows, 131, 67, (rows, 64, 32), seed, **options)
    assert (READ_THROUGH in text) == (rows <= 4 or flips[1])  # rows that are stored along K are read anyway
    compare(rows, 7, 5, (rows, 16, 8), seed, **options)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans_b", [False, True])
def test_every_element_type(dtype: str, trans_b: bool, seed: int) -> None:
    rows = random.Random(seed).choice([1, 2, 3, 4])
    text = compare(rows, 97, 101, (rows, 32, 17), seed, dtype=dtype, trans_b=trans_b)
    assert READ_THROUGH in text


@pytest.mark.parametrize("sizes", [(1, 64, 64), (4, 1, 1), (2, 1, 37), (3, 37, 1), (1, 63, 129), (9, 65, 33)])
@pytest.mark.parametrize("trans_b", [False, True])
def test_edge_sizes(sizes: tuple[int, int, int], trans_b: bool, seed: int) -> None:
    blocks_of = ((1, 32, 16), (4, 64, 64), (2, 13, 7), (3, 1, 5), (2, 8, 1))
    for blocks in random.Random(seed).sample(blocks_of, 2):
        compare(*sizes, blocks, seed, trans_b=trans_b)


@pytest.mark.sweep(0.25)
def test_other_vector_units(seed: int) -> None:
    # What LLVM makes for older processors also runs here.
    for flip in (False, True):
        program = matmul(3, 131, 67, (3, 64, 32), trans_b=flip)
        rng = np.random.default_rng(seed)
        a, b = small((3, 67), "float32", rng), small((131, 67) if flip else (67, 131), "float32", rng)
        for processor in ("x86-64", "x86-64-v3"):
            c = np.empty((3, 131), "float32")
            tile.compile(program, target=f"cpu:{processor}")(a, b, c)
            np.testing.assert_array_equal(c, a @ (b.T if flip else b))


def prefetched(program: Any) -> list[Any]:
    """The places that a program prefetches on its way to LLVM."""
    plugins = installed()
    plan = lower(program, make_context("cpu", plugins=plugins), plugins)
    calls = collect(plan.lowered.body, ir.Call)
    return [c.args[0].args[0] for c in calls if nodes.operator_name(c) == "prefetch"]


@pytest.mark.parametrize("sizes", [(600, 67, 256, 32), (1031, 131, 512, 64), (1024, 5, 1024, 5), (700, 1, 300, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bfloat16"])
def test_parts_of_rows_with_the_next_ones_prefetched(sizes: tuple[int, int, int, int], dtype: str, seed: int) -> None:
    N, K, block_N, block_K = sizes
    compare(1, N, K, (1, block_N, block_K), seed, dtype=dtype)
    compare(1, N, K, (1, block_N, block_K), seed, dtype=dtype, clear=block_K >= K)


def test_what_is_prefetched_lies_inside_of_the_tensor() -> None:
    # Also after the last rows, where there are no next ones: every address is that of an element.
    program = matmul(1, 600, 67, (1, 256, 32))
    plugins = installed()
    plan = lower(program, make_context("cpu:x86-64-v3", plugins=plugins), plugins)
    seen: list[tuple[int, int]] = []
    walk(plan.lowered.body, {}, seen)
    assert len(set(seen)) > 100
    assert all(0 <= row < 67 and 0 <= column < 600 for row, column in seen)
    assert {row for row, _ in seen} >= set(range(4, 64))


def walk(s: Any, given: dict[Any, Any], seen: list[tuple[int, int]]) -> None:
    """Run the loops and conditions of a program; note where it prefetches."""
    if isinstance(s, tirx.SeqStmt):
        for part in s.seq:
            if isinstance(part, tirx.Bind) and nodes.dtype_of(part.var) == "int32":
                given = {**given, part.var: nodes.int_const(value(part.value, given))}
            walk(part, given, seen)
    elif isinstance(s, tirx.For):
        for i in range(value(s.min, given), value(s.min, given) + value(s.extent, given)):
            walk(s.body, {**given, s.loop_var: nodes.int_const(i)}, seen)
    elif isinstance(s, tirx.IfThenElse):
        branch = s.then_case if value(s.condition, given) else s.else_case
        if branch is not None and list(collect(branch, tirx.For)):
            walk(branch, given, seen)
    elif isinstance(s, tirx.AttrStmt):
        walk(s.body, given, seen)
    elif isinstance(s, tirx.Evaluate) and nodes.operator_name(s.value) == "prefetch":
        row, column = s.value.args[0].args[0].indices
        seen.append((value(row, given), value(column, given)))


def value(e: Any, given: dict[Any, Any]) -> int:
    """The value of an integer or condition."""
    if isinstance(nodes.as_int(e), int):
        return int(nodes.as_int(e))
    return int(Analyzer().simplify(substitute(e, given)))


@pytest.mark.parametrize("blocks", [(1, 1024, 32), (1, 128, 32), (2, 512, 32), (1, 512, 32)])
def test_following_rows_of_few_products_are_prefetched(blocks: tuple[int, int, int]) -> None:
    assert prefetched(matmul(blocks[0], 1024, 64, blocks))


def test_a_cleared_product_keeps_the_last_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, c = small((2, 64), "float32", rng), small((64, 50), "float32", rng), np.empty((2, 50), "float32")
    tile.compile(matmul(2, 50, 64, (2, 32, 16), clear=True), target="cpu")(a, b, c)
    np.testing.assert_array_equal(c, a[:, 48:] @ b[48:])


def test_special_values_in_parts_of_rows_follow_ieee(seed: int) -> None:
    rng = np.random.default_rng(seed)
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, 1e-40, 2.5], "float32")
    a, b, c = rng.choice(special, (1, 2)), rng.choice(special, (2, 700)), np.empty((1, 700), "float32")
    tile.compile(matmul(1, 700, 2, (1, 256, 2)), target="cpu")(a, b, c)
    with np.errstate(all="ignore"):
        x, y = a.astype("float64"), b.astype("float64")
        expected = (x[:, :1] * y[:1] + x[:, 1:] * y[1:]).astype("float32")
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("trans_b", [False, True])
def test_special_values_follow_ieee(trans_b: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, 1e-40, 2.5], "float32")
    a, b = rng.choice(special, (3, 2)), rng.choice(special, (39, 2) if trans_b else (2, 39))
    c = np.empty((3, 39), "float32")
    tile.compile(matmul(3, 39, 2, (3, 13, 2), trans_b=trans_b), target="cpu")(a, b, c)
    with np.errstate(all="ignore"):
        x, y = a.astype("float64"), (b.T if trans_b else b).astype("float64")
        expected = (x[:, :1] * y[:1] + x[:, 1:] * y[1:]).astype("float32")
    np.testing.assert_array_equal(c, expected)


def test_a_total_of_negative_zeros_stays_negative() -> None:
    # With -0.0 in C and products of -0.0 nothing adds up to +0.0, not even in the lanes that a short row leaves empty.
    @T.prim_func
    def main(A: T.Tensor((1, 5), "float32"), B: T.Tensor((7, 5), "float32"), C: T.Tensor((1, 7), "float32")):
        with T.Kernel(1, threads=32):
            a, b = T.alloc_shared((1, 5), "float32"), T.alloc_shared((7, 5), "float32")
            c = T.alloc_fragment((1, 7), "float32")
            T.copy(C, c)
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C)

    a, b, c = np.full((1, 5), -0.0, "float32"), np.ones((7, 5), "float32"), np.full((1, 7), -0.0, "float32")
    tile.compile(main, target="cpu")(a, b, c)
    assert np.signbit(c).all()


def product(body: Any, shape: tuple[int, int] = (64, 64), strides: tuple[Any, Any] | None = None) -> Any:
    """Return a kernel around ``body(B, X, a, b, c)``, with one tile of B."""
    kind = T.Tensor(shape, "float32") if strides is None else T.StridedTensor(shape, strides, "float32")

    @T.prim_func
    def main(A: T.Tensor((2, 16), "float32"), B: kind, X: T.Tensor((1,), "int32"), C: T.Tensor((2, 64), "float32")):
        with T.Kernel(1, threads=32):
            a, b = T.alloc_shared((2, 16), "float32"), T.alloc_shared((16, 64), "float32")
            c = T.alloc_fragment((2, 64), "float32")
            T.clear(c)
            T.copy(A, a)
            body(B, X, a, b, c)
            T.copy(c, C)

    return tile.compile(main, target="cpu")


def operands(seed: int) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(seed)
    x = np.array([3], "int32")
    return small((2, 16), "float32", rng), small((64, 64), "float32", rng), x, np.empty((2, 64), "float32")


def test_a_tile_that_is_used_twice_is_copied(seed: int) -> None:
    def body(B: Any, X: Any, a: Any, b: Any, c: Any) -> None:
        T.copy(B[8:24, :], b)
        T.gemm(a, b, c)
        T.gemm(a, b, c)

    kernel = product(body)
    a, b, x, c = operands(seed)
    kernel(a, b, x, c)
    assert READ_THROUGH not in str(kernel.explain())
    np.testing.assert_array_equal(c, 2 * (a @ b[8:24]))


def test_a_tensor_that_is_written_in_between_is_copied(seed: int) -> None:
    @T.macro
    def by_loop(B: Any, X: Any, a: Any, b: Any, c: Any) -> None:
        T.copy(B[8:24, :], b)
        for i in T.Parallel(64):
            B[8, i] = 99.0
        T.gemm(a, b, c)

    def by_op(B: Any, X: Any, a: Any, b: Any, c: Any) -> None:
        T.copy(B[8:24, :], b)
        T.fill(B[8:10, :], 99.0)
        T.gemm(a, b, c)

    def by_view(B: Any, X: Any, a: Any, b: Any, c: Any) -> None:
        same = T.reshape(B, (4096,))
        T.copy(B[8:24, :], b)
        T.fill(same[512:600], 99.0)
        T.gemm(a, b, c)

    for body in (by_loop, by_op, by_view):
        kernel = product(body)
        a, b, x, c = operands(seed)
        expected = a @ b[8:24]
        kernel(a, b, x, c)
        assert READ_THROUGH not in str(kernel.explain())
        np.testing.assert_array_equal(c, expected)
        assert (b[8] == 99).all()


def test_a_tile_that_is_changed_in_between_is_copied(seed: int) -> None:
    @T.macro
    def body(B: Any, X: Any, a: Any, b: Any, c: Any) -> None:
        T.copy(B[8:24, :], b)
        for i, j in T.Parallel(16, 64):
            b[i, j] = b[i, j] * 2
        T.gemm(a, b, c)

    kernel = product(body)
    a, b, x, c = operands(seed)
    kernel(a, b, x, c)
    np.testing.assert_array_equal(c, 2 * (a @ b[8:24]))


@pytest.mark.parametrize("row", [0, 3, 48, 49, 63, 64, 70, 2**30])
def test_rows_at_runtime_read_zeros_beyond_the_end(row: int, seed: int) -> None:
    def body(B: Any, X: Any, a: Any, b: Any, c: Any) -> None:
        T.copy(B[X[0] : X[0] + 16, :], b)
        T.gemm(a, b, c)

    kernel = product(body)
    a, b, x, c = operands(seed)
    x[0] = row
    kernel(a, b, x, c)
    padded = np.zeros((16, 64), "float32")
    padded[: max(0, 64 - row)] = b[row : row + 16]
    np.testing.assert_array_equal(c, a @ padded)


@pytest.mark.parametrize("trans_b", [False, True])
def test_corners_at_runtime_are_inside_or_copied(trans_b: bool, seed: int) -> None:
    shape = (64, 16) if trans_b else (16, 64)

    @T.prim_func
    def main(row: T.int32, A: T.Tensor((2, 16), "float32"), B: T.Tensor((90, 80), "float32"),
             C: T.Tensor((2, 64), "float32")):  # fmt: skip
        with T.Kernel(1, threads=32):
            a, b = T.alloc_shared((2, 16), "float32"), T.alloc_shared(shape, "float32")
            c = T.alloc_fragment((2, 64), "float32")
            T.clear(c)
            T.copy(A, a)
            T.copy(B[row, 3], b)
            T.gemm(a, b, c, transpose_B=trans_b)
            T.copy(c, C)

    kernel = tile.compile(main, target="cpu")
    assert READ_THROUGH in str(kernel.explain())
    rng = np.random.default_rng(seed)
    a, b = small((2, 16), "float32", rng), small((90, 80), "float32", rng)
    for row in (0, 5, 26, 27, 74, 75, 89, 90, -1, -20, 2**31 - 1, 2**31 - 20, 2**31 - 64, -(2**31)):
        c = np.full((2, 64), 7, "float32")
        kernel(row, a, b, c)
        tile_of_b = np.zeros(shape, "float32")
        inside = [i for i in range(shape[0]) if 0 <= row + i < 90]
        tile_of_b[inside] = b[[row + i for i in inside], 3 : 3 + shape[1]]
        np.testing.assert_array_equal(c, a @ (tile_of_b.T if trans_b else tile_of_b))


def test_a_stride_between_elements_is_copied(seed: int) -> None:
    def body(B: Any, X: Any, a: Any, b: Any, c: Any) -> None:
        T.copy(B[8:24, :], b)
        T.gemm(a, b, c)

    for strides, taken in (((160, 2), False), ((160, 1), True)):
        kernel = product(body, strides=strides)
        a, _, x, c = operands(seed)
        storage = small((64, 160), "float32", np.random.default_rng(seed))
        b = storage[:, : 64 * strides[1] : strides[1]]
        kernel(a, b, x, c)
        assert (READ_THROUGH in str(kernel.explain())) == taken
        np.testing.assert_array_equal(c, a @ b[8:24])


@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize(("rows", "block_N"), [(3, 48), (1, 256)])
def test_dynamic_sizes(trans_b: bool, rows: int, block_N: int, seed: int) -> None:
    N, K = T.dynamic("n"), T.dynamic("k")

    @T.prim_func
    def main(
        A: T.Tensor((rows, K), "float32"), B: T.Tensor((N, K) if trans_b else (K, N), "float32"),
        C: T.Tensor((rows, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, block_N), threads=32) as bx:
            a = T.alloc_shared((rows, 24), "float32")
            b = T.alloc_shared((block_N, 24) if trans_b else (24, block_N), "float32")
            c = T.alloc_fragment((rows, block_N), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 24), num_stages=2):
                T.copy(A[:, k * 24 : k * 24 + 24], a)
                if trans_b:
                    T.copy(B[bx * block_N, k * 24], b)
                else:
                    T.copy(B[k * 24, bx * block_N], b)
                T.gemm(a, b, c, transpose_B=trans_b)
            T.copy(c, C[:, bx * block_N : (bx + 1) * block_N])

    kernel = tile.compile(main, target="cpu")
    assert READ_THROUGH in str(kernel.explain())
    rng = np.random.default_rng(seed)
    for n, k in ((1, 1), (48, 24), (47, 23), (97, 49), (131, 240), (515, 25), (256, 24), (0, 5)):
        a, b = small((rows, k), "float32", rng), small((n, k) if trans_b else (k, n), "float32", rng)
        c = np.full((rows, n), 7, "float32")
        kernel(a, b, c)
        np.testing.assert_array_equal(c, a @ (b.T if trans_b else b))
