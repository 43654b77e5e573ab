"""Rates of Apple's GPUs: published figures, none measured here.

Cores and bytes per second are those of Apple's technical specifications, clocks follow from the float32 rates that
Apple published for the M1 and M2, and from independent measurements for later ones. A core multiplies and adds 128
numbers per cycle, also by simdgroup matrices (metal-benchmarks). The accelerators of the M5 multiply four times as many
of 16 bits, from "over 4x the peak GPU compute" of the M4. Last-level caches are those of die photographs and of
latencies that others measured; those of the M4s and M5 are assumed to be their predecessors'. Such figures rank
kernels; the times are rough.
"""

from __future__ import annotations

from collections.abc import Iterable

from tile_core.records import dataclass
from tile_core.target import Target
from tile_metal import versions
from tile_metal.target import TENSOR_OPS


@dataclass(frozen=True)
class Chip:
    """Rates of a chip's GPU.

    Attributes
    ----------
    name
        Without ``Apple``.
    cores
        GPU cores of the largest version.
    clock
        Cycles of a microsecond.
    matrix
        Multiplications of 16-bit elements by tensor operations, per core and cycle; 0 without them.
    memory
        Bytes of a microsecond from and to memory.
    cache
        MiB of the last-level cache.
    """

    name: str
    cores: int
    clock: float
    matrix: int
    memory: float
    cache: int

    def multiplications(self, is_tensor: bool, bits: int) -> int:
        """Return the multiplications of a core in a cycle, of elements of this size."""
        return self.matrix * 16 // max(16, bits) if is_tensor else MULTIPLICATIONS


MULTIPLICATIONS = 128
"""Of a core in a cycle, of float32 and of simdgroup matrices of any type."""
THREADGROUP_BYTES, CACHED_BYTES, LOADED_BYTES = 64, 64, 32
"""Assumed for a core and cycle: threadgroup memory, what its cache has, and what comes from the L2 cache."""
CORE_THREADGROUP_BYTES = 60 * 1024
"""Threadgroup memory of a core, shared by the threadgroups that it runs at a time (metal-benchmarks)."""

CHIPS = {
    one.name: one
    for one in (
        Chip("M1", 8, 1278, 0, 68.3e3, 8), Chip("M1 Pro", 16, 1296, 0, 200e3, 24),
        Chip("M1 Max", 32, 1296, 0, 400e3, 48), Chip("M1 Ultra", 64, 1296, 0, 800e3, 96),
        Chip("M2", 10, 1398, 0, 100e3, 8), Chip("M2 Pro", 19, 1398, 0, 200e3, 24),
        Chip("M2 Max", 38, 1398, 0, 400e3, 48), Chip("M2 Ultra", 76, 1398, 0, 800e3, 96),
        Chip("M3", 10, 1380, 0, 100e3, 8), Chip("M3 Pro", 18, 1380, 0, 150e3, 12),
        Chip("M3 Max", 40, 1380, 0, 400e3, 48), Chip("M3 Ultra", 80, 1380, 0, 819e3, 96),
        Chip("M4", 10, 1580, 0, 120e3, 8), Chip("M4 Pro", 20, 1580, 0, 273e3, 24),
        Chip("M4 Max", 40, 1580, 0, 546e3, 48), Chip("M5", 10, 1620, 512, 153e3, 8),
    )
}  # fmt: skip
"""The chips by name."""
_SHARPNESS = 4.0
"""Exponent with which times of parts add up that run beside each other."""


def combined(times: Iterable[float]) -> float:
    """Return the time of parts that run beside each other."""
    return float(sum(t**_SHARPNESS for t in times) ** (1 / _SHARPNESS))


def chip_of(target: Target) -> Chip:
    """Return the chip that estimates of a target assume.

    It is this machine's if it has the target's instructions.
    """
    own = CHIPS.get(versions.chip().removeprefix("Apple "))
    tensors = bool(target.capabilities.fact(TENSOR_OPS))
    return own if own is not None and bool(own.matrix) >= tensors else CHIPS["M5" if tensors else "M4 Pro"]
