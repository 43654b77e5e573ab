"""The compiler's decisions by the user's line."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.records import dataclass
from tile_core.reports.block import BlockFacts
from tile_core.reports.facts import Facts
from tile_core.reports.parts import pipelined


@dataclass(frozen=True)
class Note:
    """A decision about a line.

    Attributes
    ----------
    name
        The chosen variant, or what the note is about.
    text
        The decision.
    more
        Lines that a click opens.
    """

    name: str
    text: str
    more: tuple[str, ...] = ()


def notes_of(facts: Facts, launch: str = "") -> dict[str, list[Note]]:
    """Return the notes of a launch by location; names begin with ``launch``."""
    found: dict[str, list[Note]] = {}
    for location, note in (*_ops(facts), *(_block(facts.block) if facts.block is not None else ())):
        name = f"{launch}: {note.name}" if launch else note.name
        found.setdefault(location, []).append(Note(name, note.text, note.more))
    return found


def _ops(facts: Facts) -> Iterator[tuple[str, Note]]:
    for op in facts.ops:
        yield op.location, Note(op.variant, op.note + " (requested)" * op.forced)
        if op.rejected:
            count = f"{len(op.rejected)} better variant{'s' * (len(op.rejected) > 1)} rejected"
            yield op.location, Note("", count, tuple(f"{r.variant}: {r.reason}" for r in op.rejected))
    for vector in facts.vectors:
        lanes = ", ".join(map(str, vector.lanes))
        yield vector.location, Note("loop", f"vectors of {lanes} lanes" if lanes else "vectors have no common form")


def _block(block: BlockFacts) -> Iterator[tuple[str, Note]]:
    for loop in block.loops:
        yield loop.location, Note("pipeline", pipelined(loop))
        for name, why in loop.kept:
            yield loop.location, Note(name, f"not prefetched: {why}")
        for name, why in loop.notes:
            yield loop.location, Note(name, why)
    for b in block.barriers:
        buffers = b.source if b.source == b.sink else f"{b.source}, {b.sink}"
        yield b.before, Note("barrier", f"before this line: {b.hazard} of {buffers}, {b.role or 'whole block'}")
    for a in block.accesses:
        width = f", {' and '.join(map(str, a.bytes))} bytes a thread" if a.bytes else ""
        yield a.location, Note(a.buffer, f"{a.action}{width}")
    for step in block.accumulators:
        if step.location:
            yield step.location, Note(step.name, f"{step.step}: {step.outcome}")
    for rolled in block.rolled:
        yield rolled.location, Note("loop", f"not unrolled: {rolled.reason}")
