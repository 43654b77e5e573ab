"""Generated inputs of `tile run`, `verify` and tuning are legal.

Illegal metadata is the user's mistake.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core import sparse
from tile_core.cli.app import run
from tile_core.dtypes import DTYPES
from tile_core.errors.execution import UndefinedMetadata
from tile_core.ops.held_codes import held_codes
from tile_core.runtime.verify import random_arguments
from tile_core.testing.tables.sparse import TYPES

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sparse_gemm.py"
LEGAL = {4: {4, 8, 12, 9, 13, 14}, 2: {4, 14}}


def product(dtype="float16", acc="float32", meta="int16", M=37, N=11, K=64, tile_m=16, turned=False, through="copy"):
    """A product whose tiles do not divide its matrices, with several ways for metadata."""
    words = K // sparse.E_FACTOR_MAP[dtype][meta]
    stored = (words, M) if turned else (M, words)
    held = (words, tile_m) if turned else (tile_m, words)

    @T.prim_func
    def sparse_product(
        A: T.Tensor((M, K // 2), dtype), E: T.Tensor(stored, meta), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), acc)
    ):
        with T.Kernel(T.ceildiv(M, tile_m), threads=128) as by:
            a, b = T.alloc_shared((tile_m, K // 2), dtype), T.alloc_shared((K, N), dtype)
            e, c = T.alloc_shared(held, meta), T.alloc_fragment((tile_m, N), acc)
            T.copy(A[by * tile_m, 0], a)
            T.copy(B, b)
            if through == "copy":
                if turned:
                    T.copy(E[0, by * tile_m], e)
                else:
                    T.copy(E[by * tile_m, 0], e)
            else:
                for i, j in T.Parallel(tile_m, words):
                    word = T.if_then_else(by * tile_m + i < M, E[by * tile_m + i, j], 0)
                    e[i, j] = word
            T.gemm_sp(a, e, b, c, transpose_E=turned, clear_accum=True)
            T.copy(c, C[by * tile_m, 0])

    return sparse_product


def nibbles(words):
    flat = np.ascontiguousarray(words).view(np.uint8)
    return set(np.concatenate([flat & 15, flat >> 4], axis=None).tolist())


@pytest.mark.sweep(1)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("types", TYPES)
def test_random_metadata_is_legal(types, seed):
    dtype, acc, meta = types
    kernel = tile.compile(product(dtype, acc, meta, turned=seed == 1), "cpu", out_idx=-1)
    held = held_codes(kernel.program)
    group = 2 if dtype in ("float32", "tfloat32") else 4
    assert held == {"E": f"metadata of {group}"}
    _, words, _ = random_arguments(kernel.signature, seed, held)
    assert nibbles(words) == LEGAL[group]  # each of them occurs
    assert words.dtype == meta
    kernel.verify(seed=seed)


def test_metadata_through_a_variable():
    program = product(through="variable")
    assert held_codes(program) == {"E": "metadata of 4"}
    tile.compile(program, "cpu", out_idx=-1).verify()


def test_rows_of_a_gather_are_no_metadata():
    @T.prim_func
    def gathered(
        A: T.Tensor((16, 32), "int8"), E: T.Tensor((20, 2), "int32"), rows: T.Tensor((16,), "int32"),
        at: T.Tensor((16,), "int32"), B: T.Tensor((64, 8), "int8"), C: T.Tensor((16, 8), "int32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            e, f = T.alloc_shared((16, 2), "int32"), T.alloc_shared((16, 2), "int32")
            c = T.alloc_fragment((16, 8), "int32")
            T.gather(E, rows, e)
            for i, j in T.Parallel(16, 2):
                f[i, j] = e[T.clamp(at[i], 0, 15), j] & (-1)
            T.gemm_sp(A, f, B, c, clear_accum=True)
            T.copy(c, C)

    assert held_codes(gathered) == {"E": "metadata of 4"}


def test_codes_of_narrow_floats_are_not_all_tiny():
    @T.prim_func
    def scaled(
        A: T.Tensor((16, 32), "uint8"), a_scale: T.Tensor((16, 2), "float8_e8m0fnu"), B: T.Tensor((64, 16), "uint8"),
        b_scale: T.Tensor((2, 16), "float8_e8m0fnu"), C: T.Tensor((16, 16), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            c = T.alloc_fragment((16, 16), "float32")
            T.gemm_scaled(
                A, a_scale, B, b_scale, c, A_format="float4_e2m1fn", B_format="float8_e4m3fn", clear_accum=True
            )
            T.copy(c, C)

    assert held_codes(scaled) == {"A": "float4_e2m1fn", "B": "float8_e4m3fn"}
    kernel = tile.compile(scaled, "cpu", out_idx=-1)
    a, _, b, _ = random_arguments(kernel.signature, 0, held_codes(scaled))
    assert len(set(a.ravel().tolist())) > 100
    assert 0.5 < np.std(b.view(DTYPES["float8_e4m3fn"].numpy()).astype("float32")) < 2
    kernel.verify()


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("bits", "at"), [(15, "3 and 3"), (0b0010, "2 and 0"), (0b0101, "1 and 1"), (0, "0 and 0")])
@pytest.mark.parametrize("turned", [False, True])
def test_illegal_metadata_is_named(bits, at, turned):
    rng = np.random.default_rng(bits)
    dense = np.asarray(sparse.prune(rng.integers(1, 4, (37, 64)).astype("float16")))
    values, metadata = sparse.compress(dense)
    metadata[20, 3] = bits << 4 | metadata[20, 3] & ~0xF0
    b = rng.standard_normal((64, 11)).astype("float16")
    kernel = tile.compile(product(turned=turned), "cpu", out_idx=-1)
    with pytest.raises(UndefinedMetadata) as info:
        kernel.verify(values, np.ascontiguousarray(metadata.T) if turned else metadata, b)
    location = "e[3, 4], from E" if not bits else "E[20, 3]"
    if turned:
        location = "e[3, 4], from E" if not bits else "E[3, 20]"
    elif not bits:
        location = "e[4, 3], from E"
    text = str(info.value)
    assert f"{location}: metadata {bits:#06b} of group 13 of row 4 of" in text, text
    assert f"elements {at} of its elements 52 to 55" in text, text
    assert info.value.where.source.startswith("T.gemm_sp(")


@pytest.mark.parametrize("bits", [0b0010, 0b1111, 0b0101])
def test_illegal_metadata_of_pairs(bits):
    dense = np.tile(np.array([3, 0], "float32"), (37, 32))
    values, metadata = sparse.compress(dense)
    kernel = tile.compile(product("float32"), "cpu", out_idx=-1)
    b = np.ones((64, 11), "float32")
    metadata[5, 1] = 0  # the first element, on every target
    kernel.verify(values, metadata, b)
    metadata[5, 1] = bits
    with pytest.raises(UndefinedMetadata, match=rf"E\[5, 1\]: metadata {bits:#06b} of group 4 .* halves"):
        kernel.verify(values, metadata, b)


def test_groups_of_zeros_may_have_any_producer():
    """Compressors write 0 for a group of zeros, as padding does."""
    values, metadata = np.zeros((37, 32), "float16"), np.zeros((37, 4), "int16")
    values[:, ::2] = 2  # a group with a first value only has a second one of zero
    tile.compile(product(), "cpu", out_idx=-1).verify(values, metadata, np.ones((64, 11), "float16"))


@pytest.mark.parametrize("target", ["cuda:sm_80", "rocm:gfx942"])
def test_the_emulator_blames_the_metadata(target):
    kernel = tile.compile(product(N=16, M=16, K=64), target, out_idx=-1, runtime="emulator")
    values, metadata = np.ones((16, 32), "float16"), np.full((16, 4), -1, "int16")
    with pytest.raises(tile.TileError, match=r"\[K480\].*(\n.*)*illegal metadata of a sparse product") as info:
        kernel(values, metadata, np.ones((64, 16), "float16"))
    assert "create metadata with sparse.compress" in str(info.value)
    assert "if that does not explain it" in str(info.value)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "metal"])
def test_the_example_from_a_shell(target, capfd):
    sizes = [x for s in ("M=33", "N=18", "K=80", "block_M=32", "block_N=16") for x in ("--arg", s)]
    emulated = [] if target == "cpu" else ["--runtime", "emulator"]
    status = run(["run", f"{EXAMPLE}:matmul_sp", "--target", target, *sizes, *emulated, "--repeat", "1", "--seed", "3"])
    out = capfd.readouterr()
    assert status == 0, out.err
    assert "main: equal to its reference" in out.out
    assert "594 elements" in out.out


@pytest.mark.sweep(0.25)
def test_tuning_the_example(capfd, tmp_path):
    sizes = [x for s in ("M=33", "N=18", "K=80") for x in ("--arg", s)]
    status = run(["tune", f"{EXAMPLE}:matmul_sp", *sizes, "--vary", "block_M=16,32", "--target", "cpu", "--repeat", "1",
                  "--results", str(tmp_path / "r.sqlite")])  # fmt: skip
    out = capfd.readouterr()
    assert status == 0, out.err
    assert "why not" not in out.out
