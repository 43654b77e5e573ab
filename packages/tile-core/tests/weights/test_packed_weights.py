"""Weights in packed order: the arrays, and programs that take them."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.language import BadWeights, NotPackable
from tile_core.numerics import codecs
from tile_core.testing.data import values

RNG = np.random.default_rng(5)


def product(M, N, K, block_K=64, dtype="int4", kind="float16", rows=16):
    """Return a product with 4-bit weights, which have a scale for 32 of K."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), kind), W: T.Tensor((N, K), dtype), S: T.Tensor((N, K // 32), kind),
        C: T.Tensor((M, N), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, rows), T.ceildiv(M, 16), threads=32) as (bx, by):
            a = T.alloc_shared((16, block_K), kind)
            q = T.alloc_shared((rows, block_K), dtype)
            w = T.alloc_shared((rows, block_K), kind)
            c = T.alloc_fragment((16, rows), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * 16, k * block_K], a)
                T.copy(W[bx * rows, k * block_K], q)
                for i, j in T.Parallel(rows, block_K):
                    w[i, j] = T.cast(q[i, j], kind) * S[bx * rows + i, (k * block_K + j) // 32]
                T.gemm(a, w, c, transpose_B=True)
            T.copy(c, C[by * 16, bx * rows])

    return main


def nibbles(*shape):
    return RNG.integers(0, 256, (*shape[:-1], shape[-1] // 2)).astype("uint8")


@pytest.mark.parametrize("shape", [(32,), (1, 64), (3, 96), (0, 32), (2, 3, 128)])
def test_arrays_come_back(shape):
    codes = nibbles(*shape)
    packed = tile.pack_weights(codes)
    assert packed.dtype == np.uint32
    assert packed.shape == (*shape[:-1], shape[-1] // 8)
    assert (tile.unpack_weights(packed) == codes).all()


def test_a_word_holds_the_elements_of_a_lane():
    """Lane t multiplies elements 2t, 2t + 1, 2t + 8 and 2t + 9 of 16; those of a register are 16 bits apart."""
    numbers = np.arange(16) % 16
    codes = codecs.pack4(np.concatenate([numbers, numbers[::-1]]).astype("uint8"))
    (first, second, _, last) = tile.pack_weights(codes)
    assert f"{first:08x}" == "".join(f"{n:x}" for n in (6, 14, 9, 1, 7, 15, 8, 0))
    assert f"{second:08x}" == "".join(f"{n:x}" for n in (4, 12, 11, 3, 5, 13, 10, 2))
    assert f"{last:08x}" == "".join(f"{n:x}" for n in (0, 8, 15, 7, 1, 9, 14, 6))


def test_arrays_that_are_not_contiguous():
    codes = nibbles(6, 128)
    assert (tile.pack_weights(codes[::2]) == tile.pack_weights(np.ascontiguousarray(codes[::2]))).all()


@pytest.mark.parametrize(
    "array", [np.zeros((2, 8), "uint8"), np.zeros((2, 16), "int8"), np.zeros((), "uint8"), [[1] * 16]]
)
def test_other_arrays_are_refused(array):
    with pytest.raises(BadWeights, match="a multiple of 16 elements"):
        tile.pack_weights(array)


def test_packed_words_are_not_packed_again():
    with pytest.raises(BadWeights, match="found uint32"):
        tile.pack_weights(tile.pack_weights(nibbles(2, 32)))
    with pytest.raises(BadWeights, match="found uint8"):
        tile.unpack_weights(nibbles(2, 32))


@pytest.mark.sweep(0.1)
@pytest.mark.parametrize("dtype", ["int4", "uint4", "float4_e2m1fn"])
@pytest.mark.parametrize("sizes", [(16, 16, 64), (1, 17, 96), (19, 5, 160), (16, 16, 32)])
def test_results_stay(dtype, sizes):
    M, N, K = sizes
    program = product(M, N, K, dtype=dtype)
    a, s = (RNG.standard_normal(shape).astype("float16") for shape in ((M, K), (N, K // 32)))
    codes = nibbles(N, K)
    plain, packed = (np.full((M, N), np.nan, "float32") for _ in range(2))
    tile.compile(program, "cpu")(a, codes, s, plain)
    kernel = tile.compile(tile.with_packed_weights(program, "W"), "cpu")
    kernel(a, tile.pack_weights(codes), s, packed)
    assert (packed == plain).all()
    weights = (values(codes, dtype, (N, K)) * np.repeat(s, 32, 1).astype("float64")).astype("float16")
    np.testing.assert_allclose(packed, a.astype("float64") @ weights.T.astype("float64"), rtol=1e-4, atol=1e-4)
    kernel.verify(a, tile.pack_weights(codes), s, packed)


def test_elements_of_the_tensor():
    @T.prim_func
    def widen(W: T.Tensor((5, 96), "int4"), B: T.Tensor((5, 96), "int32")):
        with T.Kernel(5, threads=32) as bx:
            for j in T.Parallel(96):
                x = W[bx, j]
                B[bx, j] = T.cast(x, "int32") + T.cast(W[bx, 95 - j], "int32") * 16

    codes = nibbles(5, 96)
    found = tile.compile(tile.with_packed_weights(widen, "W"), "cpu", out_idx=1)(tile.pack_weights(codes))
    expected = values(codes, "int4", (5, 96)).astype("int32")
    assert (found == expected + expected[:, ::-1] * 16).all()


def test_the_other_form_is_refused_at_a_call():
    codes, s = nibbles(16, 64), np.ones((16, 2), "float16")
    a, c = np.ones((16, 64), "float16"), np.empty((16, 16), "float32")
    program = product(16, 16, 64)
    with pytest.raises(tile.TileError, match="W"):
        tile.compile(tile.with_packed_weights(program, "W"), "cpu")(a, codes, s, c)
    with pytest.raises(tile.TileError, match="W"):
        tile.compile(program, "cpu")(a, tile.pack_weights(codes), s, c)


def test_no_name_changes_nothing():
    program = product(16, 16, 64)
    assert tile.with_packed_weights(program) is program


@pytest.mark.parametrize(
    ("name", "sizes", "reason"),
    [
        ("V", {}, "no such parameter"),
        ("A", {}, "a tensor of float16"),
        ("W", {"K": 80}, "nearest is 96|nearest is 64"),
        ("W", {"block_K": 16}, "parts of groups of 32 elements"),
    ],
)
def test_other_parameters_are_refused(name, sizes, reason):
    with pytest.raises(NotPackable, match=reason):
        tile.with_packed_weights(product(**{"M": 16, "N": 16, "K": 64, **sizes}), name)


def test_other_uses_are_refused():
    def converted(scope, K=64, annotated=False, start=0, outside=False):
        @T.prim_func
        def main(W: T.Tensor((8, K), "int4"), B: T.Tensor((8, 32), "float16")):
            with T.Kernel(1, threads=32):
                q, x = getattr(T, f"alloc_{scope}")((8, 32), "int4"), T.alloc_fragment((8, 32), "float16")
                if outside:
                    T.annotate_safe_value({W: 3})
                elif annotated:
                    T.annotate_layout({q: T.Layout((8, 32), lambda i, j: i * 32 + j)})
                T.copy(W[0, start], q)
                if annotated or outside:
                    for i, j in T.Parallel(8, 32):
                        x[i, j] = T.cast(q[i, j], "float16")
                else:
                    T.copy(q, x)
                T.copy(x, B)

        return main

    for given, reason in (
        ({"scope": "shared"}, "the tile q"), ({"scope": "fragment"}, "read W by elements"),
        ({"scope": "shared", "annotated": True}, "q has a layout"), ({"scope": "shared", "outside": True}, "W has"),
        ({"scope": "shared", "annotated": True, "start": 8}, "parts of groups"),
        ({"scope": "shared", "K": T.dynamic("k")}, "last extent is k"),
    ):  # fmt: skip
        with pytest.raises(NotPackable, match=reason):
            tile.with_packed_weights(converted(**given), "W")


def test_other_objects_are_refused():
    with pytest.raises(tile.TileError, match="with_packed_weights"):
        tile.with_packed_weights(product, "W")
