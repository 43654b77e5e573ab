"""Try a folder of scripts: every kernel is compiled, none is launched.

``python -m tile_tilelang --report FOLDER`` shows what of a team's code would run before anything is changed.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import importlib.abc
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from tile_core.errors import TileError
from tile_core.records import dataclass
from tile_core.runtime.kernel import Kernel
from tile_tilelang.errors import NoScript
from tile_tilelang.unlaunched import NAME

#: ``compiles``: the kernels did; then a check of the script failed, since nothing is computed, or its time was over.
#: ``needs``: it imports a package that is not installed, or takes arguments. ``stops``: another error before a kernel.
#: ``empty``: it ended without a kernel.
Status = Literal["runs", "compiles", "refused", "needs", "stops", "empty"]
ORDER: tuple[Status, ...] = ("runs", "compiles", "empty", "refused", "stops", "needs")


@dataclass(frozen=True)
class Outcome:
    """The outcome of one script.

    Attributes
    ----------
    script
        Its path below the folder.
    status
        See `Status`.
    kernels
        How many kernels were compiled.
    reason
        The error that ended it, in one line; empty if there is none.
    """

    script: str
    status: Status
    kernels: int = 0
    reason: str = ""


def report(folder: str, targets: str, seconds: float = 120, jobs: int = 0) -> list[Outcome]:
    """Try every script of a folder that imports tilelang.

    Parameters
    ----------
    folder
        Its path; folders below are searched, too.
    targets
        What all kernels are compiled for; of several, ``"cuda:sm_90a,cuda:sm_100a"``, the first that takes a script's.
    seconds
        Time limit of a script.
    jobs
        Scripts at a time; by default one for each core.

    Raises
    ------
    NoScript
        There is no such folder, or no such script in it.
    """
    scripts = sorted(p for p in Path(folder).rglob("*.py") if "tilelang" in p.read_text(errors="replace"))
    if not scripts:
        raise NoScript(path=folder, reason="there is no folder of this name with scripts that import tilelang")
    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        tried = pool.map(lambda path: _first(path, path.relative_to(folder), targets.split(","), seconds), scripts)
        return list(tried)


def lines_of(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of a report: scripts by status, and counts of statuses and causes."""
    for status in ORDER:
        for one in (o for o in outcomes if o.status == status):
            yield f"{status:<9} {one.script}" + (f"  {one.reason}" if one.reason else "")
    counts = Counter(o.status for o in outcomes)
    causes = Counter(_cause(o.reason) for o in outcomes if o.status in ("refused", "stops"))
    yield ""
    yield ", ".join(f"{counts[s]} {s}" for s in ORDER if counts[s])
    yield from (f"{number:>4} x {cause}" for cause, number in causes.most_common())
    judged = len(outcomes) - counts["needs"] - counts["empty"]
    if judged:
        good = counts["runs"] + counts["compiles"]
        yield f"{good} of {judged} scripts that have kernels and all packages: {good / judged:.0%}"


def outcome_of(
    kernels: Sequence[Kernel], error: BaseException | None, missing: Sequence[str] = ()
) -> tuple[Status, str]:
    """Return the status and reason of a script that ended with an error, or without.

    ``missing`` are packages that it tried to import.
    """
    if isinstance(error, SystemExit) and error.code in (None, 0):
        error = None
    if error is None:
        return ("runs" if kernels else "empty"), ""
    reason = " ".join(str(error).split()) or type(error).__name__
    # Comparisons fail, since nothing was computed.
    if isinstance(error, TileError) and not isinstance(error, AssertionError):
        return "refused", f"[{error.code}] {error.message}"
    if isinstance(error, SystemExit) or (isinstance(error, ImportError) and not kernels):
        return "needs", reason if isinstance(error, ImportError) else f"arguments (exit status {error.code})"
    if missing and not kernels:
        return "needs", f"{type(error).__name__}: {reason}, without {', '.join(dict.fromkeys(missing))}"
    return ("compiles" if kernels else "stops"), f"{type(error).__name__}: {reason}"


class _Missing(importlib.abc.MetaPathFinder):
    """Notes the packages that files of a folder import in vain."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.names: list[str] = []

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Note a name that no other finder found."""
        frame = sys._getframe(1)
        while frame.f_back is not None and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        if path is None and frame.f_code.co_filename.startswith(self.folder):
            self.names.append(name)


@contextlib.contextmanager
def noted(path: str, script: str, kernels: Sequence[Kernel], seconds: float) -> Iterator[None]:
    """Write the outcome of a block's script to a file; end the process in time."""
    missing = _Missing(str(Path(script).resolve().parent))
    sys.meta_path.append(missing)

    def write(error: BaseException | None) -> None:
        status, reason = outcome_of(kernels, error, missing.names)
        Path(path).write_text(json.dumps({"status": status, "kernels": len(kernels), "reason": reason[:300]}))

    def end() -> None:
        write(TimeoutError(f"after {seconds:g} s"))
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except BaseException as error:
        write(error)
        raise
    else:
        write(None)
    finally:
        timer.cancel()
        sys.meta_path.remove(missing)


def _first(path: Path, name: Path, targets: Sequence[str], seconds: float) -> Outcome:
    found = [_tried(path, name, targets[0], seconds)]
    for target in targets[1:]:
        if found[-1].status in ("refused", "stops"):
            found.append(_tried(path, name, target, seconds))
    return min(reversed(found), key=lambda one: ORDER.index(one.status))


def _tried(path: Path, name: Path, target: str, seconds: float) -> Outcome:
    with tempfile.TemporaryDirectory() as scratch:
        written = Path(scratch) / "outcome.json"
        command = [sys.executable, "-m", "tile_tilelang", "--target", target, "--runtime", NAME]
        command += ["--outcome", str(written), "--seconds", str(seconds), str(path.resolve())]
        try:
            done = subprocess.run(
                command, cwd=scratch, timeout=seconds + 60, capture_output=True, text=True, check=False
            )
        except subprocess.TimeoutExpired:
            if written.exists():  # it did not end behind its last statement
                return Outcome(str(name), **json.loads(written.read_text()))
            return Outcome(str(name), "stops", 0, f"does not end after {seconds:g} s")
        if written.exists():
            return Outcome(str(name), **json.loads(written.read_text()))
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return Outcome(str(name), "stops", 0, last[:300])


def _cause(reason: str) -> str:
    """Return a reason without its names and numbers, so that equal ones are counted together."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|\b\d+\b", "…", reason)[:100]
