"""Timing launches."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from tile_core.records import dataclass
from tile_runtime import markup

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
    def high(self) -> float:
        """The third quartile: a quarter of the samples took longer."""
        return sorted(self.samples)[-1 - (len(self.samples) - 1) // 4]

    @property
    def mean(self) -> float:
        """The mean of the samples."""
        return math.fsum(self.samples) / len(self.samples)

    def _repr_html_(self) -> str:
        row = markup.Span(
            "samples", self.min, max(self.samples), f"median {time_text(self.median)}", self.samples, True
        )
        picture = markup.spans([row], max(self.samples), time_text(max(self.samples)))
        return markup.page(markup.paragraph(str(self)), picture)

    def __str__(self) -> str:
        return (
            f"{self.name}: median {time_text(self.median)}, min {time_text(self.min)}, mean {time_text(self.mean)} "
            f"({len(self.samples)} samples of {self.launches} launches)"
        )


Clock = Callable[[Callable[[], object], int], "float | None"]
"""Runs a launch repeatedly and returns the device time in seconds, if it can measure it."""


class Stopwatch:
    """Takes samples of the time of a launch.

    Parameters
    ----------
    name
        Label of the result.
    launch
        Queues one launch.
    synchronize
        Waits for all queued launches; called once per sample.
    clock
        The device's own clock. The host's is used without one: between the first launch and the end of the last.
    """

    def __init__(
        self, name: str, launch: Callable[[], object], synchronize: Callable[[], None], clock: Clock | None = None
    ) -> None:
        self.name, self._launch, self._synchronize, self._clock = name, launch, synchronize, clock
        self.launches = 1

    def start(self, warmup: int) -> None:
        """Launch without timing, then choose how many launches a sample needs."""
        for _ in range(warmup):
            self._launch()
        self._synchronize()
        while self.launches < _MOST_LAUNCHES and self._seconds() < SHORTEST_SAMPLE:
            self.launches *= 2

    def sample(self) -> float:
        """Return the mean seconds per launch of one sample."""
        return self._seconds() / self.launches

    def _seconds(self) -> float:
        seconds = None if self._clock is None else self._clock(self._launch, self.launches)
        if seconds is not None:
            return seconds
        start = time.perf_counter()
        for _ in range(self.launches):
            self._launch()
        self._synchronize()
        return time.perf_counter() - start


def measure(watches: Sequence[Stopwatch], *, warmup: int, repeat: int) -> list[BenchResult]:
    """Time launches; samples of several alternate: drifts of the machine affect all alike.

    Parameters
    ----------
    watches
        One per launch.
    warmup
        Launches of each before anything is timed.
    repeat
        Number of samples of each, at least 1.
    """
    for watch in watches:
        watch.start(warmup)
    samples: list[list[float]] = [[] for _ in watches]
    for count in range(max(repeat, 1)):
        # Every other round runs backwards, so that each one follows different neighbours.
        order = range(len(watches)) if count % 2 == 0 else reversed(range(len(watches)))
        for n in order:
            samples[n].append(watches[n].sample())
    return [BenchResult(w.name, tuple(s), w.launches) for w, s in zip(watches, samples, strict=True)]


def time_text(seconds: float) -> str:
    """A duration with a fitting unit: ``12.3 us``."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns"
