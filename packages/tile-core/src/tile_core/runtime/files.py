"""Write files that users name atomically, and only over a regular file or none."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from tile_core.errors.cli import CannotWrite
from tile_core.runtime.cache import write_whole

_KINDS = (
    (stat.S_ISDIR, "a folder"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"), (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)  # fmt: skip


def write_named(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file atomically; a symbolic link stays, and its target is replaced.

    The new file has the permissions of the old one. Text is written in UTF-8.

    Raises
    ------
    OSError
        The name stands for a device, a pipe, a socket or a folder, or the file cannot be written. Nothing has changed.
    """
    mode = require_file(path)
    write_whole(Path(os.path.realpath(path)), content.encode() if isinstance(content, str) else content, mode)


def write_result(path: Path, content: bytes | str) -> None:
    """Write a file that a user has named (see ``write_named``).

    Raises
    ------
    CannotWrite
        If the file cannot be written.
    """
    try:
        write_named(path, content)
    except OSError as error:
        raise CannotWrite(file=path, reason=error.strerror or str(error)) from error


def require_file(path: str | os.PathLike[str]) -> int | None:
    """Return the permissions of a replaceable file; ``None`` if the name is free.

    Raises
    ------
    OSError
        The name stands for something other than a regular file, or the file may not be written.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    except ValueError as error:  # a name with a null character
        raise OSError(errno.EINVAL, str(error), os.fspath(path)) from error
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for test, name in _KINDS if test(found.st_mode)), "no file")
        raise OSError(errno.EEXIST, f"it is {kind}, and only a regular file is replaced", os.fspath(path))
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))
    return stat.S_IMODE(found.st_mode)
