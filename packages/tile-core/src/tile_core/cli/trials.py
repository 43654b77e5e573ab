"""Try all plug-in packages in another process, for ``tile doctor``.

A plugin may hang, end the process, or crash it. The doctor then reports that, and goes on with the next one
in a fresh process.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from typing import IO

from tile_core.cli.checks import Check

#: How long a plugin may take to be loaded, to compile a small kernel, and to look at its machine.
SECONDS = 60.0

#: Nothing is imported before the path is that of this process: it begins with the current folder else.
_PROGRAM = "import sys; sys.path[:] = sys.argv[2:]; from tile_core.cli.tryout import main; main(sys.argv[1])"


def trials(seconds: float = SECONDS, only: Sequence[str] = (), *, device: bool = False) -> Iterator[Check]:
    """Yield the checks of each installed backend and of other packages (``tile.checks``).

    Parameters
    ----------
    seconds
        How long one of them may take.
    only
        Names of subjects, such as ``"backend cpu"``, to try; all of them if there are none.
    device
        Whether packages use their devices (``tile.checks.device``).
    """
    done: list[str] = []
    while True:
        before = len(done)
        with _Child([*only], done, device) as child:
            yield from child.checks(seconds)
        if child.finished:
            return
        if len(done) == before:  # it ended before it tried anything
            detail = f"they cannot be tried: {child.ending()}"
            yield Check("backends", "missing", detail, "report it with the output of this command")
            return


class _Child:
    """One process, which tries one subject after the other.

    Parameters
    ----------
    only
        What to try.
    done
        What not to try any more; what it begins is added.
    device
        See `trials`.
    """

    def __init__(self, only: list[str], done: list[str], device: bool) -> None:
        self.done, self.finished, self._overdue = done, False, False
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps({"only": only, "done": done, "device": device}), *sys.path],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._errors,
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._errors.close()

    def checks(self, seconds: float) -> Iterator[Check]:
        """Yield the results, and finally how the process ended unless it completed."""
        subject = ""
        while (line := self._next(seconds)) is not None:
            kind, value = json.loads(line)
            if kind == "finished":
                self.finished = True
                return
            if kind == "begin":
                subject = value
                self.done.append(subject)
            else:
                yield Check(**value)
        self._why = self._reason(seconds)
        if subject:
            remedy = "reinstall or uninstall the package that provides it; other targets are not affected"
            yield Check(subject, "missing", self._why, remedy)

    def ending(self) -> str:
        """Return how the process ended."""
        return self._why

    def _next(self, seconds: float) -> bytes | None:
        try:
            return self._lines.get(timeout=seconds) or None
        except queue.Empty:
            self._overdue = True
            return None

    def _reason(self, seconds: float) -> str:
        if self._overdue:
            return f"it hangs: it did not come back within {seconds:g} s"
        status = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode("utf-8", errors="replace").strip().splitlines()
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"the process that tried it {how}" + (f": {said[-1].strip()[:200]}" if said else "")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")
