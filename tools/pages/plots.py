"""Charts of the committed benchmark results, one per table of rates, times or ratios.

A chart shows the values of its table, with their units, and the shapes of its heading. Tables that name a library in
each row have two bars for each: tile and that library. Of other rates it shows the rows with a note (our best, and its
reference); of times and ratios every row, as the interval of its runs. It is SVG in the page's own colours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from repository import ROOT

from pages.bars import RIGHT, WIDTH, Bar, bars
from pages.configurations import write_out
from pages.tables import Table, tables_of

RESULTS = ROOT / "benchmarks" / "results"

#: Columns that hold our speed relative to the other side's.
RATIOS = ("one thread", "both cores, busy", "")
#: Rows of a chart of times at most: longer tables list kernels, and compare no sides.
MOST = 24
#: How the names of rows that are not tile's begin.
PEERS = ("cuBLAS", "cuSPARSELt", "cuDNN", "torch", "_scaled_mm", "Triton", "triton", "NumPy", "a copy", "copy")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def pages() -> dict[str, str]:
    """Return a page for each file of results: its text, with charts above its tables."""
    return {
        f"performance/{path.stem}.md": charted(write_out(path.read_text(encoding="utf-8")))
        for path in sorted(RESULTS.glob("*.md"))
    }


def charted(markdown: str) -> str:
    """Return a page of results with charts before the tables that have some."""
    lines = markdown.splitlines()
    for table in reversed(list(tables_of(markdown))):
        lines[table.line : table.line] = [x for found in charts_of(table) for x in (_chart(table, *found), "")]
    return "\n".join(lines) + "\n"


def charts_of(table: Table) -> list[tuple[str, list[Bar], float | None]]:
    """Return the charts of a table that have bars: what they show, the bars, and the value of the line."""
    ratios = [(f"times as fast as the other side{f', {name}' * bool(name)}", name) for name in RATIOS]
    rates = rate_bars(table)
    unit = rates[0].text.split()[-1] if rates else ""
    found: list[tuple[str, list[Bar], float | None]] = [
        ("speed relative to the library", paired_bars(table), 1.0),
        (f"{unit}: the best of ours, and what it is compared with", rates, None),
        ("speed relative to the line of 1", timed_bars(table), 1.0),
        *((what, ratio_bars(table, name), 1.0) for what, name in ratios),
    ]
    return [chart for chart in found if chart[1]]


def paired_bars(table: Table) -> list[Bar]:
    """Return two bars for each row of a table that names libraries: tile and the library."""
    if not {"rate", "ms", "library", "its ms"} <= set(table.columns):
        return []
    found = []
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        ratio, (value, unit) = float(row[-1]), cells["rate"].split()
        label = f"{row[0]}, {row[1]}"
        found.append(Bar(label, f"tile {cells['rate']}, {row[-1]}", ratio, ratio, True))
        found.append(Bar(label, f"{cells['library']} {rate_text(float(value) / ratio, unit)}", 1.0, 1.0, False))
    return found


def rate_text(value: float, unit: str) -> str:
    """Return a rate with three digits at least."""
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def rate_bars(table: Table) -> list[Bar]:
    """Return the rows with a note, by their rate."""
    if "rate" not in table.columns or "library" in table.columns:
        return []
    found = []
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        if row[-1]:
            value = float(cells["rate"].split()[0])
            found.append(Bar(row[0], cells["rate"], value, value, "ours" in row[-1]))
    return found


def timed_bars(table: Table) -> list[Bar]:
    """Return the rows of a table of times with a ratio, by that ratio."""
    ratio = "ratio" if "ratio" in table.columns else ""
    if "ms" not in table.columns or "rate" in table.columns or ratio not in table.columns or len(table.rows) > MOST:
        return []
    found = []
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        numbers = [float(n) for n in _NUMBER.findall(cells[ratio])]
        if numbers:
            text = f"{cells['ms']} ms, {cells[ratio]}"
            label = row[0].replace("`", "")
            found.append(Bar(label, text, min(numbers), max(numbers), not label.startswith(PEERS)))
    return found


def ratio_bars(table: Table, column: str) -> list[Bar]:
    """Return the rows of a column of ratios; those that are empty are left out."""
    if column not in table.columns or {"rate", "ms"} & set(table.columns):
        return []
    position = table.columns.index(column)
    named = [n for n, name in enumerate(table.columns) if name not in RATIOS]
    found = []
    for row in table.rows:
        numbers = [float(number) for number in _NUMBER.findall(row[position])]
        if numbers:
            label = ", ".join(row[n] for n in named if row[n])
            found.append(Bar(label, row[position], min(numbers), max(numbers), True))
    return found


def _chart(table: Table, what: str, shown: Sequence[Bar], line: float | None) -> str:
    """Return a bar chart with its title as one HTML line."""
    parts, height = bars(shown, line, 0)
    kernel = table.columns[0]
    about = f"{table.section.replace('`', '')}{f', {kernel}' * any(c.isdigit() for c in kernel)}: {what}"
    key = "" if all(bar.ours for bar in shown) else ' <span class="ours">tile</span> <span class="other">others</span>'
    return (
        f'<figure class="chart"><figcaption>{escape(about)}{key}</figcaption><svg xmlns="http://www.w3.org/2000/svg" '
        f'role="img" aria-label={quoteattr(about)} viewBox="0 0 {WIDTH + RIGHT} {height}" '
        f'font-size="13">{"".join(parts)}</svg></figure>'
    )
