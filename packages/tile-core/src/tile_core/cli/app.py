"""The application: its commands, and what happens to the errors that they raise."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from tile_core import __version__
from tile_core.cli import bench, build_package, cache, debug, demo, doctor, explain, new, targets, tune, verify, why
from tile_core.cli import compile as compile_command
from tile_core.cli import run as run_command
from tile_core.cli.completion import words_of_bash
from tile_core.cli.console import only_results, show_error, show_warning, verbose
from tile_core.errors import InternalError, TileError
from tile_core.renamed_options import RenamedOption
from tile_runtime.knobs import override

app = typer.Typer(
    name="tile",
    help="tile: one kernel source, every target, right or refused.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)
app.command("targets")(targets.targets)
app.command("compile")(compile_command.compile_file)
app.command("build-package")(build_package.build_package)
app.command("run")(run_command.run_file)
app.command("verify")(verify.verify_file)
app.command("bench")(bench.bench_files)
app.command("debug")(debug.debug_file)
app.command("tune")(tune.tune_file)
app.command("explain")(explain.explain_file)
app.command("new")(new.new)
app.command("why")(why.why)
app.add_typer(cache.app)


def run(arguments: Sequence[str] | None = None, application: typer.Typer = app) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments
        What stands behind ``tile``; those of the process if not given.
    application
        The commands, if not those of ``tile``.

    Returns
    -------
    int
        0 if all went well; 1 if a command failed or found a defect; 2 for a command line that is wrong.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    with warnings.catch_warnings(), only_results(given), words_of_bash(os.environ):
        warnings.showwarning = _warned
        warnings.simplefilter("always", RenamedOption)
        try:
            with override(full_traceback=True) if verbose(given) else contextlib.nullcontext():
                return int(application(given, prog_name=application.info.name or None, standalone_mode=False) or 0)
        except TileError as error:
            return _failed(error, verbose(given))
        except Exception as error:
            return _wrong_usage(error, given)


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=lambda on: _version(on), is_eager=True)] = False,
) -> None:
    """Compile, check and run tile kernels. One kernel source, every target, right or refused."""


def _version(on: bool) -> None:
    if on:
        typer.echo(f"tile {__version__}")
        raise typer.Exit


def _wrong_usage(error: Exception, given: Sequence[str]) -> int:
    """Leave syntax errors to the command-line library; anything else is our defect."""
    if hasattr(error, "exit_code") and hasattr(error, "format_message"):
        _show_usage(error)
        return int(error.exit_code)
    if type(error).__name__ == "Abort":
        return 130
    shown = f"{type(error).__name__}: {error}"
    defect = InternalError(stage="the command line", detail=shown)
    defect.__cause__ = error
    return _failed(defect, verbose(given))


def _show_usage(error: Any) -> None:
    try:
        from typer.rich_utils import rich_format_error
    except ImportError:
        error.show()
    else:
        rich_format_error(error)


def _failed(error: TileError, traceback: bool) -> int:
    if traceback:
        import traceback as printer

        printer.print_exception(error)
    # Where Python's own error is the cause, its traceback has more details than the message.
    show_error(error, hint=not traceback and _has_cause(error))
    return 1


def _has_cause(error: TileError) -> bool:
    return error.__cause__ is not None and not isinstance(error.__cause__, (OSError, SyntaxError, TileError))


def _warned(message: Any, *details: Any, **more: Any) -> None:
    show_warning(str(message))
