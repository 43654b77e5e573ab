"""Timing launches."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from tile_core.records import dataclass

SHORTEST_SAMPLE = 2e-4
"""Minimum seconds per sample, so that the clock's resolution and a synchronisation are negligible."""

_MOST_LAUNCHES = 10_000


@dataclass(frozen=True)
class BenchResult:
    """Seconds per launch.

    Attributes
    ----------
    name
        The kernel.
    samples
        Mean seconds per launch of each sample, in the order measured.
    launches
        Launches per sample.
    """

    name: str
    samples: tuple[float, ...]
    launches: int

    @property
    def min(self) -> float:
        """The fastest sample."""
        return min(self.samples)

    @property
    def median(self) -> float:
        """The middle sample."""
        import statistics

        return statistics.median(self.samples)

    @property
    def mean(self) -> float:
        """The mean of the samples."""
        return math.fsum(self.samples) / len(self.samples)

    def __str__(self) -> str:
        return (
            f"{self.name}: median {time_text(self.median)}, min {time_text(self.min)}, mean {time_text(self.mean)} "
            f"({len(self.samples)} samples of {self.launches} launches)"
        )


Clock = Callable[[Callable[[], object], int], "float | None"]
"""Runs a launch repeatedly and returns the device time in seconds, if it can measure it."""


def measure(
    name: str,
    launch: Callable[[], object],
    synchronize: Callable[[], None],
    *,
    warmup: int,
    repeat: int,
    clock: Clock | None = None,
) -> BenchResult:
    """Time ``launch``.

    Parameters
    ----------
    name
        Label of the result.
    launch
        Queues one launch.
    synchronize
        Waits for all queued launches; called once per sample.
    warmup
        Launches before anything is timed.
    repeat
        Number of samples, at least 1.
    clock
        The device's own clock. The host's is used without one: between the first launch and the end of the last.
    """
    for _ in range(warmup):
        launch()
    synchronize()

    def sample(launches: int) -> float:
        seconds = None if clock is None else clock(launch, launches)
        if seconds is not None:
            return seconds
        start = time.perf_counter()
        for _ in range(launches):
            launch()
        synchronize()
        return time.perf_counter() - start

    launches = 1
    while launches < _MOST_LAUNCHES and sample(launches) < SHORTEST_SAMPLE:
        launches *= 2
    return BenchResult(name, tuple(sample(launches) / launches for _ in range(max(repeat, 1))), launches)


def time_text(seconds: float) -> str:
    """A duration with a fitting unit: ``12.3 us``."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"
