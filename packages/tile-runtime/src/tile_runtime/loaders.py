"""Runtimes that load artefacts, from the entry-point group ``tile.loaders``.

::

    [project.entry-points."tile.loaders"]
    toy = "tile_toy.loading:make"

The entry point's name is that of the backend which an artefact names. Its value is a function that is called with the
target's text and returns a ``RuntimeAdapter``, or raises an error of the catalogue. It imports no compiler. A loader
that also launches texts without a binary finds their compiler in the group ``tile.builders``: an object with the
functions of `TextBuilder`.

Wheels of kernels require the distribution of the loader, with its extra ``launch`` if it has one: what launches need.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any, Protocol

from tile_runtime.abi.adapter import Built, RuntimeAdapter
from tile_runtime.abi.kernel_text import KernelText
from tile_runtime.compat import distributions
from tile_runtime.errors.base import TileError
from tile_runtime.errors.interrupts import passed_on
from tile_runtime.errors.setup import RuntimeBroken

GROUP, BUILDERS = "tile.loaders", "tile.builders"
EXTRA = "launch"


class TextBuilder(Protocol):
    """The compiler of a backend's texts."""

    def code_of(self, kernel: KernelText, arch: str) -> bytes:
        """Return the machine code of a text for an architecture."""

    def version(self) -> str:
        """Return the compiler's version."""


@functools.cache
def loader(backend: str, target: str) -> RuntimeAdapter | None:
    """Return the installed runtime that loads artefacts of a target; ``None`` without one.

    Raises
    ------
    RuntimeBroken
        It cannot be imported, or is not a runtime.
    """
    entry = _entries(GROUP).get(backend)
    if entry is None:
        return None
    return make_adapter(entry, target)


def make_adapter(entry: EntryPoint, *given: Any) -> RuntimeAdapter:
    """Call the function of an entry point, which makes a runtime.

    Raises
    ------
    RuntimeBroken
        It cannot be imported, or does not make a runtime.
    """
    made = _made(entry, lambda make: make(*given))
    if not isinstance(made, RuntimeAdapter):
        raise RuntimeBroken(name=entry.name, reason=f"{entry.value} returned {type(made).__name__}, not a runtime")
    return made


@functools.cache
def builder(backend: str) -> TextBuilder | None:
    """Return the installed compiler of a backend's texts; ``None`` without one.

    Raises
    ------
    RuntimeBroken
        It cannot be imported.
    """
    entry = _entries(BUILDERS).get(backend)
    found: TextBuilder | None = None if entry is None else _made(entry, lambda module: module)
    return found


def requirement(backend: str) -> str:
    """Return the requirement for launches of a backend's kernels; empty without a loader."""
    entry = _entries(GROUP).get(backend)
    if entry is None or entry.dist is None:
        return ""
    extras = entry.dist.metadata.get_all("Provides-Extra") or ()
    return entry.dist.name + (f"[{EXTRA}]" if EXTRA in extras else "")


def _made(entry: EntryPoint, make: Callable[[Any], Any]) -> Any:
    try:
        return make(distributions.load_entry(entry))
    except (TileError, KeyboardInterrupt):
        raise
    except BaseException as error:
        passed_on(error)
        raise RuntimeBroken(name=entry.name, reason=f"{type(error).__name__}: {error}") from error


@functools.cache
def _entries(group: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in reversed(distributions.entry_points(group))}


def ask_adapter(adapter: RuntimeAdapter, method: str, *arguments: Any) -> Any:
    """Query a runtime, possibly third-party, and check the type of the answer.

    Raises
    ------
    RuntimeBroken
        It raised an error outside the catalogue, or answered with another type.
    """
    try:
        answer = getattr(adapter, method)(*arguments)
    except (TileError, KeyboardInterrupt):
        raise
    except BaseException as error:
        passed_on(error)
        if type(adapter).__module__.startswith(("tile_core.", "tile_runtime.")):
            raise
        reason = f"{method} raised {type(error).__name__}: {error}"
        raise RuntimeBroken(name=adapter.name, reason=reason) from error
    expected, holds = _ANSWERS[method]
    if not holds(answer):
        reason = f"{method} returned {repr(answer)[:80]}; expected {expected}"
        raise RuntimeBroken(name=adapter.name, reason=reason)
    return answer


_ANSWERS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "load": ("a function", callable),
    "exported": ("a KernelText or None", lambda a: a is None or isinstance(a, KernelText)),
    "toolchain": ("text", lambda a: isinstance(a, str)),
    "build": ("a Built or None", lambda a: a is None or isinstance(a, Built)),
    "refuses": ("text", lambda a: isinstance(a, str)),
}
