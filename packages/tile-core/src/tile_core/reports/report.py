"""A report as text, and as HTML in notebooks."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tile_core.reports.built import building
from tile_core.reports.facts import Facts, estimate_of, gather
from tile_core.reports.html import as_html
from tile_core.reports.parts import RIGHT, Line, Section, parts_of
from tile_core.reports.tables import folded, table
from tile_core.reports.timing import timed

if TYPE_CHECKING:
    from rich.console import Console

    from tile_core.context import Context
    from tile_core.passes.spine import Plan

#: Columns of a report that is made as a string.
WIDTH = 120
#: Tables that `show` leaves out of a short report.
DETAILS = frozenset(
    {
        "fragments in registers", "fragments that are computed where they are read", "layouts of shared memory",
        "vector loops", "passes", "building",
    }
)  # fmt: skip


class ReportText(str):
    """The report of a program as text; a notebook shows it as tables.

    Attributes
    ----------
    facts
        The facts of each launch.
    """

    facts: tuple[Facts, ...]

    def __new__(cls, facts: Sequence[Facts]) -> ReportText:
        """Make the text of some facts."""
        made = super().__new__(cls, "\n\n".join(map(as_text, facts)))
        made.facts = tuple(facts)
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.facts,)

    def html_page(self) -> str:
        """Return the report as one page of HTML, with pictures; it loads nothing."""
        from tile_core.reports.page import page_of

        return page_of(self.facts)

    def _repr_html_(self) -> str:
        return as_html(self.facts)


def facts_of(plan: Plan, ctx: Context) -> Facts:
    """Return the facts of a compiled plan.

    Parameters
    ----------
    plan
        A fully lowered plan; the passes run again if they were not timed.
    ctx
        The compilation's context.
    """
    from tile_core.plugins.manager import installed

    plugins = installed()
    if not plan.seconds:
        plan = timed(plan.written or plan.program, ctx, plugins)
    return gather(plan, ctx, building(plan.lowered, ctx, plugins), estimate_of(plan, ctx, plugins))


def as_text(facts: Facts) -> str:
    """Return the report of some facts as text without colours."""
    return "\n".join(line for text, _ in lines_of(facts, WIDTH) for line in folded(text, WIDTH))


def show(facts: Facts, console: Console, full: bool = True) -> None:
    """Print the report of some facts.

    Parameters
    ----------
    facts
        The facts.
    console
        The output; its width decides the layout of tables.
    full
        Whether to print all tables; otherwise the last line names the others.
    """
    from rich.text import Text

    parts = list(parts_of(facts))
    left = [] if full else [p.title for p in parts if isinstance(p, Section) and p.title in DETAILS]
    for text, style in _lines((p for p in parts if not isinstance(p, Section) or p.title not in left), console.width):
        console.print(Text(text, style=style))
    if left:
        console.print(Text(f"\n--full also prints: {', '.join(left)}", style="dim"))


def lines_of(facts: Facts, width: int) -> Iterator[Line]:
    """Yield the lines of the report of some facts, each with its style.

    Parameters
    ----------
    width
        The width of tables.
    """
    yield from _lines(parts_of(facts), width)


def _lines(parts: Iterable[Line | Section], width: int) -> Iterator[Line]:
    for part in parts:
        if isinstance(part, Section):
            yield "", ""
            yield part.title, "bold"
            styles = itertools.chain(("bold",), itertools.repeat(""))
            yield from zip(table(part.columns, part.rows, width, RIGHT), styles, strict=False)
        else:
            yield part
