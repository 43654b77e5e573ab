"""Compiled engines and kernels on disk, found by the hash of all that made them.

A file appears under its final name complete or not at all, so processes may share the folder. A damaged file is noticed
by its checksum and made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tile_core import knobs
from tile_core.runtime.cache import root

SUFFIX = ".so"
CHECK = 32  # bytes of the checksum at the end of a file; a loader does not look beyond what the headers name


@dataclass(frozen=True)
class Entry:
    """One file of the cache: its path, its size in bytes, and when it was used last (seconds since the epoch)."""

    path: Path
    bytes: int
    used: float


def folder() -> Path:
    """Folder of the cache; made when something is stored."""
    return root() / "emulator"


def key_of(*parts: str | bytes) -> str:
    """Hash of all that determines a file's content."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()[:40]


@contextlib.contextmanager
def stored(key: str, make: Callable[[Path], None]) -> Iterator[tuple[Path, bool]]:
    """Give the file of a key, made if need be.

    Parameters
    ----------
    key
        What `key_of` returned.
    make
        Writes the file to a path in a folder of its own, which is removed afterwards.

    Yields
    ------
    tuple[Path, bool]
        The file, which stays until the block ends even if the cache is turned off, and whether it was there before.
    """
    if knobs.current().disable_cache:
        with tempfile.TemporaryDirectory(prefix="tile-emulator-") as scratch:
            path = Path(scratch, key + SUFFIX)
            make(path)
            yield path, False
        return
    home = folder()
    path = home / (key + SUFFIX)
    if _is_whole(path):
        with contextlib.suppress(OSError):
            os.utime(path)
        yield path, True
        return
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="making-", dir=home) as scratch:
        made = Path(scratch, key + SUFFIX)
        make(made)
        content = made.read_bytes()
        made.write_bytes(content + hashlib.sha256(content).digest())
        os.replace(made, path)
    yield path, False


def entries() -> list[Entry]:
    """What is stored, the least recently used first."""
    found = []
    for path in folder().glob("*" + SUFFIX):
        with contextlib.suppress(OSError):
            facts = path.stat()
            found.append(Entry(path, facts.st_size, facts.st_mtime))
    return sorted(found, key=lambda entry: entry.used)


def prune(max_bytes: int = 256 << 20, max_age: float = 30 * 86400.0) -> list[Entry]:
    """Remove what was not used for ``max_age`` seconds, then the least recently used until ``max_bytes`` are left.

    Returns
    -------
    list[Entry]
        What was removed. Kernels that run keep their files open, so nothing breaks.
    """
    kept = entries()
    total = sum(entry.bytes for entry in kept)
    removed = []
    for entry in kept:
        if total <= max_bytes and time.time() - entry.used <= max_age:
            continue
        with contextlib.suppress(OSError):
            entry.path.unlink()
            removed.append(entry)
            total -= entry.bytes
    return removed


def _is_whole(path: Path) -> bool:
    try:
        content = path.read_bytes()
    except OSError:
        return False
    return len(content) > CHECK and hashlib.sha256(content[:-CHECK]).digest() == content[-CHECK:]
