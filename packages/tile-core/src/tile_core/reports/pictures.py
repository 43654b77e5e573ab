"""SVG of a schedule's timeline, and of shared memory over time.

Colours are classes, see the style of ``page.py``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from html import escape

from tile_core.reports.block import BlockFacts
from tile_core.reports.timeline import Bar, timeline_of
from tile_core.simt.pipelining.schedule import Schedule

_LEFT, _WIDTH = 148, 860
_GLYPH, _WIDE = 6.1, 7.2
"""Width of a letter of small text, and of other text."""


def timeline(schedule: Schedule) -> str:
    """Return the timeline of a schedule, by role and by slot."""
    found = timeline_of(schedule)
    unit = min(24.0, max(9.0, _WIDTH / max(found.end, 1)))
    lanes: list[str] = []
    y = 4
    for program, bars in zip(schedule.programs, found.roles, strict=True):
        role, last = program.role, program.role.first + program.role.count - 1
        threads = f"thread {last}" if role.count == 1 else f"threads {role.first}-{last}"
        lanes += [_label(y + 12, role.name), _label(y + 25, threads, "minor"), _line(y + 34, unit * found.end)]
        lanes += [_bar(b, y + (20 if b.kind == "flight" else 2), 8 if b.kind == "flight" else 17, unit) for b in bars]
        y += 38
    for group in schedule.groups:
        rings = ", ".join(dict.fromkeys(c.ring for c in group.copies))
        lanes.append(f'<text x="{_LEFT}" y="{y + 14}" class="minor">{escape(f"{rings}: {group.bytes:,} bytes")}</text>')
        y += 20
        for slot in range(schedule.stages):
            lanes.append(_label(y + 12, f"slot {slot}", "minor"))
            lanes += [_bar(b, y + 1, 14, unit) for b in found.slots[group.name, slot]]
            y += 18
    return _svg(_LEFT + unit * found.end + 4, y + 4, f"schedule of loop {schedule.loop}", lanes)


def memory(block: BlockFacts) -> str:
    """Return the shared buffers of a block by offset and time."""
    assert block.drawn is not None
    times = block.drawn.times
    begins = [n > 0 and times[n] != times[n - 1] for n in range(len(times))]
    column_of, starts = list(itertools.accumulate(begins)), [n for n, b in enumerate(begins) if b or not n]
    unit, rows = min(44.0, _WIDTH / max(1, len(starts))), _Rows(block)
    parts: list[str] = []
    texts: list[str] = []
    for offset, y in rows.marks():
        parts.append(_label(y + 4, f"{offset:,}", "minor"))
        parts.append(_line(y, unit * len(starts)))
    for buffer, (first, last) in zip(block.shared, block.drawn.spans, strict=True):
        x, end = _LEFT + column_of[first] * unit, _LEFT + (column_of[last] + 1) * unit
        top, bottom = rows.at(buffer.offset), rows.at(buffer.offset + buffer.bytes)
        text = f"{buffer.name}, {buffer.bytes:,} bytes"
        parts.append(
            f"<g><title>{escape(f'{text} at {buffer.offset:,}, {buffer.first} to {buffer.last}')}</title>"
            f'<rect class="buffer" x="{x:.1f}" y="{top + 1:.1f}" width="{end - x:.1f}" height="{bottom - top - 2:.1f}"'
            f' rx="2" data-buffer="{escape(buffer.name)}" data-bytes="{buffer.bytes}" '
            f'data-offset="{buffer.offset}"/></g>'
        )
        after = [
            _LEFT + column_of[begin] * unit
            for other, (begin, _) in zip(block.shared, block.drawn.spans, strict=True)
            if begin > last
            and other.offset < buffer.offset + buffer.bytes
            and buffer.offset < other.offset + other.bytes
        ]
        texts += _name(
            text, x + 6, min(after, default=_LEFT + unit * len(starts) + 60), (top + bottom) / 2 + 4, bottom - top
        )
    parts += texts
    parts += _ticks(times, starts, unit, rows.height)
    return _svg(_LEFT + unit * len(starts) + 60, rows.height + 24, "shared memory over time", parts)


def _name(text: str, x: float, end: float, y: float, height: float) -> list[str]:
    """Return a text before ``end``: whole, on two lines, or shortened."""
    letters, (name, _, size) = int((end - x) / _WIDE), text.partition(", ")
    if len(text) <= letters:
        lines = [(text, y)]
    elif height >= 32 and len(size) <= letters:
        lines = [(name if len(name) <= letters else f"{name[: letters - 1]}…", y - 7), (size, y + 8)]
    else:
        lines = [(f"{text[: max(0, letters - 1)]}…", y)]
    return [f'<text x="{x:.1f}" y="{at:.1f}">{escape(line)}</text>' for line, at in lines]


class _Rows:
    """Heights of offsets: in proportion to bytes, and high enough for a text."""

    def __init__(self, block: BlockFacts) -> None:
        ends = {n for b in block.shared for n in (b.offset, b.offset + b.bytes)}
        self.offsets = sorted(ends | {0})
        total = max(self.offsets) or 1
        sizes = [max(16.0, 260 * (b - a) / total) for a, b in itertools.pairwise(self.offsets)]
        self.tops = dict(zip(self.offsets, itertools.accumulate(sizes, initial=10.0), strict=True))
        self.height = self.tops[self.offsets[-1]]

    def at(self, offset: int) -> float:
        return self.tops[offset]

    def marks(self) -> Iterable[tuple[int, float]]:
        return self.tops.items()


def _ticks(times: Sequence[str], starts: Sequence[int], unit: float, y: float) -> Iterable[str]:
    """Yield the numbers of lines below their columns, where there is space."""
    free = 0.0
    for column, time in enumerate(starts):
        number, x = times[time].rpartition(":")[2], _LEFT + (column + 0.5) * unit
        if number and x - len(number) * _GLYPH / 2 >= free:
            yield f'<text x="{x:.1f}" y="{y + 15:.0f}" class="minor" text-anchor="middle">{escape(number)}</text>'
            free = x + len(number) * _GLYPH / 2 + 6


def _label(y: float, text: str, kind: str = "") -> str:
    return f'<text x="{_LEFT - 10}" y="{y:.0f}" text-anchor="end" class="{kind}">{escape(text)}</text>'


def _line(y: float, width: float) -> str:
    return f'<line class="lane" x1="{_LEFT}" x2="{_LEFT + width:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _bar(bar: Bar, y: int, height: int, unit: float) -> str:
    x, width = _LEFT + bar.start * unit, (bar.end - bar.start) * unit - 1
    number = "" if bar.iteration is None or height < 10 else str(bar.iteration)
    text = ""
    if number and width >= len(number) * _GLYPH:
        text = f'<text x="{x + width / 2:.1f}" y="{y + height - 4}" text-anchor="middle" class="in">{number}</text>'
    shape = f'<rect class="{bar.kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" rx="2"/>'
    return f"<g><title>{escape(bar.text)}</title>{shape}{text}</g>"


def _svg(width: float, height: float, label: str, parts: Iterable[str]) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" {size} font-size="12">'
    return '<div class="wide">' + "\n".join([head, *parts, "</svg>"]) + "</div>\n"
