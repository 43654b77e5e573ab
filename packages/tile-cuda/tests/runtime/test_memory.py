"""Arrays copied by the adapter both ways, with a driver on host memory."""

import ctypes
import gc
import struct

import numpy as np
import pytest

from tile_core.abi.adapter import HostMemory, RuntimeAdapter
from tile_core.abi.signature import Param, Signature
from tile_core.dtypes import DTYPES
from tile_core.errors.launch import DeviceFault, MemoryDamaged, NotProvided, UnsupportedArray
from tile_core.runtime.kernel import Kernel, Origin
from tile_cuda.runtime import CudaAdapter
from tile_cuda.target import make_target
from tile_cuda_runtime.api import DriverUnusable
from tile_cuda_runtime.errors import DriverFailed, NoDevice, NoDriver
from tile_runtime.calls.arrays import facts_of
from tile_runtime.texts.guarded import GUARD

from ..texts import scale
from .fake import FakeDriver

TYPES = sorted(name for name, kind in DTYPES.items() if not kind.is_packed and name != "tfloat32")


@pytest.fixture
def driver():
    return FakeDriver()


@pytest.fixture
def adapter(driver):
    return CudaAdapter(make_target("sm_80"), lambda: driver)


def drawn(seed, shape, kind):
    kind = np.dtype(kind)
    raw = np.random.default_rng(seed).integers(0, 256, int(np.prod(shape)) * kind.itemsize, dtype=np.uint8)
    return (raw % 2 if kind.kind == "b" else raw).view(kind).reshape(shape)


class TestCopies:
    @pytest.mark.parametrize("dtype", TYPES)
    def test_every_bit_comes_back(self, adapter, dtype):
        array = drawn(1, (7, 13), DTYPES[dtype].numpy())
        there = adapter.from_host(array)
        back = adapter.to_host(there)
        assert (back.dtype, back.shape, back.strides) == (array.dtype, array.shape, array.strides)
        assert back.tobytes() == array.tobytes()
        facts = facts_of(there)
        assert (facts.dtype, facts.shape, facts.strides) == (dtype, (7, 13), (13, 1))
        assert (facts.device, facts.pointer, facts.library) == ((2, 0), there.pointer, "tile_cuda_runtime")
        assert facts.writable

    @pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 5), (2, 1, 3, 1, 2)])
    def test_shapes(self, adapter, shape):
        array = drawn(2, shape, "int16")
        there = adapter.from_host(array)
        assert facts_of(there).shape == shape
        np.testing.assert_array_equal(adapter.to_host(there), array)

    @pytest.mark.parametrize(
        "view",
        [np.s_[:, 1:], np.s_[::2, ::3], np.s_[1:-1, 2:5], np.s_[::-1], np.s_[:, ::-2], np.s_[3], np.s_[..., None]],
    )
    @pytest.mark.parametrize("transposed", [False, True])
    def test_strides(self, adapter, view, transposed):
        array = drawn(3, (9, 8), "float32")
        array = array.T[view] if transposed else array[view]
        there = adapter.from_host(array)
        back = adapter.to_host(there)
        assert back.strides == array.strides
        assert back.tobytes() == array.tobytes()
        assert facts_of(there).strides == tuple(s // 4 for s in array.strides)

    @pytest.mark.parametrize("at", range(0, 18, 2))
    def test_addresses_keep_their_alignment(self, adapter, at):
        raw = np.zeros(200, np.uint8)
        start = at + -raw.ctypes.data % 16
        array = raw[start : start + 20].view(np.uint16)
        assert adapter.from_host(array).pointer % 256 == at % 16

    def test_a_read_only_array(self, adapter):
        array = np.arange(3)
        array.setflags(write=False)
        assert facts_of(adapter.from_host(array)).writable

    def test_memory_lives_as_long_as_somebody_uses_it(self, adapter, driver):
        there = adapter.from_host(np.arange(3))
        capsule = there.__dlpack__(max_version=(1, 1))
        del there
        gc.collect()
        assert len(driver.memory) == 1
        del capsule
        gc.collect()
        assert not driver.memory

    def test_the_device_is_the_current_one(self, driver, adapter):
        driver.devices, driver.context = driver.devices * 3, 2
        there = adapter.from_host(np.arange(3))
        driver.context = 1
        assert there.__dlpack_device__() == (2, 2)
        assert adapter.to_host(there).tolist() == [0, 1, 2]
        assert ("entered", 2) in driver.calls
        assert driver.context == 1

    def test_other_streams_wait(self, adapter, driver):
        there = adapter.from_host(np.arange(3))
        there.__dlpack__(stream=1)
        assert ("synchronize", 0) not in driver.calls
        there.__dlpack__(stream=77)
        assert ("synchronize", 0) in driver.calls

    @pytest.mark.parametrize("how", [{"copy": True}, {"dl_device": (1, 0)}])
    def test_exports_that_would_copy(self, adapter, how):
        with pytest.raises(BufferError, match="without a copy"):
            adapter.from_host(np.arange(3)).__dlpack__(**how)


class TestGuards:
    @pytest.mark.parametrize(
        ("offset", "first"),
        [
            (-1, "1 bytes before the start"),
            (-GUARD, "256 bytes before"),
            (60, "0 bytes behind the end"),
            (62, "2 bytes"),
        ],
    )
    def test_writes_around_an_array(self, adapter, offset, first):
        there = adapter.from_host(np.zeros((3, 5), "float32"))
        ctypes.memset(there.pointer + offset, 7, 1)
        with pytest.raises(MemoryDamaged, match=rf"\[K437\] .*float32\(3, 5\) was written: 1 bytes, first {first}"):
            adapter.to_host(there)

    def test_writes_between_elements(self, adapter):
        there = adapter.from_host(np.zeros((4, 6), "int16")[:, :5])
        ctypes.memset(there.pointer, 1, 10)
        assert adapter.to_host(there)[0].tolist() == [257] * 5
        ctypes.memset(there.pointer + 10, 1, 1)
        with pytest.raises(MemoryDamaged, match="10 bytes behind the start"):
            adapter.to_host(there)

    def test_an_array_without_elements_has_guards(self, adapter):
        there = adapter.from_host(np.zeros((0, 5)))
        ctypes.memset(there.pointer, 1, 8)
        with pytest.raises(MemoryDamaged, match="8 bytes, first 0 bytes behind the end"):
            adapter.to_host(there)

    def test_all_bytes_of_elements(self, adapter):
        there = adapter.from_host(np.zeros((4, 6), "int16")[:, ::2])
        there.fill_bytes(0xFF)
        assert (adapter.to_host(there) == -1).all()


class TestRefusals:
    def test_strides_of_parts_of_elements(self, adapter):
        array = np.zeros(4, [("a", "int8"), ("b", "int32")])["b"]
        with pytest.raises(UnsupportedArray, match="not a multiple of the element size"):
            adapter.from_host(array)

    def test_records(self, adapter):
        with pytest.raises(UnsupportedArray):
            adapter.from_host(np.zeros(4, [("a", "int8")]))

    def test_arrays_of_somebody_else(self, adapter):
        with pytest.raises(NotProvided, match="did not make this ndarray"):
            adapter.to_host(np.zeros(3))

    @pytest.mark.parametrize(("code", "error"), [(2, DriverFailed), (700, DeviceFault)])
    @pytest.mark.parametrize("call", ["allocate", "upload", "synchronize", "download"])
    def test_the_driver(self, driver, adapter, call, code, error):
        driver.fail[call] = code
        with pytest.raises(error, match=f"CUDA_ERROR_{code}"):
            adapter.to_host(adapter.from_host(np.zeros(3)))

    def test_memory_of_a_lost_context(self, driver, adapter):
        there = adapter.from_host(np.zeros(3))
        driver.fail["release"] = 700
        del there
        gc.collect()
        assert driver.calls[-1][0] == "release"

    def test_no_driver(self):
        def missing():
            raise DriverUnusable("none here")

        with pytest.raises(NoDriver, match="none here"):
            CudaAdapter(make_target("sm_80"), missing).from_host(np.zeros(3))

    def test_no_device(self, adapter, driver):
        driver.devices = []
        with pytest.raises(NoDevice):
            adapter.from_host(np.zeros(3))


class TestKernels:
    """A kernel whose launches the driver executes as NumPy would."""

    PARAMS = (
        Param("x", "tensor", "float32", (300,)),
        Param("y", "tensor", "float32", (300,), access="write"),
    )

    @staticmethod
    def _kernel(adapter, driver, out_idx=(), factor=2.0):
        def meaning(x, y):
            y[...] = x * np.float32(2)

        loaded = adapter.load(scale())

        def launch(values, location):
            loaded((*values[:2], 2.0, 300), location)
            x, y = struct.unpack("<QQ", driver.launches[-1].values[:16])
            at = [(ctypes.c_float * 300).from_address(p) for p in (x, y)]
            np.frombuffer(at[1], "float32")[...] = np.frombuffer(at[0], "float32") * np.float32(factor)

        signature = Signature("scale", TestKernels.PARAMS, out_idx)
        return Kernel(signature, launch, adapter=adapter, hidden=(), origin=Origin(reference=meaning))

    def test_a_call(self, adapter, driver):
        x = drawn(5, (300,), "float32")
        a, b = adapter.from_host(x), adapter.from_host(np.zeros_like(x))
        self._kernel(adapter, driver)(a, b)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(adapter.to_host(b), x * np.float32(2))
        assert driver.launches[-1].stream == 0

    def test_an_output_that_the_call_allocates(self, adapter, driver):
        x = np.arange(300, dtype="float32")
        y = self._kernel(adapter, driver, (1,))(adapter.from_host(x))
        np.testing.assert_array_equal(adapter.to_host(y), x * 2)

    @pytest.mark.parametrize("out_idx", [(), (1,)])
    def test_verify_makes_its_own_arguments(self, adapter, driver, out_idx):
        report = self._kernel(adapter, driver, out_idx).verify()
        assert report.outputs[0].elements == 300
        with pytest.raises(Exception, match="300 of 300"):
            self._kernel(adapter, driver, out_idx, 3.0).verify()

    def test_verify_poisons_outputs(self, adapter, driver):
        kernel = Kernel(
            Signature("scale", self.PARAMS),
            lambda values, location: None,
            adapter=adapter,
            hidden=(),
            origin=Origin(reference=lambda x, y: y.__setitem__(..., 0)),
        )
        out = adapter.from_host(np.zeros(300, "float32"))
        with pytest.raises(Exception, match=r"found nan"):
            kernel.verify(adapter.from_host(np.ones(300, "float32")), out)


class TestContract:
    def test_a_host_runtime_takes_arrays_as_they_are(self):
        array = np.arange(3)
        assert HostMemory().from_host(array) is array
        assert HostMemory().to_host(array) is array

    def test_an_incapable_device_runtime_is_reported(self):
        class Device(RuntimeAdapter):
            name = "some"
            devices = frozenset({9})

            def load(self, artefact):
                return artefact

            def synchronize(self):
                pass

        for action in (Device().from_host, Device().to_host):
            with pytest.raises(NotProvided, match="copies no arrays between the host and its device"):
                action(np.arange(3))
