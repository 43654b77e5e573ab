"""Private arrays of a thread, and the device memory that a launch reserves for them.

If a device spills private arrays to memory, a launch reserves this memory for the maximum number of resident threads,
for every grid: even a kernel of a single thread can exhaust the device memory.
"""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.compat.structural import items
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Stmt
from tile_core.ir import nodes
from tile_core.ir.visit import bodies_of
from tile_core.passes.performance import PerformanceNote
from tile_core.records import dataclass
from tile_core.target import Capabilities

_SCOPES = ("local", "local.var", "local.fragment")
IN_REGISTERS = 1024
"""Bytes of arrays that may be in registers: more are in memory, at least in part."""
_MUCH = 2**33
"""Bytes of a device that are worth a warning."""


@dataclass(frozen=True)
class PrivateArrays:
    """The arrays of a thread.

    Attributes
    ----------
    bytes
        Of those that are alive at a time.
    name, most
        The largest one, and its bytes.
    of_fragment
        Whether it holds a thread's part of a tile.
    resident
        Number of threads for which a launch reserves this memory; 0 if it does not.
    """

    bytes: int = 0
    name: str = ""
    most: int = 0
    of_fragment: bool = False
    resident: int = 0

    @property
    def reserved_bytes(self) -> int:
        """Bytes that a launch reserves if all are in memory."""
        return self.bytes * self.resident

    def performance_note(self, threads: int, shared_bytes: int) -> PerformanceNote | None:
        """Return the performance note of a kernel whose launches reserve much memory.

        Parameters
        ----------
        threads
            Of a block.
        shared_bytes
            Bytes of shared memory that a block can have.
        """
        if self.reserved_bytes < _MUCH:
            return None
        if self.of_fragment:
            fix = f"more threads, of which each holds less of {self.name}, or a smaller tile, take less"
        elif self.most * threads <= shared_bytes:
            fix = f"T.alloc_shared has room for {self.name} of all threads of a block"
        else:
            fix = f"a part of a T.alloc_global for each thread of the launch, instead of {self.name}, takes less"
        return PerformanceNote(
            "memory",
            f"each thread has {self.bytes:,} bytes of arrays, and a launch reserves as much for each of the "
            f"{self.resident:,} threads that the largest device runs at a time, whatever the grid: "
            f"{self.reserved_bytes / 1e9:.0f} GB; {fix}",
        )


def private_arrays(body: Stmt, capabilities: Capabilities, arrays: Mapping[BufferVar, BufferVar]) -> PrivateArrays:
    """Return the arrays of a thread of a kernel.

    Parameters
    ----------
    body
        The code of a thread.
    arrays
        By fragment the array with a thread's elements.
    """
    found = _Arrays()
    most = found.alive(body)
    if found.largest is None:
        return PrivateArrays()
    name = next((b for b, array in arrays.items() if array.same_as(found.largest)), None)
    shown = str((found.largest if name is None else name).name)
    return PrivateArrays(most, shown, nodes.bytes_of(found.largest), name is not None, capabilities.resident_threads)


class _Arrays:
    """Find the private arrays of a thread and their live ranges.

    Arrays of statements side by side are not live at the same time.
    """

    def __init__(self) -> None:
        self.largest: BufferVar | None = None

    def alive(self, s: Stmt) -> int:
        """Return the bytes that are alive at a time in a statement."""
        own, inner = 0, 0
        for part in items(s.seq) if type(s) is tirx.SeqStmt else [s]:
            if type(part) is tirx.AllocBuffer:
                own += self.allocated(part.buffer)
            else:
                inside = [part] if type(part) is tirx.SeqStmt else bodies_of(part)
                inner = max([inner, *map(self.alive, inside)])
        return own + inner

    def allocated(self, buffer: BufferVar) -> int:
        """Return the bytes of an array of a thread; 0 for other buffers."""
        if nodes.scope_of(buffer) not in _SCOPES:
            return 0
        size = nodes.bytes_of(buffer)
        if self.largest is None or size > nodes.bytes_of(self.largest):
            self.largest = buffer
        return size
