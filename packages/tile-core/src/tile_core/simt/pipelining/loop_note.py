"""Notes on pipelined loops, for ``explain`` and for later passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tile_core.compat.types import Stmt
from tile_core.errors.base import Where
from tile_core.ir import nodes
from tile_core.records import dataclass


@dataclass(frozen=True)
class LoopNote:
    """A decision about a pipelined loop.

    Parameters
    ----------
    subject
        Name of the buffer or of the loop's variable.
    text
        The decision and its reason, for users.
    no_pairs
        Whether this is why each block computes the product by itself, and not a pair of blocks.
    """

    subject: str
    text: str
    no_pairs: bool = False


LoopNotes = Mapping[tuple[str, "Where | None"], tuple[LoopNote, ...]]
"""Notes by the name and line of their loops."""


def with_notes(notes: LoopNotes, added: Iterable[tuple[Stmt, LoopNote]]) -> LoopNotes:
    """Return notes with more of them, each with its loop."""
    found = dict(notes)
    for loop, note in added:
        key = str(loop.loop_var.name), nodes.where_of(loop)
        found[key] = (*found.get(key, ()), note)
    return found
