"""Every K4xx refusal of a call: code, text, and that nothing was launched."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

from tile_core.abi.adapter import HostMemory
from tile_core.abi.signature import Param, Signature
from tile_core.errors import KernelError, Where
from tile_core.errors import launch as errors
from tile_runtime.calls.arguments import normalise_out_idx
from tile_runtime.calls.binder import Binder


def tensor(name, *shape, dtype="float32", access="read", **more):
    return Param(name, "tensor", dtype, shape, access=access, **more)


def zeros(*shape, dtype="float32"):
    return np.zeros(shape, dtype)


def refused(params, args, kind, code, *texts, launch=None, kwargs=None, adapter=None, **facts):
    """Call a kernel with these parameters twice (checked fully both times) and look at the error."""
    calls = []
    binder = Binder(Signature("f", tuple(params), **facts), lambda *v: calls.append(v), adapter)
    for _ in range(2):
        with pytest.raises(kind) as caught:
            binder(*args, **(kwargs or {}))
        text = str(caught.value)
        assert text.startswith(f"[{code}] f: "), text
        assert "= help: " in text
        assert isinstance(caught.value, KernelError)
        assert caught.value.code == code
        for part in texts:
            assert part in text, text
    assert calls == []


class Device:
    """An array on some device, by DLPack's type and number, with NumPy memory behind it."""

    def __init__(self, array, device):
        self.array, self.device = array, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **_):
        capsule = self.array.__dlpack__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        address = get(capsule, b"dltensor")
        ctypes.c_int32.from_address(address + 8).value = self.device[0]
        ctypes.c_int32.from_address(address + 12).value = self.device[1]
        return capsule


A, B = tensor("A", "m", "k"), tensor("B", "k", "n")
C = tensor("C", "m", "n", access="write")


def test_missing():
    args = (zeros(2, 3), zeros(3, 4))
    refused(
        (A, B, C), args, errors.MissingArgument, "K401", "missing argument 'C'", "3 expected, 2 given", "f(A, B, C)"
    )


def test_too_many():
    args = (zeros(2, 3), zeros(3, 4), zeros(2, 4))
    texts = ("3 positional arguments given, at most 2", "C = f(A, B)", "C is allocated and returned")
    refused((A, B, C), args, errors.TooManyArguments, "K402", *texts, out_idx=(2,))


def test_unknown_keyword():
    texts = ("unknown keyword argument 'D'", "expected one of A, B, C")
    refused((A, B, C), (zeros(2, 3),), errors.UnknownKeyword, "K403", *texts, kwargs={"D": 1})


def test_duplicate():
    text = "argument 'A' is given both by position and by keyword"
    refused((A, B, C), (zeros(2, 3),), errors.DuplicateArgument, "K404", text, kwargs={"A": 1})


@pytest.mark.parametrize("value", [None, [1.0, 2.0], 3.5, "text", np.float32(1), np.ndarray, object()])
def test_not_an_array(value):
    texts = ("argument 'A' must be an array float32(m,)", type(value).__name__)
    refused((tensor("A", "m"),), (value,), errors.NotAnArray, "K405", *texts)


def test_rank():
    texts = ("argument 'A' must have 2 dimensions (m, k), found 3: (2, 3, 4)",)
    refused((A,), (zeros(2, 3, 4),), errors.RankMismatch, "K406", *texts)
    refused((tensor("S"),), (zeros(1),), errors.RankMismatch, "K406", "must have 0 dimensions (), found 1: (1,)")


def test_constant_extent():
    texts = ("A.shape[1] must be 8, found 7", "shape A: (m, 8)")
    refused((tensor("A", "m", 8),), (zeros(3, 7),), errors.ShapeMismatch, "K407", *texts)


def test_extent_by_expression():
    params = (tensor("D", ("mul", 2, "m"), access="write"), tensor("A", "m"))
    texts = ("D.shape[0] must be 6 = 2*m with m = 3 by A.shape[0], found 7",)
    refused(params, (zeros(7), zeros(3)), errors.ShapeMismatch, "K407", *texts)


def test_extent_that_divides():
    params = (tensor("A", ("mul", 2, "m")),)
    refused(params, (zeros(7),), errors.ShapeMismatch, "K407", "A.shape[0] must be 2*m for an integer m, found 7")


def test_symbol_conflict():
    texts = ("k is 3 by A.shape[1] but 4 by B.shape[0]", "A: float32(m, k), B: float32(k, n)", "with k = 3")
    refused((A, B, C), (zeros(2, 3), zeros(4, 5), zeros(2, 5)), errors.SymbolConflict, "K408", *texts)


def test_scalar_and_shape_conflict():
    params = (tensor("A", "n"), Param("n", "scalar", "int32"))
    texts = ("n is 3 by A.shape[0] but 4 by argument n",)
    refused(params, (zeros(3), 4), errors.SymbolConflict, "K408", *texts)


def test_unsolvable_symbol_at_construction():
    where = Where("kernel.py", 3)
    params = (tensor("A", ("add", "m", "n")), tensor("B", "k"))
    with pytest.raises(errors.UnsolvableSymbol) as caught:
        Binder(Signature("f", params, where=where), print)
    text = str(caught.value)
    assert text.startswith("[K409] f: the value of symbol 'm' does not follow from the arguments; it occurs in A: ")
    assert "--> kernel.py:3" in text
    assert "add a scalar parameter named m" in text


def test_symbol_of_an_output_only():
    params = (tensor("A", "m"), tensor("C", "n", access="write"))
    with pytest.raises(errors.UnsolvableSymbol, match="'n'"):
        Binder(Signature("f", params, (1,)), print)


def test_symbol_unsolvable_for_these_values():
    params = (tensor("A", ("mul", "m", "n")), tensor("B", "n"))
    texts = ("symbol 'm'", "A.shape[0] = m*n")
    refused(params, (zeros(0), zeros(0)), errors.UnsolvableSymbol, "K409", *texts)


def test_negative_symbol():
    params = (tensor("A", ("add", "m", 5)),)
    refused(params, (zeros(3),), errors.NegativeExtent, "K410", "m is -2 by A.shape[0]; an extent cannot be negative")
    params = (Param("n", "scalar", "int32"), tensor("C", "n", access="write"))
    refused(params, (-1,), errors.NegativeExtent, "K410", "n is -1 by argument n", out_idx=(1,))


def test_negative_output_extent():
    params = (tensor("A", "m"), tensor("C", ("sub", "m", 5), access="write"))
    texts = ("C.shape[0] is -2 by m - 5",)
    refused(params, (zeros(3),), errors.NegativeExtent, "K410", *texts, out_idx=(1,))


def test_dtype():
    texts = ("argument 'A' must be float32, found float64", "pass an array of float32, or declare 'A' as float64")
    refused((tensor("A", "m"),), (np.zeros(3),), errors.DTypeMismatch, "K411", *texts)
    refused((tensor("A", "m", dtype="bool"),), (zeros(3, dtype="uint8"),), errors.DTypeMismatch, "K411", "found uint8")
    refused((tensor("A", "m", dtype="bfloat16"),), (zeros(3, dtype="uint16"),), errors.DTypeMismatch, "K411")


def test_dtype_of_narrow_types():
    fp8 = tensor("A", "m", dtype="float8_e4m3fn")
    texts = ("must be float8_e4m3fn, found float8_e5m2", "an array of float8_e4m3fn or uint8, or declare")
    refused((fp8,), (zeros(3, dtype=ml_dtypes.float8_e5m2),), errors.DTypeMismatch, "K411", *texts)


@pytest.mark.parametrize("name", ["int4", "uint4", "float4_e2m1fn"])
def test_unpacked_4_bit_arrays(name):
    texts = (
        f"must be {name}, found {name} (one element per byte)",
        "two elements per byte, low nibble first",
        "c[..., 0::2] & 15 |",
    )
    array = np.zeros(4, getattr(ml_dtypes, name))
    refused((tensor("A", 8, dtype=name),), (array,), errors.DTypeMismatch, "K411", *texts)


def test_packed_extent():
    texts = ("A.shape[0] must be 8, found 6 (3 bytes of two elements)", "whose extent in bytes is 4")
    params = (tensor("A", 8, dtype="int4"),)
    refused(params, (zeros(3, dtype="uint8"),), errors.ShapeMismatch, "K407", *texts)


def test_contiguity():
    texts = ("argument 'A' must have strides of contiguous row-major memory", "found (1, 3)", "T.StridedTensor")
    refused((A,), (np.asfortranarray(np.ones((3, 4), "float32")),), errors.StrideMismatch, "K412", *texts)


@pytest.mark.parametrize("strides", [None, ("s",)])
def test_negative_strides(strides):
    texts = ("negative strides are never accepted", "found (-1,)")
    params = (tensor("A", "m", strides=strides),)
    refused(params, (zeros(4)[::-1],), errors.StrideMismatch, "K412", *texts)


def test_declared_strides():
    params = (tensor("A", "m", "n", strides=(("mul", 2, "n"), 1)),)
    texts = ("must have strides (2*n, 1) = (8, 1)", "found (4, 1) for shape (3, 4)")
    refused(params, (zeros(3, 4),), errors.StrideMismatch, "K412", *texts)


def test_declared_strides_that_are_constants():
    params = (tensor("A", 3, 4, strides=(8, 1)),)
    refused(params, (zeros(3, 4),), errors.StrideMismatch, "K412", "must have strides (8, 1) (in elements)")


def test_strides_of_no_whole_elements():
    record = np.zeros(4, np.dtype([("x", "float32"), ("y", "int16")]))
    texts = ("bytes that are not a multiple of the element size",)
    refused((tensor("A", "m"),), (record["x"],), errors.StrideMismatch, "K412", *texts)
    refused((tensor("A", "m", strides=("s",)),), (record["x"],), errors.StrideMismatch, "K412", *texts)


def test_alignment():
    odd = np.zeros(9, "uint8")[1:].view("float32")
    texts = ("argument 'A' must start at a multiple of 4 bytes, found address 0x",)
    refused((tensor("A", "m"),), (odd,), errors.Misaligned, "K413", *texts)
    memory = np.zeros(64, "float32")
    start = (-(memory.ctypes.data // 4)) % 16
    text = "must start at a multiple of 64 bytes"
    refused((tensor("A", "m", align=64),), (memory[start + 1 : start + 3],), errors.Misaligned, "K413", text)


def test_alignment_is_checked_again_for_the_same_form(launch):
    memory = np.zeros(64, "float32")
    start = (-(memory.ctypes.data // 4)) % 16
    binder = Binder(Signature("f", (tensor("A", "m", align=64),)), launch)
    for count in range(1, 5):
        binder(memory[start : start + 2])
        with pytest.raises(errors.Misaligned):
            binder(memory[start + 1 : start + 3])
        assert len(launch.calls) == count


def test_device():
    texts = ("argument 'A' is on DLPack device type 99, number 2", "the runtime 'host' serves cpu")
    refused((tensor("A", "m"),), (Device(zeros(3), (99, 2)),), errors.WrongDevice, "K414", *texts)
    refused((tensor("A", "m"),), (Device(zeros(3), (9, 2)),), errors.WrongDevice, "K414", "is on vpi:2")


def test_two_devices():
    class Both(HostMemory):
        devices = frozenset({1, 99})

    args = (zeros(3), Device(zeros(3), (99, 2)))
    texts = ("argument 'B' is on DLPack device type 99, number 2", "but 'A' is on cpu")
    refused((tensor("A", "m"), tensor("B", "m")), args, errors.DeviceConflict, "K415", *texts, adapter=Both())


def test_read_only_output():
    array = zeros(3)
    array.flags.writeable = False
    texts = ("argument 'C' is written by the kernel, but it is a read-only NumPy array",)
    refused((tensor("C", "m", access="write"),), (array,), errors.ReadOnlyOutput, "K416", *texts)
    refused((tensor("C", "m", access="readwrite"),), (array,), errors.ReadOnlyOutput, "K416", *texts)


def test_read_only_dlpack_output():
    class ReadOnly:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **options):
            array = zeros(3)
            array.flags.writeable = False
            return array.__dlpack__(**options)

    params = (tensor("C", "m", access="write"),)
    refused(params, (ReadOnly(),), errors.ReadOnlyOutput, "K416", "it is exported as read-only", "compile with out_idx")


def test_immutable_output():
    class Array(Device):
        __module__ = "jax.arrays"

    params = (tensor("C", "m", access="write"),)
    text = "it is an immutable jax array"
    refused(params, (Array(zeros(3), (1, 0)),), errors.ReadOnlyOutput, "K416", text, "compile with out_idx")


def test_gradient_text():
    error = errors.GradientOutput(kernel="f", name="C")
    assert str(error).startswith("[K417] f: argument 'C' is written by the kernel, but it requires a gradient")
    assert "pass C.detach()" in str(error)


OVERLAPS = {
    "same": lambda x: (x[:4], x[:4]),
    "shifted": lambda x: (x[:4], x[1:5]),
    "other view": lambda x: (x[:4], x[:4].reshape(2, 2).reshape(4)),
    "one owner": lambda x: (x, x[:]),
}


@pytest.mark.parametrize("name", OVERLAPS)
def test_overlap(name):
    a, c = OVERLAPS[name](zeros(8))
    params = (tensor("A", "m"), tensor("C", "m", access="write"))
    texts = ("argument 'C' is written and shares memory with argument 'A'", "pass a copy")
    refused(params, (a, c), errors.Overlap, "K418", *texts)


def test_overlap_across_libraries():
    memory = zeros(3)
    params = (tensor("A", "m"), tensor("C", "m", access="write"))
    refused(params, (Device(memory, (1, 0)), memory), errors.Overlap, "K418", "argument 'A'")


@pytest.mark.parametrize("owner", [True, False])
def test_overlap_is_checked_again_for_the_same_form(launch, owner):
    binder = Binder(Signature("f", (tensor("A", "m"), tensor("C", "m", access="write"))), launch)
    a, c = (zeros(4), zeros(4)) if owner else (zeros(8)[:4], zeros(8)[4:])
    for count in range(1, 5):
        binder(a, c)
        with pytest.raises(errors.Overlap):
            binder(a, a)
        assert len(launch.calls) == count


def test_two_reads_of_one_array_are_fine(launch):
    binder = Binder(Signature("f", (tensor("A", "m"), tensor("B", "m"), tensor("C", "m", access="write"))), launch)
    a = zeros(4)
    for _ in range(4):
        binder(a, a, zeros(4))
    assert len(launch.calls) == 4


def test_interleaved_columns_do_not_overlap(launch):
    params = (tensor("A", "m", strides=("s",)), tensor("C", "m", strides=("s",), access="write"))
    binder = Binder(Signature("f", params), launch)
    x = zeros(8)
    binder(x[::2], x[1::2])
    with pytest.raises(errors.Overlap):
        binder(x[:6:2], x[2::2])


def test_self_overlap():
    window = np.lib.stride_tricks.as_strided(zeros(5), (3, 3), (4, 4))
    params = (tensor("C", "m", "n", strides=("s", "t"), access="write"),)
    texts = ("elements of the written argument 'C' may share memory (shape (3, 3), strides (1, 1))",)
    refused(params, (window,), errors.SelfOverlap, "K419", *texts)


SCALARS = [
    ("int32", 1.0, "an int (int32), found float 1.0"),
    ("int32", True, "an int (int32), found bool True"),
    ("int32", np.float32(2), "an int (int32), found float32"),
    ("int32", "3", "found str '3'"),
    ("int32", np.zeros(()), "found ndarray"),
    ("float32", False, "a float or an int (float32), found bool False"),
    ("float32", 1j, "found complex"),
    ("float32", None, "found NoneType None"),
    ("bool", 1, "a bool (bool), found int 1"),
]


@pytest.mark.parametrize(("dtype", "value", "text"), SCALARS)
def test_scalar_type(dtype, value, text):
    refused((Param("s", "scalar", dtype),), (value,), errors.ScalarType, "K420", "argument 's' must be", text)


RANGES = [
    ("int32", 2**31, "from -2147483648 to 2147483647, found 2147483648"),
    ("int32", -(2**31) - 1, "found -2147483649"),
    ("uint8", -1, "from 0 to 255, found -1"),
    ("uint8", np.int64(256), "found 256"),
    ("int64", 2**63, "found 9223372036854775808"),
    ("float16", 65536.0, "a float16 from -65504.0 to 65504.0"),
    ("float32", 1e39, "found 1e+39"),
    ("float32", 10**400, "found 1000"),
]


@pytest.mark.parametrize(("dtype", "value", "text"), RANGES)
def test_scalar_range(dtype, value, text):
    refused((Param("s", "scalar", dtype),), (value,), errors.ScalarRange, "K421", "argument 's' must be a", text)


def test_scalar_range_is_checked_again_for_the_same_form(launch):
    binder = Binder(Signature("f", (Param("s", "scalar", "int8"),)), launch)
    binder(127)
    with pytest.raises(errors.ScalarRange):
        binder(128)
    assert launch.calls == [(127,)]


def test_too_many_elements():
    array = np.empty(2**31, "uint8")  # never touched, so it takes no memory
    texts = ("argument 'A' spans 2147483648 elements, at most 2147418111 fit 32-bit indices",)
    refused((tensor("A", "m", dtype="uint8"),), (array,), errors.TooManyElements, "K422", *texts)
    wide = np.broadcast_to(np.float32(0), (2**40,))
    binder = Binder(Signature("f", (tensor("A", "m", strides=(0,)),), index_bits=64), lambda *_: None)
    binder(wide)


def test_too_many_elements_of_an_output():
    params = (Param("n", "scalar", "int64"), tensor("C", "n", access="write"))
    texts = ("argument 'C' spans 4294967296 elements",)
    refused(params, (2**32,), errors.TooManyElements, "K422", *texts, out_idx=(1,))


@pytest.mark.parametrize("value", [-1, 2**64, True, 1.5, "p", None])
def test_pointer(value):
    texts = ("argument 'p' must be a pointer", "ctypes.c_void_p")
    refused((Param("p", "pointer", "float32"),), (value,), errors.BadPointer, "K423", *texts)


def test_pointer_alignment():
    refused((Param("p", "pointer", "float32"),), (4098,), errors.Misaligned, "K413", "multiple of 4 bytes")
    Binder(Signature("f", (Param("p", "pointer", "int4"),)), lambda *_: None)(4097)


def test_byte_order():
    swapped = np.zeros(3, np.dtype("float32").newbyteorder("S"))
    texts = ("argument 'A' has elements in non-native byte order", "newbyteorder('=')")
    refused((tensor("A", "m"),), (swapped,), errors.ByteOrder, "K424", *texts)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.array([None]), "its elements are object"),
        (np.zeros(3, "f4,i4"), "not numbers"),
        (np.ma.masked_array([1.0, 2.0], [0, 1]), "masked array"),
    ],
)
def test_arrays_without_plain_memory(value, text):
    refused((tensor("A", "m"),), (value,), errors.UnsupportedArray, "K425", "argument 'A' cannot be passed", text)


def test_failing_dlpack_export():
    class Broken:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **_):
            raise BufferError("not today")

    class Strange(Broken):
        def __dlpack__(self, **_):
            return 3

    refused((tensor("A", "m"),), (Broken(),), errors.UnsupportedArray, "K425", "does not export it: not today")
    refused((tensor("A", "m"),), (Strange(),), errors.UnsupportedArray, "K425", "did not return a DLPack capsule")


def test_output_in_a_library_that_cannot_allocate():
    params = (tensor("A", "m"), tensor("C", "m", access="write"))
    texts = ("output 'C' cannot be allocated as an array of", "has no from_dlpack", "compile without out_idx")
    refused(params, (Device(zeros(3), (1, 0)),), errors.CannotAllocate, "K426", *texts, out_idx=(1,))


@pytest.mark.parametrize(
    ("out_idx", "text"),
    [
        (4, "4 is not a position of 4 parameters"),
        ([-5], "-5 is not a position"),
        ([2, -2], "parameter 'C' is named twice"),
        (0, "parameter 'A' is never written"),
        (1, "parameter 'n' is not an array"),
        (3, "parameter 'D' is read too, perhaps before it is written"),
        (["C"], "'C' is not a position"),
    ],
)
def test_out_idx(out_idx, text):
    params = (
        tensor("A", "m"),
        Param("n", "scalar", "int32"),
        tensor("C", "m", access="write"),
        tensor("D", "m", access="readwrite"),
    )
    with pytest.raises(errors.BadOutIdx) as caught:
        normalise_out_idx("f", params, out_idx)
    assert str(caught.value).startswith("[K427] f: out_idx ")
    assert text in str(caught.value)
    assert ("T.alloc_fragment" if out_idx == 3 else "from -4 to 3") in caught.value.help


def test_refusals_carry_the_location_of_the_kernel():
    binder = Binder(Signature("f", (tensor("A", "m"),), where=Where("kernel.py", 7)), print)
    for args, kwargs in (((), {}), ((zeros(1, 1),), {}), ((), {"Q": 1})):
        with pytest.raises(errors.LaunchError, match=r"--> kernel.py:7"):
            binder(*args, **kwargs)


def test_every_class_of_the_area_has_a_code_of_its_own():
    classes = [c for c in vars(errors).values() if isinstance(c, type) and c.__module__ == errors.__name__]
    codes = [c.code for c in classes]
    assert len(set(codes)) == len(codes)
    for c in classes:
        assert c is errors.LaunchError or (c.template and c.remedy and c.__doc__)
