# Kernels bind names that only the trace looks at.
# ruff: noqa: F841
# Kernels bind names that only the trace looks at, and call an output O.
# ruff: noqa: B007, E741, RUF059
"""One-line mistakes: the message says what was meant."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError
from tile_core.errors import language as errors

#: What stands in a kernel with A, C (16, 16), a tile s (16, 16) and a tile v (16,): (code, parts of the text).
BODIES = {
    "trans_B": (lambda A, C, s, v: T.gemm(A, A, C, trans_B=True), "K137", "did you mean transpose_B=?"),
    "transa": (lambda A, C, s, v: T.gemm(A, A, C, transa=True), "K137", "did you mean transpose_A=?"),
    "axis": (lambda A, C, s, v: T.reduce_sum(A, v, axis=1), "K137", "did you mean dim=?"),
    "axis of a scan": (lambda A, C, s, v: T.cumsum(A, s, axis=1), "K137", "did you mean dim=?"),
    "dtyp": (lambda A, C, s, v: T.alloc_shared((16,), dtyp="int8"), "K137", "did you mean dtype=?"),
    "nothing near": (lambda A, C, s, v: T.copy(A, s, foo=3), "K137", "T.copy takes src, dst"),
    "float index": (lambda A, C, s, v: A[16 / 2, 0], "K103", "divide with //"),
    "float in a slice": (lambda A, C, s, v: T.copy(A[16 / 2 : 16, 0], v[0:8]), "K103", "divide with //"),
    "tile as an index": (lambda A, C, s, v: A[v, 0], "K103", "T.gather"),
    "text stored": (lambda A, C, s, v: v.__setitem__(0, "x"), "K127", "store one number of type float32"),
    "list stored": (lambda A, C, s, v: v.__setitem__(0, [1.0]), "K127", "store one number of type float32"),
    "index missing": (
        lambda A, C, s, v: A.__setitem__(3, 0), "K127", "the slice A[3, 0:16]", "A has 2 dimensions: give an index",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_calls(name):
    body, code, *texts = BODIES[name]
    with pytest.raises(TileError) as caught:

        @T.prim_func
        def k(A: T.Tensor((16, 16), "float32"), C: T.Tensor((16, 16), "float32")):
            with T.Kernel(1, threads=32):
                s = T.alloc_shared((16, 16), "float32")
                v = T.alloc_shared((16,), "float32")
                body(A, C, s, v)

    assert caught.value.code == code, str(caught.value)
    assert caught.value.where is not None
    for text in texts:
        assert text in str(caught.value)


def test_keywords_of_the_launch(refused):
    def build():
        @T.prim_func
        def k(A: T.Tensor((16,), "float32")):
            with T.Kernel(1, thread=32):  # here
                A[0] = 0.0

    error = refused(errors.UnknownHint, "K137", "did you mean threads=?", build)
    assert error.help == "did you mean threads=?"


def test_a_function_of_the_users_is_no_function_of_the_language(refused):
    def serial(n):
        return range(n)

    def build():
        @T.prim_func
        def k(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                serial(4, step=3)  # here

    refused(errors.PythonError, "K126", "unexpected keyword argument 'step'", build)


def test_as_many_names_as_extents(refused):
    def too_many():
        @T.prim_func
        def k(A: T.Tensor((16, 16), "float32")):
            with T.Kernel(1):
                for i, j in T.Parallel(16):  # here
                    A[i, j] = 0.0

    def too_few():
        @T.prim_func
        def k(A: T.Tensor((16, 16), "float32")):
            with T.Kernel(1):
                for i, j in T.grid(16, 16, 2):  # here
                    A[i, j] = 0.0

    def tuple_as_index():
        @T.prim_func
        def k(A: T.Tensor((16, 16), "float32")):
            with T.Kernel(1):
                for i in T.Parallel(16, 16):
                    A[i, i] = 0.0  # here

    def axes():
        @T.prim_func
        def k(A: T.Tensor((16,), "float32")):
            with T.Kernel(2, threads=32) as (bx, by):  # here
                A[bx] = 0.0

    def tuple_of_blocks():
        @T.prim_func
        def k(A: T.Tensor((16,), "float32")):
            with T.Kernel(1, 2, threads=32) as bx:
                A[bx] = 0.0  # here

    def persistent():
        @T.prim_func
        def k(A: T.Tensor((16, 16), "float32")):
            with T.Kernel(2, threads=32) as b:
                for x, y, z in T.Persistent((16, 16), 2, b):  # here
                    A[x, y] = 0.0

    refused(errors.BadLoop, "K119", "write `for i in T.Parallel(...)`", too_many)
    refused(errors.BadLoop, "K119", "write `for i, j, i2 in T.grid(...)`", too_few)
    refused(errors.BadOperand, "K103", "it holds 2 indices: unpack it", tuple_as_index)
    refused(errors.BadLaunch, "K120", "as (bx, by) is 2 names, expected one", axes)
    refused(errors.TooManyIndices, "K107", "holds one index per axis: unpack it", tuple_of_blocks)
    refused(errors.BadLoop, "K119", "T.Persistent: for x, y, z is 3 names for 2 extents", persistent)


def test_a_runtime_bound_of_another_type(refused):
    """Python's int(...) takes no runtime value: the remedy does."""

    def bound():
        @T.prim_func
        def k(A: T.Tensor((16,), "float32"), n: T.float32):
            with T.Kernel(1, threads=32):
                for i in range(n):  # here
                    A[i] = 0.0

    error = refused(errors.BadLoop, "K119", "a bound is a float32 value, expected an integer", bound)
    assert 'T.cast(x, "int32")' in error.help


def test_a_name_that_an_annotation_kept_as_text_does_not_see(refused):
    size = 16

    def unseen():
        @T.prim_func
        def k(A: T.Tensor((size,), "float32")):
            with T.Kernel(1, threads=32):
                A[0] = 0.0

    def seen():
        own = size

        @T.prim_func
        def k(A: T.Tensor((own,), "float32")):
            with T.Kernel(1, threads=32):
                A[0] = 0.0

    seen()
    refused(errors.PythonError, "K126", "name 'size' is not defined in an annotation that `from __future__", unseen)


def test_one_name_or_a_star_takes_every_index(execute):
    @T.prim_func
    def k(A: T.Tensor((2, 3, 4), "int32")):
        with T.Kernel(1, 1) as b:
            bx, by = b
            for at in T.grid(2, 3, 4):
                i, j, l = at
                A[i, j, l] = i * 100 + j * 10 + l + bx + by
            for i, *rest in T.grid(1, 1, 1):
                A[(i, *rest)] = 7

    out = np.full((2, 3, 4), -1, "int32")
    execute(k, out)
    i, j, l = np.indices((2, 3, 4))
    want = (i * 100 + j * 10 + l).astype("int32")
    want[0, 0, 0] = 7
    np.testing.assert_array_equal(out, want)


def test_lists_are_no_memory(refused):
    def store():
        @T.prim_func
        def k(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                x = [0.0] * 4
                for i in T.serial(4):
                    x[i] = A[i]  # here

    def load():
        @T.prim_func
        def k(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                x = [0.0] * 4
                for i in T.serial(4):
                    A[i] = x[i]  # here

    refused(errors.NotCompileTime, "K105", "T.alloc_local((4,), dtype)", store)
    refused(errors.NotCompileTime, "K105", "T.alloc_local", load)


def test_declarations_have_a_location(refused):
    def in_an_annotation():
        @T.prim_func
        def k(A: T.Tensor((64,), "flaot32")):  # here
            with T.Kernel(1):
                A[0] = 0.0

    def before():
        T.Tensor[(64,), "Float16"]  # here

    def symbol():
        T.dynamic("1m")  # here

    refused(errors.UnknownDType, "K101", "did you mean 'float32'?", in_an_annotation)
    refused(errors.UnknownDType, "K101", "did you mean 'float16'?", before)
    refused(errors.BadArgument, "K128", 'write T.dynamic("m")', symbol)


def test_a_traced_kernel_is_not_called(refused):
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1):
            A[0] = 0.0

    def build():
        k(np.zeros(64, "float32"))  # here

    refused(errors.NotCompiled, "K141", 'tile.compile(k, target="cpu")', build)


#: What is bound to the name of a tensor B or of a tile s, and what stores instead.
LOST = {
    "B = s": (lambda A, B, O, s: ("B", s), "T.copy(s, B) stores it"),
    "B = A": (lambda A, B, O, s: ("B", A), "T.copy(A, B) stores it"),
    "B = A[0:64]": (lambda A, B, O, s: ("B", A[0:64]), "T.copy(A[0:64], B) stores it"),
    "B = A[3]": (lambda A, B, O, s: ("B", A[3]), "B[i, j] = ... stores an element"),
    "O = A[3]": (lambda A, B, O, s: ("O", A[3]), "O[()] = ... stores it"),
    "s = A[0:64]": (lambda A, B, O, s: ("s", A[0:64]), "T.copy(A[0:64], s) stores it"),
    "s = 0": (lambda A, B, O, s: ("s", 0), "T.fill(s, value)"),
}


@pytest.mark.parametrize("name", LOST)
def test_names_of_tensors_are_not_assigned(name, refused):
    choose, remedy = LOST[name]

    def build():
        @T.prim_func
        def k(
            A: T.Tensor((64,), "float32"),
            B: T.Tensor((64,), "float32"),
            O: T.Tensor((), "float32"),
        ):
            with T.Kernel(1, threads=32):
                s = T.alloc_shared((64,), "float32")
                T.copy(A, s)
                target, value = choose(A, B, O, s)
                if target == "B":
                    B = value
                elif target == "O":
                    O = value
                else:
                    s = value

    with pytest.raises(TileError) as caught:
        build()
    assert caught.value.code == "K142", str(caught.value)
    assert remedy in caught.value.help
    assert "= value" in caught.value.where.source


def test_names_of_parts_views_and_tiles_may_move(execute):
    @T.prim_func
    def k(A: T.Tensor((2, 8), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            A = A[1, 0:8]
            B = T.view(B, (2, 4))
            s = T.alloc_shared((8,), "int32")
            t = T.alloc_shared((8,), "int32")
            T.copy(A, s)
            s, t = t, s
            T.copy(t, s)
            s = T.view(s, (2, 4))
            T.copy(s, B)

    a, out = np.arange(16, dtype="int32").reshape(2, 8), np.zeros(8, "int32")
    execute(k, a, out)
    np.testing.assert_array_equal(out, a[1])


def test_threads_of_numpy():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(np.int32(1), threads=(np.int32(32), np.int64(2))):
            A[0] = 0.0

    assert tile.compile(k, target="cpu") is not None


@pytest.mark.parametrize("threads", [True, 32.0, np.float32(32), "32", np.bool_(True)])
def test_threads_that_are_no_integers(threads):
    with pytest.raises(TileError) as caught:

        @T.prim_func
        def k(A: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=threads):
                A[0] = 0.0

    assert caught.value.code == "K120"


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("f32", "use one of: float32, tfloat32"),
        ("u8", "use one of: uint8"),
        ("fp8", "use one of: float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu"),
        ("mxfp4", "use one of: float4_e2m1fn"),
        ("e4m3fn", "use one of: float8_e4m3fn, float8_e4m3fnuz"),
        ("float17", "use one of: bool, int8"),
    ],
)
def test_element_types_as_others_write_them(name, use):
    with pytest.raises(errors.UnknownDType) as caught:
        T.dtype(name)
    assert re.search(rf"{use}(\n|$|, int16)", str(caught.value))


def test_a_barrier_of_the_whole_grid_names_what_does_not_live_on():
    with pytest.raises(TileError) as caught:

        @T.prim_func
        def k(A: T.Tensor((64,), "float32")):
            with T.Kernel(2) as bx:
                kept = T.alloc_shared((64,), "float32")
                T.copy(A, kept)
                T.sync_grid()
                A[bx] = kept[63]

    assert caught.value.code == "K145"
    assert caught.value.where.source == "T.sync_grid()"
    assert "between the buffer kept and its use" in str(caught.value)
    assert "T.alloc_global keeps" in str(caught.value)


# Statements between launches that add 1 from `src` to `dst`, of which the last one writes Y.
ALTERNATING = {
    "aliases": ("src, dst = X if p == 0 else w[p % 2], Y if p == 2 else w[(p + 1) % 2]", ""),
    "one after the other": ("src = X if p == 0 else w[p % 2]\ndst = Y if p == 2 else w[(p + 1) % 2]", ""),
    "branches": (
        "if p == 0:\n    src, dst = X, w[0]\nelif p == 1:\n    src, dst = w[0], w[1]\nelse:\n    src, dst = w[1], Y",
        "",
    ),
    "exchanged": ("if p == 0:\n    src, dst = X, w[0]\nif p == 2:\n    dst = Y", "src, dst = dst, src"),
    "workspaces": ("src, dst = X if p == 0 else u, Y if p == 2 else v", "u, v = v, u"),
    "parameters": ("src, dst = X, Y", "X, Y = Y, X"),
    "three": ("src, dst = X if p == 0 else u, Y if p == 2 else v", "u, v, t = v, t, u"),
    "new": ("src = X if p == 0 else dst\ndst = Y if p == 2 else T.alloc_global((64,), 'float32')", ""),
    "new of one name": ("src = X if p == 0 else n\nn = T.alloc_global((64,), 'float32')\ndst = Y if p == 2 else n", ""),
    "macro": ("src, dst = X if p == 0 else w[p % 2], Y if p == 2 else w[(p + 1) % 2]", "", "add(src, dst, w[0])"),
}  # fmt: skip

STEPS = """
import tile_core.language as T
@T.macro
def add(a, b, spare):
    src = spare
    src = a
    one(src, b)
@T.macro
def one(src, dst):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(64):
            dst[i] = src[i] + 1
@T.prim_func
def k(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
    w = [T.alloc_global((64,), "float32") for _ in range(2)]
    u = T.alloc_global((64,), "float32")
    v = T.alloc_global((64,), "float32")
    t = T.alloc_global((64,), "float32")
    for p in T.static_range(3):
{before}
        {step}
{after}
"""


@pytest.mark.parametrize("name", ALTERNATING)
def test_names_alternate_between_tensors(name, execute, tmp_path):
    before, after, *step = ALTERNATING[name]
    before, after = ("\n".join(" " * 8 + line for line in part.splitlines()) for part in (before, after))
    file = tmp_path / "steps.py"
    file.write_text(STEPS.format(before=before, after=after, step=(step or ["one(src, dst)"])[0]))
    space = {}
    exec(compile(file.read_text(), str(file), "exec"), space)
    x, y = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    execute(space["k"], x, y, *(np.full(64, np.nan, "float32") for _ in space["k"].workspaces))
    np.testing.assert_array_equal(y, np.arange(64) + 3)


def test_names_of_tensors_do_not_become_other_ones(refused):
    """An assignment to the only name of a tensor was meant as a store."""

    def parameter():
        @T.prim_func
        def k(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
            for _ in T.static_range(2):
                Y = X  # here

    def workspace():
        @T.prim_func
        def k(X: T.Tensor((64,), "float32")):
            w = T.alloc_global((64,), "float32")
            w = X  # here

    def tuple_of_both():
        @T.prim_func
        def k(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
            Y, n = X, 3  # here

    @T.macro
    def copied(a, b):
        b = a

    def macro():
        @T.prim_func
        def k(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
            copied(X, Y)

    for build in (parameter, workspace, tuple_of_both, macro):
        refused(errors.LostTensor, "K142", "stores it", build)
