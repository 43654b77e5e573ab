"""Rooflines of measured kernels, as text and SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from tile_core.records import dataclass

if TYPE_CHECKING:
    from tile_core.tiling.work import ProgramWork

_BAR = 30
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 640, 300, 64, 16, 40


@dataclass(frozen=True)
class Rates:
    """The rates of one measured kernel.

    Attributes
    ----------
    label
        Names it beside others.
    work
        The work of a call.
    seconds
        Its time.
    peaks
        See ``RuntimeAdapter.peaks``.
    """

    label: str
    work: ProgramWork
    seconds: float
    peaks: Mapping[str, float]

    @property
    def operations(self) -> float:
        """Operations per second."""
        return self.work.operations / self.seconds

    @property
    def bytes(self) -> float:
        """Bytes per second, each tensor counted once."""
        return self.work.moved / self.seconds

    @property
    def compute_seconds(self) -> float | None:
        """Time of the operations alone at the peak rates; ``None`` if one is unknown."""
        work = self.work.products or {"float32": self.work.arithmetic}
        rates = {kind: self.peaks.get(kind) or self._host_rate(kind) for kind in work}
        return math.fsum(n / (rates[k] or math.inf) for k, n in work.items()) if all(rates.values()) else None

    @property
    def memory_seconds(self) -> float | None:
        """Time of the bytes alone at the peak rate."""
        return self.work.moved / self.peaks["bytes"] if "bytes" in self.peaks else None

    @property
    def limit(self) -> str:
        """Return the limit, ``"compute"`` or ``"memory"``; empty if peaks are unknown."""
        compute, memory = self.compute_seconds, self.memory_seconds
        if memory is None or not self.work.known:
            return ""
        return "compute" if compute is not None and compute > memory else "memory"

    @property
    def share(self) -> float | None:
        """The least time that the roofline allows, relative to the measured one."""
        if not self.limit:
            return None
        return (self.compute_seconds if self.limit == "compute" else self.memory_seconds or 0.0) / self.seconds  # type: ignore[operator]

    def _host_rate(self, kind: str) -> float | None:
        # Where only plain floats were measured, narrow types are no faster.
        return self.peaks.get("float32") if "float16" not in self.peaks else None

    def cells(self) -> tuple[str, str, str]:
        """Return operations per second, bytes per second and the share of the peak as texts.

        More than the peak rate of memory is possible where the tensors fit in a cache.
        """
        share = "" if self.share is None else f"{self.share:.0%} of {self.limit}"
        if self.limit == "memory" and (self.share or 0.0) > 1:
            share += ", cached"
        operations = rate_text(self.operations, "FLOP/s") if self.work.known and self.work.operations else ""
        return operations, rate_text(self.bytes, "B/s"), share


def rate_text(rate: float, unit: str) -> str:
    """Return a rate with a fitting unit: ``12.3 GB/s``."""
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if rate >= scale:
            return f"{rate / scale:.3g} {prefix}{unit}"
    return f"{rate / 1e3:.3g} k{unit}"


def lines(rates: Rates) -> list[str]:
    """Return the roofline of a kernel as lines of text."""
    work = rates.work
    if not work.known:
        return ["roofline: the trip count of a loop depends on data, so that operations cannot be counted"]
    found = [
        f"work: {work.operations:.4g} operations, {work.moved:,} bytes: {work.operations / max(work.moved, 1):.3g} "
        "operations per byte"
    ]
    if not rates.limit:
        return [*found, "roofline: the peak rates of this device are unknown"]
    for name, seconds, unit, total in (
        ("memory", rates.memory_seconds, "B/s", work.moved),
        ("compute", rates.compute_seconds, "FLOP/s", work.operations),
    ):
        if seconds is None:
            found.append(f"  {name:8}the peak rate for {work.kind} is unknown")
        elif seconds:
            share = seconds / rates.seconds
            filled = min(_BAR, round(share * _BAR))
            limit = "  <- limit" if name == rates.limit else ""
            peak = rate_text(total / seconds, unit)
            found.append(f"  {name:8}|{'#' * filled}{'.' * (_BAR - filled)}| {share:.0%} of {peak}{limit}")
    if (rates.share or 0.0) > 1:
        found.append("  more than the peak of memory: the tensors fit in a cache")
    return found


def svg(all_rates: Sequence[Rates]) -> str:
    """Return the roofline of kernels on logarithmic axes; empty without peaks."""
    shown = [r for r in all_rates if r.limit and r.work.operations]
    ceilings = [r.work.operations / r.compute_seconds for r in shown if r.compute_seconds]
    if not shown or not ceilings:
        return ""
    memory, top = shown[0].peaks["bytes"], max(ceilings)
    points = [(r.work.operations / max(r.work.moved, 1), r.operations, r.label) for r in shown]
    low_x = min(0.05, *(x / 2 for x, _, _ in points))
    high_x = max(4 * top / memory, *(2 * x for x, _, _ in points))
    low_y, high_y = min(low_x * memory, *(y / 2 for _, y, _ in points)), top * 3

    def at(x: float, y: float) -> tuple[float, float]:
        across = math.log(x / low_x) / math.log(high_x / low_x)
        up = math.log(y / low_y) / math.log(high_y / low_y)
        return _LEFT + across * (_WIDTH - _LEFT - 16), _HEIGHT - _BOTTOM - up * (_HEIGHT - _BOTTOM - _TOP)

    def line(*ends: tuple[float, float]) -> str:
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in ends)
        return f'<path d="M{path}" fill="none" stroke="currentColor" opacity="0.6"/>'

    def text(x: float, y: float, words: str, anchor: str = "start") -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'

    parts = [line(at(low_x, low_x * memory), at(top / memory, top), at(high_x, top))]
    parts.append(text(at(high_x, top)[0], at(high_x, top)[1] - 6, rate_text(top, "FLOP/s"), "end"))
    x, y = at(low_x * 1.2, low_x * 1.2 * memory)
    parts.append(text(x + 6, y + 14, rate_text(memory, "B/s")))
    for across, rate, label in points:
        x, y = at(across, rate)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="#3f7fd6"/>')
        anchor, shift = ("end", -9) if x > _WIDTH / 2 else ("start", 9)
        parts.append(text(x + shift, y + 14, f"{label}: {rate_text(rate, 'FLOP/s')}", anchor))
    parts.append(line((_LEFT, _TOP), (_LEFT, _HEIGHT - _BOTTOM), (_WIDTH - 16, _HEIGHT - _BOTTOM)))
    for exponent in range(math.ceil(math.log10(low_x)), math.floor(math.log10(high_x)) + 1):
        parts.append(text(at(10.0**exponent, high_y)[0], _HEIGHT - _BOTTOM + 16, f"{10.0**exponent:g}", "middle"))
    for exponent in range(math.ceil(math.log10(low_y)), math.floor(math.log10(high_y)) + 1):
        parts.append(text(_LEFT - 6, at(low_x, 10.0**exponent)[1] + 4, rate_text(10.0**exponent, "").strip(), "end"))
    parts.append(text((_LEFT + _WIDTH) / 2, _HEIGHT - 8, "operations per byte (logarithmic)", "middle"))
    parts.append(text(_LEFT + 4, _TOP, "operations per second"))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="currentColor">'
    )
    return '<div class="wide">' + "\n".join([head, *parts, "</svg>"]) + "</div>\n"
