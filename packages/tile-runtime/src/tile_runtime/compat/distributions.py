"""Installed distributions, read one at a time: what one of them lacks hides no other.

``importlib.metadata.entry_points()`` raises at the first file that it cannot read, and metadata that is not there is a
``TypeError`` or an ``AttributeError``, by the version of Python. An installation that was interrupted leaves such
folders, and so does a removal.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from importlib.metadata import Distribution, EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

from tile_runtime.records import dataclass

#: What pip renames a distribution's folder to begin with while it removes it; such a folder is no installation.
_LEFTOVER = "~"


@dataclass(frozen=True)
class Damaged:
    """A distribution whose files cannot be read.

    Parameters
    ----------
    folder
        Its folder of metadata, or its name.
    reason
        What is wrong.
    """

    folder: str
    reason: str


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, from the first distribution of each name."""
    # Not by class: the package importlib_metadata, once imported, reads all distributions with classes of its own.
    kept = [found for _, found in _read() if found is not None and not isinstance(found, str)]
    return tuple(entry for found in kept for entry in found.select(group=group))


def damaged() -> tuple[Damaged, ...]:
    """Return the distributions whose entry points cannot be read, and those without metadata."""
    found = []
    for dist, entries in _read():
        problem = entries if isinstance(entries, str) else "" if entries is None else problem_of(dist)
        if problem:
            found.append(Damaged(folder_of(dist), problem))
    return tuple(found)


def identity_of(dist: Distribution) -> tuple[str, str]:
    """Return a distribution's name and version; those of its folder if it has no metadata."""
    stem, _, version = folder_of(dist).rpartition(".")[0].partition("-")
    name = stem.replace("_", "-") or folder_of(dist)
    try:
        return str(dist.metadata["Name"] or name), str(dist.version or version or "unknown")
    except Exception:  # which one depends on the version of Python, and on what is wrong with the file
        return name, version or "unknown"


def problem_of(dist: Distribution) -> str:
    """Return why a distribution's name and version cannot be read; empty if they can."""
    try:
        complete = bool(dist.metadata["Name"] and dist.version)
    except Exception:  # as above
        complete = False
    return "" if complete else "it has no readable file METADATA with a name and a version"


def folder_of(dist: Distribution) -> str:
    """Return the name of the folder that has a distribution's metadata."""
    path = getattr(dist, "_path", None)
    return Path(str(path)).name if path is not None else "an unknown folder"


def version_of(name: str) -> str | None:
    """Return the installed version of a distribution; ``None`` if absent or unreadable."""
    return _asked(importlib.metadata.version, name)


def requirements_of(name: str) -> list[str] | None:
    """Return the requirement lines of an installed distribution; ``None`` as for `version_of`."""
    try:
        return importlib.metadata.requires(name) or []
    except Exception:
        return None


def classifiers_of(name: str) -> list[str]:
    """Return the classifiers of an installed distribution; none as for `version_of`."""
    found = _asked(importlib.metadata.metadata, name)
    return list(found.get_all("Classifier") or ()) if found is not None else []


def load_entry(entry: EntryPoint) -> Any:
    """Import what an entry point names.

    Raises
    ------
    ImportError
        Its value is not of the form ``module`` or ``module:attribute``.
    Exception
        Whatever the import raises.
    """
    if entry.pattern.match(entry.value) is None:
        raise ImportError(f"the entry point's value {entry.value!r} names no module")
    return entry.load()


def _asked(function: Any, name: str) -> Any:
    try:
        return function(name)
    except Exception:  # not there, or damaged: see the head of this file
        return None


def _read() -> Iterator[tuple[Distribution, EntryPoints | str | None]]:
    """Yield each distribution with its entry points, the defect in them, or ``None``."""
    seen = set()
    for dist in importlib.metadata.distributions():
        if folder_of(dist).startswith(_LEFTOVER):
            continue
        name = _key(dist)
        if name in seen:
            continue
        seen.add(name)
        try:
            found = dist.entry_points
        except Exception as error:  # see the head of this file
            yield dist, f"its entry_points.txt cannot be read ({type(error).__name__}: {error})"
            continue
        yield dist, found if len(found) else None


def _key(dist: Distribution) -> str:
    """Return a key that copies of a distribution share, if possible without reading metadata."""
    try:
        return str(getattr(dist, "_normalized_name", None) or identity_of(dist)[0])
    except Exception:
        return identity_of(dist)[0]
