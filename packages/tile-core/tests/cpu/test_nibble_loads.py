"""Vector reads of elements packed two to a byte: widths, starts, tails and unknown sizes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.numerics.codecs import decode, unpack4

pytestmark = pytest.mark.sweep(6)

PACKED = ("uint4", "int4", "float4_e2m1fn")


@pytest.fixture
def rng() -> np.random.Generator:
    """Numbers from a fresh seed, printed with a failure."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    return np.random.default_rng(seed)


def codes(rng: np.random.Generator, rows: int, cols: int) -> Any:
    """Random bytes at an odd address: rows of ``cols`` elements, two to a byte."""
    size = rows * ((cols + 1) // 2)
    return rng.integers(0, 256, size + 1).astype("uint8")[1:].reshape(rows, -1)


def values(packed: Any, cols: int, dtype: str, out: str) -> Any:
    return decode(unpack4(packed, cols), dtype).astype(out)


@pytest.mark.parametrize("dtype", PACKED)
@pytest.mark.parametrize("cols", [1, 2, 3, 31, 64, 67, 130])
def test_rows_of_every_length(dtype: str, cols: int, rng: np.random.Generator) -> None:
    out = "float32" if dtype.startswith("float") else "int32"

    @T.prim_func
    def main(A: T.Tensor((5, cols), dtype), Copied: T.Tensor((5, cols), out), Looped: T.Tensor((5, cols), out)):
        with T.Kernel(T.ceildiv(cols, 48), 2, threads=32) as (bx, by):
            scratch = T.alloc_shared((3, 48), out)
            T.copy(A[by * 3, bx * 48], scratch)
            T.copy(scratch, Copied[by * 3, bx * 48])
            for i, j in T.Parallel(3, 48):
                if by * 3 + i < 5 and bx * 48 + j < cols:
                    Looped[by * 3 + i, bx * 48 + j] = T.cast(A[by * 3 + i, bx * 48 + j], out)

    a = codes(rng, 5, cols)
    copied, looped = np.full((5, cols), 99, out), np.full((5, cols), 99, out)
    tile.compile(main, target="cpu")(a, copied, looped)
    np.testing.assert_array_equal(copied, values(a, cols, dtype, out))
    np.testing.assert_array_equal(looped, values(a, cols, dtype, out))


@pytest.mark.parametrize("dtype", PACKED)
@pytest.mark.parametrize("processor", ["native", "x86-64", "x86-64-v3"])
def test_every_start_and_width(dtype: str, processor: str, rng: np.random.Generator) -> None:
    start, width, block = (int(rng.integers(1, top)) for top in (40, 70, 35))

    @T.prim_func
    def main(A: T.Tensor((160,), dtype), X: T.Tensor((1,), "int32"), B: T.Tensor((4, width), "float32")):
        with T.Kernel(1, threads=32):
            for j in T.Parallel(width):
                B[0, j] = T.cast(A[j + start], "float32")
                B[1, j] = T.cast(A[j + 2 * start], "float32")
            for j in T.Parallel(width):
                B[2, j] = T.cast(A[X[0] + j], "float32")
            for b in range(4):
                for j in T.Parallel(block):
                    if b * block + j < width:
                        B[3, b * block + j] = T.cast(A[b * block + j], "float32")

    a = codes(rng, 1, 160)[0]
    found = np.zeros((4, width), "float32")
    tile.compile(main, target=f"cpu:{processor}")(a, np.array([start + 7], "int32"), found)
    expected = values(a, 160, dtype, "float32")
    for row, first in enumerate((start, 2 * start, start + 7)):
        np.testing.assert_array_equal(found[row], expected[first : first + width])
    reached = min(width, 4 * block)
    np.testing.assert_array_equal(found[3, :reached], expected[:reached])


@pytest.mark.parametrize("dtype", PACKED)
def test_other_strides_and_orders(dtype: str, rng: np.random.Generator) -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), dtype), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, threads=32):
            for j in T.Parallel(64):
                B[0, j] = T.cast(A[j, 3], "float32")
                B[1, j] = T.cast(A[2, 63 - j], "float32")
            for j in T.Parallel(32):
                B[2, j] = T.cast(A[5, j * 2], "float32")
                B[2, j + 32] = T.cast(A[5, j // 2], "float32")
                B[3, j] = T.cast(A[j % 2, j // 2 * 2 + 1], "float32")
                B[3, j + 32] = T.cast(A[7, j + j], "float32")

    a = codes(rng, 64, 64)
    found = np.zeros((4, 64), "float32")
    tile.compile(main, target="cpu")(a, found)
    v, j = values(a, 64, dtype, "float32"), np.arange(32)
    np.testing.assert_array_equal(found[0], v[:, 3])
    np.testing.assert_array_equal(found[1], v[2, ::-1])
    np.testing.assert_array_equal(found[2], np.concatenate([v[5, ::2], v[5, j // 2]]))
    np.testing.assert_array_equal(found[3], np.concatenate([v[j % 2, j // 2 * 2 + 1], v[7, ::2]]))


@pytest.mark.parametrize("dtype", PACKED)
def test_symbolic_sizes(dtype: str, rng: np.random.Generator) -> None:
    rows, cols = T.dynamic("rows"), T.dynamic("cols")

    @T.prim_func
    def main(A: T.Tensor((rows, cols), dtype), B: T.Tensor((rows, cols), "float32")):
        with T.Kernel(T.ceildiv(cols, 64), rows, threads=32) as (bx, by):
            scratch = T.alloc_shared((1, 64), "float32")
            T.copy(A[by, bx * 64], scratch)
            T.copy(scratch, B[by, bx * 64])

    kernel = tile.compile(main, target="cpu")
    for m, n in ((1, 2), (3, 64), (2, 66), (4, 190)):
        a, found = codes(rng, m, n), np.zeros((m, n), "float32")
        kernel(a, found)
        np.testing.assert_array_equal(found, values(a, n, dtype, "float32"))


def test_bytes_of_pairs_are_one_vector() -> None:
    from tile_core.compat.tvm import ir, tirx
    from tile_core.cpu.nibble_loads import load_pairs

    buffer = tirx.decl_buffer((64,), "uint8", "A", layout=None)
    start = tirx.Var("start", "int32")
    halves = tirx.FloorDiv(tirx.Ramp(0, 1, 8), tirx.Broadcast(tirx.IntImm("int32", 2), 8))
    made = load_pairs(tirx.BufferLoad(buffer, [tirx.Broadcast(start, 8) + halves]))
    assert isinstance(made, tirx.Shuffle)
    assert [int(i) for i in made.indices] == [0, 0, 1, 1, 2, 2, 3, 3]
    thirds = tirx.FloorDiv(tirx.Ramp(0, 1, 8), tirx.Broadcast(tirx.IntImm("int32", 3), 8))
    assert isinstance(load_pairs(tirx.BufferLoad(buffer, [thirds])), ir.TensorLoad)
