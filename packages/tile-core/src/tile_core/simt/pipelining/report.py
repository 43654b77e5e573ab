"""The outcome of pipelining, for later passes and for ``explain``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from tile_core.errors.base import Where
from tile_core.layout.base import LayoutMap
from tile_core.records import dataclass
from tile_core.simt.pipelining.loop_note import LoopNote, LoopNotes
from tile_core.simt.pipelining.persistent import PersistentGrid
from tile_core.simt.pipelining.schedule import Schedule


@dataclass(frozen=True)
class LoopReport:
    """The outcome for one pipelined loop.

    Attributes
    ----------
    name
        The loop's variable.
    where
        The user's line.
    stages
        Slots of each buffer; 0 if the loop is unchanged.
    buffers
        Names of the buffers whose copies are prefetched.
    kept
        Other copies from global to shared memory: (name of the buffer, why it is not moved).
    reason
        Why the loop is unchanged; empty if it was pipelined.
    schedule
        Its schedule, if its buffers have slots.
    through
        Names of the buffers whose copies go through registers, which need no slots.
    notes
        Notes on its copies, its product and its blocks.
    """

    name: str
    where: Where | None
    stages: int = 0
    buffers: tuple[str, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    reason: str = ""
    schedule: Schedule | None = None
    through: tuple[str, ...] = ()
    notes: tuple[LoopNote, ...] = ()

    @property
    def steps(self) -> tuple[str, ...]:
        """The schedule in text, one line per group, barrier and part of role steps."""
        return () if self.schedule is None else tuple(self.schedule.lines())

    def __str__(self) -> str:
        if self.through:
            outcome = f"{', '.join(self.through)} through registers"
        elif self.stages:
            outcome = f"{self.stages} stages of {', '.join(self.buffers)}"
        else:
            outcome = f"not pipelined: {self.reason}"
        notes = (f"{note.subject}: {note.text}" for note in self.notes)
        kept = (f"{name} is copied in place: {why}" for name, why in self.kept)
        return "; ".join([f"loop {self.name}: {outcome}", *notes, *kept])


@dataclass(frozen=True)
class PipelineReport:
    """The outcome for all pipelined loops.

    Attributes
    ----------
    loops
        In program order, inner ones first.
    versions
        Each new buffer ``[stages, ...]`` with the buffer that it replaces, whose annotated layout applies to a slot.
    slots
        The layout of a slot, by new buffer, where its copy needs one.
    persistent
        The persistent blocks, if any.
    cluster
        Blocks along x, y and z of the clusters with multicast.
    """

    loops: tuple[LoopReport, ...] = ()
    versions: Mapping[Any, Any] = field(default_factory=dict)
    slots: Mapping[Any, LayoutMap] = field(default_factory=dict)
    persistent: PersistentGrid | None = None
    cluster: tuple[int, int, int] = (1, 1, 1)

    def with_notes(self, notes: LoopNotes) -> PipelineReport:
        """Return a copy whose loops have these notes first."""
        loops = (replace(x, notes=(*notes.get((x.name, x.where), ()), *x.notes)) for x in self.loops)
        return replace(self, loops=tuple(loops)) if notes else self

    def __str__(self) -> str:
        return "\n".join(map(str, self.loops))
