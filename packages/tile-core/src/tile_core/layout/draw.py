"""Pictures of layouts: a table for the terminal, and SVG."""

from __future__ import annotations

from math import prod

from tile_core.layout.base import LayoutMap
from tile_core.layout.digits import unravel
from tile_runtime import markup

_CELL = (54, 22)
_MARGIN = (44, 40)
#: Rows and columns of a picture in a notebook.
_MOST_ROWS, _MOST_COLUMNS = 32, 32


def draw(layout: LayoutMap, max_rows: int = 64, max_columns: int = 32) -> str:
    """Return a plain-text table with the location of each element.

    Rows are all dimensions but the last, columns the last. A cell is the memory index, or ``thread:register``
    (``warp.lane:register`` where the layout has warps); of an element with copies the first is shown.

    Parameters
    ----------
    max_rows, max_columns
        Limits of the table; the last line and the title state what is omitted.
    """
    rows, columns = _extents(layout)
    shown_rows, shown_columns = min(rows, max_rows), min(columns, max_columns)
    cells = [["", *(str(c) for c in range(shown_columns))]]
    for row in range(shown_rows):
        texts = [_cell(layout, row * columns + column) for column in range(shown_columns)]
        cells.append([_row_name(layout, row), *texts])
    widths = [max(len(line[i]) for line in cells) for i in range(shown_columns + 1)]
    lines = [_title(layout)]
    for number, line in enumerate(cells):
        padded = [text.rjust(width) for text, width in zip(line, widths, strict=True)]
        lines.append(f"{padded[0]} | {' '.join(padded[1:])}".rstrip())
        if number == 0:
            lines.append(f"{'-' * widths[0]}-+-{'-' * (sum(widths[1:]) + shown_columns - 1)}")
    if (shown_rows, shown_columns) != (rows, columns):
        lines.append(f"({shown_rows} of {rows} rows, {shown_columns} of {columns} columns)")
    return "\n".join(lines)


def to_svg(layout: LayoutMap, max_rows: int = 128, max_columns: int = 128) -> str:
    """Return the table as an SVG document, coloured by thread or 32-element line."""
    rows, columns = _extents(layout)
    rows, columns, pitch = min(rows, max_rows), min(columns, max_columns), columns
    (width, height), (left, top) = _CELL, _MARGIN
    size = (left + columns * width + 4, top + rows * height + 4)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
        f'viewBox="0 0 {size[0]} {size[1]}" '
        'font-family="monospace" font-size="11" text-anchor="middle">',
        f'<text x="4" y="14" text-anchor="start" fill="currentColor">{_escaped(_title(layout))}</text>',
    ]
    for column in range(columns):
        x = left + column * width + width // 2
        parts.append(f'<text x="{x}" y="{top - 6}" fill="currentColor">{column}</text>')
    for row in range(rows):
        y = top + row * height
        name = _escaped(_row_name(layout, row))
        parts.append(f'<text x="{left // 2}" y="{y + 15}" fill="currentColor">{name}</text>')
        for column in range(columns):
            x, flat = left + column * width, row * pitch + column
            colour = _colour(layout, flat)
            parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{colour}" stroke="#666"/>')
            parts.append(f'<text x="{x + width // 2}" y="{y + 15}">{_cell(layout, flat)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def as_html(layout: LayoutMap) -> str:
    """Return a layout for notebooks: its picture, and what of a large one is shown."""
    rows, columns = _extents(layout)
    shown = min(rows, _MOST_ROWS), min(columns, _MOST_COLUMNS)
    picture = f'<div class="wide">{to_svg(layout, *shown)}</div>\n'
    if shown == (rows, columns):
        return markup.page(picture)
    return markup.page(picture, markup.paragraph(f"{shown[0]} of {rows} rows, {shown[1]} of {columns} columns"))


LayoutMap._repr_html_ = as_html  # type: ignore[method-assign, assignment]


def _extents(layout: LayoutMap) -> tuple[int, int]:
    columns = layout.shape[-1] if layout.shape else 1
    return prod(layout.shape) // columns, columns


def _title(layout: LayoutMap) -> str:
    copies = f", {layout.replicas} copies, the first is shown" if layout.replicas > 1 else ""
    note = f"  # {layout.note}" if layout.note else ""
    return f"{layout!r}  shape {layout.shape}{copies}{note}"


def _row_name(layout: LayoutMap, row: int) -> str:
    return ",".join(str(i) for i in unravel(row, layout.shape[:-1]))


def _cell(layout: LayoutMap, flat: int) -> str:
    position = layout.at(flat)
    if "memory" in position:
        return str(position["memory"])
    if "warp" in position:
        thread = f"{position['warp']}.{position.get('lane', 0)}"
    else:
        thread = str(position.get("thread", 0) + position.get("lane", 0))
    return f"{thread}:{position.get('register', 0)}"


def _colour(layout: LayoutMap, flat: int) -> str:
    position = layout.at(flat)
    if "memory" in position:
        number = int(position["memory"]) // 32
    else:
        number = int(position.get("thread", 0) + position.get("lane", 0) + 7 * position.get("warp", 0))
    # The golden angle puts neighbours far apart on the colour wheel.
    return f"hsl({number * 137 % 360},60%,82%)"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
