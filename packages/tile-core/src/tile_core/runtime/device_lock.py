"""Lock a device between processes: timing is exclusive, compilation is shared.

The locks of a device are locks of an SQLite file: shared ones, and an exclusive one that waits until the others are
free and keeps new ones from starting. A process that ends gives its lock back.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: Seconds to wait for the lock; without it a measurement is less exact, but not lost.
_PATIENCE = 600


@contextlib.contextmanager
def alone(device: str) -> Iterator[None]:
    """Hold a device while nothing else is timed on it, and nothing is in `among_others`.

    Parameters
    ----------
    device
        Its name.
    """
    with _held(device, "begin exclusive"):
        yield


@contextlib.contextmanager
def among_others(device: str) -> Iterator[None]:
    """Hold the shared lock of a device: compiling on a CPU would disturb measurements."""
    with _held(device, "begin", "select count(*) from sqlite_master"):
        yield


@contextlib.contextmanager
def _held(device: str, *statements: str) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(sqlite3.Error, OSError):
            db = sqlite3.connect(_file(device), timeout=_PATIENCE, isolation_level=None)
            stack.callback(db.close)
            for statement in statements:
                db.execute(statement)
        yield


def _file(device: str) -> Path:
    with contextlib.suppress(Exception):  # there may be no user by that name
        device = f"{getpass.getuser()} {device}"
    name = hashlib.sha256(device.encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"tile-turns-{name}.db"
