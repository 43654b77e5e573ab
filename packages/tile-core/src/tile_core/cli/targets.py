"""``tile targets``: which backends are installed."""

from __future__ import annotations

from typing import Annotated

import typer

from tile_core.cli.console import AsJson, Verbose, console, print_json, table

_COLUMNS = ("backend", "distribution", "version", "status", "targets", "reason")


def targets(
    load: Annotated[bool, typer.Option("--load", help="Load every backend, to see which are broken.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """List the installed backends. Imports none of them unless --load is given."""
    from tile_core.plugins.manager import installed

    found = installed().targets(load=load)
    if as_json:
        fields = ("name", "distribution", "version", "status", "reason", "remedy")
        lists = ("target_kinds", "architectures")
        print_json([{**{f: getattr(b, f) for f in fields}, **{f: list(getattr(b, f)) for f in lists}} for b in found])
        return
    rows = [
        (b.name, b.distribution, b.version, b.status, ", ".join(b.architectures or b.target_kinds), b.reason)
        for b in found
    ]
    # A column without content says nothing.
    filled = [n for n in range(len(_COLUMNS)) if any(row[n] for row in rows)]
    out = console()
    out.print(table([_COLUMNS[n] for n in filled], [[row[n] for n in filled] for row in rows]))
    if not load:
        out.print("Nothing was imported for this list; --load shows the targets of each, and which are broken.")
