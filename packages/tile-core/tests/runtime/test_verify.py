"""``Kernel.verify`` of compiled kernels: empty arrays, strides, pointers, and what a broken reference gives."""

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.abi.adapter import HostMemory
from tile_core.errors import InternalError, KernelError
from tile_core.errors.launch import VerifyMismatch
from tile_core.errors.setup import RuntimeBroken
from tile_core.runtime.kernel import Origin


@pytest.fixture(scope="module")
def rows():
    n = T.dynamic("n")

    @T.prim_func
    def rows(A: T.Tensor((n, 4), "float32"), B: T.Tensor((n, 4), "float32")):
        with T.Kernel(n) as i:
            for j in T.Parallel(4):
                B[i, j] = A[i, j] + 1

    return tile.compile(rows, target="cpu", out_idx=1)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_arrays_without_elements(rows, n):
    report = rows.verify(np.ones((n, 4), "float32"))
    assert report.outputs[0].elements == 4 * n


def test_a_broken_reference_is_an_internal_error(rows):
    kernel = tile.Kernel(
        rows.signature, lambda *_: None, origin=Origin(program=rows.program, reference=lambda *_: 1 / 0)
    )
    with pytest.raises(InternalError, match="internal error in the reference: ZeroDivisionError") as info:
        kernel.verify(np.ones((1, 4), "float32"))
    assert info.value.code == "I000"
    assert info.value.where == rows.signature.where


def test_a_launch_that_raises_is_an_internal_error_in_verify_and_bench(rows):
    kernel = tile.Kernel(rows.signature, lambda *_: 1 / 0, origin=Origin(reference=lambda *_: None))
    for action in (kernel.verify, kernel.bench, kernel):
        with pytest.raises(InternalError, match="internal error in launch: ZeroDivisionError"):
            action(np.ones((1, 4), "float32"))


class Driver(HostMemory):
    """An adapter of somebody else."""

    name = "driver"


def test_a_launch_of_another_runtime_that_raises_names_that_runtime(rows):
    kernel = tile.Kernel(rows.signature, lambda *_: 1 / 0, adapter=Driver())
    for _ in range(3):  # checked fully, then by a function of its form
        with pytest.raises(RuntimeBroken, match="'driver' is installed but broken: a launch raised ZeroDivi") as info:
            kernel(np.ones((1, 4), "float32"))
        assert info.value.where == rows.signature.where


def test_strides_are_those_of_the_declaration():
    @T.prim_func
    def strided(A: T.StridedTensor((4, 4), (9, 2), "float32"), B: T.StridedTensor((4, 4), (8, 1), "float32")):
        with T.Kernel(4) as i:
            for j in T.Parallel(4):
                B[i, j] = A[i, j] + 1

    kernel = tile.compile(strided, target="cpu")
    wide, memory = np.arange(40, dtype="float32"), np.full((4, 8), 7, "float32")
    a, b = np.lib.stride_tricks.as_strided(wide, (4, 4), (36, 8)), memory[:, :4]
    kernel.verify(a, b)
    np.testing.assert_array_equal(b, a + 1)
    assert (memory[:, 4:] == 7).all()


def test_pointers():
    @T.prim_func
    def copy(p: T.ptr, n: T.int32, C: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            X = T.make_tensor(p, (n,), "float32")
            for j in T.Parallel(4):
                C[j] = X[j]

    data, out = np.arange(4, dtype="float32"), np.full(4, -1, "float32")
    tile.compile(copy, target="cpu").verify(data.ctypes.data, 4, out)
    np.testing.assert_array_equal(out, data)


@T.prim_func
def half_written(A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32")):
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((40,), "float32")
        for i in T.Parallel(39):
            s[i] = A[i]
        T.copy(s, B)  # reads s[39]


@T.prim_func
def racing(A: T.Tensor((40,), "float32"), at: T.Tensor((40,), "int32"), B: T.Tensor((40,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(40):
            B[T.clamp(at[i], 0, 39)] = A[i]  # two of them


@T.prim_func
def reading_its_output(A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(40):
            B[i] = B[i] + A[i]


def differing(program, **how):
    """Return a kernel that does nothing, with the reference of a program."""
    made = tile.compile(program, "cpu", **how)
    return tile.Kernel(
        made.signature, lambda *_: None, origin=Origin(program=program, reference=made._origin.reference)
    )


VALUES = np.random.default_rng(5).standard_normal(40).astype(np.float32)
WRONG = [
    (half_written, {}, (VALUES, np.zeros(40, np.float32)), "K441", "reads s[39]"),
    (half_written, {"out_idx": 1}, (VALUES,), "K441", "reads s[39]"),
    (racing, {}, (VALUES, np.zeros(40, np.int32), np.zeros(40, np.float32)), "K443", "two of them"),
]


@pytest.mark.parametrize(("program", "how", "args", "code", "line"), WRONG)
def test_a_difference_by_a_mistake_of_the_program_is_that_mistake(program, how, args, code, line):
    with pytest.raises(KernelError) as info:
        differing(program, **how).verify(*args)
    assert info.value.code == code
    assert info.value.where.source.endswith(line)


def test_a_kernel_that_reads_what_nobody_wrote_is_refused_where_it_differs():
    with pytest.raises(KernelError) as info:
        tile.compile(half_written, "cpu").verify(VALUES, np.zeros(40, np.float32))
    assert info.value.code == "K441"


def test_a_difference_of_a_right_program_is_a_mismatch(rows):
    with pytest.raises(VerifyMismatch):
        differing(rows.program, out_idx=1).verify(np.ones((3, 4), "float32"))
    with pytest.raises(VerifyMismatch):
        differing(reading_its_output).verify(VALUES, VALUES.copy())
    order = np.arange(40, dtype=np.int32)
    with pytest.raises(VerifyMismatch):
        differing(racing).verify(VALUES, order, np.zeros(40, np.float32))


def test_an_error_of_watching_does_not_hide_the_difference(rows):
    def reference(a, b, **how):
        assert not how, "watching fails"
        b[...] = a

    reference.watches = True
    kernel = tile.Kernel(rows.signature, lambda *_: None, origin=Origin(program=rows.program, reference=reference))
    with pytest.raises(VerifyMismatch):
        kernel.verify(np.ones((3, 4), "float32"))
