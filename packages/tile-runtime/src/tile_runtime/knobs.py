"""Settings of the process: every ``TILE_*`` environment variable of the core, typed, in one place.

``current()`` is the snapshot that a compilation starts with; ``override(...)`` changes fields for a block of code. A
backend's own settings are fields of its options; variables that start with ``TILE_<BACKEND>_`` are left to it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from tile_runtime.errors.guess import hint, nearest
from tile_runtime.errors.plugins import InvalidKnob
from tile_runtime.records import dataclass

PREFIX = "TILE_"


class UnknownKnob(UserWarning):
    """An environment variable looks like a setting but is none."""


@dataclass(frozen=True)
class Knobs:
    """A snapshot of the settings. The variable of field ``cache_dir`` is ``TILE_CACHE_DIR``, and so on.

    Parameters
    ----------
    cache_dir
        Folder of compiled kernels; ``None`` is the user's cache folder.
    cache_max_mb
        Megabytes that files in the cache may take; the least recently used are removed.
    disable_cache
        Compile always, and keep nothing on disk.
    verify_ir
        Check the program against the grammar after each pass.
    dump_dir
        Folder into which every stage writes its artefact.
    num_threads
        Threads of kernels that run on the host; ``None`` is all cores.
    target
        What ``target="auto"`` means; ``None`` looks for a device.
    disable_backends
        Names of installed backends that are treated as not installed.
    trace_plugins
        Print each call of a hook.
    trust_files
        Run kernels from files and folders that other users can write.
    build_seconds
        Seconds that a compiler of source text may take, where it runs in a process of its own.
    full_traceback
        Show the frames inside of tile in tracebacks of its errors.
    nvtx
        Make each launch an NVTX range with the name of its kernel.
    """

    cache_dir: Path | None = None
    cache_max_mb: int = 1024
    disable_cache: bool = False
    verify_ir: bool = False
    dump_dir: Path | None = None
    num_threads: int | None = None
    target: str | None = None
    disable_backends: tuple[str, ...] = ()
    trace_plugins: bool = False
    trust_files: bool = False
    build_seconds: int = 120
    full_traceback: bool = False
    nvtx: bool = False


def current() -> Knobs:
    """The settings now: defaults, then environment variables, then the enclosing ``override`` blocks.

    Raises
    ------
    InvalidKnob
        If a variable's value cannot be read.
    """
    values = {**_from_environment(os.environ), **_OVERRIDES.get()}
    return Knobs(**values)


@contextlib.contextmanager
def override(**values: object) -> Iterator[Knobs]:
    """Change settings in a block of this thread or task: ``with override(verify_ir=True): ...``.

    Raises
    ------
    InvalidKnob
        If a name is not a setting.
    """
    for name, value in values.items():
        if name not in _FIELDS:
            near = nearest(name, _FIELDS)
            expected = f"the setting {near[0]!r}" if near else f"one of: {', '.join(_FIELDS)}"
            raise InvalidKnob(name=name, found=value, expected=expected)
    token = _OVERRIDES.set({**_OVERRIDES.get(), **values})
    try:
        yield current()
    finally:
        _OVERRIDES.reset(token)


def check_environment(backends: Iterable[str] = (), environ: Mapping[str, str] = os.environ) -> None:
    """Warn about ``TILE_*`` variables that neither the core nor an installed backend reads.

    The warning names the nearest known one.
    """
    owned = tuple(f"{PREFIX}{name.upper().replace('-', '_')}_" for name in backends)
    known = [PREFIX + name.upper() for name in _FIELDS]
    for name in environ:
        if name.startswith(PREFIX) and name not in known and not (owned and name.startswith(owned)):
            what = hint(name, known, f"the settings are {', '.join(known)}")
            warnings.warn(f"environment variable {name} has no effect; {what}", UnknownKnob, stacklevel=2)


def _switch(text: str) -> bool:
    value = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}
    return value[text.strip().lower()]


def _count(text: str) -> int:
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


def _folder(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:  # of a user who has no home
        raise ValueError(text) from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


_FIELDS = [f.name for f in dataclasses.fields(Knobs)]
# How the text of a variable is parsed, and the expected form for the error.
_READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "cache_dir": (_folder, "a folder"),
    "cache_max_mb": (_count, "a positive number"),
    "disable_cache": (_switch, "0 or 1"),
    "verify_ir": (_switch, "0 or 1"),
    "dump_dir": (_folder, "a folder"),
    "num_threads": (_count, "a positive number"),
    "target": (str, "a target"),
    "disable_backends": (_names, "names separated by commas"),
    "trace_plugins": (_switch, "0 or 1"),
    "trust_files": (_switch, "0 or 1"),
    "build_seconds": (_count, "a positive number"),
    "full_traceback": (_switch, "0 or 1"),
    "nvtx": (_switch, "0 or 1"),
}
_OVERRIDES: ContextVar[Mapping[str, Any]] = ContextVar("tile_knobs", default={})  # noqa: B039 - it is never changed


def _from_environment(environ: Mapping[str, str]) -> dict[str, object]:
    values = {}
    for name, (read, expected) in _READERS.items():
        text = environ.get(PREFIX + name.upper())
        if not text:
            continue
        try:
            values[name] = read(text)
        except (KeyError, ValueError):
            raise InvalidKnob(name=PREFIX + name.upper(), found=text, expected=expected) from None
    return values
