"""The short form of a launch, with a driver that remembers."""

import struct
import sys
import threading
import types

import pytest

from tile_core.abi.adapter import Location
from tile_core.abi.kernel_text import KernelText, LaunchFacts, ParamFact
from tile_core.errors.launch import DeviceFault
from tile_cuda.runtime import CudaAdapter
from tile_cuda.target import make_target
from tile_cuda_runtime.api import Device

from ..texts import SCALE, last, scale, scale4
from .fake import H100, FakeDriver

LOCATION = Location((2, 0), "torch")
VALUES = (4096, 8192, 0.5, 1000)


@pytest.fixture
def streams(monkeypatch):
    """Current streams of torch by device, to be changed."""
    found = {0: 500, 1: 501}
    module = types.ModuleType("torch")
    module._C = types.SimpleNamespace(_cuda_getCurrentRawStream=found.__getitem__)
    monkeypatch.setitem(sys.modules, "torch", module)
    return found


def ready(driver, text=None, values=VALUES, moving=(0, 1, 2), location=LOCATION):
    adapter = CudaAdapter(make_target("sm_80"), lambda: driver)
    launch = adapter.load(text or scale())
    launch(values, location)
    return adapter, launch, launch.repeat(values, location, moving)


def test_it_launches_the_same(streams):
    driver = FakeDriver()
    _, _, repeat = ready(driver)
    repeat.launch(*VALUES[:3])
    long, short = driver.launches
    assert long == short
    repeat.launch(1, 2**48 + 1, -0.0)
    found = driver.launches[-1]
    assert struct.unpack("<QQf4xi4x", found.values) == (1, 2**48 + 1, -0.0, 1000)
    assert (found.grid, found.block, found.shared, found.stream) == ((4, 1, 1), (256, 1, 1), 0, 500)
    assert driver.short == 2
    streams[0] = 600
    repeat.launch(*VALUES[:3])
    assert driver.launches[-1].stream == 600


@pytest.mark.parametrize("moving", [(), (0,), (1,), (2,), (0, 2), (1, 2)])
def test_any_values_may_move(streams, moving):
    driver = FakeDriver()
    _, _, repeat = ready(driver, moving=moving)
    new = (16, 32, 1.5, 5)
    repeat.launch(*(new[i] for i in moving))
    wanted = tuple(new[i] if i in moving else VALUES[i] for i in range(4))
    assert struct.unpack("<QQf4xi4x", driver.launches[-1].values) == wanted


def test_shared_memory_and_grid(streams):
    driver = FakeDriver(parameters=2)
    _, _, repeat = ready(driver, last(100_000), (0, 25_000), (0, 1))
    repeat.launch(64, 3)
    assert driver.launches[-1].grid == (3, 1, 1)
    assert driver.launches[-1].shared == 100_000


def test_a_launch_that_may_begin_early(streams):
    driver = FakeDriver(parameters=2)
    params = (ParamFact("x", "pointer", "float32"), ParamFact("n", "scalar", "int32"))
    facts = LaunchFacts("scale", params, (1, 1, 1), (32, 1, 1), attributes={"dependent": True})
    _, _, repeat = ready(driver, KernelText(SCALE, facts), (16, 5), (0, 1))
    assert driver.attributes == 1
    driver.attributes = 0
    repeat.launch(64, 3)
    assert driver.attributes == 1
    assert struct.unpack("<Qi4x", driver.launches[-1].values) == (64, 3)


def test_where_there_is_none(streams):
    assert ready(FakeDriver(), moving=(0, 3))[2] is None  # the grid follows from n
    assert ready(FakeDriver(), values=(0, 0, 1.0, 0))[2] is None  # no blocks
    assert ready(FakeDriver(), location=Location((13, 0), "torch"))[2] is None
    assert ready(FakeDriver(), location=Location((2, 0), "numpy"))[2] is None
    old = FakeDriver()
    old.launch_config = None
    assert ready(old)[2] is None


def test_codes(streams):
    params = (ParamFact("x", "pointer", "float32"), ParamFact("s", "scalar", "bfloat16"))
    text = KernelText(SCALE, LaunchFacts("scale", params, (1, 1, 1), (1, 1, 1)))
    driver = FakeDriver(parameters=2)
    _, launch, repeat = ready(driver, text, (16, 1.0), (0,))
    repeat.launch(32)
    assert driver.launches[-1].values == struct.pack("<QH6x", 32, 0x3F80)
    assert launch.repeat((16, 1.0), LOCATION, (0, 1)) is None


class TestTexts:
    def test_the_specialized_version_reports_its_requirements(self, streams):
        _, _, repeat = ready(FakeDriver(), scale4())
        assert set(repeat.masks) == {(0, 15), (1, 15)}

    def test_values_that_it_does_not_serve(self, streams):
        driver = FakeDriver()
        _, launch, _ = ready(driver, scale4())
        assert launch.repeat((4100, 8192, 0.5, 1000), LOCATION, (0, 1)) is None

    def test_the_general_version_repeats_an_unsupported_form(self, streams):
        driver = FakeDriver()
        _, _, repeat = ready(driver, scale4(), (4096, 8192, 0.5, 1001))
        assert repeat.masks == ()
        repeat.launch(4100, 8192, 0.5)
        assert (driver.launches[-1].function, driver.launches[-1].grid) == (1002, (4, 1, 1))


class TestDevices:
    TWO = (H100, Device(1, "Fake 80", (8, 0), 163 << 10))

    @pytest.mark.parametrize("stream", [0, 1, 2])
    def test_a_default_stream_of_another_one(self, streams, stream):
        streams[1] = stream
        driver = FakeDriver(list(self.TWO))
        _, _, repeat = ready(driver, location=Location((2, 1), "torch"))
        repeat.launch(*VALUES[:3])
        assert [found.device for found in driver.launches] == [1, 1]
        assert driver.short == 0
        driver.context = 1
        repeat.launch(*VALUES[:3])
        assert driver.short == 1

    def test_a_stream_knows_its_own(self, streams):
        driver = FakeDriver(list(self.TWO))
        _, _, repeat = ready(driver, location=Location((2, 1), "torch"))
        repeat.launch(*VALUES[:3])
        assert (driver.short, driver.launches[-1].stream) == (1, 501)

    def test_a_thread_without_one(self, streams):
        streams[0] = 0
        driver = FakeDriver()
        _, _, repeat = ready(driver)
        driver.context = None
        repeat.launch(*VALUES[:3])
        assert (driver.short, driver.launches[-1].device) == (0, 0)


def test_a_chosen_stream(streams):
    driver = FakeDriver()
    adapter, _, repeat = ready(driver)
    assert adapter.clock(lambda: repeat.launch(*VALUES[:3]), 2) is not None
    assert [found.stream for found in driver.launches[-2:]] == [99, 99]
    repeat.launch(*VALUES[:3])
    assert driver.launches[-1].stream == 500


@pytest.mark.parametrize("code", [700, 719])
def test_failures(streams, code):
    driver = FakeDriver()
    _, _, repeat = ready(driver)
    driver.fail["launch"] = code
    with pytest.raises(DeviceFault, match=f"CUDA_ERROR_{code}"):
        repeat.launch(*VALUES[:3])


def test_threads_do_not_share_memory(streams):
    count = 8
    driver = FakeDriver()
    _, _, repeat = ready(driver)
    driver.launches.clear()
    driver.pause = threading.Barrier(count)
    work = [threading.Thread(target=repeat.launch, args=(i, i + 100, i / 2)) for i in range(count)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    found = sorted(struct.unpack("<QQf4xi4x", one.values) for one in driver.launches)
    assert found == [(i, i + 100, i / 2, 1000) for i in range(count)]


class TestPrepared:
    def test_it_launches_the_same(self, streams):
        driver = FakeDriver()
        _, _, repeat = ready(driver)
        values = (1, 2**48 + 1, 3.0)
        repeat.launch(*values)
        prepared = repeat.prepare(values)
        for _ in range(2):
            repeat.again(prepared, values)
        assert driver.launches[-3] == driver.launches[-2] == driver.launches[-1]
        repeat.launch(5, 6, 7.0)  # writes memory of its own
        repeat.again(prepared, values)
        assert driver.launches[-1] == driver.launches[-3]

    def test_another_stream(self, streams):
        driver = FakeDriver()
        adapter, _, repeat = ready(driver)
        prepared = repeat.prepare(VALUES[:3])
        streams[0] = 600
        repeat.again(prepared, VALUES[:3])
        assert driver.launches[-1].stream == 600
        adapter.clock(lambda: repeat.again(prepared, VALUES[:3]), 2)
        assert driver.launches[-1].stream == 99
        streams[0] = 500
        repeat.again(prepared, VALUES[:3])
        assert driver.launches[-1].stream == 500

    def test_another_device(self, streams):
        streams[1] = 0
        driver = FakeDriver(list(TestDevices.TWO))
        _, _, repeat = ready(driver, location=Location((2, 1), "torch"))
        prepared = repeat.prepare(VALUES[:3])
        repeat.again(prepared, VALUES[:3])
        assert (driver.short, driver.launches[-1].device) == (0, 1)
        driver.context = 1
        repeat.again(prepared, VALUES[:3])
        assert (driver.short, driver.launches[-1].device) == (1, 1)

    def test_a_thread_without_context_and_failures(self, streams):
        streams[0] = 0
        driver = FakeDriver()
        _, _, repeat = ready(driver)
        prepared = repeat.prepare(VALUES[:3])
        driver.context = None
        repeat.again(prepared, VALUES[:3])
        assert (driver.short, driver.launches[-1].device) == (0, 0)
        driver.fail["launch"] = 700
        with pytest.raises(DeviceFault, match="CUDA_ERROR_700"):
            repeat.again(prepared, VALUES[:3])

    def test_nothing_moves(self, streams):
        driver = FakeDriver()
        _, _, repeat = ready(driver, moving=())
        repeat.again(repeat.prepare(()), ())
        assert driver.launches[-1] == driver.launches[-2]
