"""The package as the core sees it: cheap, complete, and text only."""

import subprocess
import sys
from importlib.metadata import requires, version

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
import tile_rocm_stub
from tile_core.errors import UnsupportedError
from tile_core.plugins.manager import installed
from tile_rocm_stub.errors import TextOnly, UnknownArchitecture
from tile_rocm_stub.target import RECORDS


@T.prim_func
def double(X: T.Tensor((70,), "float16"), Y: T.Tensor((70,), "float16")):
    with T.Kernel(2, threads=64) as bx:
        for i in T.Parallel(64):
            Y[bx * 64 + i] = X[bx * 64 + i] * 2


def test_importing_loads_nothing():
    code = """
import sys, tile_rocm_stub.plugin as p
p.tile_backend(), p.tile_target("rocm:gfx950"), p.tile_runtimes(p.tile_target("rocm"))
print(*sorted(m for m in sys.modules if m.partition(".")[0] in ("tvm", "torch", "numpy")))
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == []


def test_the_core_finds_it():
    plugins = installed()
    assert plugins.manifest("rocm").architectures == ("rocm:gfx942", "rocm:gfx950")
    assert [a.name for a in plugins.runtimes(plugins.resolve_target("rocm"))] == ["rocm"]
    assert version("tile-rocm-stub") == tile_rocm_stub.__version__
    assert [r.partition("<")[0].partition(">")[0] for r in requires("tile-rocm-stub")] == ["tile-core"]


def test_targets_are_rows_of_a_table():
    found = {arch: installed().resolve_target(f"rocm:{arch}").capabilities for arch in RECORDS}
    assert {arch: c.shared_bytes // 1024 for arch, c in found.items()} == {"gfx942": 64, "gfx950": 160}
    assert {c.execution_width for c in found.values()} == {64}
    assert installed().resolve_target("rocm").text == "rocm:gfx942"


@pytest.mark.parametrize("text", ["rocm:gfx90a", "rocm:gfx1100", "rocm:mi300"])
def test_unknown_architectures_are_refused(text):
    with pytest.raises(UnknownArchitecture) as caught:
        installed().resolve_target(text)
    assert "rocm:gfx942, rocm:gfx950" in str(caught.value)


def test_a_launch_says_what_to_do():
    kernel = tile.compile(double, target="rocm:gfx950")
    x = np.ones(70, "float16")
    with pytest.raises(TextOnly) as caught:
        kernel(x, np.empty_like(x))
    for part in ("double", "text only", "hipcc --genco --offload-arch=gfx950", 'runtime="emulator"'):
        assert part in str(caught.value)


def test_the_emulator_runs_it():
    kernel = tile.compile(double, target="rocm", runtime="emulator", out_idx=-1)
    x = np.arange(70).astype("float16")
    assert np.array_equal(kernel(x), x * 2)


GEMM = ((64, 64), (64, 64), (64, 64))


@pytest.mark.sweep(1)
@pytest.mark.parametrize(
    ("arch", "types", "instruction"),
    [
        ("gfx942", ("float8_e4m3fnuz", "float8_e5m2fnuz"), "mfma_f32_16x16x32_fp8_bf8"),
        ("gfx942", ("float8_e4m3fn", "float8_e4m3fn"), "mfma_f32_16x16x16_f16"),
        ("gfx950", ("float8_e4m3fn", "float8_e5m2"), "mfma_f32_16x16x32_fp8_bf8"),
        ("gfx950", ("float8_e4m3fnuz", "float8_e4m3fnuz"), "mfma_f32_16x16x16_f16"),
        ("gfx942", ("tfloat32", "tfloat32"), "mfma_f32_16x16x8_xf32"),
        ("gfx950", ("tfloat32", "tfloat32"), "mfma_f32_16x16x4_f32"),
        ("gfx942", ("float32", "tfloat32"), "mfma_f32_16x16x4_f32"),
        ("gfx942", ("float16", "bfloat16"), "mfma_f32_16x16x8_xf32"),
        ("gfx942", ("bfloat16", "float8_e5m2"), "mfma_f32_16x16x16_bf16"),
    ],
)
def test_types_decide_the_instruction(arch, types, instruction):
    @T.prim_func
    def product(A: T.Tensor((16, 32), types[0]), B: T.Tensor((32, 16), types[1]), C: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, threads=64):
            a, b = T.alloc_shared((16, 32), types[0]), T.alloc_shared((32, 16), types[1])
            c = T.alloc_fragment((16, 16), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, clear_accum=True)
            T.copy(c, C)

    assert f"v_{instruction}" in tile.explain(product, f"rocm:{arch}")


def test_narrow_products_that_no_instruction_computes_take_loops():
    @T.prim_func
    def product(A: T.Tensor((16, 32), "uint8"), B: T.Tensor((32, 16), "uint8"), C: T.Tensor((16, 16), "int32")):
        with T.Kernel(1, threads=64):
            a, b = T.alloc_shared((16, 32), "uint8"), T.alloc_shared((32, 16), "uint8")
            c = T.alloc_fragment((16, 16), "int32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, clear_accum=True)
            T.copy(c, C)

    found = tile.explain(product, "rocm")
    assert "rocm.mfma" in found
    assert "v_mfma" not in found


def test_barriers_of_half_a_wavefront_are_the_targets_limit() -> None:
    """Legal with warps of 32, so it is not a mistake of the program."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.fill(A, 1)
            with T.ws(0, size=32):
                T.sync_threads(2, 32)

    with pytest.raises(UnsupportedError, match=r"T\.sync_threads\(2, 32\): rocm:gfx950 has groups of 64 threads"):
        tile.compile(main, "rocm:gfx950", runtime="emulator")
