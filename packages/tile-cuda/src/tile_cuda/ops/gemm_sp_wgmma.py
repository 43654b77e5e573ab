"""``cuda.wgmma.sp``: products with a 2:4 sparse A on the sparse matrix instructions of a warpgroup.

The metadata of all instructions of a product are in registers before the first one is issued, and each register has a
reader after the wait: an instruction reads its metadata late, which the assembler does not track, and it would
give the register to something else in the meantime (found on an H200: wrong results without a warning).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.ir import nodes
from tile_core.ir.attributes import ENDED, IN_FLIGHT, TRANSPOSE_E
from tile_core.ir.calls import address
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.gemm_sp import EMPTY, increasing
from tile_core.simt.variant import InFlight, SimtCall
from tile_cuda.ops.gemm_wgmma import WarpgroupProduct, WarpgroupVariant, read
from tile_cuda.ops.metadata import MmaMetadata
from tile_cuda.ops.metadata_prefetch import ALONG, MetadataPrefetch
from tile_cuda.ops.warpgroup_plan import WarpgroupPlan

if TYPE_CHECKING:
    from tile_core.context import Context


class WarpgroupGemmSp(WarpgroupVariant):
    """Tiles of whole instructions; metadata in shared memory of any layout, or in global memory."""

    name = "cuda.wgmma.sp"
    op = "gemm_sp"
    priority = 20
    sparse = True

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Also note how metadata without a loop copy is loaded."""
        answer = super().accepts(call, ctx)
        if isinstance(answer, Reject) or call.args[1].scope == "shared":
            return answer
        return replace(answer, note=f"{answer.note}; threads prefetch metadata, {ALONG} of K")

    def statement(self, plan: WarpgroupPlan, call: SimtCall) -> Stmt:
        """Return the product for one thread."""
        return SparseProduct(plan, call).statement()


class SparseProduct(WarpgroupProduct):
    """Adds metadata to a product."""

    def __init__(self, plan: WarpgroupPlan, call: SimtCall) -> None:
        super().__init__(plan, call)
        #: Instructions along K that one register serves: their selectors name its lanes.
        self.shared_by = 1 if plan.family.bits == 8 else 2
        self.groups = -(-(plan.problem.k // plan.step) // self.shared_by)
        self.held: Any = None
        #: Prefetch of metadata in global memory.
        self.prefetch = None if call.args[1].scope == "shared" else MetadataPrefetch(plan, call)

    def before(self) -> list[Stmt]:
        """Return the reads of all metadata: by group along K, then by row tile."""
        if self.prefetch is not None:
            return self._before(self.prefetch)
        count = self.groups * self.plan.split.atoms_m
        self.held, new = nodes.alloc([count], "uint32", "metadata", "local")
        return [new, *self._read()]

    def _before(self, prefetch: MetadataPrefetch) -> list[Stmt]:
        """Return the allocation of registers that a prefetch fills."""
        self.held = prefetch.held
        beyond = IN_FLIGHT in self.call.attrs and ENDED not in self.call.attrs
        made = prefetch.registers(nodes.seq(self._read()), not beyond)
        reads = tuple(self.after()) if IN_FLIGHT in self.call.attrs else ()
        found = InFlight(reads, nodes.const(EMPTY, "uint32"), beyond, made)
        self.call.placement.in_flight[self.held] = found
        return [tirx.Bind(prefetch.iteration, nodes.int_const(0)), tirx.AllocBuffer(self.held)]

    def _read(self) -> list[Stmt]:
        """Return the element-wise reads of metadata to the registers of the first iteration."""
        view = self.call.args[1]
        turned, layout = bool(self.call.attrs[TRANSPOSE_E]), self.call.placement.layouts.get(view.buffer)
        read = MmaMetadata(self.plan, view, turned, self.lane, self.rows, self.call.ranges, layout)
        found = []
        for group in range(self.groups):
            for i in range(self.plan.split.atoms_m):
                at = [group * self.plan.split.atoms_m + i]
                found.append(nodes.store(self.held, read.register(4 * i, group), at))  # tiles are four times 16 rows
                found.append(nodes.store(self.held, increasing(nodes.load(self.held, at)), at))
        return found

    def after(self) -> list[Stmt]:
        """Return the statements that read the registers of the metadata after the wait."""
        first = (
            nodes.int_const(0) if self.prefetch is None else self.prefetch.register_index(0, 0, self.prefetch.iteration)
        )
        return read(self.held, self.groups * self.plan.split.atoms_m, first=first)

    def outlast(self) -> None:
        """Record that instructions read the metadata registers until the wait."""
        if self.prefetch is None:
            found = InFlight(tuple(self.after()), nodes.const(EMPTY, "uint32"), beyond=ENDED not in self.call.attrs)
            self.call.placement.in_flight[self.held] = found

    def function(self, columns: int, step: int) -> str:
        """Return the function of an instruction."""
        return self.plan.name(columns, step % self.shared_by, self.is_new(step))

    def metadata(self, step: int, i: int) -> list[Expr]:
        """Return the metadata of an instruction for a row of tiles."""
        group = step // self.shared_by
        if self.prefetch is not None:
            return [address(self.held, [self.prefetch.register_index(group, i, self.prefetch.iteration)])]
        return [address(self.held, [group * self.plan.split.atoms_m + i])]

    def kept(self) -> list[tuple[BufferVar, int]]:
        """Return the registers of metadata."""
        return [(self.held, nodes.shape_of(self.held)[0])]
