"""Asynchronous copies that complete as late as they may: at the wait for their group, before which they are poison."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.compat.types import Array
from tile_core.testing.machine.scope import Region

__all__ = ["Copies"]


class Copies:
    """Copies in flight, and the slots of buffers that they fill.

    A slot must not be read before a wait for its copy and a barrier, nor be filled again before a barrier that follows
    its reads.

    Parameters
    ----------
    late
        Whether copies complete at the wait for them, or at once.

    Attributes
    ----------
    begun
        How many copies there were.
    """

    def __init__(self, late: bool) -> None:
        self.late, self.begun = late, 0
        self._group: list[Callable[[], object]] = []
        self._groups: list[list[Callable[[], object]]] = []
        #: "flying", "arrived" (no barrier yet) or "ready", by buffer and slot.
        self._slots: dict[tuple[str, int], str] = {}
        self._read: set[tuple[str, int]] = set()

    def begin(self, region: Region, slot: int, copy: Callable[[], object]) -> None:
        """Begin to fill a slot by calling ``copy``."""
        key = (region.name, slot)
        assert key not in self._read, f"slot {slot} of {region.name} is filled while other threads may still read it"
        self._slots[key] = "flying"
        self.begun += 1
        self._group.append(lambda: self._slots.update({key: "arrived"}))
        if self.late:
            self._group.append(copy)
        else:
            copy()

    def read(self, region: Region, slots: Array, on: Array) -> None:
        """Note that slots of a buffer are read."""
        for slot in set(slots[on].tolist()) if self._slots else ():
            found = self._slots.get((region.name, slot))
            if found is not None:
                assert found == "ready", f"slot {slot} of {region.name} is read while its copy is {found}"
                self._read.add((region.name, slot))

    def commit(self) -> None:
        """End a group of copies."""
        self._groups.append(self._group)
        self._group = []

    def wait(self, left: int) -> None:
        """Complete all groups but the latest ``left``."""
        count = max(0, len(self._groups) - left)
        done, self._groups = self._groups[:count], self._groups[count:]
        for action in (a for group in done for a in group):
            action()

    def barrier(self) -> None:
        """A barrier of all threads."""
        self._read.clear()
        self._slots = {k: "ready" if v == "arrived" else v for k, v in self._slots.items()}

    def finished(self) -> None:
        """All copies must have been waited for."""
        assert not any([self._group, *self._groups]), "copies are still in flight at the end"
