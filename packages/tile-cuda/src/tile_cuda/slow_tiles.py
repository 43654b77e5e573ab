"""What estimates of kernels have in common: how large a launch is, and the sentence about tiles that are far from best.

Each estimate has a file: `tile_cuda.kernel_cost` is about one product, `tile_cuda.chain_cost` about two.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import TYPE_CHECKING, Protocol, TypeVar

from tile_core.analysis.ranges import Ranges
from tile_core.compat.tvm import tirx
from tile_core.ir.visit import collect, role

if TYPE_CHECKING:
    from tile_core.passes.spine import Plan

LEAST = 2**33
"""Multiplications of a launch, below which tiles are small because the problem is."""
_NEAR = 1.15
"""Of the best: all such tiles are good advice, and the nearest of them is given."""


class Estimated(Protocol):
    """How a kernel is tiled, with its estimate: its text is "... with 256 threads and 2 stages"."""

    @property
    def cycles(self) -> float:
        """Return the cycles of a multiprocessor for so much work."""

    @property
    def reason(self) -> str:
        """Return what keeps it from being faster."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return what its author chooses."""

    @property
    def also(self) -> str:
        """Return what else the better ones have, as the end of a sentence."""


Some = TypeVar("Some", bound=Estimated)


def sentences(found: Some, others: Sequence[Some], far: float) -> tuple[str, ...]:
    """Return what is said about a kernel; nothing if it is near the best.

    Parameters
    ----------
    found, others
        How it is tiled, and what it is compared with.
    far
        How many times as long as the best it is estimated to take at least where something is said.
    """
    best = min((c.cycles for c in others), default=found.cycles)
    times = found.cycles / best
    if times < far:
        return ()
    near = [c for c in others if c.cycles <= _NEAR * best]
    nearest = min(near, key=lambda c: sum(abs(log2(a / b)) for a, b in zip(c.sizes, found.sizes, strict=True)))
    return (
        f"tiles of {found} are estimated to take {times:.1f} times as long as the best, since {found.reason}; "
        f"the nearest better ones are {nearest}{found.also}",
    )


def stages_of(count: int) -> str:
    """Return a number of stages as text."""
    return "1 stage" if count == 1 else f"{count} stages"


def trips_of(plan: Plan) -> tuple[int, int] | None:
    """Return how many blocks a kernel has, and iterations of its only pipelined loop in that which has most of them.

    ``None`` if it has not one such loop, or if they depend on anything but the block.
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
    return blocks, max(1, ranges.of(pipelined[0].extent)[1])
