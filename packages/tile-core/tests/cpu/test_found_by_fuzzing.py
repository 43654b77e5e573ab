"""Programs that the fuzzer found: each was an internal error or a wrong number."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T


def test_memory_without_tensors():
    """A large buffer is allocated on a device, which functions without arrays do not name."""

    @T.prim_func
    def main(v: T.int32):
        with T.Kernel(1, threads=32):
            x = T.alloc_shared((70000,), "int32")
            T.fill(x, v)

    tile.compile(main, target="cpu")(3)


def test_the_size_of_the_least_integer_is_outside():
    m = T.dynamic("m")

    @T.prim_func
    def main(D: T.Tensor((m,), "int32"), A: T.Tensor((7,), "int32"), B: T.Tensor((24,), "int32")):
        with T.Kernel(3, threads=32) as bx:
            for i in T.Parallel(8):
                B[bx * 8 + i] = A[T.abs(T.if_then_else(bx < i, -2147483648, m))]

    a, b = np.arange(7, dtype="int32") + 1, np.full(24, -5, "int32")
    tile.compile(main, target="cpu")(np.zeros(5, "int32"), a, b)
    blocks, lanes = np.indices((3, 8))
    np.testing.assert_array_equal(b, np.where(blocks < lanes, 0, a[5]).reshape(-1))


def test_a_size_in_a_wider_type_is_rounded_up():
    m = T.dynamic("m")

    @T.prim_func
    def main(D: T.Tensor((m,), "int32"), B: T.Tensor((29,), "int32")):
        with T.Kernel(1, threads=32):
            B[T.ceildiv(T.cast(m, "int64"), 2)] = 1

    b = np.zeros(29, "int32")
    tile.compile(main, target="cpu")(np.zeros(7, "int32"), b)
    assert np.flatnonzero(b).tolist() == [4]


@pytest.mark.parametrize("source", ["float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3fn", "float8_e5m2"])
def test_every_code_as_a_4_bit_float(source):
    """A NaN becomes -0, whatever its sign: the fnuz types' only NaN."""

    @T.prim_func
    def main(A: T.Tensor((256,), source), B: T.Tensor((256,), "float4_e2m1fn")):
        with T.Kernel(1, threads=32):
            T.copy(A, B)

    codes = np.arange(256, dtype="uint8").view(T.dtype(source).numpy())
    b = np.full(128, 0x55, "uint8")
    tile.compile(main, target="cpu")(codes, b)
    with np.errstate(all="ignore"):
        found = codes.astype(T.float4_e2m1fn.numpy()).view("uint8")
    want = np.where(np.isnan(codes.astype("float32")), 8, found)  # ml_dtypes makes +0 of a negative one
    np.testing.assert_array_equal(np.stack([b & 15, b >> 4], -1).reshape(-1), want)


def test_a_size_and_a_large_number_wrap():
    m = T.dynamic("m")

    @T.prim_func
    def main(D: T.Tensor((m,), "int32"), A: T.Tensor((29,), "int32"), B: T.Tensor((6,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.unroll(6):
                B[i] = A[T.max(2147483635 + m, i)]

    a, b = np.arange(29, dtype="int32") + 1, np.full(6, -5, "int32")
    tile.compile(main, target="cpu")(np.zeros(13, "int32"), a, b)
    np.testing.assert_array_equal(b, a[:6])


def test_products_in_pairs_that_are_compared():
    """LLVM computes some products two at a time, and ended the process for their fences."""
    m, n = T.dynamic("m, n")

    @T.prim_func
    def main(X: T.Tensor((m, n), "bfloat16"), S: T.Tensor((32, 32), "float32"), Y: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(m, 2), threads=384) as bx:
            t, unused = T.alloc_shared((2, 8), "float32"), T.alloc_shared((32, 32), "float32")
            T.copy(X[bx * 2 + -1, 1], t)
            for i, j in T.Parallel(2, 8):
                t[i, j] = T.if_then_else(
                    (T.cast(2, "float32") * t[i, j]) > (t[i, j] * t[i, j]),
                    (T.cast(2, "float32") * t[i, j]),
                    (t[i, j] * t[i, j]),
                )
            T.copy(S, unused)
            T.copy(t, Y[bx * 2, 0])

    x = np.random.default_rng(0).standard_normal((9, 16)).astype(T.bfloat16.numpy())
    y = np.full((9, 16), 7, "float32")
    tile.compile(main, target="cpu")(x, np.zeros((32, 32), "float32"), y)
    want = np.zeros((10, 8), "float32")
    want[1:] = x[:, 1:9]
    np.testing.assert_array_equal(y[:, :8], np.maximum(want * 2, want * want)[:9])
    assert (y[:, 8:] == 7).all()


def test_constants_beyond_int64_are_compared_with_uint64():
    """They were constants of int64 in proofs, which cannot hold them."""

    @T.prim_func
    def main(X: T.Tensor((8,), "uint64"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                large = T.if_then_else(X[i] > T.cast(2**63 - 1, "uint64"), 1, 0)
                larger = T.if_then_else(X[i] >= T.cast(2**63, "uint64"), 2, 0)
                below = T.if_then_else(-T.cast(2, "uint64") > X[i], 4, 0)
                B[i] = large + larger + below

    values = [0, 1, 2**63 - 1, 2**63, 2**63 + 5, 2**64 - 3, 2**64 - 2, 2**64 - 1]
    expected = [(v > 2**63 - 1) + 2 * (v >= 2**63) + 4 * (v < 2**64 - 2) for v in values]
    found = tile.compile(main, "cpu", out_idx=1)(np.array(values, "uint64"))
    assert found.tolist() == expected
