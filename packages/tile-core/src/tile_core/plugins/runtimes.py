"""Runtimes that serve targets of any backend: found by the entry-point group ``tile.runtimes``, used by name only.

::

    [project.entry-points."tile.runtimes"]
    toy = "tile_toy.runtime:make"

The entry point's name is the runtime's name, as in ``tile.compile(..., runtime="toy")``. Its value is a function that
is called as ``make(target, dialect)``, with the target and its backend's answer to ``tile_emulation`` (a ``Dialect`` or
``None``), whenever a kernel asks for the runtime and the target's own backend has none of that name. It returns a
``RuntimeAdapter``, whose ``load`` is given what the backend's own adapters are given, or raises an error of the
catalogue if it cannot serve the target. Nothing is imported earlier.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

from tile_core.abi.adapter import Built, RuntimeAdapter
from tile_core.compat.known_packages import RUNTIMES
from tile_core.compat.types import Expr
from tile_core.errors.base import TileError
from tile_core.errors.setup import NoRuntime, RuntimeBroken, UnknownRuntime

if TYPE_CHECKING:
    from tile_core.plugins.manager import Plugins
    from tile_core.target import Target

GROUP = "tile.runtimes"


def find_runtime(plugins: Plugins, target: Target, name: str | None = None) -> RuntimeAdapter:
    """Return the target's own runtime of a name (its first if there is none), or one that serves every target.

    Raises
    ------
    NoRuntime, UnknownRuntime, RuntimeBroken
        There is none.
    """
    adapters: tuple[RuntimeAdapter, ...] = plugins.runtimes(target)
    for adapter in adapters:
        if name in (None, adapter.name):
            return adapter
    others = {} if name is None else offered()
    if name in others:
        return make_runtime(others[name], target, plugins)
    if not adapters and name not in RUNTIMES:
        raise NoRuntime(target=target.text)
    missing = [f"{runtime} (pip install {package})" for runtime, package in RUNTIMES.items() if runtime not in others]
    known = ", ".join([*(a.name for a in adapters), *others, *missing])
    raise UnknownRuntime(target=target.text, found=name, known=known)


def ask_adapter(adapter: RuntimeAdapter, method: str, *arguments: Expr) -> Any:
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
        if type(adapter).__module__.startswith("tile_core."):
            raise
        reason = f"{method} raised {type(error).__name__}: {error}"
        raise RuntimeBroken(name=adapter.name, reason=reason) from error
    expected, holds = _ANSWERS[method]
    if not holds(answer):
        reason = f"{method} returned {repr(answer)[:80]}; expected {expected}"
        raise RuntimeBroken(name=adapter.name, reason=reason)
    return answer


_ANSWERS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "load": ("a function", callable),
    "toolchain": ("text", lambda a: isinstance(a, str)),
    "build": ("a Built or None", lambda a: a is None or isinstance(a, Built)),
    "refuses": ("text", lambda a: isinstance(a, str)),
}


def offered(entries: Iterable[EntryPoint] | None = None) -> dict[str, EntryPoint]:
    """Return the runtimes of the installed distributions by name; of two with one name the first on the path wins.

    Parameters
    ----------
    entries
        The entry points to use; those of the installed distributions if not given.
    """
    found: dict[str, EntryPoint] = {}
    for entry in importlib.metadata.entry_points(group=GROUP) if entries is None else entries:
        found.setdefault(entry.name, entry)
    return dict(sorted(found.items()))


def make_runtime(entry: EntryPoint, target: Target, plugins: Plugins) -> RuntimeAdapter:
    """Make the runtime of an entry point for a target.

    Raises
    ------
    RuntimeBroken
        It cannot be imported, or does not make a runtime.
    TileError
        It does not serve the target.
    """
    dialect = plugins.emulation(target)
    try:
        adapter = entry.load()(target, dialect)
    except (TileError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise RuntimeBroken(name=entry.name, reason=f"{type(error).__name__}: {error}") from error
    if not isinstance(adapter, RuntimeAdapter):
        raise RuntimeBroken(name=entry.name, reason=f"{entry.value} returned {type(adapter).__name__}, no runtime")
    return adapter
