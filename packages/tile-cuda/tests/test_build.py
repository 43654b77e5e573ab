"""NVRTC: works without a driver, and reports refusals at the user's line."""

import builtins
import dataclasses
import importlib.metadata

import pytest

from tile_core.abi.kernel_text import KernelText
from tile_core.errors import Where
from tile_core.errors.launch import TextRefused
from tile_core.reports import report_json
from tile_cuda import build
from tile_cuda.options import CudaOptions
from tile_cuda_runtime.errors import NoNvrtc

from .test_slow_products import dense
from .texts import SCALE, facts, kernel, mapped, scale, scale4

ELF = b"\x7fELF"


def with_options(kernel_text, **options):
    attributes = CudaOptions(**options).attributes()
    return dataclasses.replace(kernel_text, facts=dataclasses.replace(kernel_text.facts, attributes=attributes))


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_a_text_becomes_machine_code(arch):
    made = build.build(scale4(), arch)
    assert made.data[:4] == ELF
    assert made.arch == arch
    assert 8 <= made.registers <= 64
    assert made.spill_bytes == made.stack_bytes == made.shared_bytes == 0
    none = dict.fromkeys(("spill_bytes", "stack_bytes", "shared_bytes", "serialized_products"), 0)
    assert made.facts() == {"registers": made.registers, **none}
    assert build.build(scale4(), arch) is made


def test_numbers_of_a_text_that_spills():
    lines = "\n".join(f"  float r{i} = x[{i}];" for i in range(64))
    total = " + ".join(f"r{i} * y[r{i} > 0]" for i in range(64))
    text = f"""extern "C" __global__ void scale(const volatile float* x, volatile float* y, float by, int n) {{
  __shared__ volatile float s[100];
{lines}
  s[threadIdx.x] = by; __syncthreads();
  y[n] = {total} + s[99 - threadIdx.x];
}}"""
    many = build.build(with_options(kernel(text)), "sm_80")
    few = build.build(with_options(kernel(text), max_registers=24), "sm_80")
    assert few.registers <= 24 < many.registers
    assert few.spill_bytes > 0
    assert few.stack_bytes > 0
    assert many.spill_bytes == 0
    assert few.shared_bytes == 400


@pytest.mark.sweep(0.25)
def test_registers_are_taken_before_they_spill():
    """Use all 128 registers of 512-thread blocks before spills: 32 spilled 2,788 bytes."""
    program, options = dense(256, 192, 32, 512, 2, size=512), {"wgmma": "never", "persistent": "never"}
    made = report_json(program, "cuda:sm_90a", options)["built"]
    assert made["registers"] == 128
    assert 0 < made["spill_bytes"] < 1000
    few = report_json(program, "cuda:sm_90a", {**options, "max_registers": 64})["built"]
    assert few["registers"] <= 64


class TestFlags:
    @pytest.mark.parametrize(("threads", "opt", "level"), [(1, 3, 1), (1, 0, 0), (2, 3, 3), (32, 2, 2)])
    def test_the_assembler_does_little_to_blocks_of_one_thread(self, threads, opt, level):
        text = with_options(scale4(), opt=opt)
        asked = build._options(dataclasses.replace(text.facts, block=(threads, 1, 1)))
        assert asked.opt == level

    def test_results_match_the_program(self):
        found = build.flags("sm_90a", CudaOptions())
        assert found[:2] == ("--gpu-architecture=sm_90a", "--std=c++17")
        assert "--fmad=true" in found
        assert "--use_fast_math" not in found

    @pytest.mark.parametrize(
        ("options", "flag"),
        [
            ({"numerics": "fast"}, "--use_fast_math"),
            ({"numerics": "strict"}, "--fmad=false"),
            ({"max_registers": 40}, "--maxrregcount=40"),
            ({"line_info": True}, "--generate-line-info"),
            ({"opt": 0}, "--ptxas-options=-O0"),
        ],
    )
    def test_options(self, options, flag):
        assert flag in build.flags("sm_80", CudaOptions(**options))
        assert flag not in build.flags("sm_80", CudaOptions())
        assert build.build(with_options(scale(), **options), "sm_80").data[:4] == ELF

    def test_multiply_adds_round_twice_if_strict(self):
        text = SCALE.replace("x[i] * by;", "x[i] * by + y[i];")
        levels = ("strict", "standard")
        plain, fused = (build.build(with_options(kernel(text), numerics=n), "sm_80").data for n in levels)
        assert plain != fused

    def test_headers_are_found_for_a_text_that_includes_them(self):
        folder = build.headers()
        assert (folder / "cuda_fp16.h").exists()
        assert build.build(kernel("#include <cuda_fp16.h>\n" + SCALE), "sm_80").data[:4] == ELF


class TestRefusals:
    def test_of_the_front_end_names_the_line_of_the_user(self):
        text = SCALE.replace("x[i] * by;", "x[i] * nothing;")
        with pytest.raises(TextRefused, match=r'\[U406\] scale: .* identifier "nothing" is undefined') as caught:
            build.build(mapped(text, None, 11, 12, None), "sm_80")
        assert caught.value.where == Where("user.py", 12)
        assert "rejected line 3 of the text, `if (i < n) y[i] = x[i] * nothing;`: " in str(caught.value)

    @pytest.mark.parametrize("inside", ["", "__device__ __forceinline__ "])
    def test_of_the_assembler_names_the_line_of_the_user(self, inside):
        code = 'asm volatile("bogus %0;" :: "r"(n) : "memory");'
        helper = f"{inside}void f(int n) {{ {code} }}\n" if inside else "\n"
        text = helper + SCALE.replace("  if", f"  {'f(n);' if inside else code}\n  if")
        with pytest.raises(TextRefused, match="Not a name of any known instruction: 'bogus'") as caught:
            build.build(mapped(text, None, 11, 12, 13, None), "sm_90a")
        assert caught.value.where == Where("user.py", 13)
        assert "rejected line 4 of the text" in str(caught.value)

    def test_without_a_line_names_the_kernel(self):
        text = SCALE.replace("  int i", "  __shared__ float s[99999]; s[n] = 0; y[0] = s[n + 1];\n  int i")
        with pytest.raises(TextRefused, match="uses too much shared data") as caught:
            build.build(mapped(text, 10, 11, 12, 13), "sm_80")
        assert caught.value.where == Where("user.py", 1)
        assert "the compiler for sm_80 rejected the text: " in str(caught.value)

    def test_is_raised_again(self):
        for _ in range(2):
            with pytest.raises(TextRefused):
                build.build(kernel("nonsense"), "sm_80")

    def test_an_architecture_that_the_compiler_does_not_know(self):
        with pytest.raises(NoNvrtc, match=r"\[S701\] text for cuda:sm_70 cannot") as caught:
            build.build(KernelText(SCALE, facts()), "sm_70")
        assert "supports sm_75, sm_80" in str(caught.value)
        assert "pip install --upgrade nvidia-cuda-nvrtc" in str(caught.value)


class TestMissing:
    def test_bindings(self, monkeypatch):
        real = builtins.__import__

        def hidden(name, *args, **kwargs):
            if name.startswith("cuda"):
                raise ImportError("No module named 'cuda'")
            return real(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", hidden)
        with pytest.raises(NoNvrtc, match="cuda-python cannot be imported") as caught:
            build.nvrtc("cuda:sm_80")
        assert 'pip install "cuda-python>=13,<14" "nvidia-cuda-nvrtc>=13,<14"' in str(caught.value)

    def test_library(self, monkeypatch):
        from cuda.bindings import nvrtc

        def fails():
            raise RuntimeError("no libnvrtc.so.13\nsearched everywhere")

        monkeypatch.setattr(nvrtc, "nvrtcVersion", fails)
        with pytest.raises(NoNvrtc, match="NVRTC is not found") as caught:
            build.nvrtc("cuda:sm_80")
        assert 'pip install "nvidia-cuda-nvrtc>=13,<14"' in str(caught.value)
        assert "searched" not in str(caught.value)

    def test_toolchain_without_the_wheel(self, monkeypatch):
        assert build.toolchain() == f"nvrtc {importlib.metadata.version('nvidia-cuda-nvrtc')}"

        def gone(name):
            raise importlib.metadata.PackageNotFoundError(name)

        monkeypatch.setattr(build, "_version_of", gone)
        assert build.toolchain() == f"nvrtc {build.version()}"

        def missing():
            raise NoNvrtc(target="cuda", reason="", advice="")

        monkeypatch.setattr(build, "version", missing)
        assert build.toolchain() == ""
