"""Torch tensors as arguments, without an import of torch by the runtime."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from tile_core.abi.signature import Param, Signature
from tile_core.dtypes import DTYPES
from tile_core.errors import launch as errors
from tile_core.runtime.kernel import Kernel, Origin
from tile_runtime.calls.binder import Binder


def test_the_runtime_imports_no_array_library_but_numpy():
    code = (
        "import sys, tile_core.runtime.kernel, tile_core.runtime.memo;"
        "print([m for m in ('torch', 'tvm', 'tvm_ffi', 'jax', 'numpy') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def tensor(name, *shape, dtype="float32", access="read", **more):
    return Param(name, "tensor", dtype, shape, access=access, **more)


COPY = Signature("copy", (tensor("A", "m"), tensor("C", "m", access="write")))


def often(binder, *args, **kwargs):
    """Make four calls: checked, checked again, by the form's function, and by its key."""
    first = binder(*args, **kwargs)
    binder(*args, **kwargs)
    binder(*args, **kwargs)
    last = binder(*args, **kwargs) if kwargs else binder.call_by_key(args)
    assert type(first) is type(last)
    return last


def test_tensors_pass_as_they_are(torch, launch):
    a, c = torch.zeros(4), torch.zeros(4)
    binder = Binder(COPY, launch)
    often(binder, a, c)
    assert all(call[0] is a and call[1] is c for call in launch.calls)
    assert len(binder.forms) == 1


NAMES = [n for n in DTYPES if not DTYPES[n].is_packed and n != "tfloat32"]


@pytest.mark.parametrize("name", NAMES)
def test_storage_types(torch, launch, name):
    if not hasattr(torch, name):
        pytest.skip(f"this torch has no {name}")
    a = torch.zeros(4, dtype=getattr(torch, name))
    often(Binder(Signature("f", (tensor("A", "m", dtype=name),)), launch), a)
    for (value,) in launch.calls:
        assert value.dtype == getattr(torch, DTYPES[name].storage)
        assert value.data_ptr() == a.data_ptr()


def test_uint8_storage_and_packed_types(torch, launch):
    a = torch.zeros(4, dtype=torch.uint8)
    often(Binder(Signature("f", (tensor("A", "m", dtype="float8_e4m3fn"),)), launch), a)
    assert launch.last[0] is a
    often(Binder(Signature("f", (tensor("A", 8, dtype="int4"),)), launch), a.view(torch.int8))
    assert launch.last[0].dtype == torch.uint8
    if hasattr(torch, "float4_e2m1fn_x2"):
        often(Binder(Signature("f", (tensor("A", 8, dtype="float4_e2m1fn"),)), launch), a.view(torch.float4_e2m1fn_x2))
        assert launch.last[0].dtype == torch.uint8
        assert launch.last[0].data_ptr() == a.data_ptr()


def test_gradients(torch, launch):
    binder = Binder(COPY, launch)
    a = torch.ones(4, requires_grad=True)
    with torch.no_grad():
        often(binder, a, torch.zeros(4))
        assert not launch.last[0].requires_grad
        assert launch.last[0].data_ptr() == a.data_ptr()
        often(binder, torch.nn.Parameter(torch.ones(4)), torch.zeros(4))
    often(binder, a.detach(), torch.zeros(4))
    calls = len(launch.calls)
    for value in (a, torch.nn.Parameter(torch.ones(4)), a):
        with pytest.raises(errors.GradientLost, match=r"\[K436\] copy: 'A' requires gradients"):
            binder(value, torch.zeros(4))
    assert len(launch.calls) == calls
    for _ in range(2):
        with pytest.raises(errors.GradientOutput, match=r"\[K417\] copy: argument 'C'"):
            binder(torch.zeros(4), a)
    assert len(launch.calls) == calls


def test_overlap(torch, launch):
    binder = Binder(COPY, launch)
    x = torch.zeros(8)
    often(binder, x[:4], x[4:])
    for _ in range(2):
        with pytest.raises(errors.Overlap):
            binder(x[:4], x[2:6])
    with pytest.raises(errors.Overlap):
        binder(x.numpy(), x)
    assert len(launch.calls) == 4


def test_mixed_libraries(torch, launch):
    a, c = torch.zeros(4), np.zeros(4, "f4")
    often(Binder(COPY, launch), a, c)
    assert launch.last[0] is a
    assert launch.last[1] is c


def test_alignment_is_checked_again_for_the_same_form(torch, launch):
    binder = Binder(Signature("f", (tensor("A", "m"),)), launch)
    binder(torch.zeros(2))
    try:
        odd = torch.frombuffer(bytearray(9), dtype=torch.float32, offset=1, count=2)
    except ValueError:
        pytest.skip("this torch makes no misaligned tensors")
    if odd.data_ptr() % 4 == 0:
        pytest.skip("aligned by chance")
    with pytest.raises(errors.Misaligned):
        binder(odd)


def test_refused_tensors(torch, launch):
    binder = Binder(Signature("f", (tensor("A", "m", "n"),)), launch)
    cases = [
        (torch.eye(3).to_sparse(), errors.UnsupportedArray, "layout is torch.sparse_coo"),
        (torch.zeros(3, 3, device="meta"), errors.UnsupportedArray, "meta device"),
        (torch.zeros(3, 3, dtype=torch.complex64).conj().imag, errors.UnsupportedArray, "resolve_neg"),
        (torch.zeros(3, 3).double(), errors.DTypeMismatch, "found float64"),
        (torch.zeros(3, 4).t(), errors.StrideMismatch, "strides"),
    ]
    often(binder, torch.zeros(3, 3))
    for value, kind, text in cases:
        with pytest.raises(kind, match=text):
            binder(value)


def test_outputs(torch, launch):
    params = (tensor("A", "m"), tensor("C", "m", 2, dtype="bfloat16", access="write"))
    out = often(Binder(Signature("f", params, (1,)), launch), torch.zeros(3))
    assert out.dtype == torch.bfloat16
    assert out.shape == (3, 2)
    assert out.device.type == "cpu"
    assert launch.last[1].dtype == torch.uint16
    assert launch.last[1].data_ptr() == out.data_ptr()


def test_strided(torch, launch):
    binder = Binder(Signature("f", (tensor("A", "m", "n", strides=("s", "t")),)), launch)
    often(binder, torch.zeros(3, 4).t())
    often(binder, torch.zeros(4, 3))
    assert len(launch.calls) == 8
    assert len(binder.forms) == 2


def test_verify(torch):
    def double(a, c):
        c[...] = 2 * a

    kernel = Kernel(Signature("f", COPY.params, (1,)), double, origin=Origin(reference=double))
    kernel.verify(torch.randn(5))
    params = (tensor("A", "m", dtype="bfloat16"), tensor("C", "m", dtype="bfloat16", access="write"))
    bf16 = Signature("f", params, (1,))

    def copy(a, c):
        np.from_dlpack(c)[...] = np.from_dlpack(a)

    Kernel(bf16, copy, origin=Origin(reference=lambda a, c: c.__setitem__(slice(None), a))).verify(
        torch.from_numpy(np.arange(4).astype(ml_dtypes.bfloat16).view(np.int16)).view(torch.bfloat16)
    )
