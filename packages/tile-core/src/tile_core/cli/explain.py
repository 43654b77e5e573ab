"""``tile explain``: what the compiler chose, and why not something better."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from tile_core.cli.arguments import Arguments, File, Options, TargetText, read_arguments, read_options
from tile_core.cli.console import AsJson, Verbose, console, print_json, waiting

if TYPE_CHECKING:
    from tile_core.reports.facts import Facts


def explain_file(
    file: File,
    target: TargetText = "auto",
    arg: Arguments = None,
    option: Options = None,
    html: Annotated[
        Optional[Path],  # noqa: UP045 - typer evaluates it on Python 3.10
        typer.Option("--html", metavar="FILE", help="Write one page: source, schedule, shared memory, layouts."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Print all tables, such as layouts and times of passes.")
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Print the chosen variant of each tile op and its rejection reasons, and the launch."""
    from tile_core.cli.source import find
    from tile_core.plugins.manager import installed
    from tile_core.reports import as_json as joined
    from tile_core.reports import explain_launches
    from tile_core.reports.report import show

    found = find(file, read_arguments(arg))
    options = read_options(option) or found.options_for(installed().resolve_target(target))
    with waiting("compiling"):
        launches = explain_launches(found.program, target, options)
    if html is not None:
        write_page(html, launches)
    if as_json:
        print_json(joined(launches))
    if html is not None or as_json:
        return
    for facts in launches:
        show(facts, console(), full)


def write_page(path: Path, launches: Sequence[Facts]) -> None:
    """Write a report as a page of HTML."""
    from tile_core.reports.page import page_of
    from tile_core.runtime.files import write_result

    write_result(path, page_of(launches))
    typer.echo(f"{path}: {launches[0].kernel} for {launches[0].target}", err=True)
