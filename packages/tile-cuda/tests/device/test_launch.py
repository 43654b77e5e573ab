"""Launches on a device: memory of the driver, and of torch and CuPy if installed."""

import dataclasses
import threading

import numpy as np
import pytest

import tile_core as tile
from tile_core import sparse
from tile_core.abi.adapter import Location
from tile_core.abi.kernel_text import KernelText, LaunchFacts, ParamFact
from tile_core.abi.signature import Param, Signature
from tile_core.dtypes import DTYPES
from tile_core.errors.launch import DeviceFault, MemoryDamaged
from tile_core.runtime.kernel import Kernel
from tile_cuda.resolve import detect
from tile_cuda.runtime import CudaAdapter
from tile_cuda.target import make_target
from tile_cuda_runtime.api import open_driver

from ..texts import last, scale, scale4

pytestmark = pytest.mark.device

SIGNATURE = Signature(
    "scale",
    (
        Param("x", "tensor", "float32", ("n",)),
        Param("y", "tensor", "float32", ("n",), access="write"),
        Param("by", "scalar", "float32"),
    ),
    (1,),
)


def adapter(target=None):
    return CudaAdapter(target or detect())


def kernel(text, signature=SIGNATURE, target=None):
    runtime = adapter(target)
    return Kernel(signature, runtime.load(text), adapter=runtime, hidden=("n",))


class Memory:
    """Bytes on the current device."""

    def __init__(self, driver, array):
        self.driver, self.array = driver, array
        self.address = int(driver._do("cuMemAlloc", max(array.nbytes, 1) + 64))
        self.put(array)

    def put(self, array):
        self.driver._do("cuMemcpyHtoD", self.address, array.ctypes.data, array.nbytes)

    def get(self):
        out = np.empty_like(self.array)
        self.driver._do("cuMemcpyDtoH", out.ctypes.data, self.address, out.nbytes)
        return out


@pytest.fixture
def driver():
    found = open_driver()
    with found.entered(found.current()):
        yield found


class TestCopies:
    """Arrays of `from_host`, which need no array library."""

    @pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "uint64", "bfloat16", "float8_e5m2", "float64"])
    @pytest.mark.parametrize("shape", [(), (0, 3), (7, 13)])
    def test_every_bit_comes_back(self, dtype, shape):
        raw = np.random.default_rng(5).integers(0, 2, (*shape, 8), dtype=np.uint8)
        array = raw.view(DTYPES[dtype].numpy())[..., 0]
        runtime = adapter()
        back = runtime.to_host(runtime.from_host(array))
        assert (back.dtype, back.shape) == (array.dtype, shape)
        assert back.tobytes() == array.tobytes()

    @pytest.mark.parametrize("n", [1, 257, 100_003])
    def test_a_call_and_its_guards(self, n):
        x = np.random.default_rng(n).standard_normal(n, dtype="float32")
        scaled = kernel(scale())
        runtime = scaled.adapter
        y = scaled(runtime.from_host(x), -0.5)
        np.testing.assert_array_equal(runtime.to_host(y), x * np.float32(-0.5))

    def test_a_write_behind_the_end(self):
        runtime = adapter()
        x, y = (runtime.from_host(np.ones(n, "float32")) for n in (300, 299))
        runtime.load(scale())((x.pointer, y.pointer, 2.0, 300), Location((2, 0), "tile_cuda_runtime"))
        with pytest.raises(MemoryDamaged, match="4 bytes, first 0 bytes behind the end"):
            runtime.to_host(y)


class TestDriverMemory:
    @pytest.mark.parametrize("n", [1, 255, 257, 4096, 100_003])
    def test_values_arrive(self, driver, n):
        x = np.random.default_rng(n).standard_normal(n, dtype="float32")
        a, b = Memory(driver, x), Memory(driver, np.full(n, np.nan, "float32"))
        runtime = adapter()
        runtime.load(scale())((a.address, b.address, -0.5, n), Location((2, 0), "numpy"))
        runtime.synchronize()
        np.testing.assert_array_equal(b.get(), x * np.float32(-0.5))

    @pytest.mark.parametrize(("offset", "n"), [(0, 1000), (4, 1000), (0, 1001)])
    def test_addresses_and_sizes_choose_the_text(self, driver, offset, n):
        x = np.random.default_rng(n).standard_normal(n + 1, dtype="float32")
        a, b = Memory(driver, x), Memory(driver, np.full(n + 1, np.nan, "float32"))
        runtime = adapter()
        runtime.load(scale4())((a.address + offset, b.address + offset, 3.0, n), Location((2, 0), "numpy"))
        runtime.synchronize()
        i = offset // 4
        np.testing.assert_array_equal(b.get()[i : i + n], x[i : i + n] * np.float32(3))
        assert np.isnan(np.delete(b.get(), slice(i, i + n))).all()

    def test_shared_memory_up_to_the_limit(self, driver):
        limit = driver.device(driver.current()).shared_bytes
        out = Memory(driver, np.zeros(3, "int32"))
        for size in (48 << 10, (48 << 10) + 4, limit):
            out.put(np.zeros(3, "int32"))
            runtime = adapter()
            runtime.load(last(size))((out.address, size // 4), Location((2, 0), "numpy"))
            runtime.synchronize()
            assert out.get().tolist() == [42, 43, 44]

    @pytest.mark.parametrize("dtype", [d for d in DTYPES if not DTYPES[d].is_packed])
    def test_every_type_of_scalar(self, driver, dtype):
        import ml_dtypes  # noqa: F401 - names of narrow floats

        storage = np.dtype(DTYPES[dtype].storage)
        c = {"b": "bool", "i": "signed", "u": "unsigned"}.get(storage.kind, "")
        names = {1: "char", 2: "short", 4: "int", 8: "long long"}
        floats = {"float16": "unsigned short", "float32": "float", "float64": "double"}
        name = "bool" if c == "bool" else floats.get(storage.name, f"{c} {names[storage.itemsize]}")
        text = f'extern "C" __global__ void f({name}* y, {name} s, {name} t) {{ y[0] = s; y[1] = t; }}'
        params = (
            ParamFact("y", "pointer", dtype, "write"),
            ParamFact("s", "scalar", dtype),
            ParamFact("t", "scalar", dtype),
        )
        out = Memory(driver, np.full(2 * storage.itemsize, 0xA5, "uint8"))
        runtime = adapter()
        values = (True, False) if c == "bool" else (1, 0) if c else (1.5, -2.0)
        launch = runtime.load(KernelText(text, LaunchFacts("f", params, (1, 1, 1), (1, 1, 1))))
        launch((out.address, *values), Location((2, 0), "numpy"))
        runtime.synchronize()
        assert out.get().tobytes() == np.array(values).astype(DTYPES[dtype].numpy()).tobytes()

    def test_text_of_an_older_target(self, driver):
        x = np.ones(8, "float32")
        a, b = Memory(driver, x), Memory(driver, x * 0)
        runtime = adapter(make_target("sm_80"))
        runtime.load(scale())((a.address, b.address, 2.0, 8), Location((2, 0), "numpy"))
        runtime.synchronize()
        assert b.get().tolist() == [2.0] * 8


class TestTorch:
    @pytest.fixture
    def torch(self):
        return pytest.importorskip("torch")

    @pytest.mark.parametrize("n", [0, 1, 255, 1000, 100_003])
    def test_outputs_are_allocated(self, torch, n):
        run = kernel(scale4())
        x = torch.randn(n, device="cuda")
        for _ in range(3):
            y = run(x, 2.5)
            assert y.device == x.device
            assert torch.equal(y, x * 2.5)

    def test_views_that_are_not_aligned(self, torch):
        run = kernel(scale4())
        x = torch.randn(1025, device="cuda")
        for view in (x[:1024], x[1:], x[2:1022], x[:1024]):
            assert torch.equal(run(view, 3.0), view * 3.0)

    def test_the_current_stream(self, torch):
        run = kernel(scale())
        stream = torch.cuda.Stream()
        x = torch.zeros(1 << 22, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(50_000_000)
            x += 1  # late, on this stream
            y = run(x, 2.0)
        stream.synchronize()
        assert torch.equal(y, torch.full_like(x, 2.0))

    @pytest.mark.parametrize("warm", [False, True])
    def test_a_captured_graph(self, torch, warm):
        run = kernel(scale4())
        x = torch.randn(4096, device="cuda")
        if warm:
            run(x, 2.0)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = run(x, 2.0)
            z = run(x[1:4001], 2.0)  # the general text, built while the stream is captured
        x.copy_(torch.randn(4096, device="cuda"))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(y, x * 2)
        assert torch.equal(z, x[1:4001] * 2)

    def test_a_thread_without_a_context(self, torch):
        run = kernel(scale())
        x = torch.randn(1000, device="cuda")
        torch.cuda.synchronize()
        found = []
        thread = threading.Thread(target=lambda: found.append(run(x, 2.0)))
        thread.start()
        thread.join()
        torch.cuda.synchronize()
        assert torch.equal(found[0], x * 2)

    def test_many_threads(self, torch):
        run = kernel(scale())
        xs = [torch.randn(1000 + i, device="cuda") for i in range(8)]
        found = [None] * 8

        def work(i):
            for _ in range(200):
                found[i] = run(xs[i], float(i))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        torch.cuda.synchronize()
        assert all(torch.equal(found[i], xs[i] * i) for i in range(8))

    def test_another_device(self, torch):
        if torch.cuda.device_count() < 2:
            pytest.skip("one device")
        run = kernel(scale())
        for ordinal in (1, 0, 1):
            x = torch.randn(1000, device=f"cuda:{ordinal}")
            assert torch.equal(run(x, 2.0), x * 2)
            assert torch.cuda.current_device() == 0

    @pytest.mark.parametrize("dtype", ["float16", "int8", "float32"])
    def test_matrices_are_compressed_there(self, torch, dtype):
        dense = sparse.randn_semi_sparse((129, 96), dtype, seed=int(np.random.default_rng().integers(1 << 30)))
        values, codes = sparse.compress(torch.from_numpy(dense).cuda())
        expected, right = sparse.compress(dense)
        assert values.device.type == codes.device.type == "cuda"
        assert values.cpu().numpy().tobytes() == expected.tobytes()
        assert codes.cpu().numpy().tobytes() == right.tobytes()
        dense[77, 4:8] = 1
        with pytest.raises(tile.TileError, match="row 77, columns 4"):
            sparse.compress(torch.from_numpy(dense).cuda())

    def test_time(self, torch):
        run = kernel(scale4())
        x = torch.randn(1 << 24, device="cuda")
        result = run.bench(x, 2.0, repeat=3)
        # 128 MiB take at least 10 microseconds on every device there is, and less than a second.
        assert all(1e-5 < seconds < 1 for seconds in result.samples)
        assert torch.equal(run(x, 2.0), x * 2)


def test_cupy():
    cupy = pytest.importorskip("cupy")
    run = kernel(scale4())
    x = cupy.random.default_rng(0).standard_normal(1000, dtype="float32")
    stream = cupy.cuda.Stream(non_blocking=True)
    stream.wait_event(cupy.cuda.get_current_stream().record())
    with stream:
        y = run(x, 2.0)
        assert type(y) is cupy.ndarray
    stream.synchronize()
    assert bool((y == x * 2).all())


def test_arrays_of_jax_are_read():
    jax = pytest.importorskip("jax")
    torch = pytest.importorskip("torch")
    run = kernel(scale(), dataclasses.replace(SIGNATURE, out_idx=()))
    x = jax.numpy.arange(1000, dtype="float32")
    y = torch.full((1000,), float("nan"), device="cuda")
    run(x, y, 2.0)
    torch.cuda.synchronize()
    assert np.array_equal(y.cpu().numpy(), np.arange(1000, dtype="float32") * 2)


FAULT = """
import tile_core as tile
from tile_core import sparse
from tile_core.abi.adapter import Location
from tile_cuda.runtime import CudaAdapter
from tile_cuda.resolve import detect
from tile_core.abi.kernel_text import KernelText, LaunchFacts, ParamFact
text = 'extern "C" __global__ void f(float* y) { y[1] = 1.0f; }'
facts = LaunchFacts("f", (ParamFact("y", "pointer", "float32", "write"),), (1, 1, 1), (1, 1, 1))
adapter = CudaAdapter(detect())
adapter.load(KernelText(text, facts))((4096,), Location((2, 0), "numpy"))
try:
    adapter.synchronize()
except Exception as error:
    print(type(error).__name__, error.code)
"""


def test_a_fault_is_named():
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", FAULT], capture_output=True, text=True)
    assert done.stdout.split() == [DeviceFault.__name__, DeviceFault.code], done.stderr
