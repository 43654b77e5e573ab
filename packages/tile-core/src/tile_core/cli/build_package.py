"""``tile build-package``: a wheel of kernels for chosen shapes, targets and tilings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from tile_core.cli.arguments import Arguments, Options, read_arguments, read_options
from tile_core.cli.console import Verbose
from tile_core.pairs import pairs

if TYPE_CHECKING:
    from tile_core.wheels import PackagedBuild

_SHAPE = "M=512,N=512,K=m"


def build_package(
    files: Annotated[list[str], typer.Argument(metavar="FILE[:NAME]...", help="Python files, and kernels in them.")],
    name: Annotated[str, typer.Option("--name", "-n", help="Name of the package: my-kernels.")],
    shape: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer evaluates it on Python 3.10
        typer.Option(metavar="NAME=VALUE,...", help="Sizes to build for; a name as a value is any size. Repeatable."),
    ] = None,
    target: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--target", "-t", help="A target, the fastest first. Repeatable."),
    ] = None,
    arg: Arguments = None,
    option: Options = None,
    tilings: Annotated[bool, typer.Option(help="Choose the tile parameters of each shape and target.")] = False,
    out_idx: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(metavar="N", help="Position of the parameter that a call returns; -1 is the last."),
    ] = None,
    fallback: Annotated[str, typer.Option(metavar="MODULE:FUNCTION", help="Called for shapes not built.")] = "",
    version: Annotated[str, typer.Option(help="Version of the package.")] = "0.1.0",
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Folder of the wheel.")] = Path("dist"),
    verbose: Verbose = False,
) -> None:
    """Build a wheel of kernels that needs tile-runtime only: no compiler.

    It is built without a device. A call runs the build for its shapes; other shapes are refused, or go to the fallback.
    """
    from tile_core.wheels import KernelWheel

    arguments, options = read_arguments(arg), read_options(option)
    builds: list[PackagedBuild] = []
    for file in files:
        for sizes in [_sizes(text) for text in shape or [""]]:
            for one in target or ["cpu"]:
                builds.append(_build(file, {**arguments, **sizes}, one, options, tilings, out_idx))
    kernels = dict.fromkeys(build.kernel for build in builds)
    wheel = KernelWheel(name, version, builds, dict.fromkeys(kernels, fallback))
    path = wheel.write(output)
    typer.echo(f"{path}: {len(builds)} builds of {', '.join(kernels)}, {path.stat().st_size / 1000:.1f} kB")


def _build(
    file: str, given: dict[str, object], target: str, options: object, tilings: bool, out_idx: int | None
) -> PackagedBuild:
    from tile_core.cli.source import find, find_value
    from tile_core.plugins.manager import installed
    from tile_core.tiling.api import tilings as ranked
    from tile_core.wheels import PackagedBuild

    _, name, value = find_value(file)
    if tilings:
        given = {**given, **ranked(value, given, target=target, options=options, most=1)[0]}
    found = find(file, given)
    chosen = options or found.options_for(installed().resolve_target(target))
    outputs = found.out_idx if out_idx is None else out_idx
    return PackagedBuild(name, found.program, target, outputs, chosen)


def _sizes(text: str) -> dict[str, object]:
    """Return sizes, and symbols where a name stands for one."""
    from tile_core import language as T

    found = pairs("--shape", filter(None, text.split(",")), _SHAPE)
    return {name: T.dynamic(value) if isinstance(value, str) else value for name, value in found.items()}
