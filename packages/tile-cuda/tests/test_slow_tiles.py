"""Performance warnings about tiles: only of estimated kernels, loops and limits."""

from __future__ import annotations

import pytest

import tile_core.language as T
from tile_core.reports import report_json

from .attention import attention

TARGET = "cuda:sm_90a"


def warnings_of(program, **options):
    return [w["text"] for w in report_json(program, TARGET, options=options)["warnings"]]


def product(
    sizes=(4096, 4096, 4096), tile=(128, 128, 64), threads=128, *, stages=3, dtype="float16", given="", turned=False,
    sliced=False,
):  # fmt: skip
    (rows, columns, depth), (m, n, k) = sizes, tile
    shape, of_tile = ((columns, depth), (n, k)) if turned else ((depth, columns), (k, n))
    accumulated = dtype if dtype == "float64" else "float32"

    @T.prim_func
    def main(
        A: T.Tensor((rows, depth), given or dtype), B: T.Tensor(shape, given or dtype),
        C: T.Tensor((rows, columns), accumulated),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(columns, n), T.ceildiv(rows, m), threads=threads) as (bx, by):
            A_s = T.alloc_shared((m, k), dtype)
            B_s = T.alloc_shared(of_tile, dtype)
            C_f = T.alloc_fragment((m, n), accumulated)
            T.clear(C_f)
            for t in T.Pipelined(T.ceildiv(depth, k), num_stages=stages):
                T.copy(A[by * m, t * k], A_s)
                T.copy(B[(bx * n, t * k) if turned else (t * k, bx * n)], B_s)
                if sliced:
                    for u in T.serial(k // 16):
                        T.gemm(A_s[:, u * 16 : u * 16 + 16], B_s[u * 16 : u * 16 + 16, :], C_f)
                else:
                    T.gemm(A_s, B_s, C_f, transpose_B=turned)
            T.copy(C_f, C[by * m, bx * n])

    return main


def layers(rows=8192, hidden=128, depth=8192, width=128, m=128, threads=256, stages=1):
    """Two layers of a network: the second product is behind the loop of the first."""

    @T.prim_func
    def main(
        X: T.Tensor((rows, depth), "float16"), V: T.Tensor((depth, hidden), "float16"),
        W: T.Tensor((hidden, width), "float16"), Y: T.Tensor((rows, width), "float16"),
    ):  # fmt: skip
        with T.Kernel(rows // m, threads=threads) as by:
            X_s = T.alloc_shared((m, 64), "float16")
            V_s = T.alloc_shared((64, hidden), "float16")
            W_s = T.alloc_shared((hidden, width), "float16")
            H = T.alloc_fragment((m, hidden), "float32")
            H_h = T.alloc_fragment((m, hidden), "float16")
            Y_f = T.alloc_fragment((m, width), "float32")
            T.clear(H)
            T.clear(Y_f)
            T.copy(W, W_s)
            for t in T.Pipelined(depth // 64, num_stages=stages):
                T.copy(X[by * m, t * 64], X_s)
                T.copy(V[t * 64, 0], V_s)
                T.gemm(X_s, V_s, H)
            T.copy(H, H_h)
            T.gemm(H_h, W_s, Y_f)
            T.copy(Y_f, Y[by * m, 0])

    return main


def beside_a_loop(size=8192, n=64):
    """A product before a pipelined loop that has none."""

    @T.prim_func
    def main(
        A: T.Tensor((size, 64), "float16"), B: T.Tensor((64, size), "float16"), X: T.Tensor((64, size), "float16"),
        C: T.Tensor((size, size), "float16"),
    ):  # fmt: skip
        with T.Kernel(size // n, size // n, threads=128) as (bx, by):
            A_s = T.alloc_shared((n, 64), "float16")
            B_s = T.alloc_shared((64, n), "float16")
            X_s = T.alloc_shared((1, n), "float16")
            C_f = T.alloc_fragment((n, n), "float32")
            added = T.alloc_fragment((n,), "float32")
            T.copy(A[by * n, 0], A_s)
            T.copy(B[0, bx * n], B_s)
            T.clear(C_f)
            T.clear(added)
            T.gemm(A_s, B_s, C_f)
            for t in T.Pipelined(64, num_stages=2):
                T.copy(X[t, by * n], X_s)
                for i in T.Parallel(n):
                    added[i] += T.cast(X_s[0, i], "float32")
            for i, j in T.Parallel(n, n):
                C_f[i, j] += added[i]
            T.copy(C_f, C[by * n, bx * n])

    return main


def without_copies():
    @T.prim_func
    def main(C: T.Tensor((8192, 8192), "float16")):
        with T.Kernel(128, 128, threads=128) as (bx, by):
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            C_f = T.alloc_fragment((64, 64), "float32")
            T.clear(C_f)
            T.fill(A_s, 1)
            T.fill(B_s, 2)
            for _ in T.Pipelined(64, num_stages=2):
                T.gemm(A_s, B_s, C_f)
            T.copy(C_f, C[by * 64, bx * 64])

    return main


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    "program",
    [layers(), layers(rows=16384, m=64, threads=512, stages=3), beside_a_loop(), without_copies(),
     product(tile=(128, 128, 64), threads=256, sliced=True)],
)  # fmt: skip
def test_products_outside_of_the_loop_or_in_one_of_its_own_are_not_estimated(program):
    assert not warnings_of(program)


def with_weights_of_4_bits(rows, columns, m, n, depth=32768, k=64):
    """A product whose weights of 4 bits take a quarter of the memory time."""

    @T.prim_func
    def main(A: T.Tensor((rows, depth), "float16"), W: T.Tensor((columns, depth), "int4"),
             C: T.Tensor((rows, columns), "float16")):  # fmt: skip
        with T.Kernel(T.ceildiv(columns, n), T.ceildiv(rows, m), threads=128) as (bx, by):
            A_s = T.alloc_shared((m, k), "float16")
            W_s = T.alloc_shared((n, k), "int4")
            W_h = T.alloc_shared((n, k), "float16")
            C_f = T.alloc_fragment((m, n), "float32")
            T.clear(C_f)
            for t in T.Pipelined(depth // k, num_stages=2):
                T.copy(A[by * m, t * k], A_s)
                T.copy(W[bx * n, t * k], W_s)
                for i, j in T.Parallel(n, k):
                    W_h[i, j] = T.cast(W_s[i, j], "float16")
                T.gemm(A_s, W_h, C_f, transpose_B=True)
            T.copy(C_f, C[by * m, bx * n])

    return main


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    ("rows", "columns", "tile", "nearest"),
    [
        (16, 28672, (32, 32), ""), (64, 28672, (64, 32), ""), (28672, 24, (64, 32), ""),
        (256, 28672, (32, 32), "128 x 128 x 64"),
    ],
)  # fmt: skip
def test_larger_tiles_are_advice_for_larger_results_only(rows, columns, tile, nearest):
    said = [s for s in warnings_of(with_weights_of_4_bits(rows, columns, *tile)) if "nearest" in s]
    assert bool(said) == bool(nearest)
    assert all(f"the nearest better ones are {nearest}" in s for s in said)


@pytest.mark.sweep(0.25)
def test_attention_of_other_types_was_not_measured():
    program = attention(128, False, 128, 64, 256, 2, dtype="float8_e4m3fn")
    assert not any("scores with" in s for s in warnings_of(program))


@pytest.mark.sweep(0.25)
def test_attention_of_few_queries_has_no_use_for_more_rows():
    few, many = (attention(128, False, 16, 64, 128, 2, length=n, heads=2**18 // n, keys=4096) for n in (16, 4096))
    assert not any("scores with" in s for s in warnings_of(few))
    assert any("scores with" in s for s in warnings_of(many))


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("sizes", [(16, 16384, 32768), (64, 65536, 8192)])
def test_where_device_memory_is_the_limit_other_tiles_are_not_better(sizes):
    assert not warnings_of(product(sizes, (sizes[0], 128, 64)))
    assert warnings_of(product((8192, *sizes[1:]), (sizes[0], 128, 64)))


@pytest.mark.sweep(0.25)
def test_types_that_warpgroups_do_not_multiply_are_not_compared_with_them():
    program = product(tile=(32, 32, 16), dtype="float64")
    assert not warnings_of(program)
    (op,) = [op for op in report_json(program, TARGET)["ops"] if op["op"] == "gemm"]
    assert "no instruction for the types A float64, B float64, C float64" in str(op)
    assert "along K only" not in str(op)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"given": "float32"}, "it converts float32 to float16"),
        ({"sizes": (4096, 4099, 4099)}, "rows of A are aligned to 2 bytes in segments of 128"),
    ],
)
def test_unpipelined_loops_report_the_reason(how, why):
    (text,) = warnings_of(product(threads=256, **how))
    assert text.startswith(f"loop not pipelined: A_s is not prefetched: {why}")


@pytest.mark.sweep(0.25)
def test_the_same_tiles_may_be_the_best():
    said, *_ = warnings_of(product(tile=(128, 128, 128), dtype="float8_e4m3fn"))
    assert "its product runs on mma.sync (elements of 8 bits are adjacent along K only" in said
    assert said.endswith("; without that they are among the best")
