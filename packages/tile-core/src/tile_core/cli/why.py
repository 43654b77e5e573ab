"""``tile why``: the reason for an error code, with a wrong and a right example."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Annotated

import typer

from tile_core.cli.completion import codes
from tile_core.cli.console import AsJson, Verbose, console, print_json

if TYPE_CHECKING:
    from tile_core.errors import TileError


def why(
    code: Annotated[str, typer.Argument(metavar="CODE", help="For example K106.", autocompletion=codes)],
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Explain an error code, with a wrong and a right example."""
    from tile_core.errors.catalogue import entry_of

    entry = entry_of(code, _of_backends)
    if as_json:
        print_json(entry.to_json())
        return
    from rich.text import Text

    out = console()
    out.print(Text.assemble((f"{entry.code} {entry.name}", "bold"), f": {entry.summary}"))
    for title, text in (("message", entry.message), ("what to do", entry.remedy), ("reason", entry.reason)):
        if text:
            out.print(Text.assemble((title, "cyan"), f": {text}"))
    if entry.setting:
        out.print(Text(f"\n{entry.setting}", style="dim"))
    for title, style, lines in (("wrong", "red", entry.wrong), ("right", "green", entry.right)):
        if lines:
            out.print(Text(f"\n{title}", style=style))
            out.print(Text("\n".join(f"    {line}" for line in lines.splitlines())), soft_wrap=True)
    out.print(Text(f"\n{entry.page}", style="blue"), soft_wrap=True)


def _of_backends() -> dict[str, type[TileError]]:
    """Return the errors of packages that provide backends, by code."""
    from tile_core.errors.catalogue import classes
    from tile_core.plugins.discovery import discover

    found: dict[str, type[TileError]] = {}
    for offers in discover().values():
        package = offers[0].entry.value.partition(".")[0]
        for name in (package, f"{package}_runtime"):
            if importlib.util.find_spec(name) is not None and importlib.util.find_spec(f"{name}.errors") is not None:
                module = importlib.import_module(f"{name}.errors")
                found.update({error.code: error for error in classes(module)})
    return found
