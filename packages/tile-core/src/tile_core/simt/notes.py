"""Notes of the passes for threads, for later passes and for ``explain``, by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.passes.spine import Note

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tile_core.compat.types import Stmt
    from tile_core.simt.barriers.insertion import PlacedBarrier
    from tile_core.simt.code_size import Written
    from tile_core.simt.launch.grid import Grid
    from tile_core.simt.memory.alignment import Aligned
    from tile_core.simt.memory.arena import Arena
    from tile_core.simt.memory.private_arrays import PrivateArrays
    from tile_core.simt.pipelining.report import PipelineReport
    from tile_core.simt.placement.layout_inference import Inferred
    from tile_core.simt.placement.variant_selection import Selected
    from tile_core.simt.variant import Block

ALIGNED: Note[Aligned] = Note("aligned")
"""The assumed alignment of addresses and divisors of sizes."""
BLOCK: Note[Block] = Note("block")
"""The threads of a block."""
PIPELINE: Note[PipelineReport] = Note("pipeline")
"""The outcome of pipelining, by loop."""
PLACEMENT: Note[Inferred] = Note("places")
"""The placement of tiles."""
SELECTED: Note[Selected] = Note("selected")
"""The variant of each op."""
UNPLACED: Note[Stmt] = Note("unplaced")
"""The program before tiles were placed: where a variant gives a call back, that begins anew."""
DEMOTED: Note[dict[str, str]] = Note("demoted")
"""Fragments that became shared buffers, and why."""
RECOMPUTED: Note[dict[str, str]] = Note("recomputed")
"""Fragments without registers of their own, whose elements are computed where they are read."""
RELIED: Note[Aligned] = Note("relied")
"""The part of ``ALIGNED`` that the code needs."""
ARENA: Note[Arena] = Note("arena")
"""The block's shared memory."""
BARRIERS: Note[tuple[PlacedBarrier, ...]] = Note("barriers")
"""Barriers that were added, and why."""
GRID: Note[Grid] = Note("grid")
"""The blocks of a launch."""
ORDER: Note[Mapping[str, object]] = Note("order")
"""The order of blocks that the program or a backend chose: ``panel`` and ``order`` of ``T.use_swizzle``; or empty."""
ARRAYS: Note[PrivateArrays] = Note("arrays")
"""The contents of a thread's private arrays."""
CODE_SIZE: Note[Written] = Note("written")
"""The number of operations in one thread's code, and the loops that are therefore not unrolled."""
UNCOVERED: Note[str] = Note("uncovered")
"""Why the proof of an emitted kernel's barriers does not cover it; empty if it does."""
