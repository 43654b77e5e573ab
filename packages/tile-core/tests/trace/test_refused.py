# Kernels bind names that only the trace looks at, and call an output O.
# ruff: noqa: F841, E741
"""Indices, annotations of buffers, errors of Python, refused statements."""

import itertools
import types

import numpy as np
import pytest
from expected_errors import raises_error

import tile_core as tile
import tile_core.language as T
from tile_core.errors.language import (
    BadAnnotation,
    BadReturn,
    ConstantDoesNotFit,
    IndexOutOfRange,
    NegativeIndex,
    NoSource,
    PythonError,
    RefusedSyntax,
    StepSlice,
    TooManyIndices,
    UnknownHint,
    UnknownName,
)
from tile_core.errors.launch import BadOutIdx
from tile_core.errors.layout import LayoutCollision
from tile_core.ir.attributes import RASTERIZATION, SAFE_VALUES


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (lambda A: A[4, 0], IndexOutOfRange, "index 4 is outside dimension 0 of A"),
        (lambda A: A[0, -7], NegativeIndex, "write one of 0 to 5;"),
        (lambda A: A[0, 1, 2], TooManyIndices, "A has 2 dimensions and was indexed with 3"),
        (lambda A: A[4:9, 0], IndexOutOfRange, "index 4:9 is outside dimension 0"),
        (lambda A: A[-1, 0], NegativeIndex, "index -1 in dimension 0 of A (extent 4)"),
        (lambda A: A[0, 2 - 3], NegativeIndex, "write 5;"),
        (lambda A: A[-2:, 0], NegativeIndex, "a slice from -2 in dimension 0 of A"),
        (lambda A: A[0, :-1], NegativeIndex, "a slice to -1 in dimension 1 of A"),
        (lambda A: A[1:3, 0:3][-1, 0], NegativeIndex, "in dimension 0 of A[1:3, "),
        (lambda A: A[3:1, 0], IndexOutOfRange, "index 3:1"),
        (lambda A: A[0:4:2, 0], StepSlice, "has step 2"),
        (lambda A: A[0:2, 0:3][2, 0], IndexOutOfRange, "index 2 is outside dimension 0 of A[0:2, "),
        (lambda A: A[1:3, 0:3][0:3], IndexOutOfRange, "index 0:3"),
    ],
)
def test_bad_indices(index, error, text, refused):
    def build():
        @T.prim_func
        def k(A: T.Tensor((4, 6), "int32")):
            with T.Kernel(1) as bx:
                T.copy(index(A), index(A))  # here

    refused(error, error.code, text, build)


def test_indices_of_slices(execute):
    @T.prim_func
    def k(A: T.Tensor((4, 6), "int32"), O: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            O[0] = A[3, 4]
            O[1] = A[1:3, 2:5][1, 1]
            O[2] = A[1:3, 2:5][0:1][0, 2]
            O[3] = A[2][4]
            O[4] = A[..., 1][2]

    a, out = np.arange(24, dtype="int32").reshape(4, 6), np.zeros(8, "int32")
    execute(k, a, out)
    assert list(out[:5]) == [a[-1, -2], a[2, 3], a[1, 4], a[2, 4], a[2, 1]]


# ---------------------------------------------------------------------------------------------------------- annotations


def test_annotations():
    @T.prim_func
    def k(A: T.Tensor((4, 8), "float16"), B: T.Tensor((4, 8), "float16")):
        with T.Kernel(1) as bx:
            S = T.alloc_shared((4, 8), "float16")
            T.annotate_layout({S: T.Layout((4, 8), lambda i, j: (j, i))})
            T.annotate_safe_value({A: -1.0})
            T.annotate_l2_hit_ratio({B: 0.5})
            T.use_swizzle(panel_size=10, order="col")
            T.assume(bx < 4)

    assert list(k.layouts) == ["S"]
    assert k.layouts["S"].shape == (4, 8)
    assert k.attrs[RASTERIZATION] == {"panel": 10, "order": "column"}
    assert k.attrs["l2_hit_ratio"] == {"B": 0.5}
    assert float(k.attrs[SAFE_VALUES]["A"].value) == -1.0
    assert dict(k.func.attrs["tile.swizzle"]) == {"panel": 10, "order": "column"}


@pytest.mark.parametrize(
    ("annotate", "error", "text"),
    [
        (lambda S: T.annotate_layout({"S": 1}), BadAnnotation, "a key is 'S'"),
        (lambda S: T.annotate_layout([S]), BadAnnotation, "found list"),
        (lambda S: T.annotate_layout({S: 3}), BadAnnotation, "int for S is not a layout"),
        (
            lambda S: T.annotate_layout({S: T.Layout((4,), lambda i: i)}),
            BadAnnotation,
            "does not fit S of shape (4, 8)",
        ),
        (lambda S: T.annotate_layout({S: lambda i, j: i * 8 + j // 2}), LayoutCollision, "many-to-one"),
        (lambda S: T.annotate_safe_value({S: S[0, 0]}), BadAnnotation, "not known while tracing"),
        (lambda S: T.annotate_l2_hit_ratio({S: 2}), BadAnnotation, "the ratio for S is 2"),
        (lambda S: T.use_swizzle(0), BadAnnotation, "panel_size is 0"),
        (lambda S: T.use_swizzle(2, "diagonal"), BadAnnotation, "order is 'diagonal'"),
    ],
)
def test_bad_annotations(annotate, error, text, refused):
    def build():
        @T.prim_func
        def k(A: T.Tensor((4, 8), "float16")):
            with T.Kernel(1) as bx:
                S = T.alloc_shared((4, 8), "float16")
                annotate(S)  # here

    refused(error, error.code, text, build)


# --------------------------------------------------------------------------------------------------- Python in a kernel


def test_errors_of_python_carry_the_line(refused):
    def unknown():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                A[0] = missing_name  # here

    def signature():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                T.alloc_shared(shap=(4,), dtype="int32")  # here

    def user():
        def helper():
            raise ValueError("block size")

        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                helper()  # here

    def failed():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                assert 1 > 2, "one is small"  # here

    def unpacking():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                a, b = 1, 2, 3  # here

    assert isinstance(refused(PythonError, "K126", "NameError: name 'missing_name'", unknown).__cause__, NameError)
    refused(UnknownHint, "K137", "did you mean shape=?", signature)
    refused(PythonError, "K126", "ValueError: block size", user)
    refused(PythonError, "K126", "AssertionError: one is small", failed)
    refused(PythonError, "K126", "ValueError: too many values to unpack", unpacking)


def test_unknown_names_of_the_language(refused):
    def build():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                T.alloc_fragmnt((4,), "int32")  # here

    refused(UnknownName, "K129", "did you mean T.alloc_fragment?", build)
    with pytest.raises(AttributeError):
        T.nonsense_name  # noqa: B018


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("try:\n        pass\n    except ValueError:\n        pass", "try"),
        ("del A", "del"),
        ("global LATER", "global"),
        ("class X: pass", "class"),
        ("y = (z := 3)", ":="),
        ("yield 3", "yield"),
        ("match A:\n        case _: pass", "match"),
        ("async def f(): pass", "async def"),
        ("for A[0] in range(3): pass", "a target that is not a name"),
    ],
)
def test_refused_syntax(statement, what, refused):
    import linecache

    source = f"def k(A):\n    pass\n    {statement}\n"
    name = f"<refused {what}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    module = types.ModuleType("cell")
    exec(compile(source, name, "exec"), module.__dict__)
    module.k.__annotations__["A"] = T.Tensor((4,), "int32")
    error = refused(
        RefusedSyntax, "K113", f"`{what}` is not part of the kernel language", lambda: T.prim_func(module.k)
    )
    assert (error.where.file, error.where.line) == (name, 3)


def test_no_source(refused):
    module = types.ModuleType("cell")
    exec("def k(A): pass", module.__dict__)
    refused(NoSource, "K112", "the text of <string> is not available", lambda: T.prim_func(module.k))
    refused(NoSource, "K112", "not written as a plain `def`", lambda: T.prim_func(lambda A: None))
    refused(NoSource, "K112", "it is of type int, not a function", lambda: T.prim_func(3))


def test_prim_func_returns_nothing(refused):
    def build():
        @T.prim_func
        def k(A: T.Tensor((4,), "int32")):
            with T.Kernel(1) as bx:
                A[0] = 1
            return A

    refused(BadReturn, "K132", "k returns an object of type Buffer", build)


@pytest.mark.sweep(2)
def test_loops_of_python_that_do_not_end():
    """They would be traced for ever; ``while True`` with a runtime `break` is a loop of Python as well."""
    with pytest.raises(tile.TileError, match=r"K143.*`while`.*65536") as caught:

        @T.prim_func
        def whiles(A: T.Tensor((4,), "int32")):
            with T.Kernel(1, threads=1):
                while True:
                    A[0] = 1

    assert caught.value.where.source == "while True:"
    with pytest.raises(tile.TileError, match=r"K143.*`for`"):

        @T.prim_func
        def counts(A: T.Tensor((4,), "int32")):
            with T.Kernel(1, threads=1):
                for _ in itertools.count():
                    A[0] = 1

    with pytest.raises(tile.TileError, match=r"K115.*while True.*while the kernel is traced"):

        @T.prim_func
        def left(A: T.Tensor((4,), "int32")):
            with T.Kernel(1, threads=1):
                while True:
                    if A[0] > 3:
                        break


def test_a_fraction_for_an_integer_says_how_to_convert_it():
    with raises_error(ConstantDoesNotFit, value=2.7) as caught:

        @T.prim_func
        def main(A: T.Tensor((4,), "int32")):
            with T.Kernel(1, threads=1):
                A[0] = 2.7

    assert "a whole number from" in str(caught.value)
    assert "T.cast(2.7, 'int32')" in str(caught.value)


def test_lines_of_what_a_target_lacks():
    @T.prim_func
    def threads(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=2048):
            T.clear(A)

    @T.prim_func
    def rounding(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=1):
            for i in T.serial(4):
                A[i] = T.ieee_add(A[i], 1.0, rounding_mode="rz")

    for program, source in ((threads, "with T.Kernel"), (rounding, "A[i] = T.ieee_add")):
        with pytest.raises(tile.TileError) as caught:
            tile.compile(program, "cpu")
        assert caught.value.where.source.startswith(source)


@pytest.mark.parametrize("scope", ["global", "shared"])
def test_layouts_that_decide_by_an_index(scope):
    """The line is that of the annotation, on every target, and no word of TVM's is in the text."""
    with pytest.raises(tile.TileError, match=r"K313.*decides by an index") as caught:

        @T.prim_func
        def main(A: T.Tensor((32, 32), "float32")):
            with T.Kernel(1, threads=32):
                s = T.alloc_shared((32, 32), "float32")
                T.annotate_layout({(A if scope == "global" else s): lambda i, j: i * 32 + (j if i < 16 else j ^ 1)})
                T.copy(A, s)
                T.copy(s, A)

    assert "annotate_layout" in caught.value.where.source


def test_outputs_that_are_refused_have_a_line():
    @T.prim_func
    def main(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=1):
            for i in T.serial(4):
                B[i] = B[i] + A[i]

    with pytest.raises(BadOutIdx) as caught:
        tile.compile(main, "cpu", out_idx=1)
    assert caught.value.where.source.startswith("def main(")
