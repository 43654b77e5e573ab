"""``cuda.tcgen05.sp``: results, machine code, layout of metadata, refusals, and detected mistakes."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
import tile_emulator
from tile_core import sparse
from tile_core.compiler import lower
from tile_core.errors import TileError
from tile_core.errors.lowering import VariantMissing
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

from ..emit.nvrtc import assemble
from .test_gemm_sp_wgmma import FP8, INT8, NT, TF32, program
from .test_gemm_wgmma import NUMPY

ALWAYS = {"tcgen05": "always"}
EXAMPLE = Path(__file__).parents[4] / "examples" / "sparse_gemm.py"
F16 = ("float16", "float16", "float32")


def operands(m, n, k, bk, types=F16, meta="int16", *, turned=(False, False, False), order=None, **_):
    rng = np.random.default_rng(m + n + k)
    low = 0 if "uint8" in types else -3
    dense, b = (rng.integers(low, 4, s).astype(NUMPY.get(t, t)) for s, t in (((m, k), types[0]), ((k, n), types[1])))
    pruned = sparse.prune(dense)
    kept, metadata = sparse.compress(pruned, meta_dtype=meta, **({"layout": order, "block_k": bk} if order else {}))
    given = [
        np.ascontiguousarray(np.asarray(x).T) if t else x for x, t in zip((kept, metadata, b), turned, strict=True)
    ]
    return given, pruned.astype(np.float64) @ b.astype(np.float64)


def check(*args, arch="sm_100a", options=ALWAYS, **how):
    kernel = tile.compile(program(*args, **how), f"cuda:{arch}", runtime="emulator", options=options)
    given, want = operands(*args, **how)
    types = args[4] if len(args) > 4 else F16
    out = np.full(want.shape, 85, NUMPY.get(types[2], types[2]))
    kernel(*given, out)
    assert np.array_equal(out.astype(np.float64), want)
    assert assemble(kernel.source, arch) == ""
    return kernel


CASES = {
    "f16": ((128, 64, 128, 64), {}),
    "f16, one step": ((128, 16, 32, 32), {"stages": 0}),
    "f16, three steps": ((128, 32, 96, 96), {"meta": "int8", "stages": 1}),
    "f16 nt": ((128, 48, 128, 64), {"turned": NT}),
    "f16 across": ((128, 64, 64, 32), {"turned": (True, False, False)}),
    "f16, metadata along K": ((128, 32, 128, 64), {"turned": (False, True, True)}),
    "f16, int32": ((128, 64, 128, 64), {"meta": "int32"}),
    "f16, uint8": ((128, 64, 128, 64), {"meta": "uint8"}),
    "f16 of CUTLASS": ((128, 64, 256, 128), {"meta": "uint8", "order": "cutlass_sm100"}),
    "f16, another order": ((128, 64, 256, 128), {"meta": "uint8", "order": "cutlass_sm90"}),
    "f16, two tiles": ((256, 64, 128, 64), {}),
    "f16 into f16": ((128, 64, 128, 64, ("float16",) * 3), {}),
    "many columns": ((128, 208, 64, 64), {"turned": NT}),
    "bf16": ((128, 48, 64, 64, ("bfloat16", "bfloat16", "bfloat16")), {"turned": NT}),
    "tf32": ((128, 32, 64, 32, TF32), {"turned": NT}),
    "tf32, two tiles": ((256, 16, 48, 16, TF32), {"turned": NT, "meta": "int8"}),
    "fp8": ((128, 32, 256, 128, FP8), {"turned": NT, "meta": "int32"}),
    "fp8 of CUTLASS": ((128, 32, 256, 128, FP8), {"turned": NT, "meta": "uint8", "order": "cutlass_sm100"}),
    "int8": ((128, 32, 256, 128, INT8), {"turned": NT, "meta": "int16"}),
    "uint8": ((128, 48, 128, 64, ("uint8", "int8", "int32")), {"turned": NT, "meta": "int8"}),
    "bulk copies": ((128, 64, 256, 64), {"options": {**ALWAYS, "tma": "always"}, "meta": "int32", "stages": 3}),
}  # fmt: skip


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a", "sm_110a"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.sweep(8)
def test_numbers_and_machine_code(name, arch):
    args, how = CASES[name]
    integers = len(args) > 4 and args[4][2] == "int32"
    kernel = check(*args, arch=arch, **how)
    text = kernel.source[kernel.source.index('extern "C"') :]
    assert ("tcgen05_mma_sp_" in text) == (not (integers and arch == "sm_103a"))


@pytest.mark.sweep(0.25)
def test_explain_reports_the_copy_of_metadata():
    said = " ".join(check(128, 64, 128, 64).explain().split())
    for part in ("cuda.tcgen05.sp", "64 columns of tensor memory", "tcgen05.st", "uncalibrated"):
        assert part in said


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("types", "k"), [(F16, 256), (TF32, 128), (INT8, 256)])
def test_metadata_lies_where_cutlass_and_jax_copy_it(types, k):
    """Match `tcgen05.cp.128x128b` in CUTLASS's order: 16 bytes per lane, 4 per column.

    The order is derived elsewhere (``tile_core.sparse.layouts``), from CUTLASS. So the bytes that a lane reads for
    column c must be those at 16 * lane + 4 * c: the compiler's simplifier finds that out.
    """
    kernel = check(128, 32, k, k // 2, types, "uint8", turned=NT, order="cutlass_sm100")
    words = dict(re.findall(r"\bmetadata\[(\d)\] = (.*);", kernel.source))
    assert len(words) == 4
    for column, read in words.items():
        offsets = re.findall(r"E_s(?:_stages)?\[([^]]*)\]", read)
        bytes_ = [4 * int(column) + b for b in range(4)] * 2  # once for the value, once for its correction
        for offset, byte in zip(offsets, bytes_, strict=True):
            values = {"lane_row": 77, "tile_row": 0, "slot": 0}
            assert eval(offset, {}, values) - 16 * 77 in (byte, byte + 2048), read


@pytest.mark.sweep(1)
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a", "sm_110a"])
def test_the_example_compiles_as_it_is(arch, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    made = runpy.run_path(str(EXAMPLE))["matmul_sp"](256, 256, 256, block_M=128)
    kernel = tile.compile(made, f"cuda:{arch}", options=ALWAYS, runtime="emulator")
    assert "tcgen05_mma_sp_cta_group_1_kind_f16" in kernel.source
    assert assemble(kernel.source, arch) == ""
    said = " ".join(kernel.explain().split())
    for part in ("cuda.tcgen05.sp", "metadata", "tcgen05.st"):
        assert part in said


@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_100a"])
def test_the_example_that_demands_it_is_that_or_refused(target, monkeypatch, tmp_path):
    """Refuse a demanded sparse variant that is not legal, and name the target's alternatives."""
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    call = "T.gemm_sp(A_shared, E_shared, B_shared, C_local"
    text = EXAMPLE.read_text(encoding="utf-8")
    assert text.count(call) == 1
    forced = tmp_path / "forced.py"
    forced.write_text(text.replace(call, f'{call}, variant="cuda.tcgen05.sp"'), encoding="utf-8")
    made = runpy.run_path(str(forced))["matmul_sp"](256, 256, 256, block_M=128)
    if target == "cuda:sm_100a":
        assert "tcgen05_mma_sp_cta_group_1_kind_f16" in tile.compile(made, target, runtime="emulator").source
        return
    with pytest.raises(VariantMissing) as caught:
        tile.compile(made, target)
    for part in ("cuda.tcgen05.sp", "sm_90a", "cuda.mma.sp", "cuda.wgmma.sp", "T.gemm_sp("):
        assert part in str(caught.value)


def explicit(m=128, n=64, dtype="float16", columns=64):
    @T.prim_func
    def main(
        A: T.Tensor((m, columns // 2), dtype), E: T.Tensor((m, columns // 16), "int16"),
        B: T.Tensor((n, columns), dtype), C: T.Tensor((m, n), "int32" if dtype == "int8" else "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128):
            S, E_s = T.alloc_shared(A.shape, dtype), T.alloc_shared(E.shape, "int16")
            R, F = T.alloc_shared(B.shape, dtype), T.alloc_fragment((m, n), C.dtype)
            T.copy(A, S)
            T.copy(E, E_s)
            T.copy(B, R)
            T.tcgen05_gemm_sp(S, E_s, R, F, transpose_B=True, clear_accum=True)
            T.copy(F, C)

    return main


def test_an_explicit_call_is_that_instruction():
    kernel = tile.compile(explicit(), "cuda:sm_100a", runtime="emulator")
    dense = sparse.prune(np.random.default_rng(1).integers(-3, 4, (128, 64)).astype("float16"))
    b, c = np.random.default_rng(2).integers(-3, 4, (64, 64)).astype("float16"), np.full((128, 64), 9, "float32")
    kept, metadata = sparse.compress(dense, meta_dtype="int16")
    kernel(kept, metadata, b, c)
    assert np.array_equal(c, dense.astype(float) @ b.T.astype(float))
    kernel.verify(kept, metadata, b, c)


@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_100", "cuda:sm_120a", "cpu"])
def test_other_targets_refuse_it_by_name(target):
    with pytest.raises(VariantMissing, match=r"cuda\.tcgen05\.sp"):
        tile.compile(explicit(), target)


@pytest.mark.parametrize(
    ("shape", "reason", "arch"),
    [
        ({"m": 64}, "M=64 is not a multiple of the atom 128", "sm_100a"),
        ({"n": 24}, "N=24 is not a multiple of the atom 16", "sm_100a"),
        ({"columns": 48}, "K=48 is not a multiple of the atom 32", "sm_100a"),
        ({"dtype": "int8"}, "the target has no products of int8 in tensor memory", "sm_103a"),
    ],
)
def test_illegal_shapes_are_refused(shape, reason, arch):
    with pytest.raises(TileError, match=reason):
        tile.compile(explicit(**shape), f"cuda:{arch}", runtime="emulator")


def test_empty_nibbles_are_legal():
    """Accept empty metadata nibbles of compressors, and tails of K padded with zeros."""
    kernel = tile.compile(explicit(), "cuda:sm_100a", runtime="emulator")
    dense = np.zeros((128, 64), "float16")
    dense[::3, ::4] = 2
    kept, metadata = sparse.compress(dense, meta_dtype="int16")
    metadata = np.array(metadata)
    metadata[1::3] = 0
    b, c = np.random.default_rng(2).integers(-3, 4, (64, 64)).astype("float16"), np.full((128, 64), 9, "float32")
    kernel(kept, metadata, b, c)
    assert np.array_equal(c, dense.astype(float) @ b.T.astype(float))


# Seeded mistakes in generated text

ARGS = (128, 32, 192, 96)
SP = r"(tcgen05_mma_sp_cta_group_1_kind_f16\(columns, .*columns \+ .*)\b(\d+)(u\), )(\d+)(u, 1\);)"
MISTAKES = {
    "dense": (SP, lambda m: f"{m[1]}{m[2]}{m[3]}{int(m[4]) & ~4}{m[5]}"),
    "the other selector": (SP, lambda m: f"{m[1]}{m[2]}{m[3]}{int(m[4]) ^ 1}{m[5]}"),
    "a selector without columns": (SP, lambda m: f"{m[1]}{m[2]}{m[3]}{int(m[4]) | 2}{m[5]}"),
    "an odd column": (SP, lambda m: f"{m[1]}{int(m[2]) + 1}{m[3]}{m[4]}{m[5]}"),
    "other columns": (SP, lambda m: f"{m[1]}{int(m[2]) + 2}{m[3]}{m[4]}{m[5]}"),
    "columns of the accumulator": (SP, lambda m: f"{m[1]}0{m[3]}{m[4]}{m[5]}"),
    "no metadata": (r" *tcgen05_st\w+_x4_b32_u32\(&metadata.*\n", lambda m: ""),
    "no wait for it": (r" *tcgen05_wait_st_sync_aligned\(\);\n", lambda m: ""),
    "as it is": (r"(metadata\[0\] = )(.*);", lambda m: f"{m[1]}0u;"),
    "columns exchanged": (r"(tcgen05_st\w+_x4_b32_u32\(&metadata\[0\], .*\+ )(\d+)u\)",
                          lambda m: f"{m[1]}{int(m[2]) + 2}u)"),
    "rows exchanged": (r"lane_row & 7", lambda m: "(lane_row ^ 1) & 7"),
    "pieces exchanged": (r"\(lane_row & 15\) >> 3", lambda m: "1 - ((lane_row & 15) >> 3)"),
    "halves exchanged": (r"<< 16u", lambda m: "<< 8u"),
    "by other warps": (r"\(tid >> 5\) & 3", lambda m: "((tid >> 5) + 1) & 3"),
}  # fmt: skip
ORDERS = ({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5})


def found(text, lowered, orders=ORDERS):
    given, want = operands(*ARGS)
    for how in orders:
        arrays = dict(zip("AEBC", (*given, np.full(want.shape, np.nan, "float32")), strict=True))
        arrays = {p.name: arrays[p.name] for p in lowered.facts.given}
        result = tile_emulator.run(text, lowered.facts, arrays, dialect_of(Arch.of("sm_100a")), **how)
        if result.reports or not np.array_equal(result.outputs["C"].reshape(want.shape), want):
            return True
    return False


@pytest.fixture(scope="module")
def lowered():
    return lower(program(*ARGS, stages=0), make_context("cuda:sm_100a", ALWAYS), installed()).lowered


def test_nothing_is_found_in_the_text_as_it_is(lowered):
    assert not found(lowered.text, lowered)


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.sweep(4)
def test_mistakes_in_the_text_are_found(mistake, lowered):
    pattern, new = MISTAKES[mistake]
    cut = lowered.text.index('extern "C"')
    edited, count = re.subn(
        pattern, new, lowered.text[cut:], count=1 if "exchanged" not in mistake and "wait" not in mistake else 0
    )
    assert count, lowered.text[cut:]
    assert found(lowered.text[:cut] + edited, lowered)
