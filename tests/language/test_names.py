"""User names that collide with a target's language, library, text or emulator."""

from __future__ import annotations

import builtins
import keyword
import linecache
import re
from typing import Any

import numpy as np
import pytest
from repository import ROOT

import tile_core as tile
from tile_core.emit.c_family import CPP_WORDS
from tile_core.emit.kernel_printer import KernelPrinter
from tile_cuda.emit.functions import LINKED
from tile_cuda.emit.printer import CudaPrinter
from tile_metal.emit.printer import MslPrinter
from tile_rocm_stub.emit.printer import HipPrinter

TARGETS = ("cpu", "cuda:sm_80", "metal", "rocm:gfx942")
ROLES = ("scalar", "tensor", "variable", "fragment", "loop")

#: Functions, macros and variables of C, CUDA, HIP, Metal and OpenCL that programs of people are likely to use as names.
COMMON = """
    abort abs acos aligned alloc args assert atan atexit atomicAdd atomic_add atomic_fetch_add_explicit barrier bfloat
    block blockDim blockIdx bool4 buffer calloc ceil char4 clamp clock cos cosh count data device dim3 dot double2 entry
    erf errno exit exp exp2 expf extent fabs float2 float4 floor fma fmax fmin fmod fract free fread function global
    grid half half2 hipThreadIdx_x id image in index init input int2 int4 j0 j1 jn kernel labs lane length local log
    log2 main malloc max memcpy memory memset min mix mod naked noinline norm normalize offset out output packed pipe
    pow printf private puts ptr quad rand read reduce restrict result round rsqrt rsqrtf sampler scalar section select
    self shared shfl shuffle sign signal simd simd_sum simdgroup simt sin size sleep smem sqrt state stdin step stride
    sum swap sync tan texture thread threadIdx threadgroup tid time tmp trunc type uint uint4 unused used value vec
    vector visibility vote warp warpSize weak wait write y0 y1 yn position stage_in user threads_per_grid
""".split()


def _headers() -> set[str]:
    texts = [path.read_text(encoding="utf-8") for path in ROOT.glob("packages/*/src/**/*.h")]
    return {word for text in texts for word in re.findall(r"\b[A-Za-z_]\w*\b", text)}


def _names() -> list[str]:
    reserved = KernelPrinter.reserved | CudaPrinter.reserved | MslPrinter.reserved | HipPrinter.reserved
    known = {*reserved, *CPP_WORDS, *LINKED, *COMMON, *_headers(), *dir(builtins)}
    # Other names of the programs below.
    return sorted(
        n
        for n in known - {"A", "B", "T", "bx", "i", "f", "r", "s"}
        if n.isidentifier() and not keyword.iskeyword(n) and "__" not in n
    )


NAMES = _names()
BATCH = 24

HEAD = """
import tile_core.language as T

@T.prim_func
def {kernel}(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"){given}):
    with T.Kernel(1, threads=64) as bx:
        f, r = T.alloc_fragment((64,), "float32"), T.alloc_fragment((1,), "float32")
        s = T.alloc_shared((64,), "float16")
        for i in T.Parallel(64):
            f[i] = T.max(T.erf(A[i]), T.exp(A[i])) + T.floor(T.min(A[i], 3.5)) + T.atan2(A[i], 2.0)
            s[i] = T.cast(f[i], "float16")
        T.reduce_max(f, r)
        for i in T.Parallel(64):
            B[i] = s[63 - i] + r[0]
        T.atomic_add(B[0], 1.0)
"""
LINES = {
    "scalar": ("", "            B[i] = B[i] + T.float32({name})"),
    "tensor": ("", "            B[i] = B[i] + {name}[i]"),
    "variable": ("        {name} = T.alloc_var('float32', init={n})", "            B[i] = B[i] + {name}"),
    "fragment": (
        "        {name} = T.alloc_fragment((64,), 'float32')\n        T.fill({name}, {n})",
        "            B[i] = B[i] + {name}[i]",
    ),
    "loop": ("        for {name} in T.serial({n}):\n            T.atomic_add(B[1], T.float32({name}))", ""),
}


def program(names: list[str], role: str, kernel: str = "main") -> Any:
    """Return a program that uses names in one role."""
    before, use = LINES[role]
    kind = {"scalar": "T.int32", "tensor": 'T.Tensor((64,), "float32")'}.get(role)
    given = "".join(f", {name}: {kind}" for name in names) if kind else ""
    text = HEAD.format(kernel=kernel, given=given)
    body = [before.format(name=name, n=n) for n, name in enumerate(names) if before]
    uses = [use.format(name=name) for name in names if use]
    text += "".join(f"{line}\n" for line in body)
    if uses:
        text += "        for i in T.Parallel(64):\n" + "".join(f"{line}\n" for line in uses)
    file = f"<names {kernel} {role} {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {}
    exec(compile(text, file, "exec"), space)
    return space[kernel]


def expected(names: list[str], role: str, a: Any) -> Any:
    """Return the result by another program's, which has plain names."""
    plain = [f"plain_name_{n}" for n in range(len(names))]
    return launched(program(plain, role), plain, role, "cpu", a)


def launched(made: Any, names: list[str], role: str, target: str, a: Any) -> Any:
    b = np.full(64, np.nan, "float32")
    values = {"scalar": range(len(names)), "tensor": [np.full(64, n, "float32") for n in range(len(names))]}
    more = {} if target == "cpu" else {"runtime": "emulator"}
    tile.compile(made, target, **more)(a, b, *values.get(role, ()))
    return b


@pytest.mark.sweep(80)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("begin", range(0, len(NAMES), BATCH))
def test_a_name_changes_nothing(begin: int, role: str, target: str) -> None:
    names = NAMES[begin : begin + BATCH]
    a = np.linspace(-2, 2, 64, dtype="float32")
    found = launched(program(names, role), names, role, target, a)
    np.testing.assert_allclose(found, expected(names, role, a), rtol=1e-3)


@pytest.mark.sweep(150)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_s_name_changes_nothing(name: str, target: str) -> None:
    a = np.linspace(-2, 2, 64, dtype="float32")
    found = launched(program([], "scalar", name), [], "scalar", target, a)
    np.testing.assert_allclose(found, expected([], "scalar", a), rtol=1e-3)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", TARGETS[1:])
@pytest.mark.parametrize("name", ["buffer", "aligned", "max", "exp", "kernel", "memset"])
def test_kernels_with_names_of_attributes_and_functions(name: str, target: str) -> None:
    test_a_kernel_s_name_changes_nothing(name, target)
