"""Sparse products by dot-product instructions: at awkward sizes, in place and from scratch."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core import sparse
from tile_core.cpu.dots import dot_of
from tile_core.cpu.isa import detect

pytestmark = pytest.mark.sweep(0.125)
#: By products that an instruction adds up.
VARIANTS = {2: "cpu.gemm_sp.dot", 4: "cpu.gemm_sp.expanded"}


@pytest.fixture
def rng() -> np.random.Generator:
    """Numbers from a fresh seed, printed with a failure."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    return np.random.default_rng(seed)


def product(
    sizes: tuple[int, int, int], blocks: tuple[int, int, int], dtype: str, meta: str, accum: str,
    flips: tuple[bool, bool, bool], scratch: bool,
) -> Any:  # fmt: skip
    (M, N, K), (bM, bN, bK) = sizes, blocks
    factor = sparse.E_FACTOR_MAP[dtype][meta]
    ta, te, tb = flips

    def turned(flip: bool, *shape: int) -> tuple[int, ...]:
        return shape[::-1] if flip else shape

    @T.prim_func
    def main(
        A: T.Tensor(turned(ta, M, K // 2), dtype), E: T.Tensor(turned(te, M, K // factor), meta),
        B: T.Tensor(turned(tb, K, N), dtype), C: T.Tensor((M, N), accum),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, bN), T.ceildiv(M, bM), threads=128) as (bx, by):
            a = T.alloc_shared(turned(ta, bM, bK // 2), dtype)
            e = T.alloc_shared(turned(te, bM, bK // factor), meta)
            b, c = T.alloc_shared(turned(tb, bK, bN), dtype), T.alloc_fragment((bM, bN), accum)
            T.copy(C[by * bM, bx * bN], c)
            for k in T.Pipelined(T.ceildiv(K, bK), num_stages=2):
                T.copy(A[turned(ta, by * bM, k * (bK // 2))], a)
                T.copy(E[turned(te, by * bM, k * (bK // factor))], e)
                T.copy(B[turned(tb, k * bK, bx * bN)], b)
                if scratch:  # another use of a tile keeps its copy
                    for i, j in T.Parallel(*turned(tb, bK, bN)):
                        b[i, j] = b[i, j]
                T.gemm_sp(a, e, b, c, transpose_A=ta, transpose_E=te, transpose_B=tb)
            T.copy(c, C[by * bM, bx * bN])

    return main


def compare(
    rng: np.random.Generator, sizes: tuple[int, int, int], blocks: tuple[int, int, int], dtype: str = "bfloat16",
    meta: str = "int16", accum: str = "float32", flips: tuple[bool, bool, bool] = (False, False, False),
    scratch: bool = False, scale: float = 1.0,
) -> None:  # fmt: skip
    """Small integers, so that every total is exact."""
    found = dot_of(detect(), dtype, dtype, accum)
    if found is None:
        pytest.skip(f"no dot products of {dtype} here")
    M, N, K = sizes
    kind = T.dtype(dtype).numpy()
    least = 0 if dtype.startswith("u") else -2
    pruned = sparse.prune((rng.integers(least, 3, (M, K)) * scale).astype(kind))
    b = rng.integers(least, 3, (K, N)).astype(kind)
    values, words = sparse.compress(pruned, meta_dtype=meta)
    c = (rng.integers(least, 4, (M, N)) * scale).astype(T.dtype(accum).numpy())
    expected = pruned.astype("float64") @ b.astype("float64") + c.astype("float64")
    stored = [np.ascontiguousarray(x.T) if flip else x for x, flip in zip((values, words, b), flips, strict=True)]
    kernel = tile.compile(product(sizes, blocks, dtype, meta, accum, flips, scratch), target="cpu")
    assert VARIANTS[found.dot.group] in str(kernel.explain())
    kernel(*stored, c)
    np.testing.assert_array_equal(c.astype("float64"), expected.astype(c.dtype).astype("float64"))


@pytest.mark.parametrize("flips", [*itertools.product((False, True), repeat=3)])
@pytest.mark.parametrize("scratch", [False, True])
def test_operands_stored_either_way(rng: np.random.Generator, flips: tuple[bool, bool, bool], scratch: bool) -> None:
    compare(rng, (64, 96, 128), (32, 48, 64), flips=flips, scratch=scratch)


@pytest.mark.parametrize("flips", [*itertools.product((False, True), repeat=3)])
@pytest.mark.parametrize("scratch", [False, True])
@pytest.mark.parametrize(("dtype", "accum"), [("int8", "int32"), ("uint8", "uint32")])
def test_integers_stored_either_way(
    rng: np.random.Generator, flips: tuple[bool, bool, bool], scratch: bool, dtype: str, accum: str
) -> None:
    compare(rng, (64, 96, 128), (32, 48, 64), dtype, "int32", accum, flips, scratch)


@pytest.mark.parametrize("sizes", [(5, 16, 32), (7, 17, 64), (13, 33, 160), (70, 131, 192), (6, 100, 1056)])
@pytest.mark.parametrize("meta", ["int8", "int16", "int32"])
def test_odd_sizes_of_integers(rng: np.random.Generator, sizes: tuple[int, int, int], meta: str) -> None:
    compare(rng, sizes, sizes, "int8", meta, "int32")
    compare(rng, sizes, (5, 16, 32), "int8", meta, "int32")


def test_extreme_integers(rng: np.random.Generator) -> None:
    """Products of the least numbers, of which four add up to 2**16."""
    if dot_of(detect(), "int8", "int8", "int32") is None:
        pytest.skip("no dot products of int8 here")
    values, words = sparse.compress(sparse.prune(np.full((16, 64), -128, "int8")), meta_dtype="int16")
    b, c = np.full((64, 32), -128, "int8"), np.zeros((16, 32), "int32")
    program = product((16, 32, 64), (16, 32, 64), "int8", "int16", "int32", (False,) * 3, False)
    tile.compile(program, target="cpu")(values, words, b, c)
    assert (c == 32 * 2**14).all()


@pytest.mark.parametrize("sizes", [(5, 16, 32), (7, 17, 32), (13, 33, 160), (70, 131, 192), (6, 100, 64)])
def test_odd_sizes(rng: np.random.Generator, sizes: tuple[int, int, int]) -> None:
    compare(rng, sizes, sizes)
    compare(rng, sizes, (5, 16, 32))


@pytest.mark.parametrize("meta", ["int8", "uint8", "int16", "int32"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn"])
def test_metadata_and_elements(rng: np.random.Generator, dtype: str, meta: str) -> None:
    accum = random.Random(int(rng.integers(100))).choice(["float32", "bfloat16", "float16"])
    compare(rng, (24, 40, 128), (24, 40, 64), dtype, meta, accum if dtype == "bfloat16" else "float32")


def test_tiny_products_are_not_flushed(rng: np.random.Generator) -> None:
    compare(rng, (16, 32, 64), (16, 32, 64), scale=2.0**-128)
    compare(rng, (16, 32, 64), (16, 32, 64), scale=2.0**-133, scratch=True)


def test_groups_without_metadata_are_zeros(rng: np.random.Generator) -> None:
    if dot_of(detect(), "bfloat16", "bfloat16", "float32") is None:
        pytest.skip("no dot products of bfloat16 here")
    values, words = np.zeros((8, 32), T.dtype("bfloat16").numpy()), np.zeros((8, 4), "int16")
    values[:, :2], words[:, 0] = 3, 0b1101  # elements 1 and 3 of the first group
    b, c = rng.integers(-3, 4, (64, 16)).astype(values.dtype), np.zeros((8, 16), "float32")
    program = product((8, 16, 64), (8, 16, 64), "bfloat16", "int16", "float32", (False,) * 3, False)
    tile.compile(program, target="cpu")(values, words, b, c)
    expected = np.broadcast_to(3 * (b[1].astype("float32") + b[3].astype("float32")), (8, 16))
    np.testing.assert_array_equal(c, expected)
