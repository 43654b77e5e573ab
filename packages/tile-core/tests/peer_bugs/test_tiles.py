"""Situations that broke another tile compiler, as kernels of tile ops: the right result, or a typed refusal.

The numbers are those of public reports against that compiler. Rows whose test stands elsewhere (``tests/ops``) are not
repeated here.
"""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import KernelError

from .shared import kit

# ---------------------------------------------------------------------------------------------------------- dense GEMM


def gemm(m, n, k, a, c, *, threads=128, policy=T.GemmWarpPolicy.Square, trans_b=False, slices=1, stages=2):
    """C = A B with the whole of M and N in one block and K in ``slices`` of ``k``."""

    @T.prim_func
    def main(
        A: T.Tensor((m, k * slices), a),
        B: T.Tensor((n, k * slices) if trans_b else (k * slices, n), a),
        C: T.Tensor((m, n), c),
    ):
        with T.Kernel(1, threads=threads):
            a_s = T.alloc_shared((m, k), a)
            b_s = T.alloc_shared((n, k) if trans_b else (k, n), a)
            acc = T.alloc_fragment((m, n), c)
            T.clear(acc)
            for ko in T.Pipelined(slices, num_stages=stages):
                T.copy(A[0, ko * k], a_s)
                T.copy(B[0, ko * k] if trans_b else B[ko * k, 0], b_s)
                T.gemm(a_s, b_s, acc, transpose_B=trans_b, policy=policy)
            T.copy(acc, C)

    return main


def check_gemm(program, m, n, k, a, c, trans_b=False):
    rng = np.random.default_rng(kit.seed(m, n, k, a))
    left, right = kit.numbers(rng, (m, k), a), kit.numbers(rng, (n, k) if trans_b else (k, n), a)
    out = kit.launch(program, [left, right], [kit.guarded((m, n), c)])
    wide = kit.values(left, a).astype(np.float64), kit.values(right, a).astype(np.float64)
    kit.same(kit.values(out, c).astype(np.float64), wide[0] @ (wide[1].T if trans_b else wide[1]) + 0.0)


@pytest.mark.parametrize(("k", "dtype"), [(24, "float16"), (40, "bfloat16"), (56, "float16")])
def test_2381_k_of_an_atom_and_a_half(k, dtype):
    check_gemm(gemm(64, 64, k, dtype, "float32"), 64, 64, k, dtype, "float32")


def test_2537_warps_that_do_not_divide_the_columns():
    check_gemm(gemm(16, 104, 32, "float16", "float32", threads=384), 16, 104, 32, "float16", "float32")


@pytest.mark.parametrize("policy", list(T.GemmWarpPolicy))
def test_2522_policies_change_nothing(policy):
    program = gemm(256, 24, 16, "float16", "float32", threads=256, policy=policy)
    check_gemm(program, 256, 24, 16, "float16", "float32")


@pytest.mark.parametrize(
    ("k", "dtype", "c"),
    [
        (8, "int8", "int32"),
        (16, "int8", "int32"),
        (16, "float8_e4m3fn", "float32"),
        (8, "bfloat16", "float32"),
        (8, "float16", "float16"),
    ],
)
def test_3032_k_below_the_atom(k, dtype, c):
    check_gemm(gemm(32, 16, k, dtype, c, slices=2), 32, 16, 2 * k, dtype, c)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "tfloat32", "float8_e4m3fn"])
def test_3004_half_precision_accumulators(dtype):
    check_gemm(gemm(16, 16, 16, dtype, "float16"), 16, 16, 16, dtype, "float16")


def test_3004_integers_do_not_accumulate_in_floats():
    with pytest.raises(KernelError) as caught:
        gemm(16, 16, 16, "int8", "float16")
    assert caught.value.code == "K208"


@pytest.mark.parametrize(("m", "n"), [(128, 128), (100, 72), (1, 129)])
def test_2172_transposed_int8(m, n):
    check_gemm(gemm(m, n, 64, "int8", "int32", trans_b=True, slices=2, stages=3), m, n, 128, "int8", "int32", True)


@pytest.mark.parametrize("operand", ["A", "B"])
def test_2954_copy_of_a_fragment_that_was_an_operand(operand):
    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), B: T.Tensor((128, 64), "float16"), C: T.Tensor((128, 128), "float32")):
        with T.Kernel(1, threads=128):
            f = T.alloc_fragment((128, 64), "float16")
            s = T.alloc_shared((128, 64), "float16")
            back = T.alloc_shared((128, 64), "float16")
            acc = T.alloc_fragment((128, 128), "float32")
            T.copy(A, f)
            T.copy(A, s)
            T.clear(acc)
            if operand == "A":
                T.gemm(f, s, acc, transpose_B=True)
            else:
                T.gemm(s, f, acc, transpose_B=True)
            T.copy(f, back)
            T.copy(back, B)
            T.copy(acc, C)

    a = kit.numbers(np.random.default_rng(1), (128, 64), "float16")
    b, c = kit.launch(main, [a], [kit.guarded((128, 64), "float16"), kit.guarded((128, 128), "float32")])
    kit.same(b, a)
    kit.same(c, a.astype("f4") @ a.astype("f4").T)


def test_2421_bfloat16_tile_and_3199_elementwise_on_the_accumulator():
    @T.prim_func
    def main(A: T.Tensor((32, 16), "bfloat16"), B: T.Tensor((16, 64), "bfloat16"), C: T.Tensor((32, 64), "bfloat16")):
        with T.Kernel(1, threads=64):
            a = T.alloc_shared((32, 16), "bfloat16")
            b = T.alloc_shared((16, 64), "bfloat16")
            c = T.alloc_fragment((32, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, clear_accum=True)
            for i, j in T.Parallel(32, 64):
                c[i, j] *= 2
            T.copy(c, C)

    rng = np.random.default_rng(2)
    a, b = kit.numbers(rng, (32, 16), "bfloat16", -2, 2), kit.numbers(rng, (16, 64), "bfloat16", -2, 2)
    out = kit.launch(main, [a, b], [kit.guarded((32, 64), "bfloat16")])
    kit.same(out, 2 * a.astype("f4") @ b.astype("f4"))


# -------------------------------------------------------------------------------------------------------------- copies


def test_2527_bulk_store_at_a_column_offset():
    @T.prim_func
    def main(A: T.Tensor((32, 32), "int32"), B: T.Tensor((32, 40), "int32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((32, 32), "int32")
            T.copy(A, s)
            T.copy(s, B[0:32, 1:33])

    a = kit.anything(np.random.default_rng(1), (32, 32), "int32")
    out = kit.launch(main, [a], [kit.guarded((32, 40), "int32")])
    kit.same(out[:, 1:33], a)
    assert (out[:, 0] == -1).all()
    assert (out[:, 33:] == -1).all()


@pytest.mark.parametrize("length", [1, 255, 257, 1000])
def test_2529_last_tile_of_a_vector(length):
    @T.prim_func
    def main(A: T.Tensor((length,), "float16"), B: T.Tensor((length,), "float16")):
        with T.Kernel(T.ceildiv(length, 256), threads=128) as b:
            s = T.alloc_shared((256,), "float16")
            T.copy(A[b * 256], s)
            T.copy(s, B[b * 256])

    a = kit.anything(np.random.default_rng(2), (length,), "float16")
    kit.same(kit.launch(main, [a], [kit.guarded((length,), "float16")]), a)


@pytest.mark.parametrize("threads", [1, 2, 7, 31, 32, 33])
def test_2562_small_blocks(threads):
    @T.prim_func
    def main(A: T.Tensor((16, 16), "float32"), B: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, threads=threads):
            s = T.alloc_shared((16, 16), "float32")
            T.copy(A, s)
            T.copy(s, B)

    a = kit.anything(np.random.default_rng(3), (16, 16), "float32")
    kit.same(kit.launch(main, [a], [kit.guarded((16, 16), "float32")]), a)


@pytest.mark.parametrize("start", [0, 1, 2, 3, 4, 5, 8])
def test_2584_2564_slices_at_any_byte(start):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            T.clear(s)
            T.copy(A[start : start + 40], s[8 - start : 48 - start])
            T.copy(s[8 - start : 48 - start], B[start : start + 40])

    a, buffer = kit.anything(np.random.default_rng(4), (64,), "float32"), kit.guarded((64,), "float32")
    kit.same(kit.launch(main, [a], [buffer])[start : start + 40], a[start : start + 40])


@pytest.mark.parametrize(
    "op", [lambda x, y: T.fill(x, 0.0), lambda x, y: T.clear(x), lambda x, y: T.copy(y, x), lambda x, y: T.copy(x, y)]
)
def test_2979_slices_beyond_the_shape(op):
    """As of a tile at the edge: what lies outside reads as 0 and is not written; in scratch memory it is refused."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((32, 32), "float32")
            T.fill(s, 2.0)
            op(A[40:72, 0:32], s)
            T.copy(s, B)

    tile.compile(main, target="cpu")((a := np.ones((65, 64), np.float32))[:64], b := np.zeros((32, 32), np.float32))
    assert (a[64] == 1).all()
    assert set(a[40:64, :32].ravel()) | set(b[:24].ravel()) <= {0.0, 1.0, 2.0}
    assert set(b[24:].ravel()) <= {0.0, 2.0}

    def scratch(A: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64):
            op(T.alloc_shared((64, 64), "float32")[40:72, 0:32], A)

    with pytest.raises(KernelError, match="72"):
        T.prim_func(scratch)


# ---------------------------------------------------------------------------------------- loops, fragments, conditions


@pytest.mark.parametrize("width", [24, 40, 48, 96])
def test_2394_fragment_widths(width):
    @T.prim_func
    def main(D: T.Tensor((32, width), "float32"), X: T.Tensor((32, width), "float32")):
        with T.Kernel(1, threads=128):
            d = T.alloc_fragment((32, width), "float32")
            x = T.alloc_fragment((32, width), "float32")
            T.copy(D, d)
            for i, j in T.Parallel(32, width):
                x[i, j] = d[i, j] * 2
            T.copy(x, X)

    d = kit.numbers(np.random.default_rng(1), (32, width), "float32")
    kit.same(kit.launch(main, [d], [kit.guarded((32, width), "float32")]), d * 2)


def test_2396_fragment_in_serial_loops():
    @T.prim_func
    def main(A: T.Tensor((16, 16), "float32"), B: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, threads=128):
            f = T.alloc_fragment((16, 16), "float32")
            T.copy(A, f)
            for i in T.serial(16):
                for j in T.serial(16):
                    B[i, j] = f[i, j]

    a = kit.anything(np.random.default_rng(2), (16, 16), "float32")
    kit.same(kit.launch(main, [a], [kit.guarded((16, 16), "float32")]), a)


def test_2714_row_tests():
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float16"), B: T.Tensor((2, 16), "bool")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((16, 64), "float16")
            T.copy(A, s)
            for i in T.Parallel(16):
                some = T.alloc_var("bool", False)
                every = T.alloc_var("bool", True)
                for j in T.serial(64):
                    some = T.any_of(some, s[i, j] != 0)
                    every = T.all_of(every, s[i, j] != 0)
                B[0, i] = some
                B[1, i] = every

    a = np.zeros((16, 64), np.float16)
    for i in range(16):
        a[i, : 4 * (i + 1)] = 1
    a[3] = 0
    a[5, :] = 0
    a[5, 63] = np.nan
    kit.same(kit.launch(main, [a], [kit.guarded((2, 16), "bool")]), np.stack([(a != 0).any(1), (a != 0).all(1)]))


def test_2539_1804_two_conditions_per_block():
    @T.prim_func
    def main(P: T.Tensor((4,), "int32"), Q: T.Tensor((4,), "int32"), B: T.Tensor((4, 2, 16), "int32")):
        with T.Kernel(4, threads=32) as b:
            for k in T.serial(16):
                if P[b] < 2:
                    B[b, 0, k] = 1
                if Q[b] < 2:
                    B[b, 1, k] = 2

    p, q = np.array([0, 0, 5, 5], np.int32), np.array([0, 5, 0, 5], np.int32)
    out = kit.stored(np.zeros((4, 2, 16)), "int32")
    kit.launch(main, [p, q], [out])
    kit.same(out[:, :, 3], np.stack([(p < 2) * 1, (q < 2) * 2], 1).astype(np.int32))


@pytest.mark.parametrize("threads", [64, 96])
def test_2556_barriers_in_divergent_code_are_right_or_refused(threads):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), M: T.Tensor((64,), "int32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding(0)
            s = T.alloc_shared((64,), "float32")
            if tx < 48:
                s[tx] = A[tx]
                B[tx] = s[47 - tx]

    a = kit.numbers(np.random.default_rng(3), (64,), "float32")
    try:
        out = kit.launch(main, [a, np.ones(64, np.int32)], [kit.guarded((64,), "float32")])
    except KernelError as error:
        assert error.where is not None  # noqa: PT017
        return
    kit.same(out[:48], a[:48][::-1])


# -------------------------------------------------------------------------------------------- casts, math, vector code


def convert(source, target, n):
    @T.prim_func
    def main(A: T.Tensor((n,), source), B: T.Tensor((n,), target)):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(n):
                B[i] = T.cast(A[i], target)

    return main


def test_2944_overflow_of_e5m2_and_2481_nan_of_bfloat16():
    x = np.array([np.inf, -np.inf, 65504, 1e5, 1e6, 57344, 61439, 61441, np.nan], np.float32)
    out = kit.launch(convert("float32", "float8_e5m2", 9), [x], [kit.guarded((9,), "float8_e5m2")])
    kit.same(out, x.astype(out.dtype))
    nan = np.array([0x7FFF8C22, 0xFFC00001, 0x7F800001], np.uint32).view(np.float32)
    out = kit.launch(convert("float32", "bfloat16", 3), [nan], [kit.guarded((3,), "bfloat16")])
    assert np.isnan(out.astype("f4")).all()


@pytest.mark.parametrize(
    "dtype", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]
)
def test_2702_all_codes(dtype):
    codes = kit.guarded((256,), dtype)
    codes.view(np.uint8)[:] = np.arange(256)
    for target in ("float16", "float32", "bfloat16"):
        with np.errstate(all="ignore"):
            kit.same(
                kit.launch(convert(dtype, target, 256), [codes], [kit.guarded((256,), target)]),
                codes.astype("f4").astype(kit.DTYPES[target].numpy()),
            )


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_2477_2479_2482_all_nibbles(dtype):
    nibbles = kit.guarded((16,), dtype)
    nibbles[:] = np.arange(0, 16, 2) | (np.arange(1, 17, 2) << 4)
    out = kit.launch(convert(dtype, "int32", 16), [nibbles], [kit.guarded((16,), "int32")])
    x = np.arange(16)
    kit.same(out, (np.where(x > 7, x - 16, x) if dtype == "int4" else x).astype(np.int32))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_2961_narrow_shifts(dtype):
    @T.prim_func
    def main(A: T.Tensor((64,), dtype), B: T.Tensor((3, 64), dtype), n: T.int32):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                B[0, i] = (A[i] << 4) >> 4
                B[1, i] = (A[i] << T.cast(n, dtype)) >> T.cast(n, dtype)
                B[2, i] = T.shift_right(A[i], 3)

    a = kit.anything(np.random.default_rng(1), (64,), dtype)
    out = kit.guarded((3, 64), dtype)
    tile.compile(main, target="cpu")(a, out, 3)
    kit.same(out, np.stack([(a << 4) >> 4, (a << 3) >> 3, a >> 3]).astype(dtype))


def test_3024_2882_nan_in_clamp_max_and_min():
    @T.prim_func
    def main(A: T.Tensor((40,), "float32"), B: T.Tensor((6, 40), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(40):
                B[0, i] = T.clamp(A[i], -1.0, 1.0)
                B[1, i] = T.max(A[i], 0.5)
                B[2, i] = T.max(0.5, A[i])
                B[3, i] = T.min(A[i], 0.5)
                B[4, i] = T.max(T.float32(float("nan")), T.float32(2.0))
                B[5, i] = T.max(T.float32(2.0), T.float32(float("nan")))

    a = kit.numbers(np.random.default_rng(2), (40,), "float32")
    a[::5] = np.nan
    out = kit.launch(main, [a], [kit.guarded((6, 40), "float32")])
    kit.same(np.isnan(out[0]), np.isnan(a))
    kit.same(np.where(np.isnan(a), 0, out[0]), np.where(np.isnan(a), 0, np.clip(a, -1, 1)))
    kit.same(out[1:4], np.stack([np.fmax(a, 0.5), np.fmax(a, 0.5), np.fmin(a, 0.5)]).astype("f4"))
    kit.same(out[4], out[5])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_2571_2614_powers(dtype):
    exponents = (2, 0, -1, 0.5, 3)

    @T.prim_func
    def main(A: T.Tensor((32,), dtype), B: T.Tensor((5, 32), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                for n, exponent in enumerate(exponents):
                    B[n, i] = T.pow(A[i], exponent)

    a = kit.stored(np.arange(1, 33) / 8, dtype)
    out = kit.launch(main, [a], [kit.guarded((5, 32), dtype)])
    expected = np.stack([kit.values(a, dtype) ** float(e) for e in exponents])
    tolerance = {"bfloat16": 2**-7, "float16": 2**-10}.get(dtype, 1e-6)
    np.testing.assert_allclose(kit.values(out, dtype), expected, rtol=tolerance)


def test_3027_an_index_product_beyond_int32():
    """i * 600,000,000 leaves int32 for i = 4: refused, dropped, or right, but no overflow inside the compiler."""

    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i] = A[T.cast(i, "int64") * 600_000_000]

    a = np.arange(1, 9, dtype=np.float32)
    kit.same(kit.launch(main, [a], [kit.guarded((8,), "float32")]), np.array([1, 0, 0, 0, 0, 0, 0, 0], np.float32))


def test_2554_four_wide_load_at_a_negative_index():
    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), t: T.int32, B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.vectorized(4):
                B[i] = A[t - 2 + i]

    kernel = tile.compile(main, target="cpu")
    a = np.arange(1, 17, dtype=np.float32)
    for t in (0, 1, 2, 5, 14, 17, 100, -50):
        out = kit.guarded((4,), "float32")
        kernel(a, t, out)
        index = np.arange(t - 2, t + 2)
        kit.same(out, np.where((index >= 0) & (index < 16), a[np.clip(index, 0, 15)], 0).astype(np.float32))


def test_2886_unroll_that_runs_never():
    @T.prim_func
    def main(B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.unroll(0, 0, 2):
                B[i] = 7
            for i in T.unroll(0, 3, 2):
                B[i] = 5

    kit.same(kit.launch(main, [], [kit.guarded((4,), "int32")]), np.array([5, -1, 5, -1], np.int32))


# ------------------------------------------------------------------------------------------------------------ launches


@pytest.mark.parametrize("threads", [0, -1, -128, 1.5, "many"])
def test_senseless_threads(threads):
    with pytest.raises(KernelError) as caught:

        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=threads):
                T.clear(A)

    assert caught.value.where is not None


@pytest.mark.parametrize("blocks", [0, 1, 2, 1000])
def test_grids_of_any_size(blocks):
    @T.prim_func
    def main(n: T.int32, A: T.Tensor((1000,), "int32")):
        with T.Kernel(n, threads=1) as b:
            A[b] = b

    out = kit.guarded((1000,), "int32")
    tile.compile(main, target="cpu")(blocks, out)
    assert kit.unharmed(out)
    kit.same(out, np.where(np.arange(1000) < blocks, np.arange(1000), -1).astype(np.int32))


def test_3017_output_with_a_symbol_before_the_input_that_defines_it():
    m = T.dynamic("m")

    @T.prim_func
    def main(B: T.Tensor((m, 4), "float32"), A: T.Tensor((m,), "float32")):
        with T.Kernel(m, threads=32) as b:
            T.fill(B[b, 0:4], A[b])

    kernel = tile.compile(main, target="cpu", out_idx=0)
    a = np.arange(7, dtype=np.float32)
    kit.same(kernel(a), np.repeat(a[:, None], 4, 1))
