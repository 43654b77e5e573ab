"""``tile compile``: the text that a target gets, without building or running it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from tile_core.cli.arguments import Arguments, File, Options, TargetText, read_arguments, read_options
from tile_core.cli.console import AsJson, Verbose, print_text
from tile_core.runtime.files import write_result

if TYPE_CHECKING:
    from tile_core.emit.dialect import Dialect


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
        typer.Option("--output", "-o", metavar="FILE", help="Write the text to a file, or numbered files."),
    ] = None,
    export: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--export", metavar="FILE", help="Write a kernel that tile.load loads, built if possible."),
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Compile a kernel and print the emitted text of each launch.

    Without a text it prints the lowered program. Needs neither the device nor its toolchain, whose rules are checked.
    With --export the toolchain is used if it is there.
    """
    from tile_core.cli.source import find
    from tile_core.compiler import lower, signature_of, source_text
    from tile_core.plugins.contexts import make_context
    from tile_core.plugins.manager import installed

    plugins = installed()
    found = find(file, read_arguments(arg))
    options = read_options(option) or found.options_for(plugins.resolve_target(target))
    ctx = make_context(target, options, plugins=plugins)
    signature = signature_of(found.program, found.out_idx)
    programs = found.program.stages
    folders = [dump and dump / f"launch{n}" if len(programs) > 1 else dump for n in range(1, len(programs) + 1)]
    plans = [lower(one, ctx, plugins, folder) for one, folder in zip(programs, folders, strict=True)]
    if export is not None:
        from tile_core.compiler import compiled_launches
        from tile_core.runtime.export import write_artefact

        write_artefact(export, signature, compiled_launches(programs, plans, signature), ctx.target, plugins)
        typer.echo(f"{export}: {signature} for {ctx.target.text}", err=True)
        if output is None and not as_json:
            return
    texts = list(map(source_text, plans))
    if as_json:
        texts = [_json(signature.to_json(), ctx.target.text, texts)]
    for number, text in enumerate(texts, 1):
        launch = f"launch {number} of {len(texts)}: " if len(texts) > 1 else ""
        if output is None:
            if launch:
                typer.echo(f"{launch}{programs[number - 1].name}", err=True)
            print_text(text)
        else:
            file_of = output.with_suffix(f".{number}{output.suffix}") if launch else output
            write_result(file_of, text + "\n")
            typer.echo(f"{file_of}: {launch}{signature} for {ctx.target.text}", err=True)
    check_texts(plans, plugins.emulation(ctx.target))


def check_texts(plans: Sequence[Any], dialect: Dialect | None) -> None:
    """Refuse texts that break a rule of the device's compiler."""
    from tile_core.abi.kernel_text import KernelText

    for made in (plan.lowered for plan in plans):
        if dialect is not None and isinstance(made, KernelText):
            dialect.check(made.text, made.facts)


def _json(signature: dict[str, object], target: str, texts: Sequence[str]) -> str:
    import json

    whole = "\n\n".join(texts)
    return json.dumps({"target": target, "signature": signature, "text": whole, "texts": texts}, indent=2)
