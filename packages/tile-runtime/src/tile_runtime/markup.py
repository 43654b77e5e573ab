"""HTML and SVG of reports: what notebooks show in place of text.

The colours are those of the surrounding page, so that reports can be read on light and dark ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tile_runtime.records import dataclass

_STYLE = """\
<style>
.tile-report { font-size: 13px; line-height: 1.45; max-width: 72em; }
.tile-report p { margin: 0.2em 0; }
.tile-report .title { font-weight: 600; font-size: 14px; }
.tile-report .warning, .tile-report .error { border-left: 3px solid #d08700; padding-left: 0.6em; }
.tile-report .error { border-color: #c4314b; }
.tile-report .good { color: #2f9e62; }
.tile-report pre, .tile-report td.code { font-family: monospace; font-size: 12px; }
.tile-report pre { margin: 0.3em 0; padding: 0; white-space: pre-wrap; background: none; color: inherit; }
.tile-report details { margin: 0.6em 0; }
.tile-report summary { cursor: pointer; font-weight: 600; }
.tile-report table { border-collapse: collapse; margin: 0.3em 0; font-size: inherit; }
.tile-report th, .tile-report td { border: 0; border-bottom: 1px solid rgba(128, 128, 128, 0.3);
  padding: 2px 14px 2px 0;
  text-align: left; vertical-align: top; background: none; color: inherit; white-space: normal; }
.tile-report td.code { white-space: nowrap; padding-top: 3px; }
.tile-report th { opacity: 0.7; font-weight: 500; }
.tile-report th.right, .tile-report td.right { text-align: right; font-variant-numeric: tabular-nums; }
.tile-report .wide { overflow-x: auto; }
</style>
"""


@dataclass(frozen=True)
class Span:
    """A row of a picture: a bar from ``low`` to ``high``, with ticks.

    Attributes
    ----------
    label, note
        The texts to the left and to the right of it.
    low, high
        Its ends.
    ticks
        Where marks are.
    strong
        Whether its colour differs from that of the others.
    """

    label: str
    low: float
    high: float
    note: str = ""
    ticks: tuple[float, ...] = ()
    strong: bool = False


def page(*parts: str) -> str:
    """Return parts of HTML as one report."""
    return f'<div class="tile-report">\n{_STYLE}{"".join(parts)}</div>\n'


def paragraph(text: str, kind: str = "") -> str:
    """Return text as a paragraph; ``kind`` is ``"title"``, ``"warning"``, ``"error"`` or ``"good"``."""
    return f'<p class="{kind}">{escape(text)}</p>\n' if kind else f"<p>{escape(text)}</p>\n"


def code(text: str) -> str:
    """Return lines of a program."""
    return f"<pre>{escape(text)}</pre>\n"


def section(title: str, content: str, *, is_open: bool = True) -> str:
    """Return a part that a click opens and closes."""
    state = " open" if is_open else ""
    return f"<details{state}><summary>{escape(title)}</summary>\n{content}</details>\n"


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = (), code: Sequence[str] = ()
) -> str:
    """Return a table.

    Parameters
    ----------
    columns, rows
        Names of columns, and cells.
    right, code
        Names of columns whose cells are aligned to the right, or are parts of a program.
    """
    kinds = ["right" if name in right else "code" if name in code else "" for name in columns]
    head = "".join(f'<th class="{kind}">{escape(name)}</th>' for name, kind in zip(columns, kinds, strict=True))
    lines = [
        "<tr>" + "".join(f'<td class="{k}">{escape(cell)}</td>' for cell, k in zip(row, kinds, strict=True)) + "</tr>"
        for row in rows
    ]
    return '<div class="wide"><table>\n<tr>' + head + "</tr>\n" + "\n".join(lines) + "\n</table></div>\n"


def spans(rows: Sequence[Span], end: float, unit: str) -> str:
    """Return an SVG picture of bars on an axis that begins at 0.

    Parameters
    ----------
    rows
        The bars, from top to bottom.
    end
        The end of the axis.
    unit
        Of the axis: its end is written with it.
    """
    step, width, glyph = 22, 360, 7.3
    left = round(max((len(row.label) for row in rows), default=0) * glyph) + 16
    size = (left + width + round(max((len(row.note) for row in rows), default=0) * glyph) + 32, step * len(rows) + 26)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
        f'viewBox="0 0 {size[0]} {size[1]}" '
        'font-family="monospace" font-size="12" fill="currentColor">'
    ]

    def at(value: float) -> float:
        return left + (width * value / end if end else 0.0)

    for number, row in enumerate(rows):
        y = 4 + step * number
        colour = "#3f7fd6" if row.strong else "#8aa0bd"
        length = max(at(row.high) - at(row.low), 2.0)
        parts.append(f'<text x="{left - 10}" y="{y + 12}" text-anchor="end">{escape(row.label)}</text>')
        bar = f'<rect x="{at(row.low):.1f}" y="{y + 2}" width="{length:.1f}" height="13" rx="2" fill="{colour}"/>'
        parts.append(bar)
        parts += [
            f'<line x1="{at(t):.1f}" x2="{at(t):.1f}" y1="{y}" y2="{y + 17}" stroke="currentColor"/>' for t in row.ticks
        ]
        parts.append(f'<text x="{left + width + 12}" y="{y + 12}">{escape(row.note)}</text>')
    y = 8 + step * len(rows)
    parts.append(f'<path d="M{left} {y - 4}v4h{width}v-4" fill="none" stroke="currentColor" opacity="0.5"/>')
    parts.append(f'<text x="{left}" y="{y + 14}" opacity="0.7">0</text>')
    parts.append(f'<text x="{left + width}" y="{y + 14}" text-anchor="end" opacity="0.7">{escape(unit)}</text>')
    return '<div class="wide">' + "\n".join([*parts, "</svg>"]) + "</div>\n"
