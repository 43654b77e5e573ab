"""The arguments that several commands share."""

from __future__ import annotations

import itertools
from typing import Annotated, Optional

import typer

from tile_core.cli.completion import kernels, target_texts
from tile_core.pairs import pairs, value_of

_FILE = typer.Argument(metavar="FILE[:NAME]", help="A Python file, and the kernel in it.", autocompletion=kernels)
_TARGET_HELP = "auto, kind, kind:arch or kind:arch,key=value."
File = Annotated[str, _FILE]
Files = Annotated[list[str], _FILE]
TargetText = Annotated[str, typer.Option("--target", "-t", help=_TARGET_HELP, autocompletion=target_texts)]
RuntimeName = Annotated[
    Optional[str],  # noqa: UP045 - typer evaluates it on Python 3.10
    typer.Option("--runtime", help="Runtime of the target, or `emulator`."),
]
Reference = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="FILE:NAME", help="A function of the inputs that returns the right outputs."),
]
Allow = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(metavar="KIND", help="Accept `unwritten` or `nonfinite` elements of outputs."),
]
Arguments = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer evaluates it on Python 3.10
    typer.Option("--arg", "-a", metavar="NAME=VALUE", help="An argument of the function that makes the kernel."),
]
Options = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--option", metavar="NAME=VALUE", help="An option of the target's backend."),
]


def read_arguments(given: list[str] | None) -> dict[str, object]:
    """Read ``--arg``."""
    return pairs("--arg", given, "block_M=128")


def read_options(given: list[str] | None) -> dict[str, object] | None:
    """Read ``--option``."""
    return pairs("--option", given, "parallel=false") or None


def combinations(option: str, given: list[str] | None) -> list[dict[str, object]]:
    """Return all combinations of values of the form ``NAME=VALUE,VALUE``; one empty one for none."""
    values: dict[str, list[object]] = {}
    for name, value in pairs(option, given, "block_M=64,128").items():
        if isinstance(value, str):
            values[name] = [value_of(part.strip()) for part in value.split(",")]
        else:
            values[name] = list(value) if isinstance(value, (tuple, list)) else [value]
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]
