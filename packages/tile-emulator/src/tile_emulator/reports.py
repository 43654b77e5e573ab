"""Findings of a run: the fault, its location in the kernel, thread, and array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tile_core.abi.kernel_text import LaunchFacts
from tile_core.compat.types import Array
from tile_core.dtypes import dtype
from tile_core.errors import Where
from tile_core.records import dataclass
from tile_emulator.build import TEXT
from tile_emulator.image import Image
from tile_emulator.symbols import Symbols

Index = tuple[int, ...]
Position = tuple[int, int, int]

KINDS = {
    "bounds": "access out of bounds",
    "race": "data race",
    "uninitialised": "read of memory that was never written",
    "misaligned": "misaligned access",
    "read-only": "write to an array that is only read",
    "deadlock": "deadlock",
    "divergence": "threads wait for one barrier at two places",
    "barrier": "wrong use of a barrier",
    "collective": "wrong use of a collective operation",
    "cluster": "wrong use of a cluster",
    "phase": "wrong use of a phase barrier",
    "metadata": "illegal metadata of a sparse product",
    "selector": "wrong choice of metadata",
    "async": "wrong use of an asynchronous operation",
    "timeout": "time limit",
    "memory": "memory limit",
    "stack": "stack overflow",
    "assertion": "failed assertion of the kernel",
    "trap": "the kernel ended itself",
    "arithmetic": "arithmetic that C++ leaves undefined",
    "crash": "crash",
}


@dataclass(frozen=True)
class FaultLocation:
    """A place in the kernel.

    Attributes
    ----------
    line
        1-based line of the emitted text; ``None`` if it is not known.
    text
        That line, without its indentation.
    where
        The place in the user's source that the line comes from.
    """

    line: int | None = None
    text: str = ""
    where: Where | None = None

    def __str__(self) -> str:
        parts = []
        if self.where is not None:
            parts.append(f"{self.where}" + (f"  {self.where.source}" if self.where.source else ""))
        if self.line is not None:
            parts.append(f"line {self.line} of the text: {self.text}")
        return "; ".join(parts)


@dataclass(frozen=True)
class FaultAccess:
    """The other access of a conflict: its thread, its place, and whether it writes."""

    block: Position
    thread: Position
    write: bool
    location: FaultLocation


@dataclass(frozen=True)
class Waiting:
    """Threads of one block that wait for the same event.

    ``threads`` are ranges of linear indices, both ends included.
    """

    block: Position
    threads: tuple[tuple[int, int], ...]
    what: str
    location: FaultLocation

    def __str__(self) -> str:
        who = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in self.threads)
        where = f"; {self.location}" if str(self.location) else ""
        return f"threads {who} of block {self.block}: {self.what}{where}"


@dataclass(frozen=True)
class Report:
    """One fault.

    Attributes
    ----------
    kind
        One of ``KINDS``.
    detail
        What happened.
    place
        Where in the kernel.
    block, thread
        Positions of the first thread that did it.
    array
        Name of the array or of the shared memory's part.
    index
        Index of the first element concerned; of one extent where the shape is not known or does not contain it.
    count
        How often it happened at this place; faults that end the run happen once.
    other
        The other access of a race, where it is known.
    waiting
        What each thread waits for in a deadlock.
    """

    kind: str
    detail: str
    location: FaultLocation = FaultLocation()
    block: Position | None = None
    thread: Position | None = None
    array: str | None = None
    index: Index | None = None
    count: int = 1
    other: FaultAccess | None = None
    waiting: tuple[Waiting, ...] = ()

    @property
    def where(self) -> Where | None:
        """The place in the user's source."""
        return self.location.where

    @property
    def line(self) -> int | None:
        """The line of the emitted text."""
        return self.location.line

    def __str__(self) -> str:
        at = f" in {self.array}[{', '.join(map(str, self.index or ()))}]" if self.array else ""
        by = f", by thread {self.thread} of block {self.block}" if self.thread is not None else ""
        times = f" ({self.count} times)" if self.count > 1 else ""
        lines = [f"{KINDS.get(self.kind, self.kind)}: {self.detail}{at}{by}{times}"]
        if str(self.location):
            lines.append(f"  --> {self.location}")
        if self.other is not None:
            what = "write" if self.other.write else "read"
            location = f": {self.other.location}" if str(self.other.location) else ""
            lines.append(f"  the {what} by thread {self.other.thread} of block {self.other.block}{location}")
        lines += [f"  {waiting}" for waiting in self.waiting]
        return "\n".join(lines)


class ReportReader:
    """Makes reports from the engine's output.

    Parameters
    ----------
    facts, image
        The launch.
    text
        The emitted text.
    symbols
        Lines of the kernel's library.
    """

    def __init__(self, facts: LaunchFacts, image: Image, text: str, symbols: Symbols) -> None:
        self._facts = facts
        self._image = image
        self._lines = text.splitlines()
        self._symbols = symbols

    def report(self, record: dict[str, Any]) -> Report:
        """Make a report of one line of the engine's file."""
        array, index = self._element(record)
        other = record.get("other")
        return Report(
            kind=record["kind"],
            detail=record["detail"],
            location=self.location(record.get("frames", ()), record.get("line", 0)),
            block=_position(record.get("block")),
            thread=_position(record.get("thread")),
            array=array,
            index=index,
            count=record.get("count", 1),
            other=None if other is None else self._access(other),
            waiting=tuple(self._waiting(w) for w in record.get("waiting", ())),
        )

    def location(self, frames: Sequence[int], line: int) -> FaultLocation:
        """Return the location of a chain of addresses, innermost first.

        It is the user's own line, if there is one.
        """
        found = [number for address in frames for name, number in self._symbols.lines(address) if name == TEXT]
        if line:
            found.append(line)
        if not found:
            found = [
                number for address in frames for name, number in self._symbols.lines(address, True) if name == TEXT
            ]
        if not found:
            return FaultLocation()
        mapped = [number for number in found if self._facts.line_map.where(number) is not None]
        number = (mapped or found)[0]
        text = self._lines[number - 1].strip() if number <= len(self._lines) else ""
        return FaultLocation(number, text, self._facts.line_map.where(number))

    def _access(self, record: dict[str, Any]) -> FaultAccess:
        location = self.location(record["frames"], 0)
        return FaultAccess(_sure(record["block"]), _sure(record["thread"]), record["write"], location)

    def _waiting(self, record: dict[str, Any]) -> Waiting:
        threads = tuple((int(a), int(b)) for a, b in record["threads"])
        return Waiting(_sure(record["block"]), threads, record["what"], self.location(record["frames"], record["line"]))

    def _element(self, record: dict[str, Any]) -> tuple[str | None, Index | None]:
        if "buffer" not in record:
            return None, None
        buffer, offset = int(record["buffer"]), int(record["offset"])
        if buffer < 0:
            parts = [a for a in self._facts.shared if a.offset <= offset < a.offset + a.bytes] if buffer == -1 else []
            if not parts:
                return "shared memory, byte", (offset,)
            names = " or ".join(a.name for a in parts)
            size = dtype(parts[0].dtype).numpy().itemsize
            return names, ((offset - parts[0].offset) // size,)
        placed = self._image.placed[buffer]
        if placed.param is None:
            return "the values of scalars, byte", (offset,)
        return placed.param.name, _index(placed.source, offset - placed.footprint.first)


def _index(array: Array, offset: int) -> Index:
    """Return the index of the element at a byte offset; flat outside of the array."""
    flat = offset // array.itemsize
    if array.flags.c_contiguous and 0 <= flat < array.size and array.ndim:
        return tuple(int(i) for i in np.unravel_index(flat, array.shape))
    return (flat,)


def _position(value: Sequence[int] | None) -> Position | None:
    return None if value is None else _sure(value)


def _sure(value: Sequence[int]) -> Position:
    x, y, z = value
    return int(x), int(y), int(z)
