"""The facts of a program that all decisions about its epilogue share."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from tile_core.analysis.point import is_grid
from tile_core.analysis.uniformity import Varying
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar
from tile_core.ir import nodes
from tile_core.ir.fresh_names import FreshNames
from tile_core.ir.visit import collect, role
from tile_core.lowering.variant import Reject
from tile_core.ops.base import OpCall, is_op
from tile_core.simt.pipelining.async_products import accumulator_of
from tile_cuda.attributes import PROMOTE
from tile_cuda.epilogue.shared_memory import SharedMemory
from tile_cuda.ops.warpgroup_plan import WarpgroupPlan

if TYPE_CHECKING:
    from tile_core.analysis.accesses import Access
    from tile_core.analysis.point import Point
    from tile_core.context import Context
    from tile_core.simt.kernel_plan import KernelPlan
    from tile_core.simt.variant import SimtCall

_PRODUCTS = ("gemm", "gemm_sp", "gemm_scaled")
_PARALLEL = ("parallel", "vectorized")


class EpilogueFacts:
    """A program with its products, accumulators and shared memory.

    Parameters
    ----------
    products
        Products of the program on wgmma instructions, each with its plan.
    stays
        Whether the kernel is persistent: no memory is then free behind a loop.

    Attributes
    ----------
    varying, flow
        Analyses of the program.
    accumulators
        Fragments whose elements are where wgmma leaves them: accumulators, and what is copied or computed from them.
    every
        The same of all products, whatever their instructions.
    plain
        Those that loop nests access only at the elements of their iterations: they stay in registers.
    rows
        Accumulators of dense products whose warpgroups compute whole rows.
    memory
        The shared memory of a block.
    """

    def __init__(
        self, plan: KernelPlan, ctx: Context, products: Sequence[tuple[SimtCall, WarpgroupPlan | Reject]], stays: bool
    ) -> None:
        self.plan, self.ctx, self.products, self.stays = plan, ctx, products, stays
        self.threads, self.aligned = plan.block.count, plan.aligned
        self.varying = Varying(plan.body)
        self.flow = self.varying.flow
        self.calls = {p: OpCall.decode(p.stmt) for p in self.flow.points if is_op(p.stmt)}
        #: From each such fragment to its accumulator.
        self.origins: dict[BufferVar, BufferVar] = {}
        own = {call.args[accumulator_of(call)].buffer: (call, found) for call, found in products}
        self.accumulators = self._with_copies(own)
        #: The products, whatever their instructions.
        self.products_at = [p for p, c in self.calls.items() if c.name in _PRODUCTS]
        products_made = [self.calls[p] for p in self.products_at]
        self.every = self._with_copies([*own, *(c.args[accumulator_of(c)].buffer for c in products_made)])
        self.promotion = {c.args[accumulator_of(c)].buffer: int(c.attrs.get(PROMOTE, 0)) for c in products_made}
        self.plain = {b for b in self.every if self._is_plain(b)}
        dense = {b: found for b, (call, found) in own.items() if call.name == "gemm"}
        self.rows = {b for b, p in dense.items() if not isinstance(p, Reject) and p.split.warps_n == 1}
        made = [a.buffer for a in collect(plan.body, tirx.AllocBuffer)]
        self.name = FreshNames(str(v.name) for v in (*plan.params, *collect(plan.body, tirx.Var), *made))
        self.memory = SharedMemory(self.flow, self.plain & {*self.accumulators}, self.threads, ctx)

    def diverges(self, p: Point) -> bool:
        """Whether not all threads execute a statement together."""
        return self.varying.divergent(p) or any(x.kind == "for" and role(x.stmt) in _PARALLEL for x in p.path)

    def ends_in_iterations(self, results: BufferVar) -> bool:
        """Whether each iteration waits for the product that results come from."""
        accumulator = self.origins.get(results, results)
        at = [p for p in self.products_at if self.calls[p].args[accumulator_of(self.calls[p])].buffer == accumulator]
        loops = [loop for p in at for loop in p.loops[-1:] if not is_grid(loop)]
        return any(
            a.buffer.same_as(accumulator) and a.point not in at and loop.order <= a.point.order <= loop.last
            for a in self.flow.accesses for loop in loops
        )  # fmt: skip

    def _with_copies(self, accumulators: Collection[BufferVar]) -> list[BufferVar]:
        """Return fragments, and those that are copied or computed from them."""
        found = {b: b for b in accumulators}
        for p in self.flow.points:
            call = self.calls.get(p)
            if call is None:
                made = p.stmt.buffer if type(p.stmt) is tirx.BufferStore else None
                source = self._computed_from(p, found) if made is not None and made not in found else None
                if source is not None:
                    found[made] = found[source]
            elif call.name == "copy" and call.args[0].buffer in found and call.args[1].scope == "local.fragment":
                found.setdefault(call.args[1].buffer, found[call.args[0].buffer])
        self.origins |= found
        return [b for b in found if nodes.scope_of(b) == "local.fragment"]

    def _computed_from(self, p: Point, accumulators: Collection[BufferVar]) -> BufferVar | None:
        """Return the accumulator that a store computes its element from, or ``None``."""
        made = p.stmt.buffer
        if nodes.scope_of(made) != "local.fragment" or len(p.stmt.indices) != 2 or not self._is_plain(made):
            return None
        read = [a.buffer for a in self._elements_at(p) if a.buffer in accumulators and _is_own(a)]
        return next((b for b in read if list(nodes.shape_of(b)) == list(nodes.shape_of(made))), None)

    def _elements_at(self, p: Point) -> list[Access]:
        """Return the elements that a store, or a name beside it, reads."""
        siblings = self.flow.top if p.around is None else p.around.parts[p.side]
        return [a for q in siblings if q.order <= p.order for a in self.flow.accesses_at(q) if not a.write]

    def _is_plain(self, buffer: BufferVar) -> bool:
        """Whether nests access a fragment only at the elements of their variables."""
        return all(_is_own(a) for a in self.flow.accesses if a.how == "element" and a.buffer.same_as(buffer))


def _is_own(a: Access) -> bool:
    """Whether an access is one at the variables of the data-parallel loops around it."""
    loops = [s.loop_var for s in a.loops if role(s) in _PARALLEL]
    return len(a.indices) <= len(loops) and all(i.same_as(v) for i, v in zip(a.indices, loops, strict=False))
