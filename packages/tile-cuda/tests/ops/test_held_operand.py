"""A as tensor-memory operand: fragments, such as attention weights, stored there by their threads."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
import tile_emulator
from tile_core.compiler import lower
from tile_core.errors import TileError
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

from ..emit.nvrtc import assemble

TARGET = "cuda:sm_100a"
NUMPY = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "tfloat32": np.float32, "int8": np.int8,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip


def program(m=128, n=64, k=64, trips=2, dtype="float16", turned=True, total="float32", explicit=True, waits=True):
    """Accumulate twice A, in registers, times B over iterations."""

    @T.prim_func
    def main(
        A: T.Tensor((m, k * trips), dtype), B: T.Tensor((n, k * trips) if turned else (k * trips, n), dtype),
        C: T.Tensor((m, n), total),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            P, F = T.alloc_fragment((m, k), dtype), T.alloc_fragment((m, n), total)
            R = T.alloc_shared((trips, n, k) if turned else (trips, k, n), dtype)
            done = T.alloc_barrier(1 if waits else trips)
            T.clear(F)
            for t in range(trips):
                T.copy(A[0, t * k], P)
                T.copy(B[0, t * k] if turned else B[t * k, 0], R[t, :, :])
                if explicit and waits:
                    T.tcgen05_gemm(P, R[t, :, :], F, transpose_B=turned)
                elif explicit:
                    T.tcgen05_gemm(P, R[t, :, :], F, transpose_B=turned, mbar=done)
                else:
                    T.gemm(P, R[t, :, :], F, transpose_B=turned)
            if not waits:
                T.mbarrier_wait_parity(done, 0)
            T.copy(F, C)

    return main


def operands(m=128, n=64, k=64, trips=2, dtype="float16", turned=True, total="float32", **_):
    rng = np.random.default_rng()
    a, b = (rng.integers(-3, 4, s).astype(NUMPY[dtype]) for s in ((m, k * trips), (k * trips, n)))
    return a, np.ascontiguousarray(b.T) if turned else b, np.full((m, n), 85, total)


def meaning(a, b, turned=True, **_):
    return a.astype("float64") @ (b.T if turned else b).astype("float64")


CASES = {
    "float16": {},
    "bfloat16, two tiles": {"m": 256, "n": 48, "k": 32, "dtype": "bfloat16", "turned": False, "trips": 3},
    "e4m3": {"n": 32, "k": 128, "dtype": "float8_e4m3fn"}, "e5m2": {"n": 32, "k": 32, "dtype": "float8_e5m2"},
    "tf32": {"n": 32, "k": 16, "dtype": "tfloat32"}, "int8": {"n": 32, "k": 64, "dtype": "int8", "total": "int32"},
    "wide accumulator": {"n": 240, "k": 48}, "a step": {"n": 16, "k": 16, "trips": 1}, "by option": {"explicit": False},
    "in flight": {"waits": False, "trips": 5, "n": 32, "k": 32},
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sweep(6)
def test_numbers(name):
    how = CASES[name]
    kernel = tile.compile(program(**how), TARGET, runtime="emulator", options={"tcgen05": "always"})
    assert re.search(r"\n +tcgen05_mma_cta_group_1_kind_\w+_of_held\(", kernel.source)
    assert "A by registers (tcgen05.st)" in " ".join(kernel.explain().split())
    a, b, c = operands(**how)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, meaning(a, b, **how))
    for arch in ("sm_100a", "sm_103a") if name != "int8" else ("sm_100a",):
        assert "C7" not in assemble(kernel.source, arch)


@pytest.mark.parametrize(("queries", "keys", "dim", "causal"), [(128, 128, 64, False), (77, 133, 48, True)])
@pytest.mark.sweep(6)
def test_attention(queries, keys, dim, causal):
    """Compute both products of attention in tensor memory, with weights as tensor-memory operand."""
    folder = str(Path(__file__).resolve().parents[4] / "examples")
    sys.path.insert(0, folder)
    try:
        import flash_attention
    finally:
        sys.path.remove(folder)
    made = flash_attention.attention(1, 1, queries, keys, dim, causal, block_M=128)
    kernel = tile.compile(made, TARGET, runtime="emulator", options={"tcgen05": "always"})
    body = kernel.source[kernel.source.index('extern "C"') :]
    assert re.search(r"\n +tcgen05_mma_cta_group_1_kind_f16\(", body)
    assert re.search(r"\n +tcgen05_mma_cta_group_1_kind_f16_of_held\(", body)
    assert "mma_sync" not in body
    rng = np.random.default_rng()
    q, k, v = (rng.standard_normal((1, 1, n, dim)).astype("float16") for n in (queries, keys, keys))
    out = np.full((1, 1, queries, dim), np.nan, "float16")
    kernel(q, k, v, out)
    want = flash_attention.reference(q, k, v, causal)
    np.testing.assert_allclose(out.astype("float64"), want, atol=2e-3, rtol=2e-3)
    for arch in ("sm_100a", "sm_103a"):
        assert "C7" not in assemble(kernel.source, arch)


def refused(kind):
    dtype = "float16"

    @T.prim_func
    def main(A: T.Tensor((128, 64), dtype), E: T.Tensor((128, 8), "int16"), C: T.Tensor((128, 128), "float32")):
        with T.Kernel(1, threads=128):
            S, M = T.alloc_shared((128, 64), dtype), T.alloc_shared((128, 8), "int16")
            P, W = T.alloc_fragment((128, 64), dtype), T.alloc_shared((128, 128), dtype)
            F, H = T.alloc_fragment((128, 128), "float32"), T.alloc_fragment((64, 128), dtype)
            T.copy(A, S)
            T.copy(S, P)
            T.copy(E, M)
            if kind == "turned":
                for i, j in T.Parallel(64, 128):
                    H[i, j] = A[j, i]
                T.tcgen05_gemm(H, S, F, True, True, clear_accum=True)
            elif kind == "a part":
                T.tcgen05_gemm(P[:, 0:32], S[:, 0:32], F, False, True, clear_accum=True)
            elif kind == "sparse":
                T.clear(W)
                T.tcgen05_gemm_sp(P, M, W, F, transpose_B=True, clear_accum=True)
            elif kind == "B":
                T.tcgen05_gemm(S, P, F, False, True, clear_accum=True)
            T.copy(F, C)

    return main


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("turned", "H is in registers, and its rows are along K"), ("a part", "takes a part of it"),
        ("sparse", "A is in fragment; legal: shared"), ("B", "B is in fragment; legal: shared"),
    ],
)  # fmt: skip
def test_illegal_tensor_memory_operands_are_refused(kind, reason):
    with pytest.raises(TileError) as caught:
        tile.compile(refused(kind), TARGET, runtime="emulator")
    assert caught.value.code == "U104"
    assert reason in str(caught.value)


def test_its_columns_are_there_twice():
    """Count both sets of the double-buffered operand in the report and the refusal."""
    said = " ".join(tile.compile(program(n=64, k=64), TARGET, runtime="emulator").explain().split())
    assert "A by registers (tcgen05.st) in 32 more columns in each of two sets" in said
    with pytest.raises(TileError) as caught:
        tile.compile(program(n=208, k=320), TARGET, runtime="emulator")
    assert "it needs 208 accumulator columns and two sets of 160 of A; tensor memory has 512" in str(caught.value)


SHAPE = {"n": 32, "k": 64, "trips": 3}
MISTAKES = {
    "no moves": (r"(?:\n +tcgen05_st_sync\w+_u32\([^;]*;)+", ""),
    "no wait for the moves": (r"(tcgen05_st_sync\w+_u32\([^;]*;\n) +tcgen05_wait_st[^;]*;\n", r"\1"),
    "another column": (r"(kind_f16_of_held\(columns, columns \+ )", r"\g<1>1u + "),
    "another step": (r"(kind_f16_of_held\([^;]*?) \+ 40u", r"\1 + 48u"),
    "moved behind the product": (r"((?:\n +tcgen05_st_sync\w+_u32\([^;]*;)+)((?s:.*?)\n    }\n)", r"\2\1"),
    "foreign lanes": (r"(tcgen05_st_sync\w+_u32\([^;]*)>> 5\) & 3\)", r"\1>> 5) + 1 & 3)"),
    "transposed": (r"(kind_f16_of_held\([^;]*, )(\d+)u, (?=[^,]*\);)", lambda m: f"{m[1]}{int(m[2]) | 1 << 15}u, "),
    "columns of others": (r"(tcgen05_alloc\w+\(.*, )128\)", r"\g<1>64)"),
}  # fmt: skip


@pytest.fixture(scope="module")
def lowered():
    return lower(program(**SHAPE), make_context(TARGET), installed()).lowered


def found(text, lowered):
    for how in ({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5}):
        a, b, c = operands(**SHAPE)
        result = tile_emulator.run(text, lowered.facts, {"A": a, "B": b, "C": c}, dialect_of(Arch.of("sm_100a")), **how)
        if result.reports or not np.array_equal(result.outputs["C"].reshape(c.shape), meaning(a, b)):
            return True
    return False


@pytest.mark.parametrize("mistake", [None, *MISTAKES])
@pytest.mark.sweep(6)
def test_mistakes_are_found(mistake, lowered):
    cut = lowered.text.index('extern "C"')
    head, body = lowered.text[:cut], lowered.text[cut:]
    if mistake is not None:
        pattern, new = MISTAKES[mistake]
        body, count = re.subn(pattern, new, body, count=1)
        assert count, body
    assert found(head + body, lowered) == (mistake is not None)
