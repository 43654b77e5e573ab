"""Watched memory: uninitialized reads, out-of-bounds scratch accesses, and races between lanes.

Each unit of memory records whether it was written. For memory that the iterations of a parallel loop share
it also records which of them read and wrote it last. Two iterations race if one reads what the other writes, or if
both write different values. The named threads of a block go in lock step, so they race only if one statement writes
different values to one element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tile_core.compat.types import Array
from tile_core.errors.base import Where
from tile_core.errors.execution import DataRace, OutsideScratch, ReadUnwritten
from tile_core.records import dataclass
from tile_core.reference.blocks import BlockWatch
from tile_core.reference.lanes import LaneSet, Mask

if TYPE_CHECKING:
    from tile_core.reference.memory import LaneMemory, Root

__all__ = ["Sanitizer"]


class _LastAccess:
    """Per unit of memory: which iteration accessed it last, and in which loop."""

    def __init__(self, units: int) -> None:
        self.epoch, self.inner = (np.zeros(units, np.int64) for _ in range(2))
        self.who, self.part = (np.zeros(units, np.int32) for _ in range(2))

    def others(self, units: Array, now: _Now) -> Array:
        """Whether another iteration accessed units in this loop."""
        here = self.epoch[units] == now.epoch
        if not here.any():
            return here
        other = self.who[units] != now.who
        if now.inner:
            other |= (self.inner[units] == now.inner) & (self.part[units] != now.part)
        return here & other

    def note(self, units: Array, now: _Now) -> None:
        """Remember an access."""
        self.epoch[units], self.who[units] = now.epoch, now.who
        self.inner[units], self.part[units] = now.inner, now.part


class LaneState(Protocol):
    """The accesses of an execution's lanes at one time."""

    lanes: LaneSet
    mask: Mask

    @property
    def count(self) -> int:
        """Lanes side by side."""

    def active(self) -> Array:
        """The numbers of the active lanes."""


@dataclass(frozen=True)
class _Now:
    """The executed loop, the loop inside it, and each access's iterations of both."""

    epoch: int
    inner: int
    who: Array
    part: Array


class Sanitizer:
    """Watches the memory of one launch.

    Parameters
    ----------
    bounds
        Whether an access outside a scratch buffer is an error; otherwise it reads the fill value, or is dropped.
    blocks
        Compares the accesses of blocks to global memory.

    Attributes
    ----------
    hot
        Numbers of the buffers that the outermost parallel loop writes.
    outer
        The lanes of the outermost parallel loop, if one is open.
    offset, inner_offset
        Iterations of the outermost and of the innermost loop that ran before the lanes.
    """

    def __init__(self, bounds: bool, blocks: BlockWatch) -> None:
        self.bounds, self.blocks = bounds, blocks
        self.outer: Any = None
        self.hot: frozenset[int] = frozenset()
        self.epoch, self.inner, self._last = 0, 0, 0
        self.offset, self.inner_offset = 0, 0

    def begin(self, hot: frozenset[int]) -> None:
        """A parallel loop begins that is in no other."""
        self._last += 1
        self.hot, self.epoch, self.inner = hot, self._last, 0

    def begin_inner(self) -> None:
        """A parallel loop begins inside another."""
        self._last += 1
        self.inner = self._last

    def outside(
        self,
        state: LaneState,
        memory: LaneMemory,
        indices: Sequence[Array],
        inside: Array,
        action: str,
        where: Where | None,
    ) -> None:
        """Report an access of an active lane outside a scratch buffer, if that is wanted."""
        if not self.bounds or memory.root.scope == "global":
            return
        bad = (
            state.active() if inside is False else state.active()[~np.broadcast_to(inside, state.count)[state.active()]]
        )
        if len(bad):
            at = tuple(int(np.broadcast_to(i, state.count)[bad[0]]) for i in indices)
            raise OutsideScratch(
                buffer=memory.root.name, shape=memory.shape, action=action, index=list(at), where=where
            )

    def read(
        self,
        state: LaneState,
        number: int,
        memory: LaneMemory,
        flat: Array,
        inside: Array | None,
        where: Where | None,
        kind: str = "read",
    ) -> None:
        """An element a lane is read: ``flat``, ``inside`` of ``LaneMemory.locate``, ``kind`` of ``BlockWatch``."""
        root = memory.root
        racing = self.outer is not None and root.home is None and number in self.hot
        shared = root.shared and self.blocks.several
        if root.valid is None and not racing and not shared:
            return
        if not isinstance(flat, np.ndarray):
            if state.mask is False:
                return
            if not racing:
                at = slice(flat * memory.ratio, (flat + 1) * memory.ratio)
                if root.valid is not None and not root.valid[at].all():
                    raise _unwritten(memory, int(flat), where)
                if shared:
                    self.blocks.access(kind, memory, at, where)
                return
        active = state.active()
        if inside is not None:
            active = active[np.broadcast_to(inside, state.count)[active]]
        units = self.units(memory, np.broadcast_to(flat, state.count)[active])
        if root.valid is not None:
            good = root.valid[units]
            if not good.all():
                raise _unwritten(memory, int(units[~good][0]) // memory.ratio, where)
        if shared:
            self.blocks.access(kind, memory, units, where)
        if racing and len(units):
            now = self.now(state, active, memory.ratio)
            writes, reads = self.track(root)[:2]
            bad = writes.others(units, now)
            if bad.any():
                raise self.race(memory, int(units[bad][0]), "read", "written", where)
            self.note_read(root, units, now, reads)

    def write(
        self,
        state: LaneState,
        number: int,
        memory: LaneMemory,
        flat: Array,
        active: Array,
        same: Array,
        where: Where | None,
        kind: str = "write",
    ) -> None:
        """Elements are about to be written.

        Parameters
        ----------
        flat
            A flat index, or one per lane of ``active``.
        active
            The lanes that write.
        same
            Whether each element holds the value already.
        kind
            ``"write"``, or ``"update"`` for an atomic store.
        """
        root = memory.root
        if not len(active):
            return
        racing = self.outer is not None and root.home is None and number in self.hot
        if isinstance(flat, np.ndarray) or racing:
            units = self.units(memory, np.broadcast_to(flat, len(active)))
        else:
            units = slice(flat * memory.ratio, (flat + 1) * memory.ratio)
        if root.shared and self.blocks.several:
            self.blocks.access(kind, memory, units, where, same=lambda: np.repeat(same, memory.ratio))
        if racing:
            now = self.now(state, active, memory.ratio)
            writes, reads, many = self.track(root)
            bad = reads.others(units, now) | (many[units] == now.epoch)
            if bad.any():
                raise self.race(memory, int(units[bad][0]), "written", "read", where)
            if memory.ratio > 1:
                same = np.repeat(same, memory.ratio)
            bad = writes.others(units, now) & ~same
            if bad.any():
                raise self.race(memory, int(units[bad][0]), "written", "written with another value", where)
            if isinstance(flat, np.ndarray) or len(active) < state.count:
                writes.note(units, now)
        if root.valid is not None:
            root.valid[units] = True

    def clash(self, memory: LaneMemory, flat: int, where: Where | None) -> None:
        """Two lanes wrote different values to an element in one statement."""
        raise self.race(memory, flat * memory.ratio, "written", "written with another value", where)

    @staticmethod
    def units(memory: LaneMemory, flat: Array) -> Array:
        """Return the units of elements."""
        if memory.ratio == 1:
            return flat
        return (flat[:, None] * memory.ratio + np.arange(memory.ratio)).reshape(-1)

    def now(self, state: LaneState, active: Array, ratio: int) -> _Now:
        """Return the identity of the active lanes."""
        who = state.lanes.within(self.outer)
        who = np.broadcast_to(who, state.count)[active] + self.offset
        part = active + self.inner_offset
        if ratio > 1:
            who, part = np.repeat(who, ratio), np.repeat(part, ratio)
        return _Now(self.epoch, self.inner, who, part)

    @staticmethod
    def track(root: Root) -> tuple[_LastAccess, _LastAccess, Array]:
        """Return the writer, the reader, and the epoch of several readers of each unit."""
        if root.track is None:
            root.track = (_LastAccess(root.units), _LastAccess(root.units), np.zeros(root.units, np.int64))
        return root.track

    @staticmethod
    def note_read(root: Root, units: Array, now: _Now, reads: _LastAccess) -> None:
        """Remember a read; several readers are remembered as such."""
        many = root.track[2]
        before = reads.epoch[units] == now.epoch
        several = before & (reads.who[units] != now.who)
        if now.inner:
            several |= before & (reads.inner[units] == now.inner) & (reads.part[units] != now.part)
        reads.note(units, now)
        # Iterations that read the same unit in this statement: all but the last find another's number.
        several |= reads.who[units] != now.who
        if now.inner:
            several |= reads.part[units] != now.part
        many[units[several]] = now.epoch

    def race(self, memory: LaneMemory, unit: int, action: str, other: str, where: Where | None) -> DataRace:
        """Return the error."""
        lane, advice = "iteration", "write the result to another buffer, or to an element of each iteration"
        if self.outer is None:
            lane, advice = "thread", "let one thread write it: if T.get_thread_binding(0) == 0"
        index = memory.coordinates(unit // memory.ratio)
        return DataRace(
            buffer=memory.root.name, index=index, action=action, other=other, lane=lane, advice=advice, where=where
        )


def _unwritten(memory: LaneMemory, flat: int, where: Where | None) -> ReadUnwritten:
    return ReadUnwritten(buffer=memory.root.name, index=memory.coordinates(flat), where=where)
