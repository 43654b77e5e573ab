"""Test capsules of runtime memory: their content, and the lifetime of the memory."""

import ctypes
import gc
import weakref

import numpy as np
import pytest

from tile_core.abi.adapter import HostMemory
from tile_core.abi.signature import Param, Signature
from tile_core.dtypes import DTYPES
from tile_core.errors import TileError
from tile_core.errors.launch import ReadOnlyOutput
from tile_runtime.calls import dlpack
from tile_runtime.calls.arrays import facts_of, share_memory
from tile_runtime.calls.binder import Binder

TYPES = sorted(name for name, kind in DTYPES.items() if not kind.is_packed and name != "tfloat32")


class Owner:
    pass


class Exported:
    """Host memory as a library of its own would offer it."""

    def __init__(self, array, dtype=None, device=(1, 0), **how):
        self.array, self.dtype, self.device, self.how = array, dtype or array.dtype.name, device, how
        self.owner = Owner()

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        strides = tuple(s // self.array.itemsize for s in self.array.strides)
        where = (self.array.ctypes.data, self.device, self.array.shape, strides, self.dtype, (self.owner, self.array))
        return dlpack.export(*where, max_version=max_version, **self.how)


class Old(Exported):
    """One that knows nothing of versions."""

    def __dlpack__(self, *, stream=None):
        return super().__dlpack__()


def drawn(seed, shape, kind):
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 256, int(np.prod(shape)) * kind.itemsize, dtype=np.uint8)
    return (raw % 2 if kind.kind == "b" else raw).view(kind).reshape(shape)


@pytest.mark.parametrize("library", [Exported, Old])
@pytest.mark.parametrize("dtype", TYPES)
def test_the_binder_reads_every_element_type(library, dtype):
    array = drawn(1, (7, 5), DTYPES[dtype].numpy())
    facts = facts_of(library(array[:, 1:], device=(2, 3)))
    assert (facts.dtype, facts.itemsize, facts.shape, facts.strides) == (dtype, array.itemsize, (7, 4), (5, 1))
    assert (facts.device, facts.pointer, facts.writable) == ((2, 3), array.ctypes.data + array.itemsize, True)


@pytest.mark.parametrize("library", [Exported, Old])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64", "float16", "float32", "float64", "bool"])
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (5, 7)])
def test_numpy_takes_it(library, dtype, shape):
    array = drawn(2, shape, np.dtype(dtype))
    taken = np.from_dlpack(library(array))
    assert (taken.dtype, taken.shape) == (array.dtype, shape)
    assert taken.tobytes() == array.tobytes()
    assert not array.size or taken.ctypes.data == array.ctypes.data


def test_strides_arrive():
    array = drawn(3, (6, 8), np.dtype("int32"))[::2, ::-3]
    np.testing.assert_array_equal(np.from_dlpack(Exported(array)), array)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "uint8", "bool"])
def test_torch_takes_it(dtype):
    torch = pytest.importorskip("torch")
    array = drawn(4, (5, 3), DTYPES[dtype].numpy())
    taken = torch.from_dlpack(Exported(array))
    assert (str(taken.dtype), tuple(taken.shape)) == (f"torch.{dtype}", (5, 3))
    assert taken.data_ptr() == array.ctypes.data


def test_read_only_memory():
    array = np.arange(3)
    assert facts_of(Exported(array, read_only=True)).why_read_only == "exported as read-only"
    assert not np.from_dlpack(Exported(array, read_only=True)).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        Exported(array, read_only=True).__dlpack__()


class TestLife:
    @pytest.mark.parametrize("version", [None, (1, 0)])
    def test_a_capsule_that_nobody_takes(self, version):
        gc.collect()
        value = Exported(np.arange(3))
        owner, before = weakref.ref(value.owner), len(dlpack._alive)
        capsule = value.__dlpack__(max_version=version)
        del value
        gc.collect()
        assert owner() is not None
        del capsule
        gc.collect()
        assert owner() is None
        assert len(dlpack._alive) == before

    @pytest.mark.parametrize("library", [Exported, Old])
    def test_memory_that_a_library_took(self, library):
        value = library(np.arange(1000))
        owner = weakref.ref(value.owner)
        taken = np.from_dlpack(value)
        view = taken[5:]
        del value, taken
        gc.collect()
        assert owner() is not None
        assert view[0] == 5
        del view
        gc.collect()
        assert owner() is None

    def test_many(self):
        before = len(dlpack._alive)
        array = np.arange(10)
        for _ in range(500):
            facts_of(Exported(array))
            np.from_dlpack(Exported(array))
        gc.collect()
        assert len(dlpack._alive) == before


@pytest.mark.parametrize("dtype", ["complex", "float", "text", "tfloat32", "int4x2"])
def test_types_without_a_code(dtype):
    with pytest.raises(BufferError, match=dtype):
        dlpack.code_of(dtype)


def test_the_structures_have_the_sizes_of_the_specification():
    assert [ctypes.sizeof(s) for s in (dlpack.DLTensor, dlpack.Managed, dlpack.Versioned)] == [48, 64, 80]


class Handled(Exported):
    """Memory of a device whose buffers have handles: data is one, and byte_offset says where in the buffer."""

    def __init__(self, array, handle, offset=0, device=(8, 0)):
        super().__init__(array, device=device)
        self.handle, self.offset = handle, offset

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        strides = tuple(s // self.array.itemsize for s in self.array.strides)
        where = (self.handle, self.device, self.array.shape, strides, self.dtype, self.array)
        return dlpack.export(*where, max_version=max_version, byte_offset=self.offset)


@pytest.mark.parametrize("kind", sorted(dlpack.HANDLE_DEVICES))
def test_handles_are_no_addresses(kind):
    """Handles of two buffers may be closer together than the buffers are long."""
    array = np.zeros(1000, np.float32)
    first, second = (facts_of(Handled(array, handle, device=(kind, 0))) for handle in (0x1000, 0x1010))
    assert (first.handle, first.pointer, second.handle) == (0x1000, 0, 0x1010)
    assert not share_memory(first, second)
    parts = [facts_of(Handled(array[:10], 0x1000, offset, (kind, 0))) for offset in (0, 36, 40)]
    assert [part.pointer for part in parts] == [0, 36, 40]
    assert share_memory(parts[0], parts[1])
    assert not share_memory(parts[0], parts[2])


def test_an_offset_on_other_devices_is_part_of_the_address():
    facts = facts_of(Handled(np.zeros(4, np.float32), 0x1000, 12, (2, 0)))
    assert (facts.pointer, facts.handle) == (0x100C, 0)


@pytest.mark.parametrize("access", ["write", "readwrite"])
def test_immutable_arrays_that_a_runtime_renews(launch, access):
    class Array(Exported):
        __module__ = "jax.arrays"

    class Other(Exported):
        __module__ = "mlx.core"

    class Renews(HostMemory):
        renews = frozenset({"jax"})

    signature = Signature("f", (Param("C", "tensor", "float32", ("m",), access=access),))
    call = Binder(signature, launch, Renews())
    call(Array(np.zeros(3, np.float32)))
    assert len(launch.calls) == 1
    with pytest.raises(ReadOnlyOutput, match="an immutable mlx array"):
        call(Other(np.zeros(3, np.float32)))
    with pytest.raises(ReadOnlyOutput, match="an immutable jax array"):
        Binder(signature, launch)(Array(np.zeros(3, np.float32)))
    with pytest.raises(ReadOnlyOutput, match="exported as read-only"):
        call(Exported(np.zeros(3, np.float32), read_only=True))


def test_devices_are_named_as_dlpack_names_them():
    from tile_core.compat.tvm import tvm_ffi
    from tile_runtime.compat.devices import device_name

    for kind in range(1, 32):
        try:
            name = str(tvm_ffi.Device(kind, 0)).rpartition(":")[0]
        except (KeyError, ValueError):
            name = f"DLPack device type {kind}"
        assert device_name(kind) == name


def _set(**fields):
    """Return a change of a capsule's tensor."""

    def change(managed):
        for name, value in fields.items():
            setattr(managed.tensor, name, value)

    return change


def _extent(axis, value, stride=None):
    def change(managed):
        managed.tensor.shape[axis] = value
        if stride is not None:
            managed.tensor.strides[axis] = stride

    return change


NO_INTEGERS = ctypes.POINTER(ctypes.c_int64)()
#: What a capsule may say of a (5, 7) array of float32 without it being true, and the error's code.
MALFORMED = {
    "no memory": (_set(data=None), "K425"),
    "no memory, but an offset": (_set(data=None, byte_offset=64), "K425"),
    "no extents": (_set(shape=NO_INTEGERS), "K425"),
    "a negative rank": (_set(ndim=-1), "K425"),
    "an absurd rank": (_set(ndim=2**31 - 1), "K425"),
    "a negative extent": (_extent(1, -7), "K425"),
    "the least extent": (_extent(0, -(2**63)), "K425"),
    "an absurd extent": (_extent(0, 2**63 - 1), "K425"),
    "extents whose product wraps": (_extent(0, 2**61), "K425"),
    "a stride beyond all memory": (_extent(0, 5, 2**62), "K425"),
    "a stride below all memory": (_extent(0, 5, -(2**61)), "K425"),
    "an offset beyond all memory": (_set(byte_offset=2**64 - 8), "K425"),
    "elements without bits": (_set(bits=0), "K425"),
    "elements without lanes": (_set(lanes=0), "K425"),
    "another version": (lambda managed: setattr(managed, "major", 2), "K425"),
    "elements of an unknown type": (_set(code=99), "K411"),
    "elements of another width": (_set(bits=64), "K411"),
    "vectors": (_set(lanes=4), "K411"),
    "an unknown device": (_set(device_type=999), "K414"),
    "a negative device": (_set(device_type=-3), "K414"),
}


class Malformed(Exported):
    """A library whose capsules are wrong."""

    def __init__(self, array, change):
        super().__init__(array)
        self.change = change

    def __dlpack__(self, **how):
        capsule = super().__dlpack__(**{**how, "max_version": (1, 1)})
        self.change(next(reversed(dlpack._alive.values()))[0])
        return capsule


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("found", MALFORMED)
def test_malformed_capsules_are_refused_before_they_are_used(found, writes):
    change, code = MALFORMED[found]
    launched = []
    param = Param("A", "tensor", "float32", ("n", 7), access="write" if writes else "read")
    binder = Binder(Signature("k", (param,)), lambda *values: launched.append(values), HostMemory())
    array = np.ones((5, 7), "float32")
    binder(array)
    for _ in range(2):
        with pytest.raises(TileError) as caught:
            binder(Malformed(array, change))
        assert caught.value.code == code
    assert len(launched) == 1
    assert (array == 1).all()


def test_a_capsule_of_empty_memory_needs_no_address():
    array = np.ones((0, 7), "float32")
    assert facts_of(Malformed(array, _set(data=None))).shape == (0, 7)


class TestRepeatedCalls:
    """Calls with arrays of another library take the form of NumPy's arrays, and refuse the same."""

    signature = Signature(
        "double",
        (Param("A", "tensor", "float32", ("n",)), Param("B", "tensor", "float32", ("n",), access="write")),
    )

    @pytest.fixture
    def double(self, monkeypatch):
        checked = []
        monkeypatch.setattr(
            Binder, "_checked", lambda self, args, full=Binder._checked: checked.append(args) or full(self, args)
        )
        binder = Binder(self.signature, lambda a, b: np.multiply(a, 2, out=b))
        binder.checked = checked
        return binder

    @pytest.mark.parametrize("library", [Exported, Old])
    def test_repeated_calls_skip_the_full_checks(self, double, library):
        for round_ in range(6):
            a, b = np.full(5, round_, "float32"), np.full(5, np.nan, "float32")
            double(library(a), Exported(b))
            np.testing.assert_array_equal(b, a * 2)
            if round_ == 2:
                seen = len(double.checked)
        assert len(double.checked) == (seen if library is Exported else len(double.checked))

    def test_others_are_refused_as_the_first_time(self, double):
        def arrays(size=5, kind="float32"):
            return np.ones(size, kind), np.full(5, np.nan, "float32")

        a, b = arrays()
        wrong = {
            "size": lambda: double(Exported(arrays(4)[0]), Exported(b)),
            "type": lambda: double(Exported(arrays(kind="float64")[0]), Exported(b)),
            "read-only": lambda: double(Exported(a), Exported(b, read_only=True)),
            "overlap": lambda: double(Exported(b), Exported(b)),
            "device": lambda: double(Exported(a, device=(2, 0)), Exported(b)),
        }
        before = {}
        for name, call in wrong.items():
            with pytest.raises(TileError) as caught:
                call()
            before[name] = str(caught.value)
        for _ in range(4):
            double(Exported(a), Exported(b))
            double(a, b)
            double(Exported(a), b)
        for name, call in wrong.items():
            with pytest.raises(TileError) as caught:
                call()
            assert str(caught.value) == before[name]

    def test_immutable_outputs_of_a_known_library_are_refused(self, double):
        class Array(Exported):
            __module__ = "mlx.core"

        a, b = np.ones(5, "float32"), np.zeros(5, "float32")
        for _ in range(4):
            double(Array(a), b)
            double(a, b)
        b[:] = 7
        with pytest.raises(ReadOnlyOutput, match="an immutable mlx array"):
            double(Array(a), Array(b))
        assert (b == 7).all()

    def test_types_that_numpy_lacks_are_checked_fully(self):
        params = (Param("A", "tensor", "bfloat16", ("n",)), Param("B", "tensor", "bfloat16", ("n",), access="write"))
        copy = Binder(Signature("copy", params), lambda a, b: np.copyto(b, a))
        for _ in range(4):
            a, b = drawn(3, (9,), DTYPES["bfloat16"].numpy()), np.zeros(9, DTYPES["bfloat16"].numpy())
            copy(Exported(a), Exported(b))
            assert a.tobytes() == b.tobytes()
