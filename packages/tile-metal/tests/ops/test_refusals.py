"""Rejection reasons of products on matrix instructions, one per kind."""

from __future__ import annotations

from typing import Any

import pytest

from tile_core.ir import nodes
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import View
from tile_core.simt.variant import Block, SimtCall
from tile_metal.ops.atoms import SIMDGROUP, TENSOR
from tile_metal.ops.gemm import MatrixGemm, MatrixGemmSp

from .kit import TARGETS, context

FLOATS = ("float16", "float16", "float32")
VARIANTS = [kind(unit, 1) for kind in (MatrixGemm, MatrixGemmSp) for unit in (SIMDGROUP, TENSOR)]


def call(
    variant: MatrixGemm, threads: int = 64, types: Any = FLOATS, scopes: Any = ("shared",) * 3, alone: bool = False
) -> SimtCall:
    """A product of 20 x 12 x 32 elements."""
    is_sparse = variant.op == "gemm_sp"
    shapes = {"A": (20, 32 // (1 + is_sparse)), "B": (32, 12), "C": (20, 12)}
    views = {
        name: View(nodes.alloc(shapes[name], dtype, name, scope)[0], (0, 0), shapes[name])
        for name, dtype, scope in zip("ABC", types, scopes, strict=True)
    }
    clear, names = nodes.const(True, "bool"), list(types)
    args: list[Any] = [*views.values(), clear]
    if is_sparse:
        args.insert(1, View(nodes.alloc((20, 2), "int16", "E", "shared")[0], (0, 0), (20, 2)))
        names.insert(1, "int16")
    turned = dict.fromkeys(("transpose_A", "transpose_B", "transpose_E"), False)
    attrs = {**turned, "policy": 0, "types": names, "group": 4}
    block = Block((threads, 1, 1), nodes.fresh("tid"))
    return SimtCall(variant.op, tuple(args), attrs, block=block, divergent=alone)


#: What is refused, and the reason, of dense and of sparse products.
REFUSED = {
    "one thread": ({"alone": True}, ("one thread executes it for itself; the instruction needs a simdgroup",) * 2),
    "31 threads": ({"threads": 31}, ("threads=31 is below the limit 32; nearest legal: 32",) * 2),
    "types": (
        {"types": ("float16", "int8", "float32")},
        ("no instruction for the types A float16, B int8, C float32; nearest legal: A float16, B bfloat16, C float32",)
        * 2,
    ),
    "a type of C": (
        {"types": ("float16", "float16", "int32")},
        ("no instruction for the types A float16, B float16, C int32; nearest legal: A float16, B float16, C bfloat16",)
        * 2,
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
def test_the_reason_is_the_true_one(name: str, variant: MatrixGemm) -> None:
    how, reasons = REFUSED[name]
    reason = reasons[variant.op == "gemm_sp"]
    product, ctx = call(variant, **how), context(TARGETS[1])
    answer, plan = variant.accepts(product, ctx), variant.plan(product)
    assert isinstance(answer, Accept) if not reason else answer == Reject(reason)
    assert not isinstance(plan, Reject) or plan.reason == reason
    assert isinstance(variant.accepts(call(variant), ctx), Accept)
