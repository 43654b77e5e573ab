"""Test guarded copies: the footprint of an array, and writes around its elements."""

import numpy as np
import pytest
from expected_errors import raises_error

from tile_core.errors.launch import MemoryDamaged, NotProvided, UnsupportedArray
from tile_runtime.texts.guarded import ALIGN, GUARD, Footprint, GuardedArray, require_own


class Device(GuardedArray):
    """Memory of a device that is the host."""

    def __init__(self, array):
        super().__init__(array)
        self.upload(self._image)

    def upload(self, image):
        self.memory = image.copy()

    def download(self):
        return self.memory.copy()

    def settle(self, stream):
        self.waited = stream

    def exported(self):
        return self.memory.ctypes.data, self.offset, self.memory

    def __dlpack_device__(self):
        return (1, 0)


VIEWS = [np.s_[:], np.s_[::-1], np.s_[:, ::-2], np.s_[1:-1, 2:5], np.s_[3, 2], np.s_[3:3], np.s_[::2, None, ::3]]


class TestFootprint:
    @pytest.mark.parametrize("view", VIEWS)
    @pytest.mark.parametrize("transposed", [False, True])
    def test_it_is_the_bytes_of_the_elements(self, view, transposed):
        array = np.random.default_rng(1).integers(-9, 9, (9, 8), "int16")[view]
        array = array.T if transposed else array
        found = Footprint.of(array)
        if array.size:
            low, high = np.lib.array_utils.byte_bounds(array)
            assert (found.address, found.bytes) == (low, high - low)
            assert found.address + found.first == array.__array_interface__["data"][0]
        else:
            assert (found.bytes, found.first) == (0, 0)

    @pytest.mark.parametrize("view", VIEWS)
    def test_its_elements_in_other_memory(self, view):
        array = np.random.default_rng(2).integers(-9, 9, (9, 8), "int16")[view]
        found = Footprint.of(array)
        memory, marks = np.zeros(found.bytes + 7, np.uint8), np.zeros(found.bytes + 7, bool)
        found.elements(memory.data, 7)[...] = array
        np.testing.assert_array_equal(found.elements(memory.data, 7), array)
        found.covers(marks, 7)[...] = True
        assert marks.sum() == array.size * 2
        assert not memory[~marks].any()


class TestGuards:
    @pytest.mark.parametrize("view", VIEWS)
    def test_every_byte_of_no_element_is_watched(self, view):
        array = np.random.default_rng(3).integers(-9, 9, (4, 8), "int16")[view] if view != np.s_[3, 2] else np.int16(5)
        array = np.asarray(array)
        there = Device(array)
        marks = np.zeros(there.memory.size, bool)
        there._footprint.covers(marks, there._front)[...] = True
        for at in range(there.memory.size):
            changed = Device(array)
            changed.memory[at] ^= 1
            if marks[at]:
                changed.get()
                continue
            with raises_error(MemoryDamaged, count=1):
                changed.get()

    @pytest.mark.parametrize(
        ("at", "position"),
        [(-1, "1 bytes before the start"), (-GUARD, "256 bytes before"), (80, "0 bytes behind the end")],
    )
    def test_where(self, at, position):
        there = Device(np.zeros(20, np.float32))
        there.memory[there.offset + at] = 7
        with pytest.raises(MemoryDamaged, match=rf"float32\(20,\) was written: 1 bytes, first {position}") as caught:
            there.get()
        assert "emulator" in str(caught.value)

    def test_a_copy_keeps_alignment_and_strides(self):
        array = np.arange(40, dtype=np.int64)[3::5]
        there = Device(array)
        assert there.offset % ALIGN == array.__array_interface__["data"][0] % ALIGN
        back = there.get()
        assert (back.strides, back.tolist()) == (array.strides, array.tolist())
        assert there.element_strides == (5,)

    def test_all_bytes_of_elements(self):
        there = Device(np.zeros((4, 6), "int16")[:, ::2])
        there.fill_bytes(0x7F)
        assert (there.get() == 0x7F7F).all()


class TestRefusals:
    def test_what_has_no_description(self):
        with pytest.raises(UnsupportedArray, match="not a multiple of the element size"):
            Device(np.zeros(4, [("a", "int8"), ("b", "int32")])["b"])
        with pytest.raises(UnsupportedArray):
            Device(np.zeros(4, [("a", "int8")]))

    def test_arrays_of_somebody_else(self):
        there = Device(np.zeros(3))
        assert require_own(there, Device, "some") is there
        with pytest.raises(NotProvided, match="did not make this ndarray"):
            require_own(np.zeros(3), Device, "some")

    @pytest.mark.parametrize("asked", [((2, 0), None), (None, True), ((1, 0), True)])
    def test_exports_that_would_copy(self, asked):
        with pytest.raises(BufferError, match="without a copy"):
            Device(np.zeros(3)).__dlpack__(dl_device=asked[0], copy=asked[1])

    def test_an_export_is_the_memory_itself(self):
        there = Device(np.arange(12, dtype=np.int32).reshape(3, 4)[:, ::-2])
        there.memory[there.offset] = 77
        seen = np.from_dlpack(there)
        assert seen.tolist() == [[77, 1], [7, 5], [11, 9]]
        there.__dlpack__(stream=5)
        assert there.waited == 5
