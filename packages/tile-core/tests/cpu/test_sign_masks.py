"""LLVM 22 deletes a mask of signs in use under AVX-512DQ or AVX-512BW."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.cpu import build as building
from tile_core.cpu.isa import Isa, detect
from tile_core.testing.run import Session
from tile_core.testing.search import Chunk, search

avx512 = pytest.mark.skipif(detect().name != "avx512", reason="the defect is one of AVX-512")

AVX512 = Isa.for_cpu("sapphirerapids", "x86_64-unknown-linux-gnu")

#: Index expressions that LLVM vectorizes, using their signs as a mask and singly.
FOUND = Chunk("indices", 1240095722756, 80)


@pytest.mark.sweep(0.25)
@avx512
def test_the_program_that_was_wrong_is_right():
    with tile.disable_cache():
        search(FOUND, Session("cpu", None), lambda kind, count: None)


@pytest.mark.parametrize("cpu", ["skylake-avx512", "rocketlake", "sapphirerapids", "znver5"])
def test_masks_of_wide_signs_are_never_made(cpu):
    assert "-avx512dq" in Isa.for_cpu(cpu, "x86_64-unknown-linux-gnu").mattr


@pytest.mark.parametrize(
    ("text", "unsafe"),
    [
        ("%1 = icmp slt <16 x i8> %0, zeroinitializer", True),
        ("%1 = icmp sgt <32 x i8> %wide, splat (i8 -1)", True),
        ("%1 = trunc <32 x i8> %0 to <32 x i1>", True),
        ("%1 = trunc nuw <16 x i64> %0 to <16 x i1>", True),
        ("%1 = icmp slt <16 x i8> %0, %1", False),
        ("%1 = icmp slt <16 x i32> %0, zeroinitializer", False),
        ("%1 = icmp slt i8 %0, 0", False),
        ("%1 = trunc <16 x i32> %0 to <16 x i8>", False),
    ],
)
def test_masks_of_bytes_are_seen_in_the_text(text, unsafe):
    assert ("-avx512bw" in building.unsound(text, AVX512)) == unsafe


@avx512
def test_signs_of_bytes_are_computed_without_their_masks(monkeypatch):
    built: list[Isa] = []
    whole = building._built
    monkeypatch.setattr(building, "_built", lambda func, isa, *rest: (built.append(isa), whole(func, isa, *rest))[1])

    @T.prim_func
    def negative(A: T.Tensor((1000,), "int8"), B: T.Tensor((1000,), "int8")):
        with T.Kernel(1):
            for i in T.Parallel(1000):
                B[i] = T.if_then_else(A[i] < 0, 3, A[i])

    a = np.random.default_rng().integers(-128, 128, 1000).astype("int8")
    b = np.full(1000, 77, "int8")
    with tile.disable_cache():
        tile.compile(negative, target="cpu")(a, b)
    np.testing.assert_array_equal(b, np.where(a < 0, 3, a).astype("int8"))
    assert any("-avx512bw" in isa.mattr for isa in built)
