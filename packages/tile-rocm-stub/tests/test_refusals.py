"""Rejection reasons of products on matrix instructions, one per kind."""

from __future__ import annotations

from typing import Any

import pytest

from tile_core.ir import nodes
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import View
from tile_core.plugins.contexts import make_context
from tile_core.simt.variant import Block, SimtCall
from tile_rocm_stub.ops.gemm import Mfma, Smfmac

FLOATS, INT8 = ("float16", "float16", "float32"), ("int8", "int8", "int32")
VARIANTS = [kind("fnuz", True) for kind in (Mfma, Smfmac)]


def call(
    variant: Mfma, threads: int = 128, types: Any = FLOATS, scopes: Any = ("shared",) * 3, alone: bool = False
) -> SimtCall:
    """A product of 20 x 12 x 32 elements."""
    shapes = {"A": (20, 32 // (1 + variant.sparse)), "B": (32, 12), "C": (20, 12)}
    views = {
        name: View(nodes.alloc(shapes[name], dtype, name, scope)[0], (0, 0), shapes[name])
        for name, dtype, scope in zip("ABC", types, scopes, strict=True)
    }
    clear, names = nodes.const(True, "bool"), list(types)
    args: list[Any] = [*views.values(), clear]
    if variant.sparse:
        args.insert(1, View(nodes.alloc((20, 2), "int16", "E", "shared")[0], (0, 0), (20, 2)))
        names.insert(1, "int16")
    turned = dict.fromkeys(("transpose_A", "transpose_B", "transpose_E"), False)
    attrs = {**turned, "policy": 0, "types": names, "group": 4}
    block = Block((threads, 1, 1), nodes.fresh("tid"))
    return SimtCall(variant.op, tuple(args), attrs, block=block, divergent=alone)


#: What is refused, and the reason, of dense and of sparse products.
REFUSED = {
    "one thread": ({"alone": True}, ("one thread executes it for itself; the instruction needs a wavefront",) * 2),
    "63 threads": ({"threads": 63}, ("threads=63 is below the limit 64; nearest legal: 64",) * 2),
    "types": (
        {"types": ("uint8", "int8", "int32")},
        ("no instruction for the types A uint8, B int8, C int32; nearest legal: A int8, B int8, C int32",) * 2,
    ),
    "float32": (
        {"types": ("float32",) * 3},
        ("", "no instruction for the types A float32, B float32, C float32; nearest legal: A bfloat16, B bfloat16, "
             "C float32"),
    ),
    "C in global memory": (
        {"scopes": ("shared", "shared", "global")}, ("C is in global; legal: shared or fragment",) * 2
    ),
    "A in registers": (
        {"scopes": ("local.fragment", "shared", "shared")}, ("", "A is in fragment; legal: shared or global")
    ),
}  # fmt: skip


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.name)
@pytest.mark.parametrize("name", REFUSED)
def test_the_reason_is_the_true_one(name: str, variant: Mfma) -> None:
    how, reasons = REFUSED[name]
    reason = reasons[variant.sparse]
    product, ctx = call(variant, **how), make_context("rocm:gfx942")
    answer, plan = variant.accepts(product, ctx), variant.plan(product)
    assert isinstance(answer, Accept) if not reason else answer == Reject(reason)
    assert not isinstance(plan, Reject) or plan.reason == reason
    assert isinstance(variant.accepts(call(variant), ctx), Accept)
