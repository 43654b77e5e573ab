"""Completion in shells: the kernels of a file, and targets.

A shell that splits words at colons (bash) replaces only the part behind the last one, so proposals for it begin there.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import sys
from collections.abc import Iterator, MutableMapping
from pathlib import Path

_REQUEST = "_TILE_COMPLETE"
_BASH = "complete_bash"


def kernels(incomplete: str) -> list[str]:
    """Propose kernels of a Python file behind ``FILE:``, and files in front of it."""
    file, colon, begun = incomplete.rpartition(":")
    if colon and Path(file).is_file():
        return [f"{file}:{name}" for name in _names(Path(file)) if name.startswith(begun)]
    folder, prefix = os.path.split(incomplete)
    try:
        found = sorted(Path(folder or ".").iterdir())
    except OSError:
        return []
    files = (p for p in found if p.name.startswith(prefix) and (prefix.startswith(".") or not p.name.startswith(".")))
    shown = (
        os.path.join(folder, p.name) + ("/" if p.is_dir() else "") for p in files if p.is_dir() or p.suffix == ".py"
    )
    return list(shown)


def target_texts(incomplete: str) -> list[str]:
    """Propose the kinds of targets, and behind ``kind:`` the architectures of its backend."""
    from tile_core.errors import TileError
    from tile_core.plugins.manager import installed

    plugins = installed()
    kind, colon, begun = incomplete.partition(":")
    if not colon:
        kinds = ("auto", *(name for name in plugins.all_names() if "." not in name))
        return [name for name in kinds if name.startswith(kind)]
    try:
        known = plugins.info(kind, load=True).architectures if kind in plugins.all_names() else ()
    except TileError:
        known = ()
    behind = (name.partition(":")[2] or name for name in known)
    return [f"{kind}:{name}" for name in behind if name.startswith(begun)]


@contextlib.contextmanager
def words_of_bash(environment: MutableMapping[str, str]) -> Iterator[None]:
    """Join the words that bash split at colons, and propose what follows the last colon."""
    if environment.get(_REQUEST) != _BASH:
        yield
        return
    prefix = join_words(environment)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            yield
    finally:
        sys.stdout.write("".join(line.removeprefix(prefix) for line in printed.getvalue().splitlines(keepends=True)))


def join_words(environment: MutableMapping[str, str]) -> str:
    """Join words at colons, and return the part of the current one that bash keeps."""
    words, position = environment.get("COMP_WORDS", "").split(), int(environment.get("COMP_CWORD", "0"))
    joined: list[str] = []
    at = position
    for n, word in enumerate([*words, *[""] * (position + 1 - len(words))]):
        if joined and (word.startswith(":") or joined[-1].endswith(":")):
            joined[-1] += word
            at -= n <= position
        else:
            joined.append(word)
    environment["COMP_WORDS"], environment["COMP_CWORD"] = " ".join(joined), str(at)
    current = joined[at] if at < len(joined) else ""
    return current[: current.rfind(":") + 1]


def _names(path: Path) -> list[str]:
    from tile_core.cli.source import kernel_functions

    try:
        return kernel_functions(ast.parse(path.read_bytes()))
    except (OSError, SyntaxError, ValueError):
        return []


def codes(incomplete: str) -> list[str]:
    """Propose codes of errors."""
    from tile_core.errors.catalogue import entries

    return [code for code in entries() if code.startswith(incomplete.upper())]
