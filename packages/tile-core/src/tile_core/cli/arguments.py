"""The arguments that ``compile``, ``run`` and ``explain`` share."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from tile_core.pairs import pairs

File = Annotated[str, typer.Argument(metavar="FILE[:NAME]", help="A Python file, and the kernel in it.")]
TargetText = Annotated[str, typer.Option("--target", "-t", help="auto, kind, kind:arch or kind:arch,key=value.")]
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
