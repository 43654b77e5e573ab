"""``tile explain``: what the compiler chose, and why not something better."""

from __future__ import annotations

from tile_core.cli.arguments import Arguments, File, Options, TargetText, read_arguments, read_options
from tile_core.cli.console import AsJson, Verbose, console, print_json


def explain_file(
    file: File,
    target: TargetText = "auto",
    arg: Arguments = None,
    option: Options = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Print the chosen variant of each tile op and its rejection reasons, and the launch."""
    from tile_core.cli.source import find
    from tile_core.plugins.manager import installed
    from tile_core.reports import as_json as joined
    from tile_core.reports import explain_launches
    from tile_core.reports.report import show

    found = find(file, read_arguments(arg))
    options = read_options(option) or found.options_for(installed().resolve_target(target))
    launches = explain_launches(found.program, target, options)
    if as_json:
        print_json(joined(launches))
        return
    for facts in launches:
        show(facts, console())
