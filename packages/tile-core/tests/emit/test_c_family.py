"""The emitter base through a plain C dialect: text is compiled and run."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import tile_core.language as T
from tile_core.cpu.grid import fuse_grid
from tile_core.cpu.scratch import lower_scratch
from tile_core.cpu.threads import run_threads
from tile_core.emit.c_family import CFamilyEmitter
from tile_core.errors.lowering import NotExpressible
from tile_core.passes.guard import guard
from tile_core.passes.lower_ops import lower_ops
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed

COMPILER = shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="the emitted C needs a C compiler to run")


class PlainC(CFamilyEmitter):
    prelude: ClassVar[str] = "#include <math.h>\n#include <stdbool.h>\n"

    def head(self, name: str, params: Any) -> str:
        return f"void {name}({', '.join(self.parameter(p) for p in params)})"


def emitted(program: Any) -> Any:
    """The plain meaning of a program as C."""
    plugins = installed()
    ctx = make_context("cpu", {"generic": True}, plugins=plugins)
    body, _ = lower_ops(program.func.body, ctx, plugins.lowerings(ctx.target))
    body = lower_scratch(fuse_grid(guard(run_threads(body)), parallel=False))
    return PlainC().function("kernel", list(program.func.params), body)


def run(text: str, folder: Path, *arrays: np.ndarray) -> None:
    source, library = folder / "kernel.c", folder / "kernel.so"
    source.write_text(text)
    assert COMPILER is not None
    subprocess.run([COMPILER, "-O1", "-shared", "-fPIC", "-w", str(source), "-o", str(library), "-lm"], check=True)
    ctypes.CDLL(str(library)).kernel(*[ctypes.c_void_p(a.ctypes.data) for a in arrays])


@needs_compiler
def test_a_guarded_matrix_product(tmp_path: Path) -> None:
    M, N, K = 13, 9, 17

    @T.prim_func
    def matmul(A: T.Tensor((M, K), "float32"), B: T.Tensor((K, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 8), T.ceildiv(M, 8), threads=32) as (bx, by):
            A_s = T.alloc_shared((8, 8), "float32")
            B_s = T.alloc_shared((8, 8), "float32")
            C_f = T.alloc_fragment((8, 8), "float32")
            T.clear(C_f)
            for k in T.Pipelined(T.ceildiv(K, 8), num_stages=2):
                T.copy(A[by * 8, k * 8], A_s)
                T.copy(B[k * 8, bx * 8], B_s)
                T.gemm(A_s, B_s, C_f)
            T.copy(C_f, C[by * 8, bx * 8])

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, s).astype(np.float32) for s in ((M, K), (K, N)))
    c = np.full((M, N), np.nan, np.float32)
    run(emitted(matmul).text, tmp_path, a, b, c)
    assert np.array_equal(c, a @ b)


@needs_compiler
def test_control_flow_and_integer_division(tmp_path: Path) -> None:
    n = 40

    @T.prim_func
    def numbers(A: T.Tensor((n,), "int32"), B: T.Tensor((6, n), "int32"), F: T.Tensor((n,), "float64")):
        with T.Kernel(1, threads=1):
            for i in T.serial(n):
                x = A[i]
                B[0, i] = x // 7
                B[1, i] = x % 7
                B[2, i] = T.max(x, 3) - T.min(x, -3)
                B[3, i] = T.if_then_else(x > 0, A[T.max(x, 0) % n] + 1, -1)
                left = T.alloc_var("int32", init=0)
                left = x
                count = T.alloc_var("int32", init=0)
                while left > 1:
                    left = T.if_then_else(left % 2 == 0, left // 2, 3 * left + 1)
                    count += 1
                B[4, i] = count
                B[5, i] = (x << 3) ^ (x >> 1) & 255
                F[i] = T.cast(x, "float64") * 0.5 + T.infinity("float64")

    a = np.random.default_rng(1).integers(-50, 51, n).astype(np.int32)
    b, f = np.full((6, n), 77, np.int32), np.zeros(n)
    run(emitted(numbers).text, tmp_path, a, b, f)

    def steps(x: int) -> int:
        count = 0
        while x > 1:
            x, count = (x // 2 if x % 2 == 0 else 3 * x + 1), count + 1
        return count

    want = [
        a // 7, a % 7, np.maximum(a, 3) - np.minimum(a, -3),
        np.where(a > 0, a[np.maximum(a, 0) % n] + 1, -1), [steps(int(x)) for x in a], (a << 3) ^ (a >> 1) & 255,
    ]  # fmt: skip
    assert np.array_equal(b, np.array(want))
    assert np.isinf(f).all()


def test_every_line_of_a_statement_names_its_location() -> None:
    @T.prim_func
    def copy(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=1):
            T.copy(A, B)  # the copy

    result = emitted(copy)
    lines = result.text.splitlines()
    number = next(i for i, line in enumerate(lines, 1) if "B[" in line and "=" in line)
    where = result.line_of(number)
    assert where is not None
    assert where.source.endswith("# the copy")
    assert result.line_of(0) is None
    assert len(result.origins) == len(lines)


def test_names_are_identifiers_and_no_reserved_words() -> None:
    @T.prim_func
    def words(register: T.Tensor((4,), "float32"), restrict: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=1):
            for double in T.serial(4):
                restrict[double] = register[double]

    text = emitted(words).text
    assert "restrict_1[double_1] = register_1[double_1];" in text


def test_a_type_without_text_is_refused_at_the_users_line() -> None:
    @T.prim_func
    def half(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=1):
            for i in T.serial(4):
                B[i] = T.cast(T.cast(A[i], "float16"), "float32")  # here

    with pytest.raises(NotExpressible) as refused:
        emitted(half)
    assert refused.value.code == "U107"
    assert "cannot express the type float16" in str(refused.value)
    assert refused.value.where is not None
    assert refused.value.where.source.endswith("# here")
