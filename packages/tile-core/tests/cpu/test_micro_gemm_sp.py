"""Sparse products of the CPU at awkward sizes, for every element and metadata type."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core import sparse
from tile_core.cpu import micro_gemm_sp

pytestmark = pytest.mark.sweep(6)

ACCUMULATORS = {"int8": "int32", "uint8": "int32", "int16": "int32"}


@pytest.fixture
def rng() -> np.random.Generator:
    """Numbers from a fresh seed, printed with a failure."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    return np.random.default_rng(seed)


def product(
    M: int, N: int, K: int, dtype: str, meta: str, accum: str, flips: tuple[bool, bool, bool], clear: bool
) -> Any:
    factor = sparse.E_FACTOR_MAP[dtype][meta]
    ta, te, tb = flips
    a_shape, e_shape = (M, K // 2), (M, K // factor)

    @T.prim_func
    def main(
        A: T.Tensor(a_shape[::-1] if ta else a_shape, dtype), E: T.Tensor(e_shape[::-1] if te else e_shape, meta),
        B: T.Tensor((N, K) if tb else (K, N), dtype), C: T.Tensor((M, N), accum),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            a = T.alloc_shared(a_shape[::-1] if ta else a_shape, dtype)
            e = T.alloc_shared(e_shape[::-1] if te else e_shape, meta)
            b, c = T.alloc_shared((N, K) if tb else (K, N), dtype), T.alloc_fragment((M, N), accum)
            T.copy(A, a)
            T.copy(E, e)
            T.copy(B, b)
            T.copy(C, c)
            T.gemm_sp(
                a, e, b, c, transpose_A=ta, transpose_E=te, transpose_B=tb, clear_accum=clear,
                variant="cpu.gemm_sp.rows",
            )  # fmt: skip
            T.copy(c, C)

    return main


def compare(
    rng: np.random.Generator, M: int, N: int, K: int, dtype: str, meta: str, *, accum: str | None = None,
    flips: tuple[bool, bool, bool] = (False, False, False), clear: bool = False, target: str = "cpu",
) -> None:  # fmt: skip
    """Small integers, so that every sum is exact."""
    kind = T.dtype(dtype).numpy()
    accum = accum or ACCUMULATORS.get(dtype, "float32")
    low = 0 if dtype.startswith("uint") else -2
    pruned = sparse.prune(rng.integers(low, 3, (M, K)).astype(kind))
    b = rng.integers(low, 3, (K, N)).astype(kind)
    values, words = sparse.compress(pruned, meta_dtype=meta)
    c = rng.integers(-3, 4, (M, N)).astype(T.dtype(accum).numpy())
    expected = pruned.astype("float64") @ b.astype("float64") + (0 if clear else c.astype("float64"))
    stored = [np.ascontiguousarray(x.T) if flip else x for x, flip in zip((values, words, b), flips, strict=True)]
    tile.compile(product(M, N, K, dtype, meta, accum, flips, clear), target=target)(*stored, c)
    np.testing.assert_array_equal(c.astype("float64"), expected.astype(c.dtype).astype("float64"))


def test_no_two_strips_have_a_column_in_common() -> None:
    from tile_core.cpu.isa import Isa

    for bits in (128, 256, 512):
        isa = Isa("", bits, 16, True, True, "")
        for n in range(1, 1200):
            strips = micro_gemm_sp._strips(n, isa, "float32")
            columns = [{c for start, lanes in strip for c in range(start, start + lanes)} for strip in strips]
            assert sum(map(len, columns)) == n
            assert set().union(*columns) == set(range(n))
            assert all(len(strip) <= micro_gemm_sp.VECTORS for strip in strips)


@pytest.mark.parametrize("N", [1, 2, 7, 16, 33, 65, 128, 131])
@pytest.mark.parametrize("M", [1, 5])
def test_every_width(M: int, N: int, rng: np.random.Generator) -> None:
    compare(rng, M, N, 32, "float16", "int16", target=str(rng.choice(["cpu", "cpu:x86-64-v3", "cpu:x86-64"])))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "uint8", "float8_e4m3fn", "float8_e5m2"])
def test_every_element_and_metadata_type(dtype: str, rng: np.random.Generator) -> None:
    for meta in sparse.E_FACTOR_MAP[dtype]:
        if meta.startswith("int"):
            compare(rng, 3, 19, 64, dtype, meta)


@pytest.mark.parametrize(
    "flips", [(True, False, False), (False, True, False), (False, False, True), (True, True, True)]
)
def test_transposed_operands(flips: tuple[bool, bool, bool], rng: np.random.Generator) -> None:
    compare(rng, 4, 21, 64, "float16", "int16", flips=flips)
    compare(rng, 3, 1, 32, "float16", "int8", flips=flips)


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("accum", ["float32", "float16", "bfloat16"])
def test_parts_of_k(accum: str, clear: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    # 2 KiB hold one or two words of a strip: 7 words leave a rest, 8 do not.
    monkeypatch.setattr(micro_gemm_sp, "STRIP_BYTES", 2048)
    for words in (7, 8):
        compare(rng, 3, 20, 16 * words, "float16", "int16", accum=accum, clear=clear)
