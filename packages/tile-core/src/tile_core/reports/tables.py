"""Text in lines and columns of a given width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_GAP = "   "


def folded(text: str, width: int) -> list[str]:
    """Return the lines of a text, broken at spaces; longer words are broken anywhere."""
    if len(text) <= width and "\n" not in text:
        return [text]
    found: list[str] = []
    for paragraph in text.split("\n"):
        line, *words = paragraph.split(" ")
        for word in words:
            if len(line) + 1 + len(word) > width:
                found += _broken(line, width)
                line = word
            else:
                line = f"{line} {word}"
        found += _broken(line, width)
    return found


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int, right: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a table, whose widest columns are folded.

    Parameters
    ----------
    columns, rows
        Names of columns, and cells.
    width
        Columns of the output.
    right
        Names of columns whose cells are aligned to the right.
    """
    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    while excess > 0 and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
        excess -= 1
    cells = [[folded(cell, size) for cell, size in zip(row, widths, strict=True)] for row in (columns, *rows)]
    widths = [max(len(line) for row in cells for line in row[at]) for at in range(len(widths))]
    for number, row in enumerate(cells):
        for at in range(max(map(len, row))):
            line = (cell[at] if at < len(cell) else "" for cell in row)
            aligned = zip(line, columns, widths, strict=True)
            yield _GAP.join(t.rjust(size) if name in right else t.ljust(size) for t, name, size in aligned).rstrip()
        if number == 0:
            yield "─" * (sum(widths) + len(_GAP) * (len(widths) - 1))


def _broken(line: str, width: int) -> list[str]:
    return [line[at : at + width] for at in range(0, len(line), width)] or [""]
