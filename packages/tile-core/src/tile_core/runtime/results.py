"""Measurements of tuning, kept in a file: what was measured once for a program on a device is not measured again."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from tile_core.errors.setup import BadResultsFile
from tile_core.records import dataclass
from tile_core.runtime.files import require_file

_TABLE = """
create table if not exists results (
    key text not null, device text not null, seconds real, error text not null, config text not null,
    kernel text not null, target text not null, at real not null, primary key (key, device)
)
"""


@dataclass(frozen=True)
class Measured:
    """The outcome of one configuration.

    Attributes
    ----------
    seconds
        Median time of a launch; ``None`` if it did not get that far.
    error
        What refused or disproved it; empty if it worked.
    device
        The name of the device that it was measured on; empty if that is not known, or nothing was launched.
    """

    seconds: float | None
    error: str
    device: str


class Measurements:
    """A database of measurements, an SQLite file that several processes may use.

    Parameters
    ----------
    path
        The file; it is made when something is stored.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def prepare(self) -> None:
        """Make the file if there is none, so that one that cannot be used is refused before anything is measured.

        Raises
        ------
        BadResultsFile
            If it cannot be read and written, or is another file.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            require_file(self.path)
        except OSError as error:
            raise BadResultsFile(file=self.path, reason=error.strerror or str(error)) from error
        with self._open() as db:
            db.execute(_TABLE)
            db.execute("update results set seconds = 0 where 0")  # a file that is read only refuses here

    def find(self, key: str, device: str) -> Measured | None:
        """Return what was measured for a key on a device; a refusal counts on every device."""
        if not self.path.exists():
            return None
        with self._open() as db:
            row = db.execute(
                "select seconds, error, device from results where key = ? and device in (?, '')", (key, device)
            ).fetchone()
        return None if row is None else Measured(*row)

    def store(self, key: str, found: Measured, *, config: str, kernel: str, target: str) -> None:
        """Keep a measurement; a later one replaces it.

        Parameters
        ----------
        key
            Of the program, its options, the versions and the shapes that it was called with.
        found
            The outcome.
        config, kernel, target
            For people who read the file.
        """
        self.prepare()
        with self._open() as db:
            row = (key, found.device, found.seconds, found.error, config, kernel, target, time.time())
            db.execute("insert or replace into results values (?, ?, ?, ?, ?, ?, ?, ?)", row)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            db = sqlite3.connect(self.path, timeout=30)
            try:
                with db:
                    yield db
            finally:
                db.close()
        except sqlite3.Error as error:
            raise BadResultsFile(file=self.path, reason=str(error)) from error
