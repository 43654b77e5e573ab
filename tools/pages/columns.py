"""The targets that pages compare: those of all installed backends."""

from __future__ import annotations

from functools import cache

import tile_core
from tile_core.errors import TileError
from tile_core.ir.program import Program
from tile_core.plugins.manager import installed
from tile_core.target import Target


@cache
def targets() -> dict[str, Target]:
    """Return the targets of all installed backends by text, including every architecture."""
    found: dict[str, Target] = {}
    for backend in sorted(tile_core.targets(), key=lambda b: (bool(b.architectures), b.name)):
        for text in backend.architectures or backend.target_kinds:
            target = installed().resolve_target(text)
            found[text if target.kind == text else target.text] = target
    return found


def kinds() -> list[str]:
    """Return the kinds of targets: ``cpu``, ``cuda``, ..."""
    return list(dict.fromkeys(target.kind for target in targets().values()))


def those(accepted: set[str]) -> str:
    """Return a set of targets in words: ``all``, or whole kinds and single targets."""
    if accepted >= targets().keys():
        return "all"
    parts: list[str] = []
    for kind in kinds():
        mine = [text for text, target in targets().items() if target.kind == kind]
        here = [text for text in mine if text in accepted]
        parts += [f"`{kind}`"] if len(here) == len(mine) else [f"`{text}`" for text in here]
    return ", ".join(parts) or "none that is installed"


def accepts(program: Program, target: Target) -> str:
    """Compile a program for a target; return the error code, or an empty string."""
    from tile_core.compiler import lower
    from tile_core.plugins.contexts import make_context

    try:
        for stage in program.stages:
            lower(stage, make_context(target, None, plugins=installed()), installed())
    except TileError as error:
        return error.code
    return ""
