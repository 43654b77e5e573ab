"""Tables of Markdown pages as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes
    ----------
    section
        The heading above it.
    columns, rows
        Its cells as text.
    line
        The number of its first line, from 0.
    end
        The number of the line after its last one.
    """

    section: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    line: int
    end: int

    def column(self, name: str) -> tuple[str, ...]:
        """Return the cells of a column."""
        position = self.columns.index(name)
        return tuple(row[position] for row in self.rows)


def tables_of(markdown: str) -> Iterator[Table]:
    """Yield the tables of a page in order."""
    lines = markdown.splitlines()
    section, number = "", 0
    while number < len(lines):
        if lines[number].startswith("#"):
            section = lines[number].lstrip("# ")
        if not lines[number].startswith("|"):
            number += 1
            continue
        end = next((n for n in range(number, len(lines)) if not lines[n].startswith("|")), len(lines))
        cells = [_cells(line) for line in lines[number:end]]
        yield Table(section, cells[0], tuple(cells[2:]), number, end)
        number = end


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|"))
