"""Store measurements of tuning in a file: each program once per device."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from tile_core.errors.setup import BadResultsFile
from tile_core.records import dataclass
from tile_core.runtime.files import require_file

_TABLE = """
create table if not exists results (
    key text not null, device text not null, seconds real, error text not null, config text not null,
    kernel text not null, target text not null, at real not null, low real, high real,
    baseline text not null default '', primary key (key, device)
)
"""
#: Columns of later versions.
_ADDED = {"low": "real", "high": "real", "baseline": "text not null default ''"}
_MAGIC = b"SQLite format 3\0"


class ResultsWarning(UserWarning):
    """Something is wrong with the database of a search; configurations are measured all the same."""


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
    low, high
        The fastest sample and the third quartile of all samples: times that differ by less are not known to differ.
    baseline
        Key of the configuration whose results it was compared with; empty without comparison.
    """

    seconds: float | None
    error: str
    device: str
    low: float | None = None
    high: float | None = None
    baseline: str = ""


class Measurements:
    """A database of measurements, an SQLite file that several processes may use.

    Parameters
    ----------
    path
        The file; it is made when something is stored. A damaged database is set aside.
    own
        Whether the file is tile's own, so that it is set aside even if it does not begin as a database does.
    """

    def __init__(self, path: str | os.PathLike[str], own: bool = False) -> None:
        self.path, self.own = Path(path), own

    def prepare(self) -> None:
        """Create the file if it is missing, to refuse an unusable one before measuring.

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
        try:
            self._prepare()
        except _Damaged as error:
            self._set_aside(error)
            self._prepare()

    def _prepare(self) -> None:
        with self._open() as db:
            if db.execute("pragma quick_check(1)").fetchone() != ("ok",):
                raise sqlite3.DatabaseError("its pages are damaged")
            db.execute(_TABLE)
            known = {row[1] for row in db.execute("pragma table_info(results)")}
            for name in _ADDED.keys() - known:
                db.execute(f"alter table results add column {name} {_ADDED[name]}")
            db.execute("update results set seconds = 0 where 0")  # a file that is read only refuses here

    def find(self, key: str, device: str) -> Measured | None:
        """Return the measurement of a key on a device; a refusal holds for every device."""
        if not self.path.exists():
            return None
        try:
            with self._open() as db:
                columns = "seconds, error, device, low, high, baseline"
                row = db.execute(
                    f"select {columns} from results where key = ? and device in (?, '')", (key, device)
                ).fetchone()
        except _Damaged as error:
            self._set_aside(error)
            return None
        return Measured(*row) if row is not None and _is_measurement(*row) else None

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
        names = "key, device, seconds, error, config, kernel, target, at, low, high, baseline"
        row = (
            key, found.device, found.seconds, found.error, config, kernel, target, time.time(), found.low, found.high,
            found.baseline,
        )  # fmt: skip
        try:
            self.prepare()
            with self._open() as db:
                db.execute(f"insert or replace into results ({names}) values ({', '.join('?' * len(row))})", row)
        except BadResultsFile as error:  # a search is not lost because of a full disk
            warnings.warn(f"a measurement is not kept: {error.message}", ResultsWarning, stacklevel=2)

    def _set_aside(self, error: _Damaged) -> None:
        """Rename a damaged database, unless another process has done so.

        Raises
        ------
        BadResultsFile
            The file may be something other than a database.
        """
        with contextlib.suppress(FileNotFoundError):
            with open(self.path, "rb") as file:
                begins = file.read(len(_MAGIC))
            if not (self.own or begins == _MAGIC):
                raise error
            if os.stat(self.path).st_ino == error.facts["inode"]:
                kept = self.path.with_name(self.path.name + ".damaged")
                os.replace(self.path, kept)
                message = f"{self.path} was damaged ({error.facts['reason']}), and is now {kept.name}: measuring again"
                warnings.warn(message, ResultsWarning, stacklevel=3)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        inode = None
        try:
            db = sqlite3.connect(self.path, timeout=30)
            try:
                with contextlib.suppress(OSError):
                    inode = os.stat(self.path).st_ino
                with db:
                    yield db
            finally:
                db.close()
        except sqlite3.OperationalError as error:  # of the system: a lock, a full disk, missing rights
            raise BadResultsFile(file=self.path, reason=str(error)) from error
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise _Damaged(file=self.path, reason=str(error), inode=inode) from error


class _Damaged(BadResultsFile):
    """The file does not hold a database, or holds a damaged one."""


def _is_measurement(
    seconds: object, error: object, device: object, low: object, high: object, baseline: object
) -> bool:
    """Whether a row holds what was stored: its bytes may have been changed."""
    times = all(x is None or (isinstance(x, float) and 0 < x < 1e6) for x in (seconds, low, high))
    texts = all(isinstance(x, str) for x in (error, device, baseline))
    return times and texts and (seconds is None) == bool(error)
