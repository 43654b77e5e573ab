"""Runtimes for targets of any backend, from the entry-point group ``tile.runtimes``.

::

    [project.entry-points."tile.runtimes"]
    toy = "tile_toy.runtime:make"

The entry point's name is the runtime's name, as in ``tile.compile(..., runtime="toy")``. Its value is a function that
is called as ``make(target, dialect)``, with the target and its backend's answer to ``tile_emulation`` (a ``Dialect`` or
``None``), whenever a kernel asks for the runtime and the target's own backend has none of that name. It returns a
``RuntimeAdapter``, whose ``load`` is given what the backend's own adapters are given, or raises an error of the
catalogue if it cannot serve the target. Nothing is imported earlier; only ``tile doctor`` makes one for the built-in
target, to see whether it works.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING

from tile_core.abi.adapter import RuntimeAdapter
from tile_core.compat.known_packages import RUNTIMES
from tile_core.errors.plugins import DuplicateBackend
from tile_core.errors.setup import NoRuntime, UnknownRuntime
from tile_core.plugins.versions import check_in_step
from tile_runtime.compat import distributions
from tile_runtime.loaders import make_adapter

if TYPE_CHECKING:
    from tile_core.plugins.manager import Plugins
    from tile_core.target import Target

GROUP = "tile.runtimes"


def find_runtime(plugins: Plugins, target: Target, name: str | None = None) -> RuntimeAdapter:
    """Return the target's own runtime of a name, or one that serves every target.

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
    missing = [
        f"{runtime} (of {package}, not installed)" for runtime, package in RUNTIMES.items() if runtime not in others
    ]
    known = ", ".join([*(a.name for a in adapters), *others, *missing])
    raise UnknownRuntime(target=target.text, found=name, known=known)


def offered(entries: Iterable[EntryPoint] | None = None) -> dict[str, tuple[EntryPoint, ...]]:
    """Return the runtimes of the installed distributions by name, duplicates as conflicts.

    The name of a published runtime belongs to its distribution: offers of it by others count only without that.

    Parameters
    ----------
    entries
        The entry points to use; those of the installed distributions if not given.
    """
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in distributions.entry_points(GROUP) if entries is None else entries:
        found[entry.name] = (*found.get(entry.name, ()), entry)
    for name, all_of_it in found.items():
        found[name] = tuple(entry for entry in all_of_it if owner_of(entry)[0] == RUNTIMES.get(name)) or all_of_it
    return dict(sorted(found.items()))


def owner_of(entry: EntryPoint) -> tuple[str, str]:
    """Return the name and version of the distribution that an entry point is of."""
    dist = getattr(entry, "dist", None)
    return distributions.identity_of(dist) if dist is not None else ("an unknown distribution", "source")


def make_runtime(entries: Sequence[EntryPoint], target: Target, plugins: Plugins) -> RuntimeAdapter:
    """Make a runtime for a target.

    Parameters
    ----------
    entries
        All offers of one name, see `offered`.
    target
        The target.
    plugins
        The installed backends.

    Raises
    ------
    DuplicateBackend
        Several distributions offer it.
    OutOfStep, DamagedDistribution
        Its distribution requires another tile-core, or its metadata is damaged.
    RuntimeBroken
        It cannot be imported, or does not make a runtime.
    TileError
        It does not serve the target.
    """
    entry = entries[0]
    if len(entries) > 1:
        first, second = (" ".join(owner_of(one)) for one in entries[:2])
        raise DuplicateBackend(what="runtime", found=entry.name, first=first, second=second)
    check_in_step(entry, f"runtime {entry.name!r}")
    return make_adapter(entry, target, plugins.emulation(target))
