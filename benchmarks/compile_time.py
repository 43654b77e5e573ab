"""How long importing, compiling and calling take, each in fresh processes where that matters.

    python benchmarks/compile_time.py [--processes 5] [--json FILE]

Demands: import of tile_core below 0.3 s; a cold compile of the matrix product at most 0.5 s, where the one-time import
of the compiler's own library is shown apart; a repeated call with NumPy arrays at most 3 microseconds above the work;
a cold compile of the matrix product with three stages for cuda:sm_90a at most 0.9 s, of which passes and text 0.35 s;
`tile compile examples/gemm.py --target metal` at most 2 s, start of Python and import of the library included.

What is compiled for cuda is timed by the processor's clock, in processes that have compiled a small kernel before.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sides import Row, at_most, example, run

import tile_core as tile
import tile_core.language as T

IMPORT = "import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
COMPILE = """
import sys, time
sys.path.insert(0, {folder!r})
import gemm
start = time.perf_counter()
import tile_core.compat.tvm
loaded = time.perf_counter()
import tile_core as tile
kernel = tile.compile(gemm.matmul(1024, 1024, 1024, block_M=128, block_N=128), target="cpu")
print(loaded - start, time.perf_counter() - loaded)
"""

CUDA = """
import sys, time
sys.path.insert(0, {folder!r})
import gemm
import tile_core as tile
from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda.build import build

def text(*shape, **blocks):
    plugins = installed()
    program = gemm.matmul(*shape, **blocks)
    start = time.process_time()
    plan = lower(program, make_context("cuda:sm_90a", None, plugins=plugins), plugins, None)
    return time.process_time() - start, plan.lowered

def whole(*shape, **blocks):
    start = time.process_time()
    tile.compile(gemm.matmul(*shape, **blocks), target="cuda:sm_90a")
    return time.process_time() - start

build(text(64, 64, 64, block_M=64, block_N=64, block_K=16)[1], "sm_90a")
passes, made = text(1024, 1024, 1024, **{blocks!r})
start = time.process_time()
build(made, "sm_90a")
nvrtc = time.process_time() - start
cold = whole(2048, 2048, 2048, **{blocks!r})
print(passes, nvrtc, cold, whole(2048, 2048, 2048, **{blocks!r}))
"""
#: Of the product that is compiled for cuda; the example has three stages.
BLOCKS = {"dtype": "float16", "block_M": 128, "block_N": 128, "block_K": 32}


def fresh(code: str, processes: int) -> list[list[float]]:
    """Run code in fresh processes; return the numbers that each printed, by position."""
    found = []
    for _ in range(processes):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        found.append([float(word) for word in done.stdout.split()])
    return [list(column) for column in zip(*found, strict=True)]


def tiny() -> Any:
    """Return a program that does next to nothing with three arrays."""

    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32"), C: T.Tensor((16,), "float32")) -> None:
        with T.Kernel(1, threads=16):
            for i in T.Parallel(16):
                C[i] = A[i] + B[i]

    return main


def call_times(calls: int = 2000, repeats: int = 50) -> list[float]:
    """Return the mean seconds of a call with three NumPy arrays, of each repeat."""
    kernel = tile.compile(tiny(), target="cpu")
    a, b, c = (np.ones(16, "float32") for _ in range(3))
    means = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(calls):
            kernel(a, b, c)
        means.append((time.perf_counter() - start) / calls)
    return means


def keeping_times(repeats: int = 30) -> tuple[list[float], list[float]]:
    """Return the seconds to make a matrix product's disk key, and to load a kernel.

    The kernel's file has 60 KB.
    """
    from tile_core.abi.adapter import Built
    from tile_core.abi.kernel_text import KernelText, LaunchFacts
    from tile_core.abi.signature import Signature
    from tile_core.runtime.cache_key import content_hash, program_parts
    from tile_runtime.files.artefact import Artefact, from_bytes, to_bytes

    program = example("gemm").matmul(1024, 1024, 1024, block_M=128, block_N=128)
    binary = Built("any", "binary", np.random.default_rng(0).bytes(60_000))
    text = KernelText("x = x + 1;\n" * 2000, LaunchFacts("main", (), (1, 1, 1), (1, 1, 1)), None, binary)
    content = to_bytes(Artefact(Signature("main", ()), "any", "any", text))
    keys, reads = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        content_hash(program_parts(program), program.where)
        middle = time.perf_counter()
        from_bytes(content, "benchmark")
        keys.append(middle - start)
        reads.append(time.perf_counter() - middle)
    return keys, reads


def cuda_rows(folder: str, processes: int) -> list[Row]:
    """Return the compile times for a device, with an empty disk cache; empty without NVRTC."""
    try:
        from tile_cuda.build import toolchain
    except ImportError:
        return []
    if not toolchain():
        return []
    code = CUDA.format(folder=folder, blocks=BLOCKS)
    columns = [fresh_with_cache(code) for _ in range(processes)]
    passes, nvrtc, cold, hit = (list(column) for column in zip(*columns, strict=True))
    return [
        _row("cuda GEMM: passes and text", "ms", passes, 1e3, 350),
        _row("cuda GEMM: NVRTC", "ms", nvrtc, 1e3, None),
        _row("cuda GEMM: cold compile", "ms", cold, 1e3, 900),
        _row("cuda GEMM: compile, found on disk", "ms", hit, 1e3, None),
    ]


def printed_msl(folder: str, processes: int) -> list[Row]:
    """Return the time of a whole process that prints MSL."""
    try:
        import tile_metal
    except ImportError:
        return []
    del tile_metal
    code = "from tile_core.cli import main; main()"
    command = [sys.executable, "-c", code, "compile", f"{folder}/gemm.py", "--target", "metal"]
    found = []
    for _ in range(processes):
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        found.append(time.perf_counter() - start)
    return [_row("tile compile gemm.py --target metal", "ms", found, 1e3, 2000)]


def fresh_with_cache(code: str) -> list[float]:
    """Run code once in a fresh process with an empty cache; return its printed numbers."""
    with tempfile.TemporaryDirectory() as folder:
        here = {**os.environ, "TILE_CACHE_DIR": folder}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=here)
    return [float(word) for word in done.stdout.split()]


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Return one row per time."""
    folder = str(Path(example("gemm").__file__).parent)
    library, compiling = fresh(COMPILE.format(folder=folder), arguments.processes)
    both = [x + y for x, y in zip(library, compiling, strict=True)]
    (importing,) = fresh(IMPORT.format(module="tile_core"), arguments.processes)
    (language,) = fresh(IMPORT.format(module="tile_core.language"), arguments.processes)
    keys, reads = keeping_times()
    return [
        _row("import tile_core", "ms", importing, 1e3, 300),
        _row("import tile_core.language", "ms", language, 1e3, 300),
        _row("import of TVM, once per process", "ms", library, 1e3, None),
        _row("cold compile of the GEMM, TVM imported", "ms", compiling, 1e3, 500),
        _row("cold compile of the GEMM with that import", "ms", both, 1e3, None),
        _row("key of the GEMM in the cache on disk", "ms", keys, 1e3, None),
        _row("read a kernel of 60 KB from disk", "ms", reads, 1e3, None),
        _row("call with 3 NumPy arrays of 16 floats", "us", call_times(), 1e6, 3),
        *cuda_rows(folder, arguments.processes),
        *printed_msl(folder, arguments.processes),
    ]


def _row(name: str, unit: str, seconds: list[float], scale: float, most: float | None) -> Row:
    least = min(seconds) * scale
    demand = None if most is None else at_most(least, most)
    return {"what": name, "unit": unit, "min": least, "median": statistics.median(seconds) * scale, "demand": demand}


def options(parser: Any) -> None:
    """Add this benchmark's options."""
    parser.add_argument("--processes", type=int, default=5)


if __name__ == "__main__":
    run("import, compile and call", measure, options)
