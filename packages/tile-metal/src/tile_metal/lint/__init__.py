"""Look for code that Apple's compiler refuses, without it: ``lint`` and ``refusals``."""

from __future__ import annotations

from tile_metal.lint.findings import Finding
from tile_metal.lint.rules import lint

__all__ = ["Finding", "lint", "refusals"]

_OF_LAUNCHES = frozenset({"metal-kernel-name", "threadgroup-memory"})
"""Rules on the use of a text: launches rename what MLX declares, and check their memory by the pipeline."""


def refusals(text: str) -> tuple[tuple[int, str], ...]:
    """Return lines of a text that its compiler refuses, and the reasons."""
    return tuple((f.line, f.message) for f in lint(text) if f.rule not in _OF_LAUNCHES)
