"""Outputs that torch allocates: the short way gives what ``torch.empty`` does, wherever it is taken."""

from __future__ import annotations

import types

import pytest

from tile_core.abi.adapter import HostMemory, Location
from tile_core.abi.signature import Param, Signature
from tile_runtime.calls import allocate


def made(torch, dtype="float32", shape=(3, 5), device="cpu"):
    param = Param("C", "tensor", dtype, shape, access="write")
    signature = Signature("f", (param,), out_idx=(0,))
    like = torch.empty(1, device=device)
    return allocate.allocator(signature, param, shape, Location((1, 0), "torch"), like, HostMemory())()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "float8_e4m3fn", "bool"])
@pytest.mark.parametrize("shape", [(3, 5), (7,), (0, 4), (1, 1, 1)])
def test_as_torch_empty(dtype, shape):
    torch = pytest.importorskip("torch")
    out, result = made(torch, dtype, shape)
    usual = torch.empty(shape, dtype=getattr(torch, dtype))
    assert out is result
    assert (out.dtype, out.shape, out.stride(), out.device) == (usual.dtype, usual.shape, usual.stride(), usual.device)
    assert not out.requires_grad
    with torch.inference_mode():
        assert made(torch, dtype, shape)[0].is_inference()


def double(count=1, name="cpu", **found):
    """Replace torch by a fake with several devices, whose fast allocation has other facts."""
    facts = {"shape": (3, 5), "dtype": "f", "device": name, "layout": "strided", "requires_grad": False}
    usual = types.SimpleNamespace(**facts, stride=lambda: (5, 1))
    short = types.SimpleNamespace(**{**facts, **found}, stride=lambda: found.get("strides", (5, 1)))
    module = types.SimpleNamespace(device_count=lambda: count)
    torch = types.SimpleNamespace(empty=lambda *a, **k: usual, **{name: module})
    return (
        torch,
        types.SimpleNamespace(**{f"_empty_strided_{name}": lambda *a: short}),
        types.SimpleNamespace(type=name),
    )


@pytest.mark.parametrize(("facts", "taken"), [
    ({}, True), ({"name": "gpu"}, True), ({"name": "gpu", "count": 2}, False), ({"dtype": "g"}, False),
    ({"device": "other"}, False), ({"strides": (1, 3)}, False), ({"requires_grad": True}, False),
])  # fmt: skip
def test_where_the_short_way_is_taken(monkeypatch, facts, taken):
    torch, guards, device = double(**facts)
    monkeypatch.setitem(allocate.sys.modules, "torch._C._dynamo.guards", guards)
    assert (allocate._quick(torch, (3, 5), "f", device) is not None) == taken
    monkeypatch.setitem(allocate.sys.modules, "torch._C._dynamo.guards", types.ModuleType("without"))
    assert allocate._quick(torch, (3, 5), "f", device) is None
