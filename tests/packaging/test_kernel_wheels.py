"""A wheel of kernels in an environment with nothing but NumPy and tile-runtime: results, refusals, size and time."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path
from typing import Any

import pytest
from distribution import Environment, build, folders
from repository import ROOT

from tile_core import language as T
from tile_core.cli.source import find
from tile_core.wheels import KernelWheel, PackagedBuild

pytestmark = [pytest.mark.registry, pytest.mark.xdist_group("kernel wheels")]

#: Prints results of calls, and what they took, as JSON.
PROBE = """
import json, sys, time
begin = time.process_time()
import numpy as np
numpy_done = time.process_time()
import test_kernels
imported = time.process_time()
from tile_runtime import TileError

def seconds(call):
    best = 1.0
    for _ in range(40):  # the machine may do other things
        begin = time.perf_counter()
        for _ in range(10):
            call()
        best = min(best, (time.perf_counter() - begin) / 10)
    return best

rng, calls = np.random.default_rng(), {}
for M, N, K in ((256, 192, 128), (127, 129, 67), (1, 64, 64), (77, 64, 64)):
    a, b = rng.standard_normal((M, K), "float32"), rng.standard_normal((K, N), "float32")
    first = time.perf_counter()
    c = test_kernels.matmul(a, b)
    first = time.perf_counter() - first
    np.testing.assert_allclose(c, a.astype("float64") @ b, rtol=1e-5, atol=1e-4)
    calls[f"{M}x{N}x{K}"] = (first, seconds(lambda: test_kernels.matmul(a, b)))
x = np.zeros(8, "float32")
calls["scale of 8"] = (0, seconds(lambda: test_kernels.scale(x, 2.0)))
refused = {}
for name, args in {"shape": (a[:, :32], b), "type": (a.astype("float64"), b), "number": (a,)}.items():
    try:
        test_kernels.matmul(*args)
    except TileError as error:
        refused[name] = str(error)
modules = sorted({m.partition(".")[0] for m in sys.modules})
print(json.dumps({"numpy": numpy_done - begin, "import": imported - numpy_done, "calls": calls, "refused": refused,
                  "modules": modules}))
"""

SCALE = """
import tile_core.language as T

def scale(M):
    @T.prim_func
    def main(A: T.Tensor((M,), "float32"), s: T.float32, B: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 64), threads=32) as bx:
            for i in T.Parallel(64):
                B[bx * 64 + i] = A[bx * 64 + i] * s
    return main
"""


#: Prints what wheels of kernels for a missing device do, as JSON.
REFUSALS = """
import importlib.metadata, json, os, sys
from pathlib import Path
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # hides the devices of this machine
import numpy as np
import tile_runtime
import device_kernels

def refusal(call):
    try:
        call()
    except tile_runtime.TileError as error:
        return str(error)

a, b = np.zeros((256, 128), "float32"), np.zeros((128, 256), "float32")
(file,) = (Path(device_kernels.__file__).parent / "kernels").glob("*.tile")
print(json.dumps({"call": refusal(lambda: device_kernels.matmul(a, b)),
                  "load": refusal(lambda: tile_runtime.load(file)),
                  "modules": sorted({m.partition(".")[0] for m in sys.modules}),
                  "requires": importlib.metadata.requires("device-kernels")}))
"""

#: Sizes of the product; a name stands for any size.
SIZES: tuple[tuple[int | str, int, int], ...] = ((256, 192, 128), (127, 129, 67), ("m", 64, 64))
TARGETS = ("cpu:x86-64-v4", "cpu:x86-64-v3", "cpu:x86-64-v2")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Environment, Path]:
    """An environment with a wheel of kernels, and that wheel."""
    folder = tmp_path_factory.mktemp("wheels")
    (folder / "scale.py").write_text(SCALE, encoding="utf-8")
    builds = [
        PackagedBuild("matmul", _program(ROOT / "examples" / "gemm.py", M=M, N=N, K=K), target, -1)
        for M, N, K in SIZES
        for target in TARGETS
    ]
    builds += [PackagedBuild("scale", _program(folder / "scale.py", M="m"), target, -1) for target in TARGETS]
    wheel = KernelWheel("test-kernels", "0.1", builds).write(folder)
    runtime = build(folders()["tile-runtime"], folder)
    environment = Environment(folder / "env")
    environment.install(wheel, runtime.wheel, links=folder)
    return environment, wheel


def _program(file: Path, **sizes: int | str) -> Any:
    return find(str(file), {n: T.dynamic(s) if isinstance(s, str) else s for n, s in sizes.items()}).program


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the targets are of x86-64")
def test_without_tvm_and_a_compiler(installed: tuple[Environment, Path]) -> None:
    environment, wheel = installed
    weights = environment.weights()
    assert weights.keys() == {"numpy", "test-kernels", "tile-runtime"}
    probes = [environment.run("-c", PROBE) for _ in range(3)]
    assert [done.returncode for done in probes] == [0, 0, 0], [done.stderr for done in probes]
    found = min((json.loads(done.stdout) for done in probes), key=lambda one: one["import"])
    assert not {"tvm", "tvm_ffi", "tile_core", "ml_dtypes", "torch"} & set(found["modules"])
    expected = "[U602] matmul: the package test_kernels was not built for arrays of (77, 32), (64, 64)"
    assert found["refused"]["shape"].startswith(expected)
    assert "the nearest are: (m, 64), (64, 64); " in found["refused"]["shape"]
    assert found["refused"]["type"].startswith("[K411] matmul: argument 'A' must be float32, found float64")
    assert found["refused"]["number"].startswith("[K401] matmul: missing argument 'B'")
    print(f"\n{wheel.name}: {wheel.stat().st_size / 1000:.0f} kB")
    print(f"installed: {', '.join(f'{name} {size / 1000:.0f} kB' for name, size in weights.items())}")
    print(f"import, processor time: numpy {found['numpy']:.3f} s, then the package {found['import']:.3f} s")
    for name, (first, call) in found["calls"].items():
        print(f"{name}: first call {first * 1e3:.1f} ms, then {call * 1e6:.1f} us")


def test_a_wheel_for_a_device_needs_no_compiler(tmp_path: Path) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="the compiler that builds the kernel is not installed")
    program = _program(ROOT / "examples" / "gemm.py", M=256, N=256, K=128)
    wheel = KernelWheel("device-kernels", "0.1", [PackagedBuild("matmul", program, "cuda:sm_90a", -1)]).write(tmp_path)
    for name in ("tile-runtime", "tile-cuda-runtime"):
        build(folders()[name], tmp_path)
    environment = Environment(tmp_path / "env")
    environment.install(wheel, links=tmp_path)
    installed = environment.weights().keys()
    assert installed >= {"numpy", "device-kernels", "tile-runtime", "tile-cuda-runtime", "cuda-bindings"}
    assert not installed & {"apache-tvm", "apache-tvm-ffi", "tile-core", "tile-cuda", "nvidia-cuda-nvrtc"}
    done = environment.run("-c", REFUSALS)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    bounds = ">=0.1.0,<0.2"
    assert set(found["requires"]) == {f"tile-cuda-runtime[launch]{bounds}", f"tile-runtime{bounds}"}
    refusal = r"\[U601\] \S+ holds a kernel for cuda:sm_90a, which this machine cannot run: {}"
    assert re.match(refusal.format("cuda:sm_90a: the arrays are on another device"), found["call"])
    assert re.match(refusal.format("(the driver|cuInit)"), found["load"])
    assert not {"tvm", "tvm_ffi", "tile_core", "torch"} & set(found["modules"])
