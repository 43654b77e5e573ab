"""Cache libraries that runtimes build on this machine and load by path.

A file ends with a checksum of its key and content; loaders ignore bytes beyond a library's headers.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tile_core.errors.artefacts import NoScratchFolder
from tile_core.runtime import cache

_CHECK = 32


@contextlib.contextmanager
def stored(kind: str, key: str, make: Callable[[Path], None]) -> Iterator[tuple[Path, bool]]:
    """Yield the library of a key, built if necessary.

    Parameters
    ----------
    kind
        Name of the runtime's folder in the cache.
    key
        Hash of all that determines the library.
    make
        Writes it to a path in a folder of its own, which is removed afterwards.

    Yields
    ------
    tuple[Path, bool]
        The file, which stays until the block ends even if the cache is turned off, and whether it existed before.

    Raises
    ------
    NoScratchFolder
        There is no folder to make it in.
    """
    if not cache.enabled():
        with _scratch(None) as scratch:
            path = Path(scratch, key + ".so")
            make(path)
            yield path, False
        return
    if _is_whole(key, kind):
        yield cache.path_of(key, kind), True
        return
    if cache.is_usable(kind):
        try:
            content = _made(key, make, cache.root() / kind)
        except NoScratchFolder:
            content = _made(key, make, None)
        if cache.write(key, content, kind):
            yield cache.path_of(key, kind), False
            return
    kept = Path(_of_process(os.getpid()), key + ".so")
    found = kept.exists()
    if not found:
        _write(kept, _made(key, make, None))
    yield kept, found


def _made(key: str, make: Callable[[Path], None], folder: Path | None) -> bytes:
    """Build a library in a folder, or among temporary files; return it with its checksum."""
    with _scratch(folder) as scratch:
        made = Path(scratch, key + ".so")
        try:
            make(made)
            content = made.read_bytes()
        except OSError as error:
            raise NoScratchFolder(reason=f"{scratch}: {error.strerror or error}") from error
        return content + _checksum(key, content)


def _is_whole(key: str, kind: str) -> bool:
    content = cache.read(key, kind)
    if content is None:
        return False
    if len(content) > _CHECK and _checksum(key, content[:-_CHECK]) == content[-_CHECK:]:
        return True
    cache.drop(key, "its content does not fit its name and checksum", kind)
    return False


def _checksum(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b"\0" + content).digest()


@contextlib.contextmanager
def _scratch(folder: Path | None) -> Iterator[str]:
    """Make a folder for the time of a block."""
    if folder is None:
        made = _temporary()
    else:
        made = str(folder / cache.scratch_name())
        try:
            os.mkdir(made, 0o700)
        except OSError as error:
            raise NoScratchFolder(reason=f"{made}: {error.strerror or error}") from error
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _temporary() -> str:
    try:
        return tempfile.mkdtemp(prefix="tile-")
    except OSError as error:
        raise NoScratchFolder(reason=error.strerror or str(error)) from error


def _write(kept: Path, content: bytes) -> None:
    try:
        cache.write_whole(kept, content)
    except OSError as error:
        raise NoScratchFolder(reason=f"{kept.parent}: {error.strerror or error}") from error


@functools.cache
def _of_process(process: int) -> str:
    """Return the folder for files that live only as long as this process."""
    folder = _temporary()
    atexit.register(_forget, folder, process)
    return folder


def _forget(folder: str, process: int) -> None:
    if os.getpid() == process:  # not in a forked child
        shutil.rmtree(folder, ignore_errors=True)
