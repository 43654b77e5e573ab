"""Asynchronous copies that complete as late as legal.

They complete at the wait for their group; before, the destination is poison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from machine.scope import Region
from tile_core.compat.types import Array
from tile_core.records import dataclass

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
        #: The objects of barriers with phases, by buffer and index.
        self._objects: dict[tuple[str, int], _Object] = {}

    def begin(
        self,
        region: Region,
        slot: int,
        copy: Callable[[], object],
        barrier: tuple[str, int] | None = None,
        size: int = 0,
    ) -> None:
        """Start a copy in flight, or one of ``size`` bytes of a barrier's phase."""
        key = (region.name, slot)
        assert key not in self._read, f"slot {slot} of {region.name} is filled while other threads may still read it"
        self._slots[key] = "flying"
        self.begun += 1
        actions: list[Callable[[], object]] = [lambda: self._slots.update({key: "arrived"})]
        if self.late:
            actions.append(copy)
        else:
            copy()
        if barrier is None:
            self._group += actions
            return
        found = self._objects[barrier]
        found.flying.append((size, actions))
        if not self.late:
            found.deliver()

    # Barriers with phases

    def init(self, barrier: tuple[str, int], arrivals: int) -> None:
        """Initialise an object."""
        assert barrier not in self._objects, f"{barrier} is initialised twice"
        self._objects[barrier] = _Object(arrivals, arrivals)

    def drop(self, barrier: tuple[str, int]) -> None:
        """End an object."""
        found = self._objects.pop(barrier)
        assert found.missing == found.arrivals, f"{barrier} is dropped inside a phase"
        assert not found.bytes, f"{barrier} is dropped inside a phase"
        assert not found.flying, f"{barrier} is dropped while copies fly"

    def arrive(self, barrier: tuple[str, int], count: int, size: int = 0) -> None:
        """Arrive ``count`` times, and add expected transaction bytes."""
        found = self._objects[barrier]
        assert count <= found.missing, f"{count} arrivals at {barrier}, which lacks {found.missing}"
        found.missing -= count
        found.bytes += size
        found.end()

    def wait_phase(self, barrier: tuple[str, int], parity: int) -> None:
        """Wait until the phase of a parity has completed; copies in flight complete here."""
        found = self._objects[barrier]
        if found.phase % 2 == parity:
            found.deliver()
        assert found.phase % 2 != parity, f"{barrier} is waited for, and nothing can end its phase"

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
        assert not self._objects, "barriers are left at the end"


@dataclass
class _Object:
    arrivals: int
    missing: int
    phase: int = 0
    bytes: int = 0
    flying: list[tuple[int, list[Callable[[], object]]]] = field(default_factory=list)

    def deliver(self) -> None:
        """Complete the copies in flight."""
        for size, actions in self.flying:
            self.bytes -= size
            for action in actions:
                action()
        self.flying = []
        self.end()

    def end(self) -> None:
        """End the phase if nothing is missing."""
        if not self.missing and not self.bytes:
            self.phase += 1
            self.missing = self.arrivals
