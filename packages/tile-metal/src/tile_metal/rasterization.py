"""Order threadgroups along panels of the result, or the longest first, by the estimate.

Threadgroups that run at a time read the rows of A and columns of B of all their tiles. If the tensors fit in the
last-level cache, each is read from memory once in any order; otherwise panels read less, which takes less time where
memory, not the multiplications, limits a step along K.
"""

from __future__ import annotations

from math import inf, prod
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ops.base import OpCall
from tile_core.simt.kernel_plan import KernelPlan
from tile_core.simt.launch.longest_first import longest_first
from tile_core.simt.launch.rasterization import panels
from tile_core.simt.ops.gemm_problem import Problem
from tile_core.simt.pipelining.async_products import products_of
from tile_metal.chips import chip_of, combined
from tile_metal.ops.atoms import SIMDGROUP
from tile_metal.ops.plan import fastest_for
from tile_metal.target import THREAD_REGISTERS

if TYPE_CHECKING:
    from tile_core.compat.types import BufferVar
    from tile_core.context import Context


def order_threadgroups(plan: KernelPlan, ctx: Context) -> KernelPlan:
    """Choose the order of a grid's threadgroups by the rates of a chip."""
    if not plan.is_unordered:
        return plan
    chip, threads, products = chip_of(ctx.target), plan.block.count, products_of(plan.body)
    order: Any = {}
    if products and sum(_bytes(p) for p in plan.params if tirx.is_buffer_var(p)) > chip.cache * 2**20:
        call = OpCall.decode(products[0])
        p = Problem.of(call)
        unit = fastest_for(call, threads, ctx)
        bits = max(DTYPES[t].bits for t in p.types[:2])
        rate = chip.cores * chip.clock * chip.multiplications(unit is not None and unit != SIMDGROUP, bits)
        resident = max(1, (ctx.capabilities.block_registers or 0) // (THREAD_REGISTERS * threads))

        def time(lines: float, elements: int) -> float:
            return combined((elements / rate, lines * bits / 8 / chip.memory))

        order = panels(plan.body, chip.cores * resident, 0, time)
    return plan.replace(order=order or longest_first(plan.body, chip.cores) or {})


def _bytes(tensor: BufferVar) -> float:
    shape = nodes.shape_of(tensor)
    known = all(isinstance(n, int) for n in shape)
    return prod(shape) * DTYPES[nodes.element_type(tensor)].bits / 8 if known else inf
