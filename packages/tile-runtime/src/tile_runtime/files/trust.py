"""Decide whose files may run: cached kernels are code that no other user may change.

What this process's user or the administrator owns, and no one else can change, is trusted. ``TILE_TRUST_FILES=1`` says
that all are. On systems without owners and modes of files there is nothing to see, and all are trusted, too.
"""

from __future__ import annotations

import functools
import os
import stat
from pathlib import Path

from tile_runtime import knobs

LIMIT = 1 << 30
"""No file of a kernel has more bytes."""


def doubt(path: Path) -> str:
    """Return the other users who could change a file or a folder's contents, or nothing.

    Nothing also if the path does not exist.
    """
    try:
        return doubt_of(os.stat(path))
    except OSError:
        return ""


def doubt_of(facts: os.stat_result) -> str:
    """Return the other users who could change a file or folder with these facts."""
    if not hasattr(os, "geteuid") or knobs.current().trust_files:
        return ""
    if facts.st_uid not in (os.geteuid(), 0):
        return f"it belongs to user {facts.st_uid}"
    if stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX:
        return ""  # others can add files, and change none of mine; those that they add are theirs
    if facts.st_mode & stat.S_IWOTH:
        return "every user can write to it"
    if facts.st_mode & stat.S_IWGRP and facts.st_gid != 0 and not _is_mine_alone(facts.st_gid, os.geteuid()):
        return f"the users of group {facts.st_gid} can write to it"
    return ""


def read_file(path: Path) -> tuple[bytes, str]:
    """Return a file's content, and who else could have changed it.

    Raises
    ------
    OSError
        It cannot be read, is not a file (a pipe would block), or is larger than any kernel.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(0, "it is not a file")
        if facts.st_size > LIMIT:
            raise OSError(0, f"it has {facts.st_size} bytes, and no kernel has more than {LIMIT}")
        return file.read(LIMIT), doubt_of(facts)


@functools.cache
def _is_mine_alone(group: int, user: int) -> bool:
    """Whether a group is the private group of a user, as many systems create."""
    import grp
    import pwd

    try:
        me, found = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    return group == me.pw_gid and found.gr_name == me.pw_name and set(found.gr_mem) <= {me.pw_name}
