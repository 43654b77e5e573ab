"""Launches through torch.mps: bindings, exact bytes of scalars, limits, and what the text computes."""

import sys

import ml_dtypes
import numpy as np
import pytest
from expected_errors import raises_error

from tile_core.errors import launch as errors
from tile_core.errors.launch import GridTooLarge, TextRefused, TooMuchShared
from tile_metal.errors import FastMathForced, LibraryTooOld, TooManyBuffers, TooManyThreadsPerGroup, WrongWidth

from .fake_torch import Torch
from .texts import (
    INDEX,
    TYPES,
    Param,
    adapter,
    add_some,
    gemm,
    gemm_params,
    kernel,
    scale,
    scale_params,
    tensor,
    text,
    text_type,
)


@pytest.fixture
def torch(monkeypatch):
    """The double, where the binder finds torch."""
    monkeypatch.delenv("PYTORCH_MPS_FAST_MATH", raising=False)
    found = Torch()
    monkeypatch.setitem(sys.modules, "torch", found)
    return found


def scaled(torch, **how):
    return kernel(scale(), scale_params(), adapter(torch=torch), hidden=("n",), **how)


def ramp(torch, count, dtype=np.float32):
    return torch.tensor(np.arange(count).astype(dtype))


def test_in_place(torch):
    out = ramp(torch, 100)
    assert scaled(torch)(ramp(torch, 100), out, 0.5) is None
    np.testing.assert_array_equal(out.array(), np.arange(100, dtype=np.float32) / 2)
    (launch,) = torch.launches
    assert (launch.threads, launch.group) == ((128, 1, 1), (32, 1, 1))
    assert launch.scalars == [("factor", "float32", 0.5), ("n", "int32", 100)]


def test_allocated_by_torch(torch):
    out = scaled(torch, out_idx=(1,))(ramp(torch, 7), 3.0)
    assert out.device.type == "mps"
    np.testing.assert_array_equal(out.array(), 3 * np.arange(7))


def test_what_is_not_written_stays(torch):
    call = kernel(
        add_some("write"), [tensor("a", "n"), tensor("c", "n", access="write")], adapter(torch=torch), hidden=("n",)
    )
    c = torch.tensor(np.full(9, 100, np.float32))
    call(ramp(torch, 9), c)
    np.testing.assert_array_equal(c.array(), 100 + np.arange(9) * (np.arange(9) % 2 == 0))


def test_at_the_offset_of_a_view(torch):
    memory = ramp(torch, 64)
    scaled(torch)(memory[3:23], memory[40:60], 2.0)
    expected = np.arange(64, dtype=np.float32)
    expected[40:60] = 2 * expected[3:23]
    np.testing.assert_array_equal(memory.array(), expected)


def test_views_of_one_tensor_that_overlap(torch):
    memory = ramp(torch, 64)
    with pytest.raises(errors.Overlap):
        scaled(torch)(memory[:20], memory[10:30], 2.0)


def test_handles_are_no_addresses(torch):
    """Buffers are longer than the distance of their handles, which is not an overlap."""
    call = scaled(torch)
    for _ in range(3):
        call(ramp(torch, 4096), ramp(torch, 4096), 2.0)
    assert len(torch.launches) == 3
    assert len(torch.shaders) == 1


def test_scalars_of_every_size(torch):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (13, 19)).astype(np.float16), rng.integers(-4, 5, (19, 11)).astype(np.float16)
    product = kernel(gemm(), gemm_params(), adapter(torch=torch), out_idx=(5,), hidden=("k", "m", "n"))
    out = product(torch.tensor(a), 1.5, True, torch.tensor(b), -3)
    np.testing.assert_array_equal(out.array(), (a.astype(np.float32) @ b.astype(np.float32)) * 1.5 - 3)


SCALARS = {
    "bool": True, "int8": -128, "uint8": 255, "int16": -(2**15), "uint16": 2**16 - 1, "int32": -(2**31),
    "uint32": 2**32 - 1, "int64": -(2**63), "uint64": 2**64 - 1, "float16": -65504.0, "bfloat16": 1.0078125,
    "float32": 3.4028234663852886e38,
}  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
def test_the_bytes_of_a_scalar(torch, dtype):
    torch.run = False
    params = [("first", "int8"), ("x", "int32", "write"), ("value", dtype), ("last", "bool")]
    made = text("f", params, "  x[0] = 1;\n", (1, 1, 1), (32, 1, 1))
    scalars = {n: Param(n, "scalar", d) for n, d in (("first", "int8"), ("value", dtype), ("last", "bool"))}
    call = kernel(made, [scalars["first"], tensor("x", 4, dtype="int32", access="write"), *list(scalars.values())[1:]],
                  adapter(torch=torch))  # fmt: skip
    call(-1, ramp(torch, 4, np.int32), SCALARS[dtype], True)
    assert torch.launches[0].scalars == [
        ("first", "int8", -1),
        ("value", dtype, SCALARS[dtype]),
        ("last", "bool", True),
    ]


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "bfloat16"])
def test_element_types(torch, dtype):
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    values = (np.arange(40) % 2).astype(kind)
    call = kernel(scale(dtype), scale_params(dtype), adapter(torch=torch), out_idx=(1,), hidden=("n",))
    np.testing.assert_array_equal(call(torch.tensor(values), 1.0).array(), values)


@pytest.mark.parametrize("inputs", [(), ("a",)])
def test_float8_is_bound_as_bytes(torch, inputs):
    body = INDEX.format(32) + ("  out[i] = a[i];\n" if inputs else "  out[i] = (uchar)i;\n")
    rows = [*((n, "float8_e4m3fn", "read") for n in inputs), ("out", "float8_e4m3fn", "write")]
    assert text_type("float8_e4m3fn") == "uchar"
    params = [tensor(n, 32, dtype=d, access=access) for n, d, access in rows]
    call = kernel(text("f", rows, body, (1, 1, 1), (32, 1, 1)), params, adapter(torch=torch), out_idx=(len(inputs),))
    out = call(*(ramp(torch, 32, np.uint8).view(torch.float8_e4m3fn) for _ in inputs))
    assert out.dtype is torch.float8_e4m3fn
    np.testing.assert_array_equal(out.array().view(np.uint8), np.arange(32))


def test_empty(torch):
    assert scaled(torch, out_idx=(1,))(ramp(torch, 0), 0.5).shape == (0,)
    assert torch.launches == []
    made = text("f", [("a", "float32", "read"), ("c", "float32", "write")], INDEX.format(32) + "  c[i] = 1.0f;\n",
                (1, 1, 1), (32, 1, 1))  # fmt: skip
    c = ramp(torch, 32)
    kernel(made, [tensor("a", "n"), tensor("c", 32, access="write")], adapter(torch=torch))(ramp(torch, 0), c)
    np.testing.assert_array_equal(c.array(), np.ones(32))


def test_cpu_tensors(torch):
    with raises_error(errors.WrongDevice, name="a", found="cpu"):
        scaled(torch)(torch.from_numpy(np.zeros(3, np.float32)), ramp(torch, 3), 0.5)


class TestLimits:
    """Limits are checked before any dispatch: Metal would end the process."""

    def launch(self, torch, made=None):
        call = kernel(made or scale(), scale_params(), adapter(torch=torch), hidden=("n",), out_idx=(1,))
        call(ramp(torch, 5), 0.5)

    def test_threads_of_the_pipeline(self, torch):
        torch.limit = 16
        with pytest.raises(TooManyThreadsPerGroup, match="32 threads; the compiled kernel allows 16"):
            self.launch(torch)
        assert torch.launches == []

    def test_width(self, torch):
        torch.width = 64
        with raises_error(WrongWidth, found=64):
            self.launch(torch)

    def test_threads_of_any_kernel(self, torch):
        made = text("f", [("x", "float32", "write")], "  x[0] = 1.0f;\n", (1, 1, 1), (32, 33, 1))
        with raises_error(TooManyThreadsPerGroup, found=1056, where_from="Metal", limit=1024):
            adapter(torch=torch).load(made)

    def test_memory_of_a_threadgroup(self, torch):
        made = text("f", [("x", "float32", "write")], "  x[0] = 1.0f;\n", (1, 1, 1), (32, 1, 1), shared=32784)
        with pytest.raises(TooMuchShared, match="uses 32784 bytes of shared memory, a threadgroup of Metal has 32768"):
            adapter(torch=torch).load(made)

    def test_memory_of_the_pipeline(self, torch):
        made = scale()
        grown = made.text.replace(
            " const float factor =", " alignas(16) threadgroup uchar smem[40000];\n  const float factor ="
        )
        with raises_error(TooMuchShared, found=40000):
            self.launch(torch, type(made)(grown, made.facts))

    def test_grid(self, torch):
        torch.run = False
        made = text("f", [("x", "float32", "write"), ("n", "int64")], "  x[0] = 1.0f;\n", ("n", 1, 1), (32, 1, 1))
        call = kernel(made, [tensor("x", 4, access="write"), Param("n", "scalar", "int64")], adapter(torch=torch))
        x = ramp(torch, 4)
        call(x, 2**27 - 1)
        assert torch.launches[-1].threads == (2**32 - 32, 1, 1)
        with raises_error(GridTooLarge, runtime="torch", limit=4294967295, unit="threads", axis="x"):
            call(x, 2**27)

    def test_buffers(self, torch):
        params = [(f"a{i}", "float32", "write") for i in range(31)]
        made = text("f", [*params, ("n", "int32")], "  a0[0] = 1.0f;\n", (1, 1, 1), (32, 1, 1))
        call = kernel(made, [*(tensor(p[0], 3, access="write") for p in params), Param("n", "scalar", "int32")],
                      adapter(torch=torch))  # fmt: skip
        with raises_error(TooManyBuffers, found=32):
            call(*(ramp(torch, 3) for _ in params), 1)


class TestMath:
    def test_forced_by_the_environment(self, torch, monkeypatch):
        monkeypatch.setenv("PYTORCH_MPS_FAST_MATH", "1")
        with raises_error(FastMathForced, variable="PYTORCH_MPS_FAST_MATH", found="1"):
            scaled(torch)(ramp(torch, 3), ramp(torch, 3), 1.0)

    @pytest.mark.parametrize(("value", "fast"), [("0", False), ("", False), ("1", True)])
    def test_as_asked(self, torch, monkeypatch, value, fast):
        torch.run = False
        monkeypatch.setenv("PYTORCH_MPS_FAST_MATH", value)
        kernel(scale(fast=fast), scale_params(), adapter(torch=torch), hidden=("n",))(
            ramp(torch, 3), ramp(torch, 3), 1.0
        )
        assert len(torch.launches) == 1

    def test_before_texts_can_say_what_is_exact(self, torch, monkeypatch):
        monkeypatch.setenv("PYTORCH_MPS_FAST_MATH", "1")
        torch.system = (14, 7)
        with pytest.raises(FastMathForced, match="from macOS 15 on"):
            kernel(scale(fast=True), scale_params(), adapter(torch=torch), hidden=("n",))(
                ramp(torch, 3), ramp(torch, 3), 1.0
            )


def test_the_compiler_refuses(torch):
    torch.refuse = "program_source:3: error: unknown type name 'blah'"
    with pytest.raises(TextRefused, match="called by torch, rejected the text: program_source:3"):
        scaled(torch)(ramp(torch, 3), ramp(torch, 3), 1.0)


def test_an_old_torch(torch):
    del torch.mps.compile_shader
    with raises_error(LibraryTooOld, library="torch", version="2.13.0", function="mps.compile_shader"):
        scaled(torch)(ramp(torch, 3), ramp(torch, 3), 1.0)


def test_alignment_beyond_that_of_a_handle(torch):
    """After a first call only handles are checked, whose alignment guarantee is 16 bytes."""
    params = [tensor("a", "n", align=64), *scale_params()[1:]]
    call = kernel(scale(), params, adapter(torch=torch), hidden=("n",))
    memory, out = ramp(torch, 64), ramp(torch, 20)
    memory.buffer.handle += 16 - memory.buffer.handle % 64
    call(memory[:20], out, 1.0)
    with pytest.raises(errors.Misaligned):
        call(memory[12:32], out, 1.0)
