"""Mistakes of newcomers: the message names what was probably meant."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError
from tile_core.reports.idle import IdleKernel, UnusedParameter, unused_parameters
from tile_runtime.errors.guess import nearest

W = np.ones(64, "float32")
ROWS = T.dynamic("rows")


@T.macro
def endless(A, i):
    endless(A, i)


def array_in_a_kernel():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                A[i] = A[i] * W[i]  # here


def f_string():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            print(f"{A[0]}")  # here


def f_string_of_a_tile():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            text = f"{A[0:8] * 2}"  # here
            A[0] = len(text)


def default():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), s: T.float32 = 2.0):  # here
        with T.Kernel(1, threads=64):
            A[0] = s


def recursion():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            endless(A, 0)


def method():
    class Model:
        @T.prim_func
        def k(self, A: T.Tensor((64,), "float32")):  # here
            with T.Kernel(1, threads=64):
                A[0] = 1.0


def type_before_shape():
    @T.prim_func
    def k(A: T.Tensor("float32", (64,))):  # here
        with T.Kernel(1, threads=64):
            A[0] = 1.0


@tile.jit(target="cpu")
def returns_nothing(n):  # here
    @T.prim_func
    def k(A: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=64):
            A[0] = 1.0


@tile.jit(target="cpu")
def factory(n):  # here too
    @T.prim_func
    def k(A: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=64):
            A[0] = 1.0

    return k


def returns_a_parameter():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            A[0] = 1.0
        return A  # here


def no_corner():
    @T.prim_func
    def k(C: T.Tensor((256, 256), "float32")):
        with T.Kernel(1, threads=64):
            c = T.alloc_fragment((128, 64), "float32")
            T.clear(c)
            T.copy(c, C)  # here


def no_corner_of_a_narrow_tensor():
    @T.prim_func
    def k(C: T.Tensor((256, 48), "float32")):
        with T.Kernel(1, threads=64):
            c = T.alloc_fragment((128, 64), "float32")
            T.clear(c)
            T.copy(c, C)  # here


def half_a_corner():
    @T.prim_func
    def k(C: T.Tensor((256, 256), "float32")):
        with T.Kernel(1, threads=64) as bx:
            c = T.alloc_fragment((128, 64), "float32")
            T.clear(c)
            T.copy(c, C[bx * 128])  # here


def row_as_an_element():
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64):
            A[0, 0] = T.exp(A[1])  # here


def too_many_arguments():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.copy(A, B, 32)  # here


def short_name():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.alloc_frag((64,), "float32")  # here


def no_launch():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        A[0] = 1.0  # here


CASES = [
    (array_in_a_kernel, "K140", "# here", "pass the array to the kernel as a parameter"),
    (f_string, "K105", "# here", "T.print(value"),
    (f_string_of_a_tile, "K105", "# here", "T.print(value"),
    (default, "K124", "# here", "def make(s=2.0)"),
    (recursion, "K126", "endless(A, i)", "end the recursion by a Python value"),
    (method, "K124", "# here", "define the kernel inside of the method"),
    (type_before_shape, "K128", "# here", 'the shape comes first: T.Tensor((M, N), "float32")'),
    (lambda: returns_nothing(8), "K132", "def returns_nothing", "end the factory with `return kernel`"),
    (
        lambda: factory(W, W),
        "K126",
        "def factory",
        "give it its own arguments, and arrays to the kernel: factory(n)(...)",
    ),
    (lambda: factory(W), "K124", "def k(A", "arrays are arguments of the compiled kernel"),
    (returns_a_parameter, "K132", "# here", "remove the `return`"),
    (no_corner, "K203", "# here", "C[i, j], or a slice: C[0:128, 0:64]"),
    (no_corner_of_a_narrow_tensor, "K203", "# here", "C[i, j]; elements outside of C read as zero"),
    (
        half_a_corner,
        "K203",
        "# here",
        "the corner of a tile of shape (128, 64) has an index for each dimension: C[i, j]",
    ),
    (row_as_an_element, "K103", "# here", "index all dimensions of each tile in it, such as A[i, j]"),
    (too_many_arguments, "K126", "# here", "T.copy takes src, dst"),
    (short_name, "K129", "# here", "did you mean T.alloc_fragment?"),
    (no_launch, "K109", "# here", "write it inside of `with T.Kernel("),
]


@pytest.mark.parametrize(("mistake", "code", "line", "remedy"), CASES, ids=[str(n) for n in range(len(CASES))])
def test_the_remedy_is_what_was_meant(mistake, code, line, remedy):
    with pytest.raises(TileError) as caught:
        mistake()
    error = caught.value
    assert error.code == code
    assert remedy in error.help, str(error)
    assert error.where is not None
    assert line in error.where.source


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("alloc_frag", ["alloc_fragment", "alloc_shared"], ["alloc_fragment"]),
        ("alloc_sh", ["alloc_shared"], []),
        ("redu_sum", ["reduce_sum", "reduce_max"], ["reduce_sum"]),
        ("soft", ["softmax"], []),
        ("exp", ["exponent"], []),
    ],
)
def test_shortened_words(name, known, found):
    assert nearest(name, known) == found


def f_string_of_python_values():
    text = "A"

    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.device_assert(A[0] > 0, f"{text}[0] must be positive, of {A}")
            A[0] = 1.0

    return k


def test_other_f_strings_are_allowed():
    assert f_string_of_python_values().name == "k"


def nothing(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        x = T.alloc_fragment((64,), "float32")
        T.copy(A, x)


def unused(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), n: T.int32):
    with T.Kernel(1, threads=64):
        T.clear(B)


def prints(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        T.print(A[0])


def sized(A: T.Tensor((ROWS,), "float32"), B: T.Tensor((ROWS,), "float32")):
    with T.Kernel(1, threads=64):
        B[0] = ROWS * 1.0


@pytest.mark.parametrize(("function", "warned"), [(nothing, True), (unused, False), (prints, False), (sized, False)])
def test_a_kernel_without_an_effect_is_warned_about(function, warned):
    program = T.prim_func(function)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IdleKernel)
        tile.compile(program, "cpu")
    found = [str(w.message) for w in caught if w.category is IdleKernel]
    assert len(found) == warned
    assert all("writes none of its parameters" in text and "test_intentions.py" in text for text in found)


def kept(_A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        T.clear(B)


@pytest.mark.parametrize(
    ("function", "names"), [(nothing, []), (unused, ["A", "n"]), (prints, []), (sized, []), (kept, [])]
)
def test_unused_parameters_are_found(function, names):
    program = T.prim_func(function)
    assert unused_parameters(program) == names
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IdleKernel)
        tile.compile(program, "cpu")
    found = [str(w.message) for w in caught if w.category is UnusedParameter]
    assert len(found) == len(names)
    for name, text in zip(names, found, strict=True):
        assert f"does not use its parameter {name}" in text
        assert "test_intentions.py" in text
