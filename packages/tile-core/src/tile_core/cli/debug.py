"""``tile debug``: step through a kernel on the reference interpreter."""

from __future__ import annotations

import contextlib
from typing import Annotated, Any

import typer

from tile_core.cli.arguments import Arguments, File, read_arguments
from tile_core.cli.console import Verbose, console, show_error, table


def debug_file(
    file: File,
    arg: Arguments = None,
    command: Annotated[
        list[str] | None,
        typer.Option("--command", "-c", metavar="COMMAND", help="Execute a command; the session ends after the last."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=10**6, help="Seed of the random inputs.")] = 0,
    inputs: Annotated[
        str | None, typer.Option(metavar="FILE:NAME", help="A function that returns the inputs, or a tuple of them.")
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Step through a kernel on the reference interpreter, by the lines of its source.

    Commands come from --command, or from standard input; `help` lists them. The status is 1 if the program fails (it
    reads what was never written, races, or an assertion fails) or a command of --command is refused.
    """
    from tile_core.cli.inputs import make_inputs
    from tile_core.cli.source import find, named_value
    from tile_core.compiler import reference_kernel
    from tile_core.debugging.commands import Commands
    from tile_core.debugging.session import Quit
    from tile_core.errors import TileError
    from tile_core.ops.held_codes import held_codes

    found = find(file, read_arguments(arg), keep_rest=True)
    kernel = reference_kernel(found.program, found.out_idx)
    if not kernel.signature.out_idx:  # arrays that it only writes
        written = [n for n, p in enumerate(kernel.signature.params) if p.kind == "tensor" and p.access == "write"]
        with contextlib.suppress(TileError):  # their shapes may not follow from the others
            kernel = reference_kernel(found.program, written)
    if inputs is None:
        values = make_inputs(kernel.signature, found.rest or {}, seed, held_codes(found.program)).values
    else:
        given = named_value(inputs)
        given = given() if callable(given) else given
        values = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    commands = Commands(found.program, _Shown(), command or ())
    try:
        try:
            kernel.observe(commands.debugger, *values)
            commands.show.text("the program ended")
        except TileError as error:
            commands.after_error(error)
            raise typer.Exit(1) from None
    except Quit:
        pass
    if commands.failed or commands.debugger.mode == "ended":
        raise typer.Exit(1)


class _Shown:
    """Prints what commands show."""

    def text(self, text: str) -> None:
        """Print a text as it is."""
        console().print(text, markup=False, soft_wrap=True)

    def printed(self, text: str) -> None:
        """Print a text of ``T.print``, with its own end of line."""
        console().print(text, markup=False, soft_wrap=True, end="")

    def table(self, columns: list[str], rows: list[list[str]]) -> None:
        """Print a table."""
        console().print(table(columns, rows))

    def error(self, error: Any) -> None:
        """Print an error of the catalogue."""
        show_error(error)
