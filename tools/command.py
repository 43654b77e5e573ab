"""Commands of the tools, run like those of ``tile``: errors of the catalogue, results alone on standard output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import typer

from tile_core.cli.app import run
from tile_core.cli.console import only_results


def run_command(function: Callable[..., Any], arguments: Sequence[str] | None = None) -> int:
    """Run a function as a command line and return its exit status.

    Parameters
    ----------
    function
        The command, whose parameters are its options.
    arguments
        Those of the process if not given.
    """
    application = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    application.command()(function)
    with only_results(["--json"]):
        return run(arguments, application)
