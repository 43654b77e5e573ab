"""Write the chart of README from ``benchmarks/results``, or check that it is theirs.

    python tools/speed_chart.py            write docs/speed.svg
    python tools/speed_chart.py --check    fail if it differs

It shows each product of 8192 with its libraries, and of each program of a serving day the sizes that take longest.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from xml.sax.saxutils import escape

from pages.bars import Bar
from pages.configurations import write_out
from pages.plots import PEERS, RESULTS, paired_bars, rate_text
from pages.tables import tables_of
from repository import ROOT, report

CHART = ROOT / "docs" / "speed.svg"
#: Pages of results, and the headings above their bars.
PRODUCTS = "cuda-later-2026-11-26.md"
#: The newest page first: each program is shown as measured last.
DAYS = ("cuda-day-2026-12-01.md", "cuda-day-2026-11-30.md", "cuda-day-2026-11-29.md")
_SIZE = 8192
_LEFT, _WIDTH, _RIGHT, _ROW, _GAP = 430, 240, 212, 14, 7
_STYLE = """\
.page { fill: #ffffff; } text { fill: #1c2430; font: 12px system-ui, sans-serif; } .head { font-weight: 600; }
.soft { fill: #5c6876; }
.value { paint-order: stroke; stroke: #ffffff; stroke-width: 3px; }
.ours { fill: #3f6fd8; } .other { fill: #a3a9b1; } line { stroke: #1c2430; }
@media (prefers-color-scheme: dark) { .page { fill: #14181e; } text { fill: #e3e8ef; } .soft { fill: #98a4b3; }
  .value { stroke: #14181e; } .ours { fill: #5b8af0; }
  .other { fill: #626b76; } line { stroke: #e3e8ef; } }"""


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    if not parser.parse_args().check:
        CHART.write_text(svg(), encoding="utf-8")
        return 0
    same = CHART.is_file() and CHART.read_text(encoding="utf-8") == svg()
    return report("chart of README", [] if same else [f"{CHART.name} is not what python tools/speed_chart.py writes"])


def svg() -> str:
    """Return the chart."""
    panels = [
        (
            "GEMM on an NVIDIA H100; e4m3 with fast accumulation, 2:4 sparse with its zeros",
            list(product_bars()),
        ),
        ("Programs of a serving day on an NVIDIA H200, default options", list(day_bars())),
    ]
    most = max(bar.high for _, bars in panels for bar in bars)
    parts, y = [], 10
    for title, bars in panels:
        parts.append(f'<text x="14" y="{y + 16}" class="head">{escape(title)}</text>')
        y += 28
        x, begin, at = _LEFT + _WIDTH / most, y, len(parts)
        for label, group in groupby(bars, key=lambda bar: bar.label):
            shown = list(group)
            middle = y + _ROW * len(shown) / 2 + 3
            parts.append(f'<text x="{_LEFT - 12}" y="{middle:g}" text-anchor="end">{escape(label)}</text>')
            for bar in shown:
                parts.append(_bar(bar, y, most))
                y += _ROW
            y += _GAP
        line = f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{begin - 4}" y2="{y - 4}" stroke-dasharray="3 3" opacity="0.6"/>'
        parts.insert(at, line)
        y += 6
    note = "Length: speed relative to the fastest library (dashed line). Medians; all sides of a bar are of one run."
    parts.append(f'<text x="14" y="{y + 10}" class="soft">{note}</text>')
    size = f'width="{_LEFT + _WIDTH + _RIGHT}" height="{y + 22}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} viewBox="0 0 {_LEFT + _WIDTH + _RIGHT} {y + 22}">'
    )
    about = "<title>Speed of tile beside libraries: bars with rates, by kernel and shape</title>"
    back = '<rect class="page" width="100%" height="100%" rx="6"/>'
    return "\n".join([head, about, f"<style>{_STYLE}</style>", back, *parts, "</svg>"]) + "\n"


def product_bars() -> Iterator[Bar]:
    """Yield the products of ``_SIZE`` that have a library beside them: tile, then each library at its fastest."""
    for table in tables_of((RESULTS / PRODUCTS).read_text(encoding="utf-8")):
        about = table.columns[0]
        best: dict[str, float] = {}
        rows = table.rows if f"{_SIZE}³" in about and "ms" in table.columns else ()
        for row, ms, *_ in rows:
            name = re.split(r", (?!dense)| by | without ", row.replace("`", ""))[0]
            name = name if name.startswith(PEERS) else "tile"
            best[name] = min(best.get(name, float("inf")), float(ms))
        others = sorted((ms, name) for name, ms in best.items() if name != "tile")
        if not others or "tile" not in best:
            continue
        kind = "2:4 sparse " if table.section.startswith("2:4 sparse") else ""
        label = f"{kind}{about.partition(', tiles')[0]}".replace("a scale for each row of A and of B", "row scales")
        for time, name in [(best["tile"], "tile"), *others]:
            text = f"{name} {rate_text(2 * _SIZE**3 / time / 1e9, 'TFLOP/s')}"
            yield Bar(label, text, others[0][0] / time, others[0][0] / time, name == "tile")


def day_bars() -> Iterator[Bar]:
    """Yield the sizes of each program that take longest: tile and its library."""
    seen: set[str] = set()
    for name in DAYS:
        page = write_out((RESULTS / name).read_text(encoding="utf-8"))
        (table,) = [t for t in tables_of(page) if "library" in t.columns]
        times, programs = [float(ms) for ms in table.column("ms")], table.column("program")
        pairs = paired_bars(table)
        for program in dict.fromkeys(p for p in programs if p not in seen):
            at = max((n for n, of in enumerate(programs) if of == program), key=lambda n: times[n])
            for bar in pairs[2 * at : 2 * at + 2]:
                text = bar.text.rpartition(", ")[0] if bar.ours else bar.text
                yield Bar(bar.label, text, bar.low, bar.high, bar.ours)
        seen.update(programs)


def _bar(bar: Bar, y: int, most: float) -> str:
    kind, width = "ours" if bar.ours else "other", bar.high / most * _WIDTH
    rect = f'<rect class="{kind}" x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_ROW - 2}" rx="1.5"/>'
    ratio = f" ({bar.high:.2f})" if bar.ours else ""
    return f'{rect}<text x="{_LEFT + width + 6:.1f}" y="{y + 10}" class="value">{escape(bar.text + ratio)}</text>'


if __name__ == "__main__":
    sys.exit(main())
