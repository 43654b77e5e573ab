# Kernels bind names that only the trace looks at, and call an output O.
# ruff: noqa: F841
"""``tile.jit``: factories, eager kernels, and the lazy names of the language."""

import subprocess
import sys

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.decorators import jit
from tile_core.errors.language import (
    BadArgument,
    BadParameter,
    BadReturn,
    OutsideKernel,
    PythonError,
    ShapeDisagrees,
    UndeterminedConst,
)

ELEMENT = "float32"


@jit
def matmul(A, B, block: int = 4, scale: T.float32 = 1.0):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[(M, K), "float32"]
    B: T.Tensor[(K, N), ELEMENT]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=32) as (bx, by):
        for i, j in T.Parallel(block, block):
            if by * block + i < M and bx * block + j < N:
                acc = T.alloc_var("float32")
                for k in range(K):
                    acc += A[by * block + i, k] * B[k, bx * block + j]
                C[by * block + i, bx * block + j] = acc * scale
    return C


def arrays(m, n, k):
    rng = np.random.default_rng(m * 100 + n * 10 + k)
    return rng.random((m, k), dtype="float32"), rng.random((k, n), dtype="float32")


def test_eager_program(execute):
    a, b = arrays(5, 7, 3)
    program = matmul.program(a, b)
    assert matmul.eager
    assert [(p.name, p.kind) for p in program.params] == [
        ("A", "tensor"), ("B", "tensor"), ("scale", "scalar"), ("C", "tensor"),
    ]  # fmt: skip
    assert program.outputs == (3,)
    assert program.params[3].shape == (5, 7)
    out = np.full((5, 7), np.nan, "float32")
    execute(program, a, b, np.float32(2), out)
    np.testing.assert_allclose(out, 2 * (a @ b), rtol=1e-5)


def test_eager_shapes_from_python_and_symbols():
    m = T.dynamic("m")

    @jit
    def k(A, B, flag=True):
        n, two = A.shape
        A: T.Tensor[(n, two), "int32"]
        B: T.Tensor[(m, n + 1), "int32"]
        C, D = T.empty((n,), "int32"), T.empty((m,), "int8")
        with T.Kernel(n) as bx:
            C[bx] = A[bx, 0]
        return D, C

    program = k.program(np.zeros((4, 2), "int32"), np.zeros((9, 5), "int32"))
    assert [p.name for p in program.params] == ["A", "B", "D", "C"]
    assert program.params[1].shape == ("m", 5)
    assert program.outputs == (2, 3)


def test_eager_refusals(refused):
    a, b = arrays(5, 7, 3)
    refused(ShapeDisagrees, "K130", "dimension 0 is 2, declared 3", lambda: matmul.program(a, b[:2]))
    refused(ShapeDisagrees, "K130", "its rank is 1 dimensions", lambda: matmul.program(a, b[0]))
    refused(ShapeDisagrees, "K130", "B: its element type is float64", lambda: matmul.program(a, b.astype("float64")))
    refused(ShapeDisagrees, "K130", "the argument is int, declared an array", lambda: matmul.program(a, 3))
    refused(PythonError, "K126", "missing a required argument: 'B'", lambda: matmul.program(a))

    def undetermined():
        @jit
        def k(A):
            M, K = T.const("M, K")
            A: T.Tensor[(M, K + 1), "float32"]
            with T.Kernel(M) as bx:
                A[bx, 0] = 1

        k.program(a)

    def undeclared():
        @jit
        def k(A, B):
            A: T.Tensor[(5, 3), "float32"]
            with T.Kernel(1) as bx:
                A[bx, 0] = 1

        k.program(a, b)

    def unreturned():
        @jit
        def k(A):
            A: T.Tensor[(5, 3), "float32"]
            C = T.empty((5,), "float32")
            with T.Kernel(1) as bx:
                C[bx] = 1

        k.program(a)

    def returned():
        @jit
        def k(A):
            A: T.Tensor[(5, 3), "float32"]
            with T.Kernel(1) as bx:
                A[bx, 0] = 1
            return A

        k.program(a)

    refused(UndeterminedConst, "K131", "K occurs alone in no declared shape", undetermined)
    refused(BadParameter, "K124", "parameter B of k: an array without one", undeclared)
    refused(BadReturn, "K132", "expected C, which T.empty made", unreturned)
    refused(BadReturn, "K132", "k returns A", returned)
    refused(
        BadArgument,
        "K128",
        "an eager kernel returns what T.empty made",
        lambda: jit(out_idx=[0])(matmul.function)(a, b),
    )


def test_eager_functions_elsewhere(refused):
    refused(OutsideKernel, "K102", "T.const is used outside a kernel", lambda: T.const("M"))

    def build():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            C = T.empty((4,), "int32")  # here

    refused(OutsideKernel, "K102", "T.empty, which belongs to the eager style", build)


def test_factory(refused):
    @jit(out_idx=[-1], pass_configs={"tl.disable_warp_specialized": True}, verbose=False)
    def make(n, dtype="float32"):
        @T.prim_func
        def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
            with T.Kernel(n) as bx:
                B[bx] = A[bx]

        return main

    assert not make.eager
    program = make.program(4)
    assert program.params[0].shape == (4,)
    assert program.where.line == make.function.__code__.co_firstlineno + 3

    @jit
    def nothing(n):
        return n

    refused(BadReturn, "K132", "the factory nothing returns an object of type int", lambda: nothing.program(3))
    refused(BadArgument, "K128", "outidx is given", lambda: jit(outidx=[1]))


@pytest.mark.parametrize(
    ("hints", "text", "help_"),
    [
        ({"pass_configs": {"a": 1}}, "pass_configs is given with 'a'", "leave it out"),
        (
            {"pass_configs": {"tl.enable_fast_maths": 1}},
            "'tl.enable_fast_maths'",
            "did you mean 'tl.enable_fast_math'?",
        ),
        ({"pass_configs": ["tl.simplify"]}, "pass_configs is ['tl.simplify']", "tile.PassConfigKey"),
        ({"pass_configs": {"tl.enable_dump_ir": True}}, "pass_configs[TL_ENABLE_DUMP_IR] is True", "TILE_DUMP_DIR"),
        ({"compile_flags": ["-O1"]}, "compile_flags is ['-O1']", "options={...}"),
        ({"debug_root_path": "/tmp"}, "debug_root_path is '/tmp'", "TILE_DUMP_DIR"),
    ],
)
def test_hints_that_are_not_obeyed_are_refused(hints, text, help_):
    with pytest.raises(BadArgument) as caught:
        jit(**hints)
    assert caught.value.code == "K128"
    assert text in caught.value.message
    assert help_ in caught.value.help


def test_keys_of_passes_have_both_names_and_false_asks_for_nothing():
    off = dict.fromkeys(tile.PassConfigKey, False)
    assert jit(pass_configs=off, compile_flags=[], execution_backend="cython")
    assert jit(pass_configs={"tirx.disable_vectorize": True, tile.PassConfigKey.TIR_DISABLE_CSE: True})
    with pytest.raises(AttributeError):
        _ = tile.PassConfigKey.TL_ANYTHING


def test_factory_with_text_annotations():
    # Names that only occur in annotations are not in the closure.
    namespace = {}
    source = (
        "from __future__ import annotations\nimport tile_core.language as T\n"
        "def make(n, dtype):\n    @T.prim_func\n    def main(A: T.Tensor((n,), dtype)):\n"
        "        with T.Kernel(1) as bx:\n            A[bx] = 1\n    return main\n"
        "def eager(A, n):\n    dtype = 'int16'\n    A: T.Tensor[(n,), dtype]\n    with T.Kernel(n) as bx:\n"
        "        A[bx] = 1\n"
    )
    import linecache

    linecache.cache["<cell 2>"] = (len(source), None, source.splitlines(keepends=True), "<cell 2>")
    exec(compile(source, "<cell 2>", "exec"), namespace)
    assert jit(namespace["make"]).program(6, "int8").params[0].shape == (6,)
    assert jit(namespace["eager"]).program(np.zeros(3, "int16"), 3).params[0].dtype == "int16"


# ------------------------------------------------------------------------------------------------------------- language


def test_the_language_imports_nothing_heavy():
    code = (
        "import sys, tile_core.language as T; dir(T); T.float16; "
        "print(sorted({'tvm', 'numpy', 'torch', 'tvm_ffi'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_names_of_the_language():
    assert "copy" in dir(T)
    assert "gemm" in T.__all__
    assert T.half is T.float16 is T.dtype("float16")
    assert str(T.float) == "float32"
    assert str(T.float8_e4m3) == "float8_e4m3fn"


@pytest.mark.parametrize("name", T.__all__)
def test_every_name_exists(name):
    assert getattr(T, name) is not None
