"""Launches with a recording driver: arguments, streams, devices, texts, and refusals."""

import struct
import sys
import threading
import tracemalloc
import types

import numpy as np
import pytest

import tile_core.language as T
from tile_core.abi.adapter import Built, Location
from tile_core.abi.kernel_text import KernelText, LaunchFacts, ParamFact
from tile_core.compiler import lower
from tile_core.errors import InternalError
from tile_core.errors.launch import (
    DeviceFault,
    GridNotInClusters,
    GridTooLarge,
    LaunchNotOffered,
    TextDoesNotServe,
    TextRefused,
    TooMuchShared,
)
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda.runtime import CudaAdapter
from tile_cuda.target import make_target
from tile_cuda_runtime.api import Device, DriverUnusable
from tile_cuda_runtime.errors import DriverFailed, DriverTooOld, NoDevice, NoDriver, OtherArchitecture

from ..texts import SCALE, facts, kernel, last, scale, scale4
from .fake import H100, FakeDriver

HERE = Location((2, 0), "some")
VALUES = (4096, 8192, 0.5, 1000)


def adapter(driver, arch="sm_80"):
    return CudaAdapter(make_target(arch), lambda: driver)


def unpacked(launch, code="<QQf4xi4x"):
    return struct.unpack(code, launch.values)


class TestArguments:
    def test_are_packed_and_the_grid_follows(self):
        driver = FakeDriver()
        launch = adapter(driver).load(scale())
        launch(VALUES, HERE)
        (found,) = driver.launches
        assert unpacked(found) == VALUES
        assert (found.grid, found.block, found.shared, found.stream) == ((4, 1, 1), (256, 1, 1), 0, 0)

    @pytest.mark.parametrize(
        ("dtype", "value", "stored"),
        [
            ("bool", True, b"\1"),
            ("int8", -1, b"\xff"),
            ("uint8", 255, b"\xff"),
            ("int16", -2, b"\xfe\xff"),
            ("uint16", 65535, b"\xff\xff"),
            ("int32", -(2**31), struct.pack("<i", -(2**31))),
            ("uint32", 2**32 - 1, b"\xff" * 4),
            ("int64", -1, b"\xff" * 8),
            ("uint64", 2**64 - 1, b"\xff" * 8),
            ("float16", 65504.0, np.float16(65504).tobytes()),
            ("float16", float("inf"), np.float16("inf").tobytes()),
            ("float32", 3.4028234663852886e38, np.float32(3.4028234663852886e38).tobytes()),
            ("float32", -0.0, np.float32(-0.0).tobytes()),
            ("float64", 1e300, struct.pack("<d", 1e300)),
            ("bfloat16", 1.00390625, b"\x80\x3f"),  # halfway: to even
            ("bfloat16", 1.01171875, b"\x82\x3f"),
            ("float8_e4m3fn", 448.0, b"\x7e"),
            ("float8_e5m2", -2.0, b"\xc0"),
            ("tfloat32", 1.5, np.float32(1.5).tobytes()),
        ],
    )
    def test_scalars(self, dtype, value, stored):
        driver = FakeDriver(parameters=1)
        params = (ParamFact("s", "scalar", dtype),)
        text = KernelText(SCALE, LaunchFacts("scale", params, (1, 1, 1), (1, 1, 1)))
        adapter(driver).load(text)((value,), HERE)
        assert driver.launches[0].values == stored.ljust(8, b"\0")

    def test_a_kernel_without_parameters(self):
        driver = FakeDriver(parameters=0)
        text = KernelText('extern "C" __global__ void f() {}', LaunchFacts("f", (), (7, 1, 1), (32, 1, 1)))
        adapter(driver).load(text)((), Location((2, 0), "numpy"))
        assert driver.launches[0].grid == (7, 1, 1)

    @pytest.mark.parametrize(
        ("changes", "what"),
        [
            ({"params": (ParamFact("map", "opaque", bytes=128),)}, "parameters of 128 bytes of its own, as 'map' is"),
        ],
    )
    def test_launches_that_this_runtime_refuses(self, changes, what):
        facts = {"params": (), **changes}
        text = KernelText(SCALE, LaunchFacts("scale", grid=(2, 1, 1), block=(1, 1, 1), **facts))
        with pytest.raises(LaunchNotOffered, match=rf"\[U403\] scale: the runtime cuda does not support {what}"):
            adapter(FakeDriver()).load(text)

    def test_threads_do_not_share_memory(self):
        count = 8
        driver = FakeDriver(pause=threading.Barrier(count))
        launch = adapter(driver).load(scale())
        work = [threading.Thread(target=launch, args=((i, i + 100, i / 2, 1000 + i), HERE)) for i in range(count)]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        assert sorted(map(unpacked, driver.launches)) == [(i, i + 100, i / 2, 1000 + i) for i in range(count)]


class TestGrid:
    @pytest.mark.parametrize(("n", "blocks"), [(1, 1), (256, 1), (257, 2), (65537, 257)])
    def test_follows_from_the_values(self, n, blocks):
        driver = FakeDriver()
        launch = adapter(driver).load(scale())
        for _ in range(2):
            launch((0, 0, 1.0, n), HERE)
        assert [found.grid for found in driver.launches] == [(blocks, 1, 1)] * 2

    @pytest.mark.parametrize("n", [0, -5])
    def test_of_no_blocks_launches_nothing(self, n):
        driver = FakeDriver()
        adapter(driver).load(scale())((0, 0, 1.0, n), HERE)
        assert driver.launches == []

    @pytest.mark.parametrize(
        ("grid", "axis", "limit"),
        [(("n", 1, 1), "x", 2**31 - 1), ((1, "n", 1), "y", 65535), ((1, 1, ("mul", "n", "m")), "z", 65535)],
    )
    def test_over_the_limit_is_refused(self, grid, axis, limit):
        params = (ParamFact("n", "scalar", "int64"), ParamFact("m", "scalar", "int64"))
        driver = FakeDriver(parameters=2)
        launch = adapter(driver).load(KernelText(SCALE, LaunchFacts("scale", params, grid, (1, 1, 1))))
        launch((limit, 1), HERE)
        with pytest.raises(
            GridTooLarge, match=rf"\[U404\] scale: a launch through the driver has at most {limit} blocks along {axis}"
        ):
            launch((limit + 1, 1), HERE)
        assert len(driver.launches) == 1

    def test_many_grids(self):
        driver = FakeDriver()
        launch = adapter(driver).load(scale())
        for n in range(1, 5000):
            launch((0, 0, 1.0, n), HERE)
        assert driver.launches[-1].grid == (20, 1, 1)


class TestTexts:
    def test_the_general_version_serves_other_inputs(self):
        driver = FakeDriver()
        launch = adapter(driver).load(scale4())
        prepared = [c for c in driver.calls if c[0] == "prepare"]
        assert len(prepared) == 1
        for x, n in ((4096, 1000), (4100, 1000), (4096, 1001), (4100, 1000)):
            launch((x, 8192, 1.0, n), HERE)
        fast, *general = driver.launches
        assert (fast.function, fast.grid) == (1001, (1, 1, 1))
        assert {(g.function, g.grid) for g in general} == {(1002, (4, 1, 1))}
        assert len([c for c in driver.calls if c[0] == "load"]) == 2

    def test_without_one_a_call_is_refused(self):
        driver = FakeDriver()
        launch = adapter(driver).load(scale4(general=None))
        with pytest.raises(TextDoesNotServe, match="'y' is the address 0x2004"):
            launch((4096, 8196, 1.0, 4), HERE)
        assert driver.launches == []

    def test_a_previous_build_is_loaded(self, monkeypatch):
        from tile_cuda import build

        monkeypatch.setattr(build, "build", lambda *_: pytest.fail("it was built again"))
        driver = FakeDriver()
        built = Built("cuda", "cubin", b"mine", "sm_90a")
        adapter(driver, "sm_90a").load(KernelText(SCALE, facts(), None, built))(VALUES, HERE)
        assert ("load", b"mine") in driver.calls

    @pytest.mark.parametrize(
        "built", [Built("other", "cubin", b"not", "sm_90a"), Built("cuda", "cubin", b"no", "sm_80")]
    )
    def test_a_build_for_another_target_is_not_loaded(self, built):
        driver = FakeDriver()
        adapter(driver, "sm_80").load(KernelText(SCALE, facts(), None, built))(VALUES, HERE)
        assert ("load", b"\x7fELF") in driver.calls

    def test_build_needs_no_driver(self):
        def missing():
            raise DriverUnusable("none")

        made = CudaAdapter(make_target("sm_100a"), missing).build(scale())
        assert (made.runtime, made.kind, made.arch, made.data[:4]) == ("cuda", "cubin", "sm_100a", b"\x7fELF")
        assert made.facts["registers"] > 0
        assert CudaAdapter(make_target("sm_80"), missing).toolchain().startswith("nvrtc 13.")
        assert CudaAdapter(make_target("sm_80"), missing).build(object()) is None


class TestStreams:
    @pytest.fixture
    def torch(self, monkeypatch):
        module = types.ModuleType("torch")
        module._C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda ordinal: 500 + ordinal)
        monkeypatch.setitem(sys.modules, "torch", module)
        return module

    def stream(self, library):
        driver = FakeDriver()
        adapter(driver).load(scale())(VALUES, Location((2, 0), library))
        return driver.launches[0].stream

    def test_of_torch_is_its_current_one(self, torch):
        assert self.stream("torch") == 500

    def test_of_a_torch_without_the_short_way(self, torch):
        torch._C = types.SimpleNamespace()
        torch.cuda = types.SimpleNamespace(current_stream=lambda o: types.SimpleNamespace(cuda_stream=700 + o))
        assert self.stream("torch") == 700

    def test_of_cupy_is_its_current_one(self, monkeypatch):
        entered = []

        class Device:
            def __init__(self, ordinal):
                self.ordinal = ordinal

            def __enter__(self):
                entered.append(self.ordinal)

            def __exit__(self, *args):
                entered.pop()

        module = types.ModuleType("cupy")
        now = lambda: types.SimpleNamespace(ptr=600 + entered[-1])  # noqa: E731
        module.cuda = types.SimpleNamespace(Device=Device, get_current_stream=now)
        monkeypatch.setitem(sys.modules, "cupy", module)
        assert self.stream("cupy") == 600
        assert entered == []

    def test_of_tvm_ffi_is_what_its_caller_has_set(self):
        tvm_ffi = pytest.importorskip("tvm_ffi")
        assert self.stream("tvm_ffi") == 0
        with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:0"), 900):
            assert self.stream("tvm_ffi") == 900
        assert self.stream("tvm_ffi") == 0

    def test_of_others_is_the_one_that_dlpack_means(self):
        assert self.stream("jax") == 0


class TestDevices:
    TWO = (H100, Device(1, "Fake 80", (8, 0), 163 << 10))

    def test_the_current_one_is_ready_after_loading(self):
        driver = FakeDriver()
        launch = adapter(driver).load(scale())
        before = list(driver.calls)
        assert [c[0] for c in before] == ["load", "function", "prepare"]
        launch(VALUES, HERE)
        assert driver.calls == before

    @pytest.mark.parametrize("context", [0, 1, None])
    def test_another_one_is_entered_for_the_launch(self, context):
        driver = FakeDriver(list(self.TWO), context)
        launch = adapter(driver).load(scale())
        launch(VALUES, Location((2, 1), "some"))
        assert driver.launches[0].device == 1
        assert driver.context == context
        assert ("prepare", driver.launches[0].function, 1, 0) in driver.calls

    @pytest.mark.parametrize(
        "location", [Location((13, 0), "some"), Location((3, 0), "some"), Location((2, 0), "numpy")]
    )
    def test_memory_of_no_device_goes_to_the_current_one(self, location):
        driver = FakeDriver(list(self.TWO), 1)
        adapter(driver).load(scale())(VALUES, location)
        assert driver.launches[0].device == 1

    def test_each_kind_of_device_gets_its_own_code(self):
        driver = FakeDriver([*self.TWO, Device(2, "Fake 80", (8, 0), 163 << 10)])
        launch = adapter(driver).load(scale())
        for ordinal in (0, 1, 2, 1, 0):
            launch(VALUES, Location((2, ordinal), "some"))
        assert len([c for c in driver.calls if c[0] == "load"]) == 2
        assert len([c for c in driver.calls if c[0] == "prepare"]) == 3

    def test_shared_memory_is_requested(self):
        driver = FakeDriver(parameters=2)
        adapter(driver).load(last(100_000))((0, 25_000), HERE)
        assert driver.calls[-1] == ("prepare", 1001, 0, 100_000)
        assert driver.launches[0].shared == 100_000

    def test_too_much_shared_memory_is_refused(self):
        driver = FakeDriver([Device(0, "Fake 86", (8, 6), 99 << 10)])
        with pytest.raises(TooMuchShared, match=r"\[U405\] last: a block uses 150000 bytes .* has 101376") as caught:
            adapter(driver).load(last(150_000))
        assert "compile for cuda:sm_86" in str(caught.value)

    @pytest.mark.parametrize(
        ("arch", "compute", "near"),
        [("sm_90a", (8, 0), "sm_80"), ("sm_90a", (10, 0), "sm_100a"), ("sm_100", (9, 0), "sm_90a")],
    )
    def test_the_wrong_one_is_refused_at_the_launch(self, arch, compute, near):
        driver = FakeDriver([Device(0, "Other", compute, 227 << 10)])
        launch = adapter(driver, arch).load(scale())  # its text can be looked at
        with pytest.raises(
            OtherArchitecture, match=rf"\[U702\] scale: it was compiled for cuda:{arch}, which"
        ) as caught:
            launch(VALUES, HERE)
        assert f"compile it for cuda:{near}" in str(caught.value)

    def test_a_number_that_does_not_exist(self):
        driver = FakeDriver()
        with pytest.raises(NoDevice, match=r"\[S703\] scale: there is no CUDA device 3; the driver sees 1"):
            adapter(driver).load(scale())(VALUES, Location((2, 3), "some"))

    def test_which_bytes_a_machine_can_run(self):
        built = Built("cuda", "cubin", b"", "sm_90a")
        assert adapter(FakeDriver(), "sm_90a").refuses(built) == ""
        old = FakeDriver([Device(0, "Old", (8, 0), 163 << 10)])
        assert adapter(old, "sm_90a").refuses(built) == "device 0 (Old) has sm_80"
        assert adapter(FakeDriver([]), "sm_90a").refuses(built) == "the driver sees no device"


class TestFailures:
    def test_a_missing_driver_is_reported_at_the_launch(self):
        def missing():
            raise DriverUnusable("the driver's library is not found")

        launch = CudaAdapter(make_target("sm_80"), missing).load(scale())
        for _ in range(2):
            with pytest.raises(NoDriver, match=r"\[S702\] scale: no kernel for cuda:sm_80 can be launched") as caught:
                launch(VALUES, HERE)
        assert "the driver's library is not found" in str(caught.value)
        assert 'runtime="emulator"' in str(caught.value)
        assert caught.value.where.file == "user.py"

    def test_a_missing_device_is_reported_at_the_launch(self):
        launch = adapter(FakeDriver([])).load(scale())
        with pytest.raises(NoDevice, match="there is no CUDA device 0; the driver sees 0"):
            launch(VALUES, HERE)

    def test_a_refused_text_is_reported_when_loading(self):
        with pytest.raises(TextRefused):
            adapter(FakeDriver()).load(kernel("nonsense"))

    def test_invalid_texts(self):
        with pytest.raises(InternalError, match="made object, no text"):
            adapter(FakeDriver()).load(object())

    @pytest.mark.parametrize(
        ("code", "error"), [(700, DeviceFault), (716, DeviceFault), (2, DriverFailed), (1, DriverFailed)]
    )
    def test_of_a_launch(self, code, error):
        driver = FakeDriver(fail={"launch": code})
        launch = adapter(driver).load(scale())
        for _ in range(2):
            with pytest.raises(error, match=rf"\[(K438|S704)\] scale: .*CUDA_ERROR_{code}"):
                launch(VALUES, HERE)

    @pytest.mark.parametrize("call", ["function", "prepare", "load"])
    def test_of_loading(self, call):
        with pytest.raises(DriverFailed, match=rf"\[S704\] scale: {call} failed: CUDA_ERROR_2"):
            adapter(FakeDriver(fail={call: 2})).load(scale())

    @pytest.mark.parametrize("code", [200, 209, 222])
    def test_of_a_driver_that_is_too_old(self, code):
        with pytest.raises(
            DriverTooOld, match=r"\[S705\] scale: the driver \(CUDA 13.0\) does not load code"
        ) as caught:
            adapter(FakeDriver(fail={"load": code})).load(scale())
        assert "update the NVIDIA driver" in str(caught.value)

    def test_of_waiting(self):
        driver = FakeDriver()
        runtime = adapter(driver)
        runtime.synchronize()
        assert driver.calls == []
        runtime.load(scale())(VALUES, HERE)
        runtime.synchronize()
        assert driver.calls[-1] == ("synchronize", 0)
        driver.fail["synchronize"] = 719
        with pytest.raises(DeviceFault, match="the kernels before: the device reports a fault"):
            runtime.synchronize()


class TestTime:
    @pytest.mark.parametrize(
        ("launches", "graphs"), [(1, [(1, 1)]), (100, [(100, 1)]), (1024, [(100, 10), (24, 1)]), (99, [(99, 1)])]
    )
    def test_is_taken_of_recorded_launches(self, launches, graphs):
        driver = FakeDriver()
        runtime = adapter(driver)
        launch = runtime.load(scale())
        assert runtime.clock(lambda: launch(VALUES, HERE), launches) == pytest.approx(launches * 1e-6)
        assert [c[1:] for c in driver.calls if c[0] == "seconds"] == graphs
        assert [found.stream for found in driver.launches] == [0] + [99] * sum(count for count, _ in graphs)

    def test_of_no_blocks_is_left_to_the_host(self):
        runtime = adapter(FakeDriver())
        launch = runtime.load(scale())
        assert runtime.clock(lambda: launch((0, 0, 1.0, 0), HERE), 10) is None

    def test_launches_of_other_threads_keep_their_streams(self):
        driver = FakeDriver()
        runtime = adapter(driver)
        launch = runtime.load(scale())

        def queue():
            launch(VALUES, HERE)
            other = threading.Thread(target=launch, args=((1, 1, 1.0, 1), HERE))
            other.start()
            other.join()

        runtime.clock(queue, 1)
        streams = [(found.stream, unpacked(found)[3]) for found in driver.launches]
        assert streams == [(0, 1000), (0, 1), (99, 1000), (0, 1)]


def test_launches_and_graphs_of_the_driver_are_of_whole_clusters():
    """Launch whole clusters by the text's size, directly and in recorded graphs."""

    @T.prim_func
    def spread(A: T.Tensor((6,), "int32"), n: T.int32):
        with T.ClusterKernel(n, cluster_dims=2, threads=32) as block:
            A[block] = T.block_rank_in_cluster()

    text = lower(spread, make_context("cuda:sm_90a", {}), installed()).lowered
    assert text.facts.cluster == (2, 1, 1)
    driver = FakeDriver(parameters=len(text.facts.params))
    runtime = adapter(driver, "sm_90a")
    launch = runtime.load(text)
    launch((4096, 4), HERE)
    assert [(x.grid, x.block) for x in driver.launches] == [((4, 1, 1), (32, 1, 1))]
    with pytest.raises(GridNotInClusters, match="5 blocks along x are not a multiple of the cluster size 2"):
        launch((4096, 5), HERE)
    assert len(driver.launches) == 1
    assert runtime.clock(lambda: launch((4096, 6), HERE), 10) == pytest.approx(10e-6)
    assert [(x.grid, x.stream) for x in driver.launches[1:]] == [((6, 1, 1), 0)] + [((6, 1, 1), 99)] * 10


def test_a_launch_keeps_no_memory():
    """Keep launches legal under stream capture: only two calls, no retained memory."""
    driver = FakeDriver()
    launch = adapter(driver).load(scale())
    launch(VALUES, HERE)
    driver.launches = types.SimpleNamespace(append=lambda found: None)
    calls = list(driver.calls)
    tracemalloc.start()
    try:
        for _ in range(3):
            launch(VALUES, HERE)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(200):
            launch(VALUES, HERE)
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert after - before < 2000
    assert driver.calls == calls
