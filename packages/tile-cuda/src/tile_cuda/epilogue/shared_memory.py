"""The shared memory of a block that an epilogue may use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING

from tile_core.analysis.flow import Flow, names_of
from tile_core.analysis.point import Point, is_grid
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.attributes import NUM_STAGES
from tile_core.ir.visit import annotation
from tile_cuda.grid.persistent import OF_WORKERS
from tile_cuda.machine import machine_of
from tile_cuda.target import REGISTERS, WARP

if TYPE_CHECKING:
    from tile_core.context import Context

SCRATCH = 4096
"""Bytes of shared memory left for what passes below allocate for ops that are not known yet."""
_ALIGN = 128
_RESERVED = 1024
"""Bytes of each block that the system takes."""
_OTHERS = 16
"""Registers that a thread needs at least beside its accumulators."""


class SharedMemory:
    """The shared tiles of a program: their sizes and the statements that use them.

    An epilogue uses slots that are free behind a loop. Where none are free it takes more memory, and only if the number
    of blocks per multiprocessor stays the same.

    Parameters
    ----------
    flow
        Of the program.
    plain
        Fragments that stay in registers.
    threads
        Of a block.
    """

    def __init__(self, flow: Flow, plain: Collection[BufferVar], threads: int, ctx: Context) -> None:
        self.flow, self.threads = flow, threads
        self.resident = machine_of(ctx.target.arch).threads
        self.limit, self.may_stay = int(ctx.capabilities.shared_bytes), ctx.options.persistent != "never"
        allocated = [p.stmt.buffer for p in flow.points if type(p.stmt) is tirx.AllocBuffer]
        #: By tile the numbers of the points that use it, and its bytes in all slots.
        self.uses: dict[BufferVar, list[float]] = {b: [] for b in allocated if nodes.scope_of(b) == "shared"}
        slots = dict.fromkeys(self.uses, 1)
        for p in flow.points:
            if type(p.stmt) is not tirx.AllocBuffer:
                stages = max((int(annotation(x.stmt, NUM_STAGES, 1)) for x in p.loops if x.kind == "for"), default=1)
                for b in {flow.root(v) for part in p.own for v in names_of(part)} & self.uses.keys():
                    self.uses[b].append(p.order)
                    slots[b] = max(slots[b], stages)
        self.sizes = {b: bytes_of(b) * slots[b] for b in self.uses}
        #: The most bytes of the program's own tiles.
        self.own = sum(self.sizes.values())
        #: Bytes of operands that earlier loops prefetch.
        self.taken = 0
        #: Least registers of a thread: the accumulator of one product.
        self.registers = _OTHERS + max((bytes_of(b) // (4 * threads) for b in plain), default=0)
        #: Bytes of fragments that passes below may move to shared memory.
        self.held = sum(bytes_of(b) for b in allocated if nodes.scope_of(b) == "local.fragment" and b not in plain)

    @property
    def total(self) -> int:
        """The most bytes of all tiles."""
        return sum(self.sizes.values()) + self.taken

    def add(self, tile: BufferVar, user: Point) -> None:
        """Add a tile that is used behind what a statement computes."""
        self.uses[tile], self.sizes[tile] = [user.last + 0.5], bytes_of(tile)

    def behind(self, p: Point) -> int:
        """Return the bytes of tiles that are used behind a statement."""
        return sum(self.sizes[b] for b, used in self.uses.items() if any(order > p.last for order in used))

    def tiles_at_a_time(self, size: int) -> int:
        """Return how many blocks with this much shared memory a multiprocessor has at a time."""
        return min(self.limit // max(size, 1), self.resident // self.threads)

    # Operands that are prefetched

    def fits(self, lines: Sequence[int], loop: Point, nests: Sequence[Point]) -> bool:
        """Whether vectors of these sizes fit until the last nest behind a loop."""
        more, total = _aligned(lines), self.total
        if self.may_stay and total + SCRATCH <= self.limit:
            # Slots of persistent kernels are never free.
            within = total + self.held + more + SCRATCH <= self.limit
            if not within or self._at_a_time(total) != self._at_a_time(total + more):
                return False
        return self._in_slots(more, loop, nests) or self._beside(more, loop)

    def take(self, lines: Iterable[int]) -> None:
        """Reserve memory for vectors of these sizes."""
        self.taken += _aligned(lines)

    def _in_slots(self, more: int, loop: Point, nests: Sequence[Point]) -> bool:
        """Whether tiles that a loop was the last to use have so much memory."""
        if not all(map(is_grid, loop.path)):
            return False
        first, last = nests[0].order, nests[-1].last
        inside = self._inside(loop)
        dead = sum(bytes_of(b) for b in inside if not any(order > loop.last for order in self.uses[b]))
        others = (b for b in self.uses if b not in inside)
        beside = sum(bytes_of(b) for b in others if any(first <= order <= last for order in self.uses[b]))
        return more + beside <= dead

    def _beside(self, more: int, loop: Point) -> bool:
        """Whether the blocks per multiprocessor stay the same if vectors lie beside everything else."""
        least, most = sum(map(bytes_of, self._inside(loop))), self.total + self.held + more
        return most + SCRATCH <= self.limit and self._blocks(least) == self._blocks(most)

    def _inside(self, loop: Point) -> list[BufferVar]:
        """Return the tiles that a loop uses."""
        return [b for b, used in self.uses.items() if any(loop.order <= order <= loop.last for order in used)]

    def _at_a_time(self, size: int) -> int:
        """Return how many persistent blocks of ``size`` bytes run at a time (`tile_cuda.grid.persistent`)."""
        threads = self.threads + WARP
        return min(self.limit // (size + SCRATCH), REGISTERS // (threads * OF_WORKERS), self.resident // threads)

    def _blocks(self, size: int) -> tuple[int, ...]:
        """Return the blocks of this size that fit, by each estimate that decisions use."""
        given = (self.limit + _RESERVED) // (-(-size // _ALIGN) * _ALIGN + _RESERVED)
        most = min(self.resident // self.threads, REGISTERS // (self.threads * self.registers))
        return min(given, most), min(self.limit // max(size, 1), most)


def bytes_of(buffer: BufferVar) -> int:
    """Return the bytes of a tile."""
    return prod(map(int, nodes.shape_of(buffer))) * max(8, DTYPES[nodes.element_type(buffer)].bits) // 8


def _aligned(lines: Iterable[int]) -> int:
    return sum(-(-n // _ALIGN) * _ALIGN for n in lines)
