"""``tile doctor``: check this machine, and print a remedy for each problem."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from tile_core.cli.checks import Check, core_checks, settings
from tile_core.cli.console import AsJson, Verbose, console, print_json
from tile_core.cli.trials import trials

_STYLE = {"OK": "green", "missing": "bold red", "note": "yellow"}


def doctor(
    device: Annotated[
        bool, typer.Option("--device", help="Also use the toolchains and run kernels on the devices that are here.")
    ] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Check versions, processor, a kernel, backends and settings. Exit code 1 if broken."""
    checks: list[Check] = []
    if as_json:
        checks = list(all_checks(device))
        print_json([vars(c) for c in checks])
    else:
        running = all_checks(device)
        while (check := _next(running)) is not None:
            checks.append(check)
            _show(check)
    broken = [c.name for c in checks if c.status == "missing"]
    if not as_json:
        last = f"broken: {', '.join(broken)}" if broken else "everything that was looked for is there"
        console().print(f"\n{last}", markup=False, style="bold red" if broken else "bold green")
    if broken:
        raise typer.Exit(1)


def all_checks(device: bool = False) -> Iterator[Check]:
    """Yield the outcome of every check that earlier failures do not rule out."""
    if (yield from core_checks()):
        yield from trials(device=True) if device else trials()
        yield from settings()


def _next(running: Iterator[Check]) -> Check | None:
    with console(stderr=True).status("checking"):
        return next(running, None)


def _show(check: Check) -> None:
    from rich.table import Table
    from rich.text import Text

    line: Any = Table.grid(padding=(0, 2))
    line.add_column(width=8)
    line.add_column(width=18)
    line.add_column(overflow="fold")
    line.add_row(Text(check.status, style=_STYLE[check.status]), Text(check.name), Text(check.detail))
    if check.remedy:
        line.add_row("", "", Text(f"= help: {check.remedy}", style="cyan"))
    console().print(line)
