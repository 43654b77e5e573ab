"""Charts of the committed benchmark results, one per table of rates or ratios.

A chart shows the values of its table: of rates the rows with a note (our best, and its reference), of ratios every row,
as the interval of its runs. It is SVG in the page's own colours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from repository import ROOT

from pages.tables import Table, tables_of

RESULTS = ROOT / "benchmarks" / "results"

#: Where a page lists the pages of results.
RESULTS_MARK = "<!-- results -->"
#: Columns that hold our speed relative to the other side's.
RATIOS = ("one thread", "both cores, busy", "")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_ROW, _WIDTH, _RIGHT, _TOP = 42, 380, 110, 26


@dataclass(frozen=True)
class Bar:
    """One line of a chart.

    Attributes
    ----------
    label, text
        What stands before and behind it.
    low, high
        The interval; equal for one value.
    ours
        Whether the value is ours, for its colour.
    """

    label: str
    text: str
    low: float
    high: float
    ours: bool


def pages() -> dict[str, str]:
    """Return a page for each file of results: its text, with charts above its tables."""
    return {
        f"performance/{path.stem}.md": charted(path.read_text(encoding="utf-8"))
        for path in sorted(RESULTS.glob("*.md"))
    }


def listing() -> str:
    """Return links to these pages."""
    titles = {path: text.partition("\n")[0].lstrip("# ") for path, text in pages().items()}
    return "\n".join(f"- [{title}]({path})" for path, title in titles.items())


def charted(markdown: str) -> str:
    """Return a page of results with charts before the tables that have some."""
    lines = markdown.splitlines()
    for table in reversed(list(tables_of(markdown))):
        charts = [svg for svg in (_rates(table), *(_ratios(table, name) for name in RATIOS)) if svg]
        lines[table.line : table.line] = [x for svg in charts for x in (svg, "")]
    return "\n".join(lines) + "\n"


def rate_bars(table: Table) -> list[Bar]:
    """Return the rows with a note, by their rate."""
    if "rate" not in table.columns:
        return []
    bars = []
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        if row[-1]:
            value = float(cells["rate"].split()[0])
            bars.append(Bar(row[0], cells["rate"], value, value, "ours" in row[-1]))
    return bars


def ratio_bars(table: Table, column: str) -> list[Bar]:
    """Return the rows of a column of ratios; those that are empty are left out."""
    if column not in table.columns or "rate" in table.columns:
        return []
    position = table.columns.index(column)
    named = [n for n, name in enumerate(table.columns) if name not in RATIOS]
    bars = []
    for row in table.rows:
        found = [float(number) for number in _NUMBER.findall(row[position])]
        if found:
            bars.append(
                Bar(", ".join(row[n] for n in named if row[n]), row[position], min(found), max(found), max(found) >= 1)
            )
    return bars


def _rates(table: Table) -> str:
    bars = rate_bars(table)
    unit = bars[0].text.split()[-1] if bars else ""
    return _chart(f"Rates in {unit}: the best of ours, and what it is compared with", bars)


def _ratios(table: Table, column: str) -> str:
    where = f", {column}" if column else ""
    return _chart(f"How many times as fast as the other side{where}", ratio_bars(table, column), line=1.0)


def _chart(title: str, bars: Sequence[Bar], line: float | None = None) -> str:
    """Return a bar chart, or intervals beside a line, as one HTML line."""
    if not bars:
        return ""
    most = max(max(bar.high for bar in bars), line or 0) * 1.05
    height = _TOP + _ROW * len(bars) + 8
    parts = [
        f'<figure class="chart"><svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" '
        f'viewBox="0 0 {_WIDTH + _RIGHT} {height}" font-size="13">',
        f'<text x="0" y="15" class="title">{escape(title)}</text>',
    ]
    if line is not None:
        x = _x(line, most)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{height - 4}" class="even"/>')
    for number, bar in enumerate(bars):
        y = _TOP + number * _ROW
        start = _x(bar.low if line is not None else 0, most)
        kind, width = "ours" if bar.ours else "other", max(5, _x(bar.high, most) - start)
        parts += [
            f'<text x="0" y="{y + 12}">{escape(_short(bar.label))}</text>',
            f'<rect class="{kind}" x="{start:.1f}" y="{y + 18}" width="{width:.1f}" height="16" '
            f'data-low="{bar.low:g}" data-high="{bar.high:g}"/>',
            f'<text x="{start + width + 5:.1f}" y="{y + 31}">{escape(bar.text)}</text>',
        ]
    return "".join([*parts, "</svg></figure>"])


def _x(value: float, most: float) -> float:
    return value / most * _WIDTH


def _short(label: str) -> str:
    return label if len(label) <= 56 else label[:55] + "…"
