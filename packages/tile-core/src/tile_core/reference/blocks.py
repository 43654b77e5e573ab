"""Detect races between blocks, from the last accesses to each element of global memory.

Blocks are executed one after another, so each access is compared with those of earlier blocks. Two accesses of an
element by different blocks race if one of them writes, unless both are atomic, both store the same value, or an atomic
release that the other block has acquired orders them. ``T.sync_grid`` and further launches begin anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_core.compat.types import Array
from tile_core.errors.base import Where
from tile_core.errors.execution import BlockRace

if TYPE_CHECKING:
    from tile_core.reference.memory import LaneMemory, Root

__all__ = ["BlockWatch"]

#: By the kind of an access, the kinds of earlier accesses by other blocks that it races with.
_CONFLICTS = {
    "read": ("write", "update"),
    "write": ("write", "update", "read", "own", "load"),
    "update": ("write", "read", "own"),  # atomic
    "load": ("write",),  # atomic
}
#: Accesses that a store of the same value does not race with; ``"own"``: a block reads what it has written itself.
_EQUAL = ("write", "own")
_WORDS = {
    "read": "read", "own": "read", "write": "written", "update": "updated atomically", "load": "read atomically",
}  # fmt: skip
_ACQUIRE = frozenset({"consume", "acquire", "acq_rel", "seq_cst"})
_RELEASE = frozenset({"release", "acq_rel", "seq_cst"})
#: Instead of a block's number: several blocks.
_SEVERAL = -1
#: Units whose clocks an atomic access of a tile has; larger ones order nothing.
_MOST = 64


class _Visits:
    """The accesses of one kind to one storage.

    Attributes
    ----------
    by
        Per unit the block that accessed it, 0 for none.
    history
        With clocks: block, time, index and whether it is one of the shaped view, of every access.
    """

    def __init__(self, units: int) -> None:
        self.by: Array = np.zeros(units, np.int32)
        self.history: list[tuple[int, int, Any, LaneMemory | None]] = []


class _Track:
    """The accesses to one storage within a launch, by kind."""

    def __init__(self, units: int) -> None:
        self.units = units
        self.kinds: dict[str, _Visits] = {}

    def of(self, kind: str) -> _Visits:
        """Return the accesses of a kind."""
        found = self.kinds.get(kind)
        if found is None:
            found = self.kinds[kind] = _Visits(self.units)
        return found


class BlockWatch:
    """The accesses of the blocks of a launch to global memory.

    Parameters
    ----------
    ordered
        Whether the program has atomics that order other accesses, so that clocks are kept.

    Attributes
    ----------
    current
        The number of the block that is executed, from 1; 0 before the first.
    several
        Whether the launch has more than one block.
    """

    def __init__(self, ordered: bool) -> None:
        self.ordered = ordered
        self.current, self.several = 0, False
        self._names: list[tuple[int, ...]] = [()]
        self._numbers: dict[tuple[int, ...], int] = {}
        self._tracks: dict[int, _Track] = {}
        self._time = 0
        self._seen: dict[int, dict[int, int]] = {}
        self._released: dict[tuple[int, int], dict[int, int]] = {}

    def launch(self, count: int) -> None:
        """A launch of blocks begins: all earlier accesses are ordered before its own."""
        self.current, self.several = 0, count > 1
        self._names, self._numbers = [()], {}
        self._tracks, self._released, self._seen, self._time = {}, {}, {}, 0

    def enter(self, name: tuple[int, ...]) -> None:
        """The block (or cluster) of these coordinates is executed."""
        if name not in self._numbers:
            self._numbers[name] = len(self._names)
            self._names.append(name)
        self.current = self._numbers[name]

    def access(
        self,
        kind: str,
        memory: LaneMemory,
        index: Any,
        where: Where | None,
        shaped: bool = False,
        same: Callable[[], Array] | None = None,
    ) -> None:
        """Compare an access with those of other blocks, and remember it.

        Parameters
        ----------
        kind
            ``"read"``, ``"write"``, and of atomics ``"update"`` and ``"load"``.
        memory
            The buffer.
        index
            Units of its storage, or with ``shaped`` an index of its ``shown`` view.
        where
            The user's line.
        same
            Of a store: returns whether the elements hold the stored values already.

        Raises
        ------
        BlockRace
            If two blocks depend on their order.
        """
        track = self._track(memory.root)
        of = memory if shaped else None
        for other in _CONFLICTS[kind]:
            before = track.kinds.get(other)
            if before is None:
                continue
            by = _part(before.by, index, of)
            bad = (by != 0) & (by != self.current)
            if kind == "write" and other in _EQUAL and same is not None and bad.any():
                bad = bad & ~same()
            if bad.any() and self.ordered:
                bad = bad & self._unordered(before, track.units, index, of)
            if bad.any():
                raise self._race(memory, (kind, other), (index, of), (before, bad), where)
        writes = track.kinds.get("write")
        own = _part(writes.by, index, of) == self.current if writes is not None and kind == "read" else None
        if own is None or not own.all():
            self._note(track, kind, index, of, None if own is None else ~own)
        if own is not None and own.any():
            self._note(track, "own", index, of, own)

    def order(self, memory: LaneMemory, units: Array, order: str, action: str) -> None:
        """Record an atomic access, which may acquire and release at an element.

        Parameters
        ----------
        units
            The units that it accesses.
        order
            Its memory order.
        action
            ``"load"``, ``"store"`` or ``"update"``.
        """
        if not self.ordered or len(units) > _MOST:
            return
        origin, seen = _address(memory.root), self._seen.setdefault(self.current, {})
        for unit in np.unique(units):
            unit_key = (origin, int(unit))
            released = self._released.get(unit_key, {})
            if action != "store" and order in _ACQUIRE:
                for block, time in released.items():
                    seen[block] = max(time, seen.get(block, -1))
            if action == "store":
                self._released.pop(unit_key, None)
            if action != "load" and order in _RELEASE:
                mine = {**seen, self.current: self._time}
                kept = self._released.setdefault(unit_key, {})
                for block, time in mine.items():
                    kept[block] = max(time, kept.get(block, -1))
        if action != "load" and order in _RELEASE:
            self._time += 1

    def _note(self, track: _Track, kind: str, index: Any, of: LaneMemory | None, where: Array | None) -> None:
        """Remember an access, or with ``where`` a part of it."""
        mine = track.of(kind)
        if self.ordered:
            mine.history.append((self.current, self._time, index, of))
        if kind == "write":
            _set(mine.by, index, of, self.current)
            return
        by = _part(mine.by, index, of)
        now = np.where((by != 0) & (by != self.current), _SEVERAL, self.current)
        _set(mine.by, index, of, now if where is None else np.where(where, now, by))

    def _track(self, root: Root) -> _Track:
        origin = _address(root)
        track = self._tracks.get(origin)
        if track is None or track.units < root.units:
            track = self._tracks[origin] = _Track(root.units)
        return track

    def _unordered(self, before: _Visits, units: int, index: Any, of: LaneMemory | None) -> Array:
        """Return the units that another block accessed without a release acquired by this one."""
        found, seen = np.zeros(units, np.bool_), self._seen.get(self.current, {})
        for block, time, at, shape in before.history:
            if block != self.current and seen.get(block, -1) < time:
                _set(found, at, shape, True)
        return _part(found, index, of)

    def _race(
        self,
        memory: LaneMemory,
        kinds: tuple[str, str],
        index: tuple[Any, LaneMemory | None],
        found: tuple[_Visits, Array],
        where: Where | None,
    ) -> BlockRace:
        """Return the error about the first element."""
        before, bad = found
        numbers = np.arange(len(before.by))
        unit = int(np.ravel(np.broadcast_to(_part(numbers, *index), bad.shape))[np.flatnonzero(bad)[0]])
        number = int(before.by[unit])
        other = "other blocks" if number == _SEVERAL else f"block {_name(self._names[number])}"
        return BlockRace(
            buffer=memory.root.name, index=memory.coordinates(unit // memory.ratio), action=_WORDS[kinds[0]],
            block=f"block {_name(self._names[self.current])}", other=_WORDS[kinds[1]], before=other,
            where=where,
        )  # fmt: skip


def _part(array: Array, index: Any, of: LaneMemory | None) -> Array:
    return array[index] if of is None else of.shown(array)[index]


def _set(array: Array, index: Any, of: LaneMemory | None, value: Any) -> None:
    if of is None:
        array[index] = value
    else:
        of.shown(array)[index] = value


def _address(root: Root) -> int:
    return int(root.data.ctypes.data) if root.data.size else -id(root)


def _name(numbers: tuple[int, ...]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"({', '.join(map(str, numbers))})"
