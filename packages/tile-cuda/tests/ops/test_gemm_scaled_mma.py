"""``cuda.mma.block_scale``: results at awkward sizes, machine code, refusals, and detected mistakes."""

from __future__ import annotations

import re
from functools import cache

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
from .test_gemm_scaled_tensor import E2M1, E4M3, E5M2, E8M0, MXFP4, MXFP4_16, MXFP8, NVFP4, operands, program

TARGET = "cuda:sm_120a"
NAMES = {
    MXFP8: "m16n8k32_row_col_kind_mxf8f6f4_block_scale_scale_vec_1X_f32_e4m3_e4m3_f32_ue8m0",
    (E5M2, E4M3, E8M0, 32): "m16n8k32_row_col_kind_mxf8f6f4_block_scale_scale_vec_1X_f32_e5m2_e4m3_f32_ue8m0",
    MXFP4: "m16n8k64_row_col_kind_mxf4_block_scale_scale_vec_2X_f32_e2m1_e2m1_f32_ue8m0",
    NVFP4: "m16n8k64_row_col_kind_mxf4nvf4_block_scale_scale_vec_4X_f32_e2m1_e2m1_f32_ue4m3",
}
#: Rows, columns, K, depth of a tile.
SIZES = {
    "whole": (64, 32, 256, 128), "one instruction": (16, 8, 64, 64), "fewer rows": (7, 24, 128, 64),
    "fewer columns": (33, 5, 128, 128), "half of a step": (16, 8, 32, 32), "a step and a half": (20, 12, 96, 96),
    "three words": (32, 16, 384, 384), "many steps": (16, 16, 1024, 1024),
}  # fmt: skip


def check(kind, *sizes, **how):
    kernel = tile.compile(program(kind, *sizes, **how), TARGET, runtime="emulator")
    given, want = operands(kind, *sizes)
    if how.get("turned"):
        given[2:] = [np.ascontiguousarray(x.T) for x in given[2:]]
    out = np.full(want.shape, 85, "float32")
    kernel(*given, out)
    np.testing.assert_array_equal(out, want)
    assert assemble(kernel.source, "sm_120a") == ""
    return kernel


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.sweep(10)
def test_numbers_and_machine_code(kind, name):
    kernel = check(kind, *SIZES[name])
    assert f"mma_sync_aligned_{NAMES[kind]}(" in kernel.source
    assert "uncalibrated" in kernel.explain()


@pytest.mark.sweep(1)
@pytest.mark.parametrize("kind", [MXFP8, (E5M2, E5M2, E8M0, 32)])
def test_b_of_rows_along_n(kind):
    check(kind, 32, 24, 128, 64, turned=True)


@pytest.mark.parametrize("kind", [MXFP4, NVFP4])
def test_tiles_with_a_byte_for_each_element(kind):
    """Read elements of 4 bits that are not packed in shared memory one by one."""
    sizes = (16, 16, 128, 128)
    given, want = operands(kind, *sizes)
    out = np.zeros(want.shape, "float32")
    kernel = tile.compile(program(kind, *sizes, coded=False), TARGET, runtime="emulator")
    kernel(*given, out)  # parameters of 4 bits are packed in any case
    np.testing.assert_array_equal(out, want)
    assert "block_scale" in kernel.source


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (MXFP4_16, f"{E8M0} for blocks of 16 elements; for {E2M1} there are {E8M0} for 32, {E4M3} for 16"),
        ((E4M3, E4M3, E8M0, 64), f"{E8M0} for blocks of 64 elements"),
        ((E4M3, E2M1, E8M0, 32), f"no instruction for the types A {E4M3}, B {E2M1}"),
        (("float8_e4m3fnuz", E4M3, E8M0, 32), "no instruction for the types A float8_e4m3fnuz"),
    ],
)
def test_other_formats_use_loops_and_explain_reports_reasons(kind, reason):
    kernel = tile.compile(program(kind, 16, 16, 128, 128), TARGET, runtime="emulator")
    assert "block_scale" not in kernel.source
    said = " ".join(re.sub(r"[│\s]+", " ", kernel.explain()).split())
    assert reason.split(";")[0][:24] in said


def test_a_target_without_the_suffix_has_no_such_instruction():
    assert "block_scale" not in tile.compile(program(MXFP8, 16, 16, 64, 64), "cuda:sm_120").source


def test_scales_in_global_memory_are_refused_if_it_is_forced():
    @T.prim_func
    def main(P: T.Tensor((16, 2), E8M0), C: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, threads=32):
            S, F = T.alloc_shared((16, 64), E4M3), T.alloc_fragment((16, 16), "float32")
            T.clear(S)
            T.gemm_scaled(S, P, S, P, F, False, True, clear_accum=True, variant="cuda.mma.block_scale")
            T.copy(F, C)

    with pytest.raises(TileError, match="P is not in shared memory"):
        tile.compile(main, TARGET)


MISTAKES = {
    "the scales of another step of A": (MXFP8, r"(, a_scales(?:\[\d\])?), 1, 0,", r"\1, 0, 0,"),
    "the scales of another step of B": (MXFP8, r"(, b_scales(?:\[\d\])?), 1, 0\);", r"\1, 2, 0);"),
    "a byte that no pair begins at": (MXFP4, r"(, a_scales(?:\[\d\])?), 2, 0,", r"\1, 1, 0,"),
    "a byte of four": (NVFP4, r"(, b_scales(?:\[\d\])?), 0, 0\);", r"\1, 1, 0);"),
    "a thread that there is not": (MXFP8, r"(, a_scales(?:\[\d\])?), 1, 0,", r"\1, 1, 2,"),
    "rows of the other half": (MXFP8, r"\(lane_t & 1\)", "(1 - (lane_t & 1))"),
    "the first half for both": (NVFP4, r"\(lane_t & 1\)", "0"),
    "scales of A and B exchanged": (MXFP8, r"a_scales, (\d, 0), b_scales, \d, 0\);", r"b_scales, \1, a_scales, \1);"),
    "the first word for all steps": (NVFP4, r"a_scales\[1\], 0, 0", "a_scales[0], 0, 0"),
    "half of the scales": (NVFP4, r"mxf4nvf4\.block_scale\.scale_vec::4X\.f32\.e2m1\.e2m1\.f32\.ue4m3",
                           "mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"),
    "powers of two that are none": (NVFP4, r"scale_vec::4X(\.f32\.e2m1\.e2m1\.f32)\.ue4m3", r"scale_vec::2X\1.ue8m0"),
    "scales with signs": (NVFP4, r" *[ab]_scales\[[^;]*\] = [ab]_scales\[[^;]*& 2139062143u;\n", ""),
    "no barrier before the reads": (MXFP8, r" *__syncthreads\(\);\n", ""),
    "another type of A": (MXFP8, r"(scale_vec::1X\.f32\.)e4m3", r"\1e5m2"),
}  # fmt: skip
SHAPE = (32, 16, 256, 128)


@cache
def lowered(kind):
    return lower(program(kind, *SHAPE), make_context(TARGET), installed()).lowered


def found(kind, text):
    given, want = operands(kind, *SHAPE)
    facts = lowered(kind).facts
    for how in ({"completion": "late"}, {"completion": "early", "order": "random", "seed": 5}):
        arrays = dict(zip("APBQC", (*given, np.full(want.shape, np.nan, "float32")), strict=True))
        arrays = {p.name: arrays[p.name] for p in facts.given}
        result = tile_emulator.run(text, facts, arrays, dialect_of(Arch.of("sm_120a")), **how)
        if result.reports or not np.array_equal(result.outputs["C"].reshape(want.shape), want):
            return True
    return False


@pytest.mark.sweep(1)
@pytest.mark.parametrize("kind", [MXFP8, NVFP4, MXFP4])
def test_nothing_is_found_in_the_text_as_it_is(kind):
    assert not found(kind, lowered(kind).text)


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.sweep(8)
def test_mistakes_in_the_text_are_found(mistake):
    kind, pattern, new = MISTAKES[mistake]
    text = lowered(kind).text
    cut = text.index('extern "C"')
    edited, count = re.subn(pattern, new, text[cut:])
    whole = text[:cut] + edited
    if not count:
        whole, count = re.subn(pattern, new, text)
    assert count, text[cut:]
    assert found(kind, whole)
