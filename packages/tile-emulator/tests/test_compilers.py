"""The choice of a compiler, and the error without one."""

import importlib.util
import shutil
import stat

import numpy as np
import pytest

from tile_emulator import compilers
from tile_emulator.errors import CompilerRefused, EngineFailed, HostUnsupported, NoCompiler

from .dialects.mini import floats, run


def program(path, macros, status=0):
    """A program that answers as a compiler would."""
    lines = "".join(f"echo '#define {name} {value}'\n" for name, value in macros.items())
    path.write_text(f"#!/bin/sh\n{lines}exit {status}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


GCC = {"__GNUC__": 13, "__GNUC_MINOR__": 2, "__GNUC_PATCHLEVEL__": 1}
CLANG = {**GCC, "__clang_major__": 19, "__clang_minor__": 1, "__clang_patchlevel__": 7}


class TestFind:
    def test_cxx_counts_first(self, tmp_path, monkeypatch):
        monkeypatch.setenv("CXX", f"{program(tmp_path / 'mine', CLANG)} -m64")
        found = compilers.find_compiler()
        assert found.command == (str(tmp_path / "mine"), "-m64")
        assert (found.family, found.version) == ("clang", "19.1.7")
        assert found.link_command == (*found.command, "-shared")

    def test_path_is_searched_for_one_that_is_new_enough(self, tmp_path, monkeypatch):
        program(tmp_path / "c++", {**GCC, "__GNUC__": 11})
        program(tmp_path / "g++", GCC)
        monkeypatch.delenv("CXX", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        found = compilers.find_compiler()
        assert found.command == (str(tmp_path / "g++"),)
        assert (found.family, found.version) == ("gcc", "13.2.1")

    def test_zig_links_as_c(self, tmp_path, monkeypatch):
        monkeypatch.setenv("CXX", f"{program(tmp_path / 'zig', CLANG)} c++")
        assert compilers.find_compiler().link_command == (str(tmp_path / "zig"), "cc", "-shared", "-nostdlib")

    def test_none_says_how_to_install_one(self, tmp_path, monkeypatch):
        program(tmp_path / "c++", {**GCC, "__GNUC__": 11})
        monkeypatch.delenv("CXX", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: None)
        with pytest.raises(NoCompiler) as caught:
            compilers._find.__wrapped__("", str(tmp_path))
        text = str(caught.value)
        assert text.startswith(
            "[S401] the emulator needs a C++ compiler (g++ 12 or clang 15, or newer): c++: gcc 11 is too"
        )
        assert "pip install ziglang" in text

    @pytest.mark.parametrize(
        ("macros", "status", "reason"),
        [
            ({**CLANG, "__clang_major__": 14}, 0, "clang 14 is too old, 15 is the oldest that works"),
            (GCC, 1, "it is not a supported C++ compiler"),
            ({}, 0, "it is not a supported C++ compiler"),
        ],
    )
    def test_a_wrong_cxx_is_refused(self, tmp_path, monkeypatch, macros, status, reason):
        monkeypatch.setenv("CXX", str(program(tmp_path / "mine", macros, status)))
        with pytest.raises(CompilerRefused) as caught:
            compilers.find_compiler()
        assert reason in str(caught.value)

    def test_a_missing_cxx_is_refused(self, monkeypatch):
        monkeypatch.setenv("CXX", "no-such-compiler")
        with pytest.raises(CompilerRefused, match="there is no such program"):
            compilers.find_compiler()

    @pytest.mark.parametrize(("system", "machine"), [("Windows", "AMD64"), ("Linux", "riscv64")])
    def test_another_system_is_refused(self, monkeypatch, system, machine):
        monkeypatch.setattr(compilers.platform, "system", lambda: system)
        monkeypatch.setattr(compilers.platform, "machine", lambda: machine)
        with pytest.raises(HostUnsupported, match=rf"\[S403\] .* found {system} on {machine}"):
            compilers.find_compiler()

    def test_a_compiler_that_does_not_compile_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setenv("CXX", str(program(tmp_path / "mine", GCC)))  # it writes nothing
        with pytest.raises(EngineFailed, match=r"\[S404\] the emulator's engine cannot be used with .*mine"):
            run("__global__ void k(float* out) { out[0] = 1; }", [floats(1)])


TEXT = """\
__global__ void k(const float* a, float* out) {
  __shared__ float s[32];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = s[31 - threadIdx.x] + __shfl_xor_sync(0xffffffffu, a[threadIdx.x], 1);
}
"""

INSTALLED = [name for name in ("g++", "clang++") if shutil.which(name)]
ZIG = importlib.util.find_spec("ziglang") is not None


def use(monkeypatch, name):
    monkeypatch.delenv("CXX", raising=False)
    if name == "ziglang":
        monkeypatch.setattr(compilers, "ON_PATH", ())
    else:
        monkeypatch.setenv("CXX", name)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "name", [*INSTALLED, pytest.param("ziglang", marks=pytest.mark.skipif(not ZIG, reason="no ziglang"))]
)
def test_each_installed_compiler_gives_the_same_answers(monkeypatch, name):
    use(monkeypatch, name)
    compilers._find.cache_clear()
    a = np.arange(32, dtype="float32")
    expected = a[::-1] + a[np.arange(32) ^ 1]
    for checks in ((), ("bounds", "race", "uninit", "align")):
        result = run(TEXT, [a, floats(32)], checks=checks)
        assert result.ok, str(result.reports[0])
        np.testing.assert_array_equal(result.outputs["out"], expected)
    bad = run(TEXT.replace("  __syncthreads();\n", "\n"), [a, floats(32)])
    assert {r.kind for r in bad.reports} == {"race", "uninitialised"}
    assert {r.line for r in bad.reports} <= {3, 5}
    out = run(TEXT.replace("out[threadIdx.x] =", "out[threadIdx.x + 1] ="), [a, floats(32)])
    assert [(r.kind, r.line, r.array, r.index) for r in out.reports] == [("bounds", 5, "out", (32,))]
    misaligned = run(
        "__global__ void k(float* out) {\n  *(float4*)(out + 1) = float4{};\n}", [floats(8)], block=(1, 1, 1)
    )
    assert [(r.kind, r.line) for r in misaligned.reports] == [("misaligned", 2)]
    compilers._find.cache_clear()
