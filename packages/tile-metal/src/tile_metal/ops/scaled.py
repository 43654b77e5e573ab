"""Multiply block-scaled tiles: partial accumulators of a block along K, scaled where they are added.

Lanes decode elements while they read them, exactly. Instructions multiply a block's elements, and each accumulator adds
the result times the scales of its row and column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.ir import nodes
from tile_core.ir.attributes import BLOCK, TRANSPOSE_A, TRANSPOSE_B
from tile_core.ops.gemm_scaled import element, scale_of, scaled
from tile_core.records import dataclass
from tile_core.simt.memory import contiguity
from tile_core.simt.register_loops import choose, unrolled
from tile_core.simt.variant import SimtCall
from tile_metal.ops.atoms import Unit
from tile_metal.ops.gemm import MatrixGemm
from tile_metal.ops.operand import SimdgroupLoader, SimdgroupOperand
from tile_metal.ops.plan import SimdgroupPlan
from tile_metal.ops.product import SimdgroupProduct


class MatrixGemmScaled(MatrixGemm):
    """Block-scaled products of tiles in threadgroup memory."""

    op = "gemm_scaled"
    suffix = ".scaled"

    def __init__(self, unit: Unit, priority: int) -> None:
        super().__init__(unit, priority)
        seen = ("shared",)
        self.legality = replace(self.legality, scopes={"A": seen, "B": seen, "C": ("shared", "fragment")})

    def refuses(self, call: SimtCall) -> str:
        """Return the rejection reason of blocks, and of tiles that may extend outside their buffers."""
        block, scales = int(call.attrs[BLOCK]), call.args[1:4:2]
        if block % self.unit.k:
            return f"blocks of {block} elements are not a multiple of {self.unit.k}"
        if any(v.scope != "shared" for v in scales):
            return "scales are not in shared memory"
        outside = any(contiguity.conditions(v, call.ranges) for v in call.args[:4])
        return "operands may extend outside their buffers" if outside else ""

    def statement(self, plan: SimdgroupPlan, call: SimtCall) -> Stmt:
        """Return the product for one thread."""
        return _ScaledProduct(plan, call).statement()


@dataclass(frozen=True, kw_only=True)
class _ScaledOperand(SimdgroupOperand):
    """A or B with elements of any storage."""

    def load(self, line: Expr, k: Expr, limits: Sequence[Expr] = ()) -> Expr:
        """Load an element as ``taken``; zero outside of a limit."""
        return choose(limits, self.taken(element(self.view, self.turned, self.language, line, k)))


class _ScaledProduct(SimdgroupProduct):
    def loop(self, guarded: bool, totals: BufferVar, whole: bool) -> list[Stmt]:
        """Return the loop over blocks of K."""
        p, u, block = self.plan.problem, self.plan.unit, int(self.call.attrs[BLOCK])
        fields: dict[str, Any] = {"dtype": self.plan.operand, "depth": p.k, "unit": u}
        operands = [_ScaledOperand(**self.operand(n, guarded), **fields, is_a=n == 0) for n in (0, 1)]
        out: list[Stmt] = []
        loaders = []
        for operand, name in zip(operands, "ab", strict=True):
            registers, new = nodes.alloc([operand.tiles * operand.size], operand.dtype, f"{name}_values", "local")
            loaders.append(SimdgroupLoader(operand, self.lane, registers, name))
            out.append(new)
        count = self.plan.split.atoms_m * self.plan.split.atoms_n * u.instruction.accumulators
        part, new = nodes.alloc([count], "float32", "part", "local")
        at, steps = nodes.fresh("block"), block // u.k

        def step(s: Expr) -> Stmt:
            k = at * steps + s
            return nodes.seq([*loaders[0].load(k), *loaders[1].load(k), self.multiplied(loaders, part, k)])

        clear = unrolled("r", count, lambda r: nodes.store(part, nodes.zero("float32"), [r]))
        body = nodes.seq([clear, unrolled("k_step", steps, step), self.each(self._add(totals, part, at))])
        return [*out, new, nodes.for_loop(at, p.k // block, body)]

    def _add(self, totals: BufferVar, part: BufferVar, at: Expr) -> Any:
        """Return the function that adds a block's part to an accumulator."""
        p, a_scale, b_scale = self.plan.problem, *self.call.args[1:4:2]
        turned = bool(self.call.attrs[TRANSPOSE_A]), not bool(self.call.attrs[TRANSPOSE_B])

        def add(r: Expr, i: Expr, j: Expr) -> Stmt:
            row, column = (tirx.min(x, nodes.int_const(n - 1)) for x, n in ((i, p.m), (j, p.n)))
            scales = scale_of(a_scale, turned[0], row, at), scale_of(b_scale, turned[1], column, at)
            return nodes.store(totals, totals[r] + scaled(part[r], scales, a_scale.dtype), [r])

        return add
