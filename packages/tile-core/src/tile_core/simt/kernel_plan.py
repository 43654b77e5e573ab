"""Define the plan of a kernel for a target with threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from tile_core.ir.program import cluster_of
from tile_core.passes.spine import Plan
from tile_core.records import dataclass

if TYPE_CHECKING:
    from tile_core.compat.types import Stmt
    from tile_core.simt.accumulators import Accumulator
    from tile_core.simt.barriers.insertion import PlacedBarrier
    from tile_core.simt.code_size import Written
    from tile_core.simt.launch.grid import Grid, Order
    from tile_core.simt.memory.alignment import Aligned
    from tile_core.simt.memory.arena import Arena
    from tile_core.simt.memory.private_arrays import PrivateArrays
    from tile_core.simt.pipelining.loop_note import LoopNotes
    from tile_core.simt.pipelining.report import PipelineReport
    from tile_core.simt.placement.layout_inference import Inferred
    from tile_core.simt.placement.variant_selection import Selected
    from tile_core.simt.variant import Block


@dataclass(frozen=True, eq=False, repr=False)
class KernelPlan(Plan):
    """A plan with the decisions of the passes for threads.

    Attributes
    ----------
    aligned
        The assumed alignment of addresses and divisors of sizes.
    block
        The threads of a block.
    order
        The order of blocks that the program or a backend chose, see `tile_core.simt.launch.grid.launch`; or empty.
    loop_notes
        Decisions about loops before they are pipelined: blocks that share iterations, tiles in shared memory.
    pipeline
        The outcome of pipelining, by loop.
    unplaced
        The program before tiles were placed: where a variant gives a call back, that begins anew.
    placement
        The placement of tiles.
    selected
        The variant of each op.
    demoted
        Fragments that became shared buffers, and why.
    recomputed
        Fragments without registers of their own, whose elements are computed where they are read.
    relied
        The part of ``aligned`` that the code needs.
    arena
        The block's shared memory.
    barriers
        Barriers that were added, and why.
    grid
        The blocks of a launch.
    arrays
        The contents of a thread's private arrays.
    code_size
        The number of operations in one thread's code, and the loops that are therefore not unrolled.
    uncovered
        Why the proof of an emitted kernel's barriers does not cover it; empty if it does.
    accumulators
        What happens to accumulators of products, from their initialization to global memory, if a backend decides it.
    """

    aligned: Aligned = field(init=False)
    block: Block = field(init=False)
    order: Order = field(init=False)
    loop_notes: LoopNotes = field(init=False)
    pipeline: PipelineReport = field(init=False)
    unplaced: Stmt = field(init=False)
    placement: Inferred = field(init=False)
    selected: Selected = field(init=False)
    demoted: Mapping[str, str] = field(init=False)
    recomputed: Mapping[str, str] = field(init=False)
    relied: Aligned = field(init=False)
    arena: Arena = field(init=False)
    barriers: tuple[PlacedBarrier, ...] = field(init=False)
    grid: Grid = field(init=False)
    arrays: PrivateArrays = field(init=False)
    code_size: Written = field(init=False)
    uncovered: str = field(init=False)
    accumulators: tuple[Accumulator, ...] = field(init=False, default=())

    @property
    def is_unordered(self) -> bool:
        """Whether the program leaves the order of blocks open, and has no clusters."""
        return not self.order and cluster_of(self.program.attrs) == (1, 1, 1)
