"""Run the examples of errors: each wrong one raises its code, each right one compiles and runs."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Any

from tile_core.cli.app import run as run_tile
from tile_core.errors import InternalError, TileError

_HEAD = "import numpy as np\n\nimport tile_core as tile\nimport tile_core.language as T\n\n\n"
_KERNEL = """\
@T.prim_func
def kernel(
    A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32"), I: T.Tensor((32,), "int32"), n: T.int32
):
    with T.Kernel(1, threads=32) as bx:
        S = T.alloc_shared((32, 32), "float32")
        F = T.alloc_fragment((32, 32), "float32")
{lines}
"""
_CALL = """\
m = T.dynamic("m")


@T.prim_func
def scaled(
    A: T.Tensor((m, 8), "float32"), B: T.Tensor((m, 8), "float32"), C: T.Tensor((m, 8), "float32"), s: T.float32
):
    with T.Kernel(m, threads=32) as i:
        for j in T.Parallel(8):
            C[i, j] = A[i, j] * s + B[i, j]


add = tile.compile(scaled, "cpu")
a, b, c = (np.ones((4, 8), "float32") for _ in range(3))
{lines}
"""
_GEMM = """\
import tile_core.language as T


def matmul(M, block=32):
    @T.prim_func
    def gemm(A: T.Tensor((M, M), "float32"), B: T.Tensor((M, M), "float32"), C: T.Tensor((M, M), "float32")):
        with T.Kernel(T.ceildiv(M, block), T.ceildiv(M, block), threads=128) as (bx, by):
            a, b = T.alloc_shared((block, block), "float32"), T.alloc_shared((block, block), "float32")
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(M, block), num_stages=2):
                T.copy(A[by * block, k * block], a)
                T.copy(B[k * block, bx * block], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * block])

    return gemm
"""
_TWO = """\
import tile_core.language as T


@T.prim_func
def first(A: T.Tensor((32,), "float32")):
    with T.Kernel(1, threads=32):
        T.clear(A)


@T.prim_func
def second(A: T.Tensor((T.dynamic("m"),), "float32")):
    with T.Kernel(T.dynamic("m"), threads=32) as i:
        A[i] = 1.0
"""
_POINTER = """\
import tile_core.language as T


@T.prim_func
def kernel(p: T.ptr, B: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=32):
        T.copy(T.make_tensor(p, (4,), "float32"), B)
"""
#: Files beside which command lines run.
_FILES = {
    "gemm.py": _GEMM,
    "two.py": _TWO,
    "pointer.py": _POINTER,
    "empty.py": "",
    "wrong.py": "def f(:\n",
    "raises.py": "raise ValueError\n",
}


#: Targets of devices, as examples name them.
_DEVICES = {"DEVICE": "cuda:sm_80", "NARROW_DEVICE": "metal"}


def outcome(frame: str, target: str, lines: str, folder: Path) -> str:
    """Run one side of an example and return the code of its error; empty if there was none.

    Parameters
    ----------
    frame, target, lines
        As of ``tile_core.errors.catalogue.Example``.
    folder
        An empty folder, for files.
    """
    if frame == "shell":
        return _shell(lines, folder)
    path = folder / "example.py"
    path.write_text(text_of(frame, lines), encoding="utf-8")
    names: dict[str, Any] = {"__name__": "example", **_DEVICES}
    try:
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
        if frame == "kernel":
            _compile(names["kernel"], _DEVICES.get(target, target))
    except InternalError:
        raise
    except TileError as error:
        return error.code
    return ""


def text_of(frame: str, lines: str) -> str:
    """Return the module around the lines of an example."""
    if frame == "kernel":
        return _HEAD + _KERNEL.format(lines="\n".join(f"        {line}" for line in lines.splitlines()))
    return _HEAD + (_CALL.format(lines=lines) if frame == "call" else f"{lines}\n")


def _compile(program: Any, target: str) -> None:
    """Compile a program for a target, without its device and toolchain."""
    from tile_core.compiler import lower, source_text
    from tile_core.plugins.contexts import make_context
    from tile_core.plugins.manager import installed

    ctx = make_context(target or "cpu", None, plugins=installed())
    for stage in program.stages:
        source_text(lower(stage, ctx, installed()))


def _shell(lines: str, folder: Path) -> str:
    """Run command lines beside files."""
    import shlex

    for name, text in _FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    path, before, output = [*sys.path], os.getcwd(), io.StringIO()
    try:
        os.chdir(folder)
        with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
            statuses = [run_tile(shlex.split(line)[1:]) for line in lines.splitlines()]
    finally:
        sys.path[:] = path
        os.chdir(before)
    text = output.getvalue()
    if not any(statuses):
        return ""
    return text.partition("error[")[2].partition("]")[0] or f"status {statuses}: {text}"
