"""The CUDA passes: the core's for threads and for texts, with asynchronous copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.emit.tail import TextTarget, with_text
from tile_core.passes.spine import Spine
from tile_core.simt.spine import SimtHooks, simt_spine
from tile_cuda.conversions import FP8, PLAIN, TRUNCATIONS
from tile_cuda.ops.copy_async import can_copy
from tile_cuda.target import FP8_MMA
from tile_cuda.text import emit_plan

if TYPE_CHECKING:
    from tile_core.target import Target


def pipeline(target: Target, spine: Spine) -> Spine:
    """Return the passes for a target."""
    conversions = FP8 if target.capabilities.fact(FP8_MMA) else PLAIN
    passes = simt_spine(spine, SimtHooks(can_copy=can_copy))
    return with_text(passes, TextTarget(emit_plan, TRUNCATIONS, conversions=conversions))
