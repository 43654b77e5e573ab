"""Launches of a kernel that were compiled."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tile_core.abi.signature import Signature
    from tile_core.ir.program import Program


@dataclasses.dataclass(frozen=True)
class CompiledLaunch:
    """A launch that was compiled.

    Attributes
    ----------
    program, signature
        The launch as a program of its own, and how it would be called alone.
    lowered
        What the last pass left.
    hidden
        Symbols that it takes after its parameters.
    plan
        Makes its plan, or returns it.
    """

    program: Program
    signature: Signature
    lowered: Any
    hidden: tuple[str, ...]
    plan: Callable[[], Any]


def hidden_of(stages: Sequence[Any]) -> tuple[str, ...]:
    """Return the symbols that the launches together take after the parameters."""
    return tuple(dict.fromkeys(name for stage in stages for name in stage.hidden))
