"""The Metal passes: the core's for threads and for texts, with those that keep threadgroup memory within its limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_core.emit.tail import TextTarget, with_text
from tile_core.passes.spine import Pass, Spine
from tile_core.simt.pipelining.stage_limit import limit_stages
from tile_core.simt.spine import SimtHooks, simt_spine
from tile_metal.conversions import CONVERSIONS, TRUNCATIONS
from tile_metal.memory import drop_padding
from tile_metal.text import emit_plan

if TYPE_CHECKING:
    from tile_core.target import Target

_TEXT = TextTarget(emit_plan, TRUNCATIONS, rounds_integers=True, conversions=CONVERSIONS)


def pipeline(target: Target, spine: Spine) -> Spine:
    """Return the passes for a target."""
    passes = simt_spine(spine, SimtHooks()).before("pipeline", limit_stages())
    passes = passes.before("lower", Pass("padding", drop_padding, "layouts are known, and nobody has used them"))
    return with_text(passes, _TEXT)
