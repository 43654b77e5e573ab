"""Output common to all commands: tables, errors, and shared options."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from tile_core.errors import TileError

Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show the traceback of an error.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

#: Commands whose output is for programs, with or without ``--json``.
_FOR_PROGRAMS = frozenset({"compile"})

#: Where results go while everything else that is printed goes to standard error.
_results: list[TextIO] = []

#: Columns of output that goes to a file or pipe: rows of tables should stay whole there.
PIPE_WIDTH = 140

#: Seconds of work before a spinner appears.
SPINNER_SECONDS = 2.0


@contextlib.contextmanager
def only_results(arguments: Sequence[str]) -> Iterator[None]:
    """Keep prints of others, such as plugins at import, out of machine-readable output.

    Parameters
    ----------
    arguments
        The command line, whose options select output for programs.
    """
    if "--json" not in arguments and not _FOR_PROGRAMS.intersection(arguments[:1]):
        yield
        return
    _results.append(sys.stdout)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        _results.pop()


def console(stderr: bool = False) -> Console:
    """The console of standard output or error, with colours only on a terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    # In a notebook too, text goes to the stream: rich would make an output of each line.
    return Console(stderr=stderr, width=width, highlight=False, soft_wrap=False, force_jupyter=False)


@contextlib.contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show a spinner on the terminal while something takes longer than two seconds."""
    shown = console(stderr=True)
    if not shown.is_terminal:
        yield
        return
    status = shown.status(text)
    timer = threading.Timer(SPINNER_SECONDS, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    print_text(json.dumps(value, indent=2))


def print_text(text: str) -> None:
    """Print text verbatim: no markup, no wrapping."""
    typer.echo(text, file=_results[-1] if _results else None)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> Any:
    """A table of plain texts, without markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(title=title or None, box=box.SIMPLE, title_justify="left", pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    return made


def show_error(error: TileError, hint: bool = False) -> None:
    """Print an error of the catalogue: code, message, the user's line, and what to do.

    Parameters
    ----------
    error
        The error.
    hint
        Mention that ``--verbose`` shows more.
    """
    from rich.text import Text

    text = Text()
    text.append(f"error[{error.code}]", style="bold red")
    text.append(f": {error.message}\n", style="bold")
    if error.where is not None:
        number = str(error.where.line)
        margin = " " * len(number)
        text.append(f"{margin}--> ", style="blue").append(f"{error.where}\n")
        if error.where.source:
            text.append(f"{margin} |\n{number} | ", style="blue").append(f"{error.where.source}\n")
            text.append(f"{margin} |\n", style="blue")
    if error.help:
        text.append("  = help", style="cyan").append(f": {error.help}\n")
    text.append("  = more", style="cyan").append(f": tile why {error.code}\n")
    if hint:
        text.append("  = note", style="cyan").append(": --verbose shows the traceback\n")
    # Paths must stay whole, so that a terminal makes links of them: no wrapping.
    console(stderr=True).print(text, end="", soft_wrap=True)


def show_warning(message: str) -> None:
    """Print a warning on standard error."""
    from rich.text import Text

    console(stderr=True).print(Text.assemble(("warning", "bold yellow"), f": {message}"), soft_wrap=True)


def verbose(arguments: Sequence[str]) -> bool:
    """Whether a command line requests tracebacks, by its text: it may fail before parsing."""
    return "--verbose" in arguments or "-v" in arguments
