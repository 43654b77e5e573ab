"""Common parts of the kernel estimates: size of a launch, performance warning about tiles.

Each estimate has a file: `tile_cuda.cost.kernels` is about one product, `tile_cuda.cost.chains` about two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2, prod
from typing import TYPE_CHECKING, Protocol, TypeVar

from tile_core.analysis.ranges import Ranges
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import collect, role
from tile_core.passes.performance import PerformanceNote
from tile_core.simt.notes import PIPELINE
from tile_core.simt.pipelining.async_products import products_of
from tile_core.simt.pipelining.plan import stages_of as asked_of
from tile_cuda.cost.tile_time import HOPPER

if TYPE_CHECKING:
    from tile_core.passes.spine import Plan

LEAST = 2**33
"""Multiplications of a launch, below which tiles are small because the problem is."""
_NEAR = 1.15
"""Of the best: all such tiles are good advice, and the nearest of them is given."""
_MEMORY = HOPPER.memory / HOPPER.clock / HOPPER.processors
"""Bytes of device memory per multiprocessor and cycle if all multiprocessors load."""


@dataclass(frozen=True)
class ProductLoop:
    """The work of a launch whose products stand in one pipelined loop.

    Attributes
    ----------
    blocks, trips
        Its blocks, and the largest trip count of the loop.
    stages
        Slots of the loop's prefetched operands; 1 if it waits for its copies.
    tensors
        Bits of an element, and shapes, of the tensors whose sizes are known at compile time.
    waits
        Why the loop waits for its copies although the program requests more stages; empty if it does not.
    """

    blocks: int
    trips: int
    stages: int
    tensors: tuple[tuple[int, tuple[int, ...]], ...]
    waits: str = ""

    def least(self, work: float) -> float:
        """Return the device-memory cycles of a multiprocessor for each of ``parts`` parts of the work."""
        return sum(bits / 8 * prod(shape) for bits, shape in self.tensors) / _MEMORY / work

    def is_full(self, of: tuple[int, int], instead: tuple[int, int]) -> bool:
        """Whether the result is large enough to fill other tiles by at least half.

        Parameters
        ----------
        of, instead
            Rows and columns of the kernel's tiles, and of others. The result is the tensor of whose matrices each block
            computes a tile; of a kernel without one nothing is known.
        """
        matrices = [(prod(shape[:-2]), shape[-2:]) for _, shape in self.tensors if len(shape) > 1]
        found = (two for count, two in matrices if count * prod(_parts(two, of)) == self.blocks)
        return all(size < 2 * extent for size, extent in zip(instead, next(found, instead), strict=True))


class Estimated(Protocol):
    """The tiling of a kernel and its estimate: "... with 256 threads and 2 stages"."""

    @property
    def cycles(self) -> float:
        """Return the cycles of a multiprocessor for so much work."""

    @property
    def reason(self) -> str:
        """Return the reason why it is slow."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the parameters that its author chooses."""

    @property
    def also(self) -> str:
        """Return further properties of the better configurations, as the end of a sentence."""


Some = TypeVar("Some", bound=Estimated)


def performance_notes(
    found: Some, others: Sequence[Some], far: float, least: float = 0.0
) -> tuple[PerformanceNote, ...]:
    """Return the performance note of a kernel if the best one is far faster.

    Parameters
    ----------
    found, others
        How it is tiled, and what it is compared with.
    far
        Ratio of its estimated time to the best one's from which there is a note.
    least
        Cycles that device memory takes, however it is tiled.
    """
    best = min((c.cycles for c in others), default=found.cycles)
    times = max(found.cycles, least) / max(best, least)
    if times < far:
        return ()
    near = [c for c in others if c.cycles <= _NEAR * best]
    nearest = min(near, key=lambda c: sum(abs(log2(a / b)) for a, b in zip(c.sizes, found.sizes, strict=True)))
    advice = f"the nearest better ones are {nearest}{found.also}"
    if nearest.sizes == found.sizes and not found.also:
        advice = "without that they are among the best"
    estimated = f"are estimated to take {times:.1f} times as long as the best"
    return (PerformanceNote("tiles", f"tiles of {found} {estimated}: {found.reason}; {advice}"),)


def stages_of(count: int) -> str:
    """Return a number of stages as text."""
    return "1 stage" if count == 1 else f"{count} stages"


def product_loop(plan: Plan) -> ProductLoop | None:
    """Return the work of a launch, or ``None`` if estimates do not cover it.

    They are about kernels with one pipelined loop, which copies, and in which all products stand, each once in an
    iteration. How many iterations there are depends on nothing but the block.
    """
    loops = [s for s in collect(plan.program.func.body, tirx.For) if role(s) in ("grid", "pipelined")]
    pipelined = [s for s in loops if role(s) == "pipelined"]
    ranges, blocks = Ranges(), 1
    for loop in (s for s in loops if role(s) == "grid"):
        if not isinstance(loop.extent, tirx.IntImm):
            return None
        ranges.loop(loop)
        blocks *= int(loop.extent.value)
    if len(pipelined) != 1 or any(v not in ranges.variables for v in collect(pipelined[0].extent, tirx.Var)):
        return None
    made = plan[PIPELINE].loops
    if len(made) != 1 or not _has_all(pipelined[0], plan):
        return None
    waits = not made[0].stages and asked_of(pipelined[0]) > 1
    if waits and not made[0].kept:
        return None
    name, why = made[0].kept[0] if waits else ("", "")
    reason = f"{name} is not prefetched: {why}" if waits else ""
    trips = max(1, ranges.of(pipelined[0].extent)[1])
    return ProductLoop(blocks, trips, made[0].stages or 1, _tensors_of(plan), reason)


def _has_all(loop: Stmt, plan: Plan) -> bool:
    """Whether all products of a kernel stand directly in one loop."""
    inside = any(products_of(s.body) for s in collect(loop.body, tirx.For))
    return not inside and len(products_of(loop.body)) == len(products_of(plan.program.func.body))


def _parts(sizes: Sequence[int], of: Sequence[int]) -> list[int]:
    """Return how many tiles there are along each axis."""
    return [-(-size // extent) for size, extent in zip(sizes, of, strict=True)]


def _tensors_of(plan: Plan) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Return the tensors whose sizes are known, see `ProductLoop`."""
    found = []
    for v in filter(tirx.is_buffer_var, plan.program.func.params):
        shape = nodes.shape_of(v)
        if all(isinstance(n, int) for n in shape):
            found.append((DTYPES[nodes.element_type(v)].bits, tuple(map(int, shape))))
    return tuple(found)
