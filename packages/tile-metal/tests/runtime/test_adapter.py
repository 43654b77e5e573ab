"""Dispatch to libraries and texts, arrays of the suite, and missing requirements."""

import sys

import numpy as np
import pytest

from tile_core.errors import InternalError
from tile_core.errors.launch import MemoryDamaged, NotProvided, TextDoesNotServe, UnsupportedArray
from tile_metal.errors import NoLibrary, WrongLibrary
from tile_metal.runtime import adapters, libraries
from tile_metal.runtime.adapter import MetalAdapter
from tile_metal.runtime.libraries import LibraryUnusable
from tile_metal.target import make_target
from tile_runtime.calls.arrays import facts_of, share_memory

from .fake_mlx import Mlx
from .fake_torch import Torch
from .texts import INDEX, Param, adapter, add_some, gemm, gemm_params, kernel, scale, scale_params, tensor, text


@pytest.fixture
def torch(monkeypatch):
    found = Torch()
    monkeypatch.setitem(sys.modules, "torch", found)
    return found


@pytest.fixture
def mx():
    return Mlx()


def ramp(library, count):
    values = np.arange(count, dtype=np.float32)
    return library.array(values) if isinstance(library, Mlx) else library.tensor(values)


def test_the_runtimes():
    found = adapters(make_target("metal3"))
    assert [(a.name, a.libraries) for a in found] == [
        ("metal", ("mlx", "torch")),
        ("mlx", ("mlx",)),
        ("torch", ("torch",)),
    ]
    assert all(a.devices == {8} for a in found)


def test_the_arrays_choose(mx, torch):
    mx.run = torch.run = False
    runtime = adapter(mx, torch)
    call = kernel(scale(), scale_params(), runtime, hidden=("n",))
    call(ramp(torch, 9), ramp(torch, 9), 1.0)
    out = ramp(mx, 9)
    call(ramp(mx, 9), out, 1.0)
    assert (len(torch.launches), len(mx.launches)) == (1, 0)
    runtime.synchronize()
    assert (torch.waits, mx.waits > 0, len(mx.launches)) == (1, True, 3)


def test_libraries_do_not_mix(mx, torch):
    call = kernel(scale(), scale_params(), adapter(mx, torch), hidden=("n",))
    with pytest.raises(WrongLibrary, match="argument 'out' is an array of mlx; this call is launched through torch"):
        call(ramp(torch, 9), ramp(mx, 9), 1.0)


def test_a_runtime_of_one_library(mx, torch):
    call = kernel(scale(), scale_params(), adapter(mx, torch, name="mlx", libraries=("mlx",)), hidden=("n",))
    with pytest.raises(WrongLibrary, match="argument 'a' is an array of torch; this call is launched through MLX"):
        call(ramp(torch, 9), ramp(torch, 9), 1.0)


def test_addresses_are_no_buffers(mx):
    made = text("f", [("p", "float32", "write")], "  p[0] = 1.0f;\n", (1, 1, 1), (32, 1, 1))
    call = kernel(made, [Param("p", "pointer", "float32", access="write")], adapter(mx))
    with pytest.raises(WrongLibrary, match="argument 'p' is an address"):
        call(4096)


def test_texts_only():
    with pytest.raises(InternalError, match="made str, no text"):
        adapter().load("text")


class TestTexts:
    """The offset in a buffer stands for the address: buffers begin at a page. MLX's is not known before."""

    @pytest.mark.parametrize(("start", "entry"), [(0, "wide"), (4, "wide"), (1, "scale"), (2, "scale")])
    def test_by_offset(self, torch, start, entry):
        module = torch
        module.run = False
        wide = scale(align=16, general=scale)
        wide = type(wide)(wide.text.replace("void scale(", "void wide("), wide.facts, wide.general)
        object.__setattr__(wide.facts, "entry", "wide")
        wide = type(wide)(wide.text.replace("scale_args", "wide_args"), wide.facts, wide.general)
        kernel(wide, scale_params(), adapter(None, torch), hidden=("n",), out_idx=(1,))(ramp(module, 32)[start:], 1.0)
        (launch,) = module.launches
        assert entry in launch.entry

    def test_no_text_serves(self, torch):
        call = kernel(scale(align=16), scale_params(), adapter(None, torch), hidden=("n",), out_idx=(1,))
        with pytest.raises(TextDoesNotServe, match="addresses that are a multiple of 16"):
            call(ramp(torch, 32)[1:], 1.0)

    @pytest.mark.sweep(1)
    def test_an_aligned_copy(self, mx):
        """Only where no text serves other addresses."""
        body, read = scale(align=16), "(*(device const float4*)&a[i / 4 * 4])[i % 4]"
        vector = body.text.replace("a[i] * factor", f"{read} * factor")
        call = kernel(type(body)(vector, body.facts), scale_params(), adapter(mx), hidden=("n",), out_idx=(1,))
        np.testing.assert_array_equal(np.array(call(ramp(mx, 33)[1:], 3.0)), 3 * np.arange(1, 33))
        assert len(mx.launches) == 2

    @pytest.mark.sweep(1)
    @pytest.mark.parametrize("start", [0, 1, 2, 4])
    def test_the_text_looks_at_the_address(self, mx, start):
        """The fast branch triples, the other one does not."""
        wide = scale(align=16, general=scale)
        wide = type(wide)(wide.text.replace("a[i] * factor", "a[i] * factor * 3.0f"), wide.facts, wide.general)
        call = kernel(wide, scale_params(), adapter(mx), hidden=("n",), out_idx=(1,))
        found = np.array(call(ramp(mx, 64)[start:], 1.0))
        np.testing.assert_array_equal(found, np.arange(start, 64) * (1 if start % 4 else 3))
        assert len(mx.launches) == 1

    def test_what_a_call_allocates_is_aligned(self, mx):
        made = text("f", [("x", "float32", "write", 16)], INDEX.format(32) + "  x[i] = 1.0f;\n", (1, 1, 1), (32, 1, 1))
        out = kernel(made, [tensor("x", 32, access="write")], adapter(mx), out_idx=(0,))()
        np.testing.assert_array_equal(np.array(out), np.ones(32))


class TestHostCopies:
    """Arrays of the conformance kit, of either library."""

    @pytest.fixture(params=["mlx", "torch"])
    def runtime(self, request, mx, torch):
        return adapter(mx if request.param == "mlx" else None, torch)

    @pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32"])
    def test_round_trip(self, runtime, dtype):
        array = (np.arange(35).reshape(5, 7) % 2).astype(dtype)
        for view in (array, array[:, 1:4], array[::2].T, array[:0], array[:1, :1].reshape(())):
            there = runtime.from_host(view)
            facts, host = facts_of(there), facts_of(np.asarray(view))
            assert (facts.dtype, facts.shape, facts.strides) == (host.dtype, host.shape, host.strides)
            assert facts.writable
            assert facts.device == (8, 0)
            assert facts.pointer % 16 == host.pointer % 16 or not view.size
            np.testing.assert_array_equal(runtime.to_host(there), view)
            there.fill_bytes(1)
            assert (
                runtime.to_host(there).view() == np.array(1, np.uint8).repeat(view.itemsize).view(view.dtype)[0]
            ).all()

    def test_a_kernel_between_copies(self, runtime):
        rng = np.random.default_rng(0)
        a, b = rng.integers(-4, 5, (13, 19)).astype(np.float16), rng.integers(-4, 5, (19, 11)).astype(np.float16)
        product = kernel(gemm(), gemm_params(), runtime, hidden=("k", "m", "n"))
        c = runtime.from_host(np.full((13, 11), 7, np.float32))
        product(runtime.from_host(a), 1.5, True, runtime.from_host(b), -3, c)
        runtime.synchronize()
        np.testing.assert_array_equal(runtime.to_host(c), (a.astype(np.float32) @ b.astype(np.float32)) * 1.5 - 3)

    def test_allocated_among_copies(self, runtime):
        call = kernel(scale(), scale_params(), runtime, hidden=("n",), out_idx=(1,))
        out = call(runtime.from_host(np.arange(20, dtype=np.float32)), 2.0)
        np.testing.assert_array_equal(out.get(), 2 * np.arange(20))

    def test_part_of_an_array(self, runtime):
        memory = np.arange(40, dtype=np.float32)
        params = [tensor("a", "n", strides=("s",)), tensor("c", "n", access="readwrite", strides=("s",))]
        made = add_some()
        made = type(made)(made.text.replace("c[i] += a[i]", "c[2 * i] += a[2 * i]"), made.facts)
        a, c = runtime.from_host(memory[::2]), runtime.from_host(memory[1::2])
        kernel(made, params, runtime, hidden=("n",))(a, c)
        np.testing.assert_array_equal(c.get(), memory[1::2] + memory[::2] * (np.arange(20) % 2 == 0))

    @pytest.mark.sweep(0.25)
    @pytest.mark.parametrize(("index", "position"), [(-1, "4 bytes before the start"), (20, "0 bytes behind the end")])
    def test_guards(self, runtime, index, position):
        if index < 0 and runtime.preferred("")[0] == "torch":
            index, position = 63, "172 bytes behind the end"  # the double of torch binds nothing before a tensor
        made = text("f", [("x", "float32", "write")], f"  x[{index}] = 1.0f;\n", (1, 1, 1), (1, 1, 1))
        x = runtime.from_host(np.zeros(20, np.float32))
        kernel(made, [tensor("x", 20, access="write")], runtime)(x)
        with pytest.raises(MemoryDamaged, match=rf"float32\(20,\) was written: 4 bytes, first {position}"):
            runtime.to_host(x)

    def test_not_ours(self, runtime):
        with pytest.raises(NotProvided, match="from_host"):
            runtime.to_host(object())
        with pytest.raises(UnsupportedArray):
            runtime.from_host(np.zeros(3, [("x", "i1"), ("y", "f4")])["y"])

    def test_exported_where_it_is(self, runtime):
        array = runtime.from_host(np.zeros(3, np.float32))
        with pytest.raises(BufferError, match="without a copy"):
            array.__dlpack__(dl_device=(1, 0))
        assert array.__dlpack_device__() == (8, 0)
        assert "float32(3,)" in repr(array)

    def test_two_copies_share_nothing(self, runtime):
        a, b = (facts_of(runtime.from_host(np.zeros(1000, np.float32))) for _ in range(2))
        assert not share_memory(a, b)
        assert share_memory(a, a)


class TestMissing:
    def test_nothing_is_installed(self):
        call = kernel(scale(), scale_params(), adapter(), hidden=("n",))
        assert call.signature.name == "scale"  # loading needs nothing
        with pytest.raises(NoLibrary, match="mlx is not installed; torch is not installed"):
            adapter().from_host(np.zeros(3))

    def test_this_machine(self):
        """Without a Mac, real libraries are absent or have no device, and report it."""
        if sys.platform == "darwin":
            pytest.skip("this may be a Mac with a device")
        for find in libraries.FIND.values():
            with pytest.raises(LibraryUnusable, match=r"not installed|sees no"):
                find()

    def test_a_library_that_does_not_load(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", None)
        with pytest.raises(LibraryUnusable, match=r"^torch (is not installed|cannot be imported)"):
            libraries.find_torch()

    def test_no_device(self, monkeypatch):
        torch = Torch()
        torch.backends.mps.is_available = lambda: False
        monkeypatch.setitem(sys.modules, "torch", torch)
        with pytest.raises(LibraryUnusable, match="sees no device mps"):
            libraries.find_torch()

    def test_no_arrays_and_no_library(self):
        made = text("f", [("n", "int32")], "  (void)n;\n", (1, 1, 1), (32, 1, 1))
        with pytest.raises(NoLibrary):
            kernel(made, [Param("n", "scalar", "int32")], adapter())(3)

    def test_synchronising_nothing(self):
        MetalAdapter(make_target("metal3")).synchronize()
