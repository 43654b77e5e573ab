"""The cache on disk, shared between processes: compiled kernels, and files of runtimes.

Each kind has a folder of its own below `root()`. Files are written atomically, so any number of processes may share the
folders without locks: two that compile the same kernel write the same file. Readers check a file's content; a damaged
one is dropped with a `CacheWarning` and rebuilt. The cache never prevents a kernel from being compiled: a folder that
cannot be written is a warning, once per process.

Files of the cache are code. Folders and files that other users can write are not used, see `runtime.trust`.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from tile_core.compat.known_packages import RUNTIMES
from tile_core.errors.artefacts import CannotClearCache
from tile_core.records import dataclass
from tile_runtime import knobs
from tile_runtime.files import trust

KERNELS = "kernels"
"""Folder of compiled kernels."""

TRIALS = "trials"
"""Folder of what is known of code that was generated in a process of its own."""

SUFFIX = ".tile"
_SUFFIXES = {KERNELS: SUFFIX, TRIALS: ".ends", **dict.fromkeys(RUNTIMES, ".so")}
_KEY = re.compile(r"[0-9a-f]{40,64}")
_TEMPORARY = "making-"
_ABANDONED = 3600.0  # seconds after which a temporary file is considered abandoned
_CHECK_EVERY = 32  # stored files between two checks of the cache's size


class CacheWarning(UserWarning):
    """Something is wrong with the cache on disk; kernels are compiled all the same."""


@dataclass(frozen=True)
class Entry:
    """One file.

    Attributes
    ----------
    path
        Where it is.
    kind
        Name of its folder: ``"kernels"``, ``"emulator"``, ...
    bytes
        Its size.
    used
        When it was used last, in seconds since the epoch.
    """

    path: Path
    kind: str
    bytes: int
    used: float


@dataclass
class CacheStats:
    """Statistics of this process about compiled kernels on disk.

    Attributes
    ----------
    hits, misses
        Compilations with a key that were found on disk, and those that were not.
    stored
        Files written.
    damaged
        Files dropped.
    """

    hits: int = 0
    misses: int = 0
    stored: int = 0
    damaged: int = 0


STATS = CacheStats()


def enabled() -> bool:
    """Whether kernels are looked up on disk: not after ``tile.disable_cache()`` or with ``TILE_DISABLE_CACHE``."""
    from tile_core.runtime.memo import cache_enabled

    return cache_enabled() and not knobs.current().disable_cache


def root() -> Path:
    """Folder of the cache: ``TILE_CACHE_DIR``, or the system's cache folder. It may not exist."""
    chosen = knobs.current().cache_dir
    if chosen is not None:
        return chosen
    try:
        return _of_system()
    except RuntimeError:  # a user without a home; others cannot use this name: what they own is not trusted
        return Path(tempfile.gettempdir(), f"tile-{os.getuid() if hasattr(os, 'getuid') else 'cache'}")


def _of_system() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "tile"
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
        return (Path(base) if base else Path.home() / "AppData" / "Local") / "tile" / "Cache"
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The standard that defines the variable requires ignoring a relative path.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "tile"


def path_of(key: str, kind: str = KERNELS) -> Path:
    """Return the path of a key's file."""
    return root() / kind / (key + _SUFFIXES[kind])


def read(key: str, kind: str = KERNELS) -> bytes | None:
    """Return the file of a key, marked as used, or ``None``."""
    path = path_of(key, kind)
    if not _is_trusted(path.parent):
        return None
    try:
        content, others = trust.read_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == 0:
            drop(key, str(error.strerror), kind)
        return None
    if others:
        drop(key, others, kind)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return content


def write(key: str, content: bytes, kind: str = KERNELS) -> bool:
    """Store a file; occasionally evict the least recently used. Returns whether it was written."""
    path = path_of(key, kind)
    if not is_usable(kind):
        return False
    try:
        write_whole(path, content)
    except OSError as error:
        _warn_once(f"compiled kernels are not kept: cannot write {path.parent}: {error.strerror or error}")
        return False
    STATS.stored += 1
    if STATS.stored % _CHECK_EVERY == 1:
        prune(knobs.current().cache_max_mb << 20)
    return True


def is_usable(kind: str) -> bool:
    """Whether files of a kind may be stored; creates the folder, or warns once."""
    folder = root() / kind
    try:
        # The folder of the system's caches may be new as well, and gets the mode that the user chose for all.
        folder.parent.parent.mkdir(parents=True, exist_ok=True)
        for made in (folder.parent, folder):
            with contextlib.suppress(FileExistsError):
                made.mkdir(mode=0o700)
        os.listdir(folder)
    except OSError as error:
        _warn_once(f"compiled kernels are not kept: cannot write {folder}: {error.strerror or error}")
        return False
    return _is_trusted(folder)


def _is_trusted(folder: Path) -> bool:
    for directory in (folder.parent, folder):
        others = trust.doubt(directory)
        if others:
            help = "take that right away, set TILE_CACHE_DIR to another folder, or set TILE_TRUST_FILES=1"
            _warn_once(f"compiled kernels are not kept in {directory}, because {others}: {help}")
            return False
    return True


def drop(key: str, reason: str, kind: str = KERNELS) -> None:
    """Remove a damaged file."""
    STATS.damaged += 1
    path = path_of(key, kind)
    with contextlib.suppress(OSError):
        path.unlink()
    warnings.warn(f"{path} was damaged ({reason}); the kernel is compiled again", CacheWarning, stacklevel=3)


def scratch_name() -> str:
    """Return a temporary name, which a later cleanup removes if its process does not."""
    return f"{_TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}"


def write_whole(path: Path, content: bytes, mode: int | None = None) -> None:
    """Write a file atomically, with permissions if they are given.

    Raises
    ------
    OSError
        It cannot be written; nothing is left behind.
    """
    making = path.with_name(scratch_name())
    try:
        with open(making, "xb") as file:
            file.write(content)
        if mode is not None:
            os.chmod(making, mode)
        os.replace(making, path)
    except BaseException:
        with contextlib.suppress(OSError):
            making.unlink()
        raise


def entries() -> list[Entry]:
    """Return all files of the cache, the least recently used first."""
    found = []
    for folder in _folders():
        for path in _files(folder):
            with contextlib.suppress(OSError):
                facts = path.stat()
                found.append(Entry(path, folder.name, facts.st_size, facts.st_mtime))
    return sorted(found, key=lambda entry: (entry.used, entry.path))


def prune(max_bytes: int, max_age: float | None = None) -> list[Entry]:
    """Remove files unused for ``max_age`` seconds, then the least recently used until ``max_bytes`` are left.

    Returns
    -------
    list[Entry]
        The removed files. A loaded kernel no longer needs its file.
    """
    found, now = entries(), time.time()
    total = sum(entry.bytes for entry in found)
    removed = []
    for entry in found:
        old = max_age is not None and now - entry.used > max_age
        if total <= max_bytes and not old:
            continue
        with contextlib.suppress(OSError):
            entry.path.unlink()
            removed.append(entry)
            total -= entry.bytes
    _sweep(now)
    return removed


def clear() -> list[Entry]:
    """Remove all files of the cache.

    Raises
    ------
    CannotClearCache
        One cannot be removed.
    """
    found = entries()
    for entry in found:
        try:
            entry.path.unlink(missing_ok=True)
        except OSError as error:
            raise CannotClearCache(file=entry.path, reason=error.strerror or str(error)) from error
    _sweep(time.time())
    return found


def _folders() -> list[Path]:
    return [root() / kind for kind in _SUFFIXES]


def _files(folder: Path) -> Iterator[Path]:
    """Return the files in a folder that a cache wrote; other files are ignored."""
    try:
        found = list(folder.iterdir())
    except OSError:
        return
    for path in found:
        if path.suffix == _SUFFIXES[folder.name] and _KEY.fullmatch(path.stem) and path.is_file():
            yield path


def _sweep(now: float) -> None:
    """Remove temporary files of processes that ended while writing."""
    for folder in _folders():
        for path in folder.glob(_TEMPORARY + "*"):
            with contextlib.suppress(OSError):
                if now - path.lstat().st_mtime > _ABANDONED:
                    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


_WARNED: set[str] = set()


def _warn_once(message: str) -> None:
    if message not in _WARNED:
        _WARNED.add(message)
        warnings.warn(message, CacheWarning, stacklevel=4)
