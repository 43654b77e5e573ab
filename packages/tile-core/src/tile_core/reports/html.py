"""A report as HTML."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.reports.facts import Facts
from tile_core.reports.parts import RIGHT, Section, parts_of
from tile_runtime import markup

#: Tables that are shown at once; a click opens the others.
_OPEN = frozenset(
    {
        "tile ops",
        "better variants that were rejected",
        "shared memory of a block",
        "pipelined loops",
        "inserted barriers",
    }
)
#: Columns of code.
_CODE = ("line", "op", "variant", "buffer", "fragment", "elements", "pass")
_KINDS = {"bold": "title", "yellow": "warning"}


def as_html(launches: Sequence[Facts]) -> str:
    """Return the report of all launches of a program, with pictures of shared memory."""
    return markup.page(*(part for facts in launches for part in _launch(facts)))


def _launch(facts: Facts) -> list[str]:
    found = []
    for part in parts_of(facts):
        if isinstance(part, Section):
            content = markup.table(part.columns, part.rows, RIGHT, _CODE)
            if part.title == "shared memory of a block":
                content = _shared(facts) + content
            found.append(markup.section(part.title, content, is_open=part.title in _OPEN))
        elif part[0]:
            found.append(markup.paragraph(part[0], _KINDS.get(part[1], "")))
    return found


def _shared(facts: Facts) -> str:
    """Return a picture of the buffers in shared memory, and its limit."""
    assert facts.block is not None
    rows = [
        markup.Span(b.name, b.offset, b.offset + b.bytes, f"{b.bytes:,} bytes at {b.offset:,}")
        for b in sorted(facts.block.shared, key=lambda b: b.offset)
    ]
    end = max(row.high for row in rows)
    return markup.spans(rows, end, f"{end:,.0f} of {facts.shared_limit:,} bytes")
