"""``tile cache``: the cache on disk."""

from __future__ import annotations

import time
from typing import Annotated, Any, Optional

import typer

from tile_core.cli.console import AsJson, Verbose, console, print_json, print_text, table

#: Kernels that have a line of their own in a summary.
_SHOWN = 20

app = typer.Typer(
    name="cache",
    help="Compiled kernels on disk: list, prune, clear, path.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command("list")
def list_entries(
    every: Annotated[bool, typer.Option("--all", help="One line for each file, instead of a summary.")] = False,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """List the kernels of the cache, most recently used first, and its other content."""
    from tile_core.runtime import cache

    found = [_described(entry) for entry in reversed(cache.entries())]
    if as_json:
        print_json(found)
        return
    rows = [
        (e["kind"], e["kernel"], e["target"], size_text(e["bytes"]), _age_text(time.time() - e["used"]), e["key"][:12])
        for e in (found if every else [e for e in found if e["kernel"]][:_SHOWN])
    ]
    rest = {} if every else _rest(found)
    rows += [(kind, f"{len(es)} files", "", *_totals(es), "") for kind, es in rest.items()]
    out = console()
    if rows:
        out.print(table(("kind", "kernel", "target", "size", "used", "key"), rows))
    total = size_text(sum(e["bytes"] for e in found))
    out.print(f"{len(found)} files, {total}, in {cache.root()}", markup=False, soft_wrap=True)


@app.command("prune")
def prune(
    max_mb: Annotated[
        Optional[int],  # noqa: UP045 - typer evaluates it on Python 3.10
        typer.Option("--max-mb", min=0, help="Megabytes to leave; by default TILE_CACHE_MAX_MB."),
    ] = None,
    days: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option("--days", min=0, help="Remove files not used for this number of days."),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Remove the least recently used files, until the rest is small enough."""
    from tile_core.runtime import cache
    from tile_runtime import knobs

    most = knobs.current().cache_max_mb if max_mb is None else max_mb
    _report(cache.prune(most << 20, None if days is None else days * 86400.0))


@app.command("clear")
def clear(verbose: Verbose = False) -> None:
    """Remove all files of the cache."""
    from tile_core.runtime import cache

    _report(cache.clear())


@app.command("path")
def path(verbose: Verbose = False) -> None:
    """Print the folder of the cache. It may not exist yet."""
    from tile_core.runtime import cache

    print_text(str(cache.root()))


def size_text(size: int) -> str:
    """Return a number of bytes as people read it."""
    for power, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if size >= 1024**power:
            return f"{size / 1024**power:.1f} {unit}"
    return f"{size} bytes"


def _described(entry: Any) -> dict[str, Any]:
    from tile_core.errors import TileError
    from tile_core.runtime import cache
    from tile_runtime.files.artefact import from_bytes

    found = {"kind": entry.kind, "key": entry.path.stem, "bytes": entry.bytes, "used": entry.used}
    found |= {"path": str(entry.path), "kernel": "", "target": ""}
    if entry.kind == cache.KERNELS:
        try:
            artefact = from_bytes(entry.path.read_bytes(), entry.path)
            found |= {"kernel": str(artefact.signature), "target": artefact.target}
        except (OSError, TileError):
            found["kernel"] = "damaged"
    return found


def _rest(found: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return a summary by kind of unnamed files and of kernels not used for long."""
    named = [e for e in found if e["kernel"]]
    rest: dict[str, list[dict[str, Any]]] = {}
    for entry in [*named[_SHOWN:], *(e for e in found if not e["kernel"])]:
        rest.setdefault(entry["kind"], []).append(entry)
    return rest


def _totals(entries: list[dict[str, Any]]) -> tuple[str, str]:
    """Return the size of files and when one was used last."""
    return size_text(sum(e["bytes"] for e in entries)), _age_text(time.time() - max(e["used"] for e in entries))


def _age_text(seconds: float) -> str:
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def _report(removed: Any) -> None:
    total = size_text(sum(entry.bytes for entry in removed))
    typer.echo(f"removed {len(removed)} file{'' if len(removed) == 1 else 's'}, {total}")
