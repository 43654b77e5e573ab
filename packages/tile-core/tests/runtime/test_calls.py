"""Test launches with legal arguments: memory, storage types and requested outputs."""

import ctypes
import sys
import types

import ml_dtypes
import numpy as np
import pytest

from tile_core.abi.adapter import HostMemory, Location, RuntimeAdapter
from tile_core.abi.signature import Param, Signature
from tile_core.dtypes import DTYPES
from tile_core.errors.launch import (
    CannotAllocate,
    DTypeMismatch,
    NotAnArray,
    Overlap,
    RankMismatch,
    ReadOnlyOutput,
    StrideMismatch,
    SymbolConflict,
    WrongDevice,
)
from tile_runtime.calls import dlpack
from tile_runtime.calls.arguments import normalise_out_idx
from tile_runtime.calls.binder import Binder


def tensor(name, *shape, dtype="float32", access="read", **more):
    return Param(name, "tensor", dtype, shape, access=access, **more)


def address(array):
    return array.__array_interface__["data"][0]


def often(binder, *args, **kwargs):
    """Make four calls: checked, checked again, by the form's function, and by its key."""
    first = binder(*args, **kwargs)
    binder(*args, **kwargs)
    binder(*args, **kwargs)
    last = binder(*args, **kwargs) if kwargs else binder.call_by_key(args)
    assert type(first) is type(last)
    return last


def test_arrays_pass_as_they_are(gemm, launch):
    a, b, c = np.zeros((2, 3), "f4"), np.zeros((3, 5), "f4"), np.zeros((2, 5), "f4")
    binder = Binder(gemm, launch)
    assert often(binder, a, b, c) is None
    assert often(binder, a, B=b, C=c) is None
    assert len(launch.calls) == 8
    for call in launch.calls:
        assert all(x is y for x, y in zip(call, (a, b, c), strict=True))


def test_many_shapes(gemm, launch):
    binder = Binder(gemm, launch)
    for m in range(300):
        binder(np.zeros((m, 1), "f4"), np.zeros((1, 0), "f4"), np.zeros((m, 0), "f4"))
    assert len(launch.calls) == 300


NAMES = [n for n in DTYPES if not DTYPES[n].is_packed]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("writable", [True, False])
def test_every_dtype_arrives_as_its_storage_without_a_copy(launch, name, writable):
    dtype = DTYPES[name]
    array = np.arange(6).reshape(2, 3).astype(dtype.numpy())
    array.flags.writeable = writable
    often(Binder(Signature("f", (tensor("A", "m", "n", dtype=name),)), launch), array)
    for (value,) in launch.calls:
        assert value.dtype.name == dtype.storage
        assert address(value) == address(array)
        assert value.shape == (2, 3)
        assert value.tobytes() == array.tobytes()
        value.__dlpack__()  # what an adapter needs: also of read-only memory and of ml_dtypes' types
    assert array.flags.writeable is writable


def test_uint8_storage_of_narrow_floats(launch):
    array = np.arange(4, dtype="uint8")
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e8m0fnu"):
        often(Binder(Signature("f", (tensor("A", 4, dtype=name),)), launch), array)
        assert launch.last[0] is array


@pytest.mark.parametrize("name", ["int4", "uint4", "float4_e2m1fn"])
@pytest.mark.parametrize("storage", ["uint8", "int8"])
def test_packed_types(launch, name, storage):
    signature = Signature("f", (tensor("A", "m", "n", dtype=name), tensor("B", "n")))
    array = np.zeros((3, 4), storage)
    often(Binder(signature, launch), array, np.zeros(8, "f4"))
    assert launch.last[0].dtype == np.uint8
    assert address(launch.last[0]) == address(array)
    odd = Binder(Signature("f", (tensor("A", 7, dtype=name),)), launch)
    often(odd, np.zeros(4, storage))


def test_rank_0_and_empty_arrays(launch):
    often(Binder(Signature("f", (tensor("A"),)), launch), np.zeros((), "f4"))
    empty = np.zeros((0, 3), "f4")
    binder = Binder(Signature("f", (tensor("A", "m", "n"), tensor("C", "m", "n", access="write"))), launch)
    often(binder, empty, empty)  # no bytes, so nothing overlaps
    often(binder, np.zeros((3, 0), "f4")[::-1], np.zeros((3, 0), "f4"))


def test_axes_of_extent_1_have_any_stride(launch):
    array = np.zeros((4, 6), "f4")[:1, ::6]
    often(Binder(Signature("f", (tensor("A", "m", "n"),)), launch), array)
    strided = Binder(Signature("f", (tensor("A", "m", "n", strides=(8, 1)),)), launch)
    often(strided, array)


def test_strided_tensors(launch):
    array = np.zeros((4, 6), "f4")[:, ::2]
    binder = Binder(Signature("f", (tensor("A", "m", "n", strides=("s", "t")),)), launch)
    bound = binder.bind(array)
    assert bound.values[0] is array
    often(binder, array)
    often(binder, np.broadcast_to(np.float32(1), (4, 3)))
    assert launch.last[0].strides == (0, 0)


def test_scalars(launch):
    params = [Param(n, "scalar", t) for n, t in (("i", "int32"), ("x", "float32"), ("b", "bool"), ("u", "uint64"))]
    binder = Binder(Signature("f", tuple(params)), launch)
    for args in ((1, 2.5, True, 3), (np.int8(1), np.float16(2.5), np.bool_(True), np.uint64(3))):
        often(binder, *args)
        assert launch.last == (1, 2.5, True, 3)
        assert [type(v) for v in launch.last] == [int, float, bool, int]
    often(binder, -1, 2, False, 2**64 - 1)
    assert launch.last == (-1, 2.0, False, 2**64 - 1)
    assert type(launch.last[1]) is float
    often(binder, -1, float("inf"), False, 0)
    assert launch.last[1] == float("inf")
    often(binder, -1, float("nan"), False, 0)
    assert launch.last[1] != launch.last[1]
    often(binder, -1, ml_dtypes.bfloat16(1.5), False, 0)
    assert launch.last[1] == 1.5


def test_scalar_that_defines_a_symbol(launch):
    params = (Param("n", "scalar", "int32"), tensor("C", "n", access="write"))
    binder = Binder(Signature("f", params, (1,)), launch)
    assert [often(binder, n).shape for n in (3, 5, 0)] == [(3,), (5,), (0,)]


def test_pointers(launch):
    binder = Binder(Signature("f", (Param("p", "pointer", "float32"),)), launch)
    array = np.zeros(4, "f4")
    for value in (address(array), ctypes.c_void_p(address(array)), array):
        often(binder, value)
        assert type(launch.last[0]) is ctypes.c_void_p
        assert launch.last[0].value == address(array)
    often(binder, 0)
    assert launch.last[0].value is None


class Foreign:
    """An array of a library with DLPack."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, max_version=None, **options):
        strides = tuple(s // self.array.itemsize for s in self.array.strides)
        where = (address(self.array), self.device, self.array.shape, strides, self.array.dtype.name, self.array)
        return dlpack.export(*where, max_version=max_version, read_only=not self.array.flags.writeable)


def test_foreign_arrays_arrive_as_numpy_aliases(launch):
    array = np.arange(6, dtype="f4").reshape(2, 3)
    out = np.zeros((2, 3), "f4")
    binder = Binder(Signature("f", (tensor("A", "m", "n"), tensor("C", "m", "n", access="write"))), launch)
    often(binder, Foreign(array), Foreign(out))
    a, c = launch.last
    c[...] = a
    assert np.array_equal(out, array)


@pytest.mark.parametrize("shapes", [1, 6])
def test_calls_with_arrays_of_several_libraries(launch, shapes):
    """Neither the order of calls nor the number of forms mixes up arguments or skips a check."""
    binder = Binder(Signature("f", (tensor("A", "m"), tensor("C", "m", access="write"))), launch)
    pairs = [(np.zeros(n, "f4"), np.zeros(n, "f4")) for n in range(1, shapes + 1)]
    for _ in range(4):
        for a, c in pairs:
            for args in ((a, c), (Foreign(a), Foreign(c)), (a, Foreign(c)), (Foreign(a), c)):
                binder(*args)
                assert [address(v) for v in launch.last] == [address(a), address(c)]
                assert [v.shape for v in launch.last] == [a.shape, c.shape]
    a, c = pairs[-1]
    read_only = np.zeros_like(c)
    read_only.flags.writeable = False
    count = len(launch.calls)
    for error, args in (
        (DTypeMismatch, (Foreign(a.astype("f8")), Foreign(c))),
        (SymbolConflict, (Foreign(a), Foreign(np.zeros(9, "f4")))),
        (RankMismatch, (Foreign(a[None]), Foreign(c))),
        (StrideMismatch, (Foreign(np.zeros(14, "f4")[::2]), Foreign(np.zeros(7, "f4")))),
        (ReadOnlyOutput, (Foreign(a), Foreign(read_only))),
        (WrongDevice, (Foreign(a, (2, 0)), Foreign(c, (2, 0)))),
        (Overlap, (Foreign(c), Foreign(c))),
        (NotAnArray, (Foreign(a), "C")),
    ):
        for _ in range(2):
            with pytest.raises(error):
                binder(*args)
    assert len(launch.calls) == count


def test_out_idx_of_one_output(gemm, launch):
    binder = Binder(Signature(gemm.name, gemm.params, normalise_out_idx("gemm", gemm.params, [-1])), launch)
    c = often(binder, np.zeros((2, 3), "f4"), np.zeros((3, 5), "f4"))
    assert type(c) is np.ndarray
    assert c.shape == (2, 5)
    assert c.dtype == np.float32
    assert launch.last[2] is c
    assert launch.calls[0][2] is not c


def test_out_idx_of_several_outputs_listed_before_the_inputs(launch):
    params = (
        tensor("D", ("mul", 2, "m"), dtype="bfloat16", access="write"),
        tensor("A", "m"),
        tensor("E", ("ceildiv", "m", 4), 3, dtype="int4", access="write"),
    )
    binder = Binder(Signature("f", params, normalise_out_idx("f", params, (-1, 0))), launch)
    a = np.zeros(5, "f4")
    e, d = often(binder, a)
    assert d.shape == (10,)
    assert d.dtype == ml_dtypes.bfloat16
    assert e.shape == (2, 2)
    assert e.dtype == np.uint8
    assert [address(v) for v in launch.last] == [address(d), address(a), address(e)]
    assert launch.last[0].dtype == np.uint16
    assert [x is y for x, y in zip(binder.bind(a).arrays, (0, a, 0), strict=True)] == [False, True, False]


def test_outputs_without_array_inputs_are_numpy(launch):
    binder = Binder(Signature("f", (tensor("C", 3, access="write"),), (0,)), launch)
    assert type(often(binder)) is np.ndarray


def test_pointer_convention():
    calls = []

    class Pointers(RuntimeAdapter):
        name, convention = "pointers", "pointers"

        def load(self, artefact):
            return artefact

        def synchronize(self):
            pass

    params = (tensor("A", "m", "k"), Param("s", "scalar", "float32"), tensor("C", "k", access="write"))
    binder = Binder(Signature("f", params, (2,)), lambda values, location: calls.append((values, location)), Pointers())
    a = np.zeros((2, 3), "f4")
    c = often(binder, a, 2)
    assert calls[3] == ((address(a), 2.0, address(c), 2, 3), Location((1, 0), "numpy"))

    binder = Binder(binder.signature, binder.launch, Pointers(), ("k",))
    c = often(binder, a, 2)
    assert calls[7] == ((address(a), 2.0, address(c), 3), Location((1, 0), "numpy"))


def test_adapter_that_allocates(gemm, launch):
    class Own(HostMemory):
        def allocate(self, library, shape, dtype, device):
            return np.full(shape, 7, dtype)

    binder = Binder(Signature(gemm.name, gemm.params, (2,)), launch, Own())
    assert (often(binder, np.zeros((2, 3), "f4"), np.zeros((3, 5), "f4")) == 7).all()


@pytest.fixture
def library(monkeypatch):
    """A library of immutable arrays that adopts memory through DLPack; ``library.copies`` makes it copy instead."""
    module = types.ModuleType("jax")
    module.copies = False

    class Array:
        __module__ = "jax.arrays"

        def __init__(self, array):
            self.array = np.array(array) if module.copies else np.from_dlpack(array)

        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

    module.from_dlpack = Array
    monkeypatch.setitem(sys.modules, "jax", module)
    return module


def test_outputs_of_a_library_that_adopts_memory(library, launch):
    binder = Binder(Signature("f", (tensor("A", "m"), tensor("C", "m", access="write")), (1,)), launch)
    out = often(binder, library.from_dlpack(np.zeros(5, "f4")))
    launch.last[1][...] = 3
    assert type(out) is library.from_dlpack
    assert (out.array == 3).all()
    assert address(launch.last[1]) % 64 == 0


def test_outputs_of_a_library_that_copies_are_refused(library, launch):
    library.copies = True
    binder = Binder(Signature("f", (tensor("A", "m"), tensor("C", "m", access="write")), (1,)), launch)
    with pytest.raises(CannotAllocate, match="copies instead of sharing"):
        binder(library.from_dlpack(np.zeros(5, "f4")))
    assert launch.calls == []
