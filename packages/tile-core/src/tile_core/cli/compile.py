"""``tile compile``: the text that a target gets, without building or running it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from tile_core.cli.arguments import Arguments, File, Options, TargetText, read_arguments, read_options
from tile_core.cli.console import AsJson, Verbose, print_text
from tile_core.errors.cli import CannotWrite

if TYPE_CHECKING:
    from tile_core.abi.signature import Signature
    from tile_core.ir.program import Program
    from tile_core.passes.spine import Plan
    from tile_core.runtime.launches import CompiledLaunch


def compile_file(
    file: File,
    target: TargetText = "auto",
    arg: Arguments = None,
    option: Options = None,
    dump: Annotated[
        Optional[Path],  # noqa: UP045 - typer evaluates it on Python 3.10
        typer.Option("--dump", metavar="DIR", help="Write the program after each pass into this folder."),
    ] = None,
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--output", "-o", metavar="FILE", help="Write the text to a file."),
    ] = None,
    export: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--export", metavar="FILE", help="Write a kernel that tile.load loads, built if possible."),
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Compile a kernel and print the emitted text (or the lowered program without one).

    Needs neither the device nor its toolchain. With --export the toolchain is used if it is there.
    """
    from tile_core.cli.source import find
    from tile_core.compiler import lower, signature_of, source_text
    from tile_core.plugins.contexts import make_context
    from tile_core.plugins.manager import installed
    from tile_core.runtime.files import write_named

    plugins = installed()
    found = find(file, read_arguments(arg))
    options = read_options(option) or found.options_for(plugins.resolve_target(target))
    ctx = make_context(target, options, plugins=plugins)
    signature = signature_of(found.program, found.out_idx)
    programs = found.program.stages
    folders = [dump and dump / f"launch{n}" if len(programs) > 1 else dump for n in range(1, len(programs) + 1)]
    plans = [lower(one, ctx, plugins, folder) for one, folder in zip(programs, folders, strict=True)]
    if export is not None:
        from tile_core.runtime.export import write_artefact
        from tile_core.runtime.launches import hidden_of

        stages = _stages(programs, plans, signature)
        write_artefact(export, signature, stages, hidden_of(stages), ctx.target, plugins)
        typer.echo(f"{export}: {signature} for {ctx.target.text}", err=True)
        if output is None and not as_json:
            return
    text = "\n\n".join(map(source_text, plans))
    if as_json:
        text = _json(signature.to_json(), ctx.target.text, text)
    if output is None:
        print_text(text)
        return
    try:
        write_named(output, text + "\n")
    except OSError as error:
        raise CannotWrite(file=output, reason=error.strerror or str(error)) from error
    typer.echo(f"{output}: {signature} for {ctx.target.text}", err=True)


def _stages(programs: Sequence[Program], plans: Sequence[Plan], signature: Signature) -> list[CompiledLaunch]:
    """Return the launches of a kernel as they are exported."""
    from tile_core.compiler import signature_of
    from tile_core.runtime.launches import CompiledLaunch

    made = []
    for one, plan in zip(programs, plans, strict=True):
        own = signature_of(one) if len(programs) > 1 else signature
        made.append(CompiledLaunch(one, own, plan.lowered, plan.hidden, functools.partial(_same, plan)))
    return made


def _same(plan: Plan) -> Plan:
    return plan


def _json(signature: dict[str, object], target: str, text: str) -> str:
    import json

    return json.dumps({"target": target, "signature": signature, "text": text}, indent=2)
