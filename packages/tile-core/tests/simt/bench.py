"""One op of a block on the test machine: operands in registers, shared or global memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from machine import Machine, numpy_type

from tile_core.compat.tvm import ir, tirx
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.variant import Accept
from tile_core.ops.base import View
from tile_core.simt.threads.warp_calls import lower_warp_calls
from tile_core.simt.variant import Block, Placement, SimtCall
from tile_core.target import Capabilities

CTX: Any = SimpleNamespace(capabilities=Capabilities(execution_width=32))
KINDS = ("sum", "max", "min", "bitand", "bitor")
REDUCTIONS = frozenset({("sum", "float32"), *((kind, d) for kind in KINDS for d in ("int32", "uint32"))})
#: A target with instructions for what shuffles do, and an inexact one for the larger of two floats.
RICH: Any = SimpleNamespace(
    capabilities=Capabilities(execution_width=32, group_reductions=REDUCTIONS, loose_extremes=True)
)


def buffer(shape: Any, dtype: str, name: str, scope: str) -> Any:
    return tirx.decl_buffer(list(shape), dtype, name, scope="" if scope == "global" else scope, layout=None)


def view(b: Any, mins: Any = None, extents: Any = None) -> View:
    shape = nodes.shape_of(b)
    return View(b, tuple(mins or [0] * len(shape)), tuple(extents or shape))


class Bench:
    """Operands of one op in registers, shared or global memory, and the machine that runs it, of target ``ctx``."""

    ctx = CTX

    def __init__(self, threads: int) -> None:
        self.thread = nodes.fresh("tid")
        self.block = Block((threads, 1, 1), self.thread)
        self.placement = Placement()
        self.machine = Machine(threads, self.thread, races=True)

    def tile(self, data: Any, dtype: str, name: str, scope: str, dist: FragmentLayout | None = None) -> Any:
        b = buffer(data.shape, dtype, name, scope)
        if dist is None:
            self.machine.memory.arrays[b] = data.copy()
            return b
        self.hold(b, dist)
        array = self.placement.arrays[b]
        found = np.frombuffer(
            np.random.default_rng(3).bytes(self.machine.count * dist.registers * data.itemsize), np.uint8
        )
        found = (found % 2 == 1)[: self.machine.count * dist.registers] if dtype == "bool" else found.view(data.dtype)
        found = found.reshape(self.machine.count, dist.registers).copy()
        found[dist.thread_table, dist.register_table[:, None]] = data.reshape(-1, 1)
        self.machine.private[array] = found
        return b

    def hold(self, b: Any, dist: FragmentLayout) -> None:
        self.placement.fragments[b] = dist
        self.placement.arrays[b] = buffer((dist.registers,), nodes.element_type(b), f"{b.name}_r", "local")

    def value(self, b: Any) -> Any:
        dist = self.placement.fragments.get(b)
        if dist is None:
            return self.machine.memory.arrays[b]
        found = self.machine.private[self.placement.arrays[b]][dist.thread_table, dist.register_table[:, None]]
        first = found[:, :1]
        assert ((found == first) | ((found != found) & (first != first))).all(), "copies differ"
        return first[:, 0].reshape(dist.shape)

    def run(self, variant: Any, name: str, args: tuple[Any, ...], attrs: dict[str, Any]) -> None:
        call = SimtCall(name, args, attrs, block=self.block, placement=self.placement)
        assert isinstance(variant.accepts(call, self.ctx), Accept)
        body = variant.lower(call, self.ctx)
        body = lower_warp_calls(body, self.block, 32, self.ctx.capabilities.group_reductions)
        self.calls = {str(c.op.name)[5:] for c in collect(body, ir.Call) if nodes.is_tile_call(c)}
        self.machine.run(body)


def numbers(rng: Any, shape: Any, dtype: str) -> Any:
    d = DTYPES[dtype]
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    low = 0 if d.kind == "uint" else -9
    return rng.integers(low, 10, shape).astype(numpy_type(dtype))


def check(found: Any, want: Any, tolerance: float = 0) -> None:
    np.testing.assert_allclose(
        np.asarray(found, np.float64), np.asarray(want, np.float64), rtol=tolerance, atol=tolerance
    )
