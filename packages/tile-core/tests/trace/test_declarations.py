# Kernels bind names that only the trace looks at, and call an output O.
# ruff: noqa: F841, E741, B007
"""Parameters, launches, scratch buffers."""

import types

import numpy as np
import pytest

import tile_core.language as T
from tile_core.errors.language import (
    BadArgument,
    BadInitial,
    BadLaunch,
    BadLoop,
    BadParameter,
    BadShape,
    ConstantDoesNotFit,
    EscapedVariable,
    SecondLaunch,
    StatementOutsideLaunch,
    UnboundSymbol,
    UnknownDType,
    WorkspaceInside,
)


def test_parameters():
    m, n = T.dynamic("m, n")
    s = T.dynamic("s", "int64")

    @T.prim_func
    def k(
        A: T.Tensor((m, n * 2, 3), "bfloat16"),
        B: T.StridedTensor((m, 4), (s, 1), np.float32),
        S: T.StridedTensor[(m, 4), (s, 1), "int8"],
        C: T.Tensor[(T.ceildiv(m, 4),), T.float8_e4m3fn],
        R: T.Tensor((), "float32"),
        D: T.Buffer[8],
        n_: T.int64,
        f: "float32",
        p: T.ptr,
        q: T.ptr("float16"),
    ):
        with T.Kernel(m, threads=1) as bx:
            P = T.make_tensor(q, (n_, 4))
            P[bx, 0] = 1
            R[()] = 2
            D[0] = f

    assert [(p.name, p.kind, p.dtype) for p in k.params] == [
        ("A", "tensor", "bfloat16"), ("B", "tensor", "float32"), ("S", "tensor", "int8"),
        ("C", "tensor", "float8_e4m3fn"), ("R", "tensor", "float32"), ("D", "tensor", "float32"),
        ("n_", "scalar", "int64"), ("f", "scalar", "float32"), ("p", "pointer", "uint8"), ("q", "pointer", "float16"),
    ]  # fmt: skip
    assert k.params[0].shape == ("m", ("mul", "n", 2), 3)
    assert k.params[1].strides == k.params[2].strides == ("s", 1)
    assert k.params[3].shape[0][0] == "floordiv"
    assert k.params[4].shape == ()
    assert set(k.symbols) == {"m", "n", "s"}
    assert len(k.func.params) == 10
    assert [str(v) for v in k.func.attrs["tile.symbols"]] == ["m", "n", "s"]
    assert [str(x) for x in k.func.params[1].strides] == ["s", "1"]
    assert 'C: T.Buffer(((m + 4 - 1) // 4,), "float8_e4m3fn", align=1' in k.script()


def test_symbols_of_one_name_are_one_symbol():
    @T.prim_func
    def k(A: T.Tensor((T.dynamic("w"),), "int32"), B: T.Tensor((T.symbolic("w"),), "int32")):
        with T.Kernel(T.ceildiv(T.dynamic("w"), 4)) as bx:
            A[bx] = B[bx]

    assert list(k.symbols) == ["w"]


def test_annotations_as_text(execute):
    source = """
from __future__ import annotations
import tile_core.language as T

def make(M, dtype):
    @T.prim_func
    def k(A: T.Tensor((M, 2), dtype), n: T.int32, m: "int64"):
        with T.Kernel(M) as bx:
            A[bx, 0] = n
    return k
"""
    import linecache

    linecache.cache["<cell 1>"] = (len(source), None, source.splitlines(keepends=True), "<cell 1>")
    module = types.ModuleType("cell")
    exec(compile(source, "<cell 1>", "exec"), module.__dict__)
    k = module.make(3, "int16")
    assert k.params[0].shape == (3, 2)
    assert (k.params[0].dtype, k.params[2].dtype) == ("int16", "int64")
    out = np.zeros((3, 2), "int16")
    execute(k, out, np.int32(4), np.int64(4))
    assert (out[:, 0] == 4).all()


def test_names_defined_after_the_kernel_are_found(execute):
    @T.prim_func
    def k(O: T.Tensor((2,), "int32")):
        with T.Kernel(1) as bx:
            O[0] = AFTER
            O[1] = helper_below(3)

    out = np.zeros(2, "int32")
    execute(k, out)
    assert list(out) == [11, 4]


AFTER = 11


def helper_below(x):
    return x + 1


def test_defaults_and_docstrings():
    @T.prim_func
    def k(A: T.Tensor((2,), "int32")):
        """A docstring with \
a continued line."""
        with T.Kernel(1) as bx:
            A[0] = 1
            """Text in between."""

    assert k.name == "k"


@pytest.mark.parametrize(
    ("annotation", "text", "fix"),
    [
        (None, "not annotated", "annotate it, for example `A: T.Tensor("),
        (3, "annotated with 3", "annotate it, for example `A: T.Tensor("),
        (T.Tensor((4, -1), "int32"), "dimension 1 is -1", "write the number of elements, or a symbol"),
        (T.Tensor((4.5,), "int32"), "dimension 0 is 4.5", "write 4, or a symbol: m = T.dynamic('m')"),
        (T.Tensor((None,), "int32"), "dimension 0 is None", "write the number of elements, or a symbol"),
        (T.Tensor((2**50,), "int32"), "dimension 0 is 1125899906842624", "write a smaller number"),
        (T.StridedTensor((4,), (-1,), "int32"), "stride 0 is -1", "from one index to the next"),
        (T.float8_e5m2, "of type float8_e5m2", 'a tensor of one element: `A: T.Tensor((1,), "float8_e5m2")`'),
    ],
)
def test_bad_parameters(annotation, text, fix, refused):
    def build():
        def k(A):  # here
            with T.Kernel(1) as bx:
                pass

        if annotation is not None:
            k.__annotations__["A"] = annotation
        T.prim_func(k)

    refused(BadParameter, "K124", text, build)
    refused(BadParameter, "K124", fix, build)


def test_bad_declarations(refused):
    refused(UnknownDType, "K101", "'float17' is not an element type", lambda: T.Tensor((4,), "float17"))
    refused(BadArgument, "K128", "make symbols first", lambda: T.Tensor(("m",), "float32"))
    refused(BadArgument, "K128", "give one stride per dimension", lambda: T.StridedTensor((4, 4), (1,), "float32"))
    refused(BadArgument, "K128", "identifiers", lambda: T.dynamic("3m"))
    refused(BadArgument, "K128", "int32 or int64", lambda: T.dynamic("m", "float32"))


def test_unbound_symbol(refused):
    def build():
        hidden = T.dynamic("hidden")

        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                A[0] = hidden

    refused(UnboundSymbol, "K125", "the symbol hidden is used by k", build)


def test_escaped_variable(refused):
    def build():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                kept = types.SimpleNamespace()
                for i in range(4):
                    kept.last = i
                A[0] = kept.last

    refused(EscapedVariable, "K133", "i is used in k outside", build)


# ------------------------------------------------------------------------------------------------------------- launches


def test_default_threads_and_empty_grid():
    @T.prim_func
    def k(A: T.Tensor((4,), "int32")):
        with T.Kernel(0, 3) as (x, y):
            A[x] = y

    assert '"tile.threads": [128, 1, 1]' in k.script()
    assert "for x in T.parallel(0" in k.script()


@pytest.mark.parametrize(
    ("grid", "threads", "text"),
    [
        ((1,), 0, "threads is 0, expected an int >= 1"),
        ((1,), -128, "threads is -128"),
        ((1,), 12.5, "threads is 12.5, expected a Python int"),
        ((1,), (1, 2, 3, 4), "threads is 4 counts"),
        ((-1,), 128, "grid axis 0 is -1"),
        ((1, 2.5), 128, "grid axis 1 is 2.5"),
        ((1, 1, 1, 1), 128, "the grid is 4 axes"),
    ],
)
def test_bad_launches(grid, threads, text, refused):
    def build():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(*grid, threads=threads) as bx:  # here
                A[0] = 1

    refused(BadLaunch, "K120", text, build)


def test_statements_outside_of_the_launch(refused):
    def before():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            A[0] = 1  # here
            with T.Kernel(1) as bx:
                A[0] = 1

    def after():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                A[0] = 1
            S = T.alloc_shared((4,), "int32")  # here

    def reading():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            x = A[0]  # here
            with T.Kernel(1) as bx:
                A[0] = x

    def twice():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                A[0] = 1
                with T.Kernel(1) as by:  # here
                    A[0] = 2

    refused(StatementOutsideLaunch, "K109", "outside `with T.Kernel(...)`", before)
    refused(StatementOutsideLaunch, "K109", "outside `with T.Kernel(...)`", reading)
    refused(StatementOutsideLaunch, "K109", "outside `with T.Kernel(...)`", after)
    refused(SecondLaunch, "K121", "k launches inside of a launch", twice)


def test_scalars_in_front_of_the_launch():
    @T.prim_func
    def k(A: T.Tensor((T.dynamic("m"),), "float32"), x: T.float32, n: T.int32):
        half = n // 2
        y = x * 2.0
        with T.Kernel(T.ceildiv(half, 32)) as bx:
            A[bx] = y

    assert "A[bx] = x * T.float32(2.0)" in k.script()


# ---------------------------------------------------------------------------------------------------------------- loops


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda n: T.serial(1.5), "a bound is 1.5, expected an integer"),
        (lambda n: T.serial(4, 8, 0), "step is 0"),
        (lambda n: T.serial(0, 8, n), "step is a runtime value, expected a Python int"),
        (lambda n: T.Parallel(), "its domain is empty"),
        (lambda n: T.Parallel(4, -1), "extent 1 is -1"),
        (lambda n: T.Parallel("a"), "extent 0 is 'a'"),
        (lambda n: T.unroll(n), "the trip count is a runtime value"),
        (lambda n: T.vectorized(n), "the trip count is a runtime value"),
        (lambda n: T.Pipelined(4, num_stages=-1), "num_stages is -1"),
        (lambda n: T.Pipelined(4, num_stages=n), "num_stages is a runtime value"),
        (lambda n: T.Persistent([4], 0, 1), "wave_size is 0"),
        (lambda n: T.Persistent(4, 2, 1), "domain is 4"),
        (lambda n: list(T.serial(4)), "its iterable is used by plain Python code"),
        (lambda n: T.static_range(n), "a bound is a runtime value"),
    ],
)
def test_bad_loops(make, text, refused):
    def build():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32"), n: T.int32):
            with T.Kernel(1) as bx:
                for i in make(n):  # here
                    A[0] = 1

    refused(BadLoop, "K119", text, build)


# -------------------------------------------------------------------------------------------------------------- scratch


def test_scratch_buffers(execute, tile_calls):
    @T.prim_func
    def k(O: T.Tensor((8,), "float32")):
        with T.Kernel(1) as bx:
            S = T.alloc_shared((2, 3), "float16", "shared")
            F = T.alloc_fragment([4], "float32")
            L = T.alloc_local(5, "uint8")
            v = T.alloc_var("float32", 1.5)
            w = T.alloc_var(T.int32, "local.var", init=3)
            flag = T.alloc_var("bool", init=1)
            z = T.alloc_var("int32")
            R = T.alloc_reducer((4,), "float32", op="max", replication="all")
            if flag:
                O[0] = v + w + z
            if not z:
                O[1] = 1
            O[2] = z == 0
            O[3] = 1 if v != 1.5 else 2

    text = k.script()
    assert 'F = T.alloc_buffer((4,), scope="local.fragment", layout=None)' in text
    assert 'L = T.alloc_local((5,), "uint8", layout=None)' in text
    assert k.reducers == {"R": {"op": "max", "replication": "all"}}
    out = np.zeros(8, "float32")
    execute(k, out)
    assert list(out[:4]) == [4.5, 1, 1, 2]
    (fill,) = tile_calls(k)
    assert str(fill.op.name) == "tile.fill"
    assert fill.args[1].value == -np.inf


@pytest.mark.parametrize("shape", [(4, 0), (-1,), (2.5,), ("a",), None])
def test_bad_shapes(shape, refused):
    def build():
        @T.prim_func
        def k(n: T.int32):
            with T.Kernel(1) as bx:
                S = T.alloc_shared((4, n) if shape is None else shape, "int8")  # here

    refused(BadShape, "K122", "expected a positive Python int", build)


def test_bad_scratch(refused):
    def reducer():
        @T.prim_func
        def k(n: T.int32):
            with T.Kernel(1) as bx:
                S = T.alloc_reducer((4,), "int8", op="mean")  # here

    def workspace():
        @T.prim_func
        def k(n: T.int32):
            with T.Kernel(1) as bx:
                space = T.alloc_global((4, n), "int8")  # here

    def fraction():
        @T.prim_func
        def k(n: T.int32):
            with T.Kernel(1) as bx:
                v = T.alloc_var("uint8", init=300)  # here

    refused(BadInitial, "K123", "use one of sum, max, min", reducer)
    refused(WorkspaceInside, "K135", "move it in front of", workspace)
    refused(ConstantDoesNotFit, "K104", "the constant 300 does not fit uint8", fraction)
