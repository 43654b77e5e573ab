"""Bar charts as SVG: labels, bars in tile's colour or in that of others, values with units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, RIGHT = 360, 200
_LABEL, _BAR, _LETTERS = 20, 19, 76


@dataclass(frozen=True)
class Bar:
    """One bar of a chart.

    Attributes
    ----------
    label
        The line above it; bars of the same label have one such line.
    text
        What is written behind it.
    low, high
        The interval; equal for one value.
    ours
        Whether the value is tile's, for its colour.
    """

    label: str
    text: str
    low: float
    high: float
    ours: bool


def bars(shown: Sequence[Bar], line: float | None, top: int) -> tuple[list[str], int]:
    """Return the elements of bars, and the height below the last one.

    Parameters
    ----------
    line
        A value that a dashed line marks. Bars of intervals begin at their lower ends, others at 0.
    top
        Where the first one begins.
    """
    most = max([*(bar.high for bar in shown), line or 0]) * 1.05
    parts: list[str] = []
    y, label = top, ""
    for bar in shown:
        if bar.label != label:
            parts.append(f'<text x="0" y="{y + 14}">{escape(_short(bar.label))}</text>')
            y, label = y + _LABEL, bar.label
        start = 0.0 if bar.low == bar.high else bar.low / most * WIDTH
        kind, width = "ours" if bar.ours else "other", max(5.0, bar.high / most * WIDTH - start)
        parts.append(
            f'<rect class="{kind}" x="{start:.1f}" y="{y}" width="{width:.1f}" height="15" rx="2" '
            f'data-low="{bar.low:g}" data-high="{bar.high:g}"/>'
            f'<text x="{start + width + 6:.1f}" y="{y + 12}" class="value">{escape(bar.text)}</text>'
        )
        y += _BAR
    if line is not None:
        x = line / most * WIDTH
        parts.insert(0, f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top + 4}" y2="{y}" class="even"/>')
    return parts, y + 6


def _short(label: str) -> str:
    return label if len(label) <= _LETTERS else label[: _LETTERS - 1] + "…"
