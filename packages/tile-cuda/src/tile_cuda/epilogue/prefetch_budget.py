"""The shared-memory budget for the lines of `tile_cuda.epilogue.operand_prefetch`.

Lines use slots that are free behind a loop. Where none are free they take more memory, and are prefetched only if the
number of blocks per multiprocessor stays the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING

from tile_core.analysis.flow import Flow, names_of
from tile_core.analysis.point import Point, is_grid
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import annotation
from tile_cuda.epilogue.staged import EpilogueFragments
from tile_cuda.grid.persistent import OF_WORKERS
from tile_cuda.machine import machine_of
from tile_cuda.target import REGISTERS, WARP

if TYPE_CHECKING:
    from tile_core.context import Context

_ALIGN = 128
_SCRATCH = 4096
"""Bytes left for what passes below allocate."""
_RESERVED = 1024
"""Bytes of each block that the system takes."""
_OTHERS = 16
"""Registers that a thread needs at least beside its accumulators."""


class SharedMemoryBudget:
    """The shared memory of a program.

    Parameters
    ----------
    flow
        Of its body.
    results
        The accumulators of its products: plain ones stay in registers.
    threads
        Of a block.
    """

    def __init__(self, flow: Flow, results: EpilogueFragments, threads: int, ctx: Context) -> None:
        self.flow, self.threads = flow, threads
        self.resident = machine_of(ctx.target.arch).threads
        self.limit, self.stays = int(ctx.capabilities.shared_bytes), ctx.options.persistent != "never"
        allocated = [p.stmt.buffer for p in flow.points if type(p.stmt) is tirx.AllocBuffer]
        self.shared = [b for b in allocated if nodes.scope_of(b) == "shared"]
        #: The points that use each, and the slots that it has.
        self.uses: dict[BufferVar, list[Point]] = {b: [] for b in self.shared}
        for p in flow.points:
            if type(p.stmt) is not tirx.AllocBuffer:
                for v in {flow.root(v) for part in p.own for v in names_of(part)}:
                    if v in self.uses:
                        self.uses[v].append(p)
        held = [b for b in allocated if nodes.scope_of(b) == "local.fragment"]
        #: The most bytes of all tiles, and of the lines of loops before.
        self.total = sum(_size(b) * self.slots(b) for b in self.shared)
        #: Least registers of a thread: the accumulator of one product.
        self.registers = _OTHERS + max((_size(b) // (4 * threads) for b in results.plain), default=0)
        #: Passes below may move these there.
        self.held = sum(_size(b) for b in held if not any(b.same_as(x) for x in results.plain))

    def has(self, lines: Sequence[int], loop: Point, nests: Sequence[Point]) -> bool:
        """Whether lines of these sizes fit, from the first to the last nest."""
        more, total = _aligned(lines), self.total
        inside = self.in_slots(more, loop, nests)
        if self.stays and total + _SCRATCH <= self.limit:
            # Slots of persistent kernels are never free.
            fits = total + self.held + more + _SCRATCH <= self.limit
            if not fits or self.at_a_time(total) != self.at_a_time(total + more):
                return False
        return inside or self.beside(more, loop)

    def take(self, lines: Iterable[int]) -> None:
        """Reserve memory for lines of these sizes."""
        self.total += _aligned(lines)

    def in_slots(self, more: int, loop: Point, nests: Sequence[Point]) -> bool:
        """Whether lines have a place in tiles that a loop was the last to use."""
        if not all(map(is_grid, loop.path)):
            return False
        first, last = nests[0].order, nests[-1].last
        inside = [b for b in self.shared if any(loop.contains(p) for p in self.uses[b])]
        dead = sum(_size(b) for b in inside if not any(p.order > loop.last for p in self.uses[b]))
        others = [b for b in self.shared if b not in inside]
        beside = [b for b in others if any(first <= p.order <= last for p in self.uses[b])]
        return more + sum(_size(b) for b in beside) <= dead

    def beside(self, more: int, loop: Point) -> bool:
        """Whether the blocks per multiprocessor stay the same if lines lie beside everything else."""
        least = sum(_size(b) for b in self.shared if any(loop.contains(p) for p in self.uses[b]))
        most = self.total + self.held + more
        return most + _SCRATCH <= self.limit and self.blocks(least) == self.blocks(most)

    def slots(self, buffer: BufferVar) -> int:
        """Return how many slots a tile has at most."""
        found = [1]
        for p in self.uses[buffer]:
            found += [int(annotation(x.stmt, nodes.STAGES, 1)) for x in p.loops if x.kind == "for"]
        return max(found)

    def at_a_time(self, size: int) -> int:
        """Return how many persistent blocks of ``size`` bytes run at a time (`tile_cuda.grid.persistent`)."""
        threads = self.threads + WARP
        return min(self.limit // (size + _SCRATCH), REGISTERS // (threads * OF_WORKERS), self.resident // threads)

    def blocks(self, size: int) -> tuple[int, ...]:
        """Return the blocks of this size that fit, by each estimate that decisions use."""
        given = (self.limit + _RESERVED) // (-(-size // _ALIGN) * _ALIGN + _RESERVED)
        most = min(self.resident // self.threads, REGISTERS // (self.threads * self.registers))
        return min(given, most), min(self.limit // max(size, 1), most)


def _aligned(lines: Iterable[int]) -> int:
    return sum(-(-n // _ALIGN) * _ALIGN for n in lines)


def _size(buffer: BufferVar) -> int:
    shape = nodes.shape_of(buffer)
    return prod(map(int, shape)) * max(8, DTYPES[nodes.element_type(buffer)].bits) // 8
