"""Code objects by clang, and the error without it."""

import os
import re

import pytest
from ci_matrix import Choice, matrix

import tile_core as tile
import tile_core.language as T
from tile_core.abi.kernel_text import KernelText
from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_rocm_stub import build
from tile_rocm_stub.errors import NoCompiler

from .clang import compiler


@T.prim_func
def double(X: T.Tensor((70,), "float32"), Y: T.Tensor((70,), "float32")):
    with T.Kernel(2, threads=64) as bx:
        for i in T.Parallel(64):
            Y[bx * 64 + i] = X[bx * 64 + i] * 2


def text() -> KernelText:
    return lower(double, make_context("rocm"), installed()).lowered


def test_a_code_object_and_its_facts():
    compiler()
    made = build.code_object(text(), "gfx942")
    assert made.data[:4] == b"\x7fELF"
    assert b"amdgcn-amd-amdhsa--gfx942" in made.data
    assert made.facts["spill_bytes"] == 0
    assert 0 < made.facts["registers"] < 32


def test_comparisons_with_one_result_are_compiled():
    """Clang warns of them; any other warning is a defect of ours."""

    @T.prim_func
    def compared(X: T.Tensor((70,), "int32"), Y: T.Tensor((70,), "int32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(70):
                x = X[i] > 3
                Y[i] = (
                    T.Select(x < True, X[i], 1)
                    + T.Select(x != x, 2, 3)
                    + T.Select(x > True, 4, T.cast(i == i, "int32"))
                )

    compiler()
    found = lower(compared, make_context("rocm"), installed()).lowered
    assert build.code_object(found, "gfx942").data[:4] == b"\x7fELF"


def test_a_loop_that_is_too_large_to_be_unrolled_is_compiled():
    """Each of a thread's 8 elements takes 64 products of 8-bit floats, decoded by integers."""

    @T.prim_func
    def scaled(
        A: T.Tensor((64, 64), "float8_e4m3fn"), P: T.Tensor((64, 2), "float8_e8m0fnu"), C: T.Tensor((64, 64), "float32")
    ):
        with T.Kernel(1, threads=128):
            x, s = T.alloc_shared((64, 64), "float8_e4m3fn"), T.alloc_shared((64, 2), "float8_e8m0fnu")
            F = T.alloc_fragment((64, 64), "float32")
            T.copy(A, x)
            T.copy(P, s)
            T.copy(C, F)
            T.gemm_scaled(x, s, x, s, F, transpose_B=True)
            T.copy(F, C)

    compiler()
    found = lower(scaled, make_context("rocm"), installed()).lowered
    assert build.code_object(found, "gfx942").data[:4] == b"\x7fELF"


def test_the_adapter_builds_for_what_keeps_kernels():
    compiler()
    (adapter,) = installed().runtimes(installed().resolve_target("rocm"))
    made = adapter.build(text())
    assert (made.runtime, made.kind, made.arch) == ("rocm", "hsaco", "gfx942")
    assert "clang version" in adapter.toolchain()
    assert adapter.build("no text") is None


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv(build.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompiler, match="there is no clang on PATH"):
        build.toolchain("gfx942")
    monkeypatch.setenv(build.VARIABLE, "clang-of-mine")
    with pytest.raises(NoCompiler, match="there is no clang-of-mine"):
        build.toolchain("gfx942")
    assert "double" in tile.compile(double, target="rocm").source  # text needs no compiler


@pytest.mark.parametrize(("script", "reason"), [("exit 1", "does not compile for gfx942"), ("exit 0", "has no lld")])
def test_a_compiler_that_cannot(tmp_path, monkeypatch, script, reason):
    command = tmp_path / "clang"
    command.write_text(f"#!/bin/sh\necho bad option >&2\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setenv(build.VARIABLE, str(command))
    with pytest.raises(NoCompiler, match=re.escape(reason)):
        build.toolchain("gfx942")


def test_text_that_is_refused_is_a_defect():
    compiler()
    with pytest.raises(tile.errors.TileError, match="compiling HIP text"):
        build.assembly("int f() { return unknown; }", "gfx942")


def test_the_matrix_compiles_and_emulates():
    names = {row.runtime for row in matrix(installed(), Choice(targets=["rocm:gfx942"]))}
    assert names - {"build"} == {"text", "emulator"}
    if any(os.path.exists(f"{folder}/clang-19") for folder in os.environ["PATH"].split(":")):
        assert "build" in names
