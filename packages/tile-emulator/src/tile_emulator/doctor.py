"""The compiler of the emulator, for ``tile doctor``."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.cli.checks import Check
from tile_core.errors import TileError
from tile_emulator.compilers import find_compiler

NAME = "emulator: compiler"


def checks() -> Iterator[Check]:
    """Yield the check; the entry point of the group ``tile.checks``."""
    try:
        found = find_compiler()
    except TileError as error:
        yield Check(NAME, "missing", error.message, error.help)
        return
    if found.repairs:
        yield Check(NAME, "OK", f"{found}: right with {' '.join(found.repairs)}, without which it miscompiles integers")
    else:
        yield Check(NAME, "OK", f"{found}: compiles integers and floats as kernels compute them")
