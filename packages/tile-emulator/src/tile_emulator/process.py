"""Runs a kernel's library in its own process, and reads the results."""

from __future__ import annotations

import fcntl
import json
import marshal
import math
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

from tile_core.records import dataclass
from tile_emulator.limits import RunLimits

# Imported, not run as a script: only modules that are imported have kept byte code.
WORKER = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import worker; worker.main()"
GRACE = 10.0  # seconds that a process may take to start and to write its last report
REPORT_BYTES = 1 << 20


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    Attributes
    ----------
    records
        The engine's reports, as it wrote them.
    end
        Its last line: how it ended, and counters. Without ``"end"`` if the process died before.
    output
        What the kernel printed.
    confined
        Whether the system confined it to its arrays.
    """

    records: list[dict[str, object]]
    end: dict[str, Any]
    output: str
    confined: bool = False


def run_process(job: dict[str, object], data: int, limits: RunLimits) -> Ended:
    """Run a job.

    Parameters
    ----------
    job
        See ``worker.py``; files and limits are added here.
    data
        Descriptor of the file of arrays.
    limits
        What it may use.
    """
    with _file() as reports, _file() as output, _file() as errors:
        job = {
            **job, "data": data, "reports": reports.fileno(), "memory_bytes": limits.memory_bytes,
            "file_bytes": max(REPORT_BYTES, limits.output_bytes),
        }  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", WORKER],
            stdin=subprocess.PIPE, stdout=output, stderr=errors, pass_fds=(data, reports.fileno()),
        )  # fmt: skip
        try:
            process.communicate(marshal.dumps(job), timeout=limits.seconds + GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
        reports.seek(0)
        output.seek(0)
        errors.seek(0)
        printed = output.read(limits.output_bytes).decode("utf-8", "replace")
        return _ended(reports.read(), process.returncode, printed, errors.read(4096).decode("utf-8", "replace"))


def above_standard(file: IO[bytes]) -> IO[bytes]:
    """Return an open file whose descriptor is not a standard one.

    Another process has its own standard descriptors.

    A process without standard streams, a daemon, is given their numbers for files that it opens.
    """
    if file.fileno() > 2:
        return file
    with file:
        return os.fdopen(fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, 3), "r+b")


def _file() -> IO[bytes]:
    return above_standard(tempfile.TemporaryFile())


def launch_options(limits: RunLimits) -> dict[str, int]:
    """Return the limits as the engine takes them."""
    return {
        "max_reports": limits.reports,
        "stack_bytes": math.ceil(limits.stack_bytes / 4096) * 4096,
        "milliseconds": max(1, round(limits.seconds * 1000)),
        "output_bytes": limits.output_bytes,
    }


def _ended(written: bytes, status: int, printed: str, errors: str) -> Ended:
    records, end, confined = [], {}, False
    for line in written.splitlines():
        try:
            record = json.loads(line)
        except ValueError:  # the last line of a process that was killed
            continue
        if "end" in record:
            end = record
        elif "confined" in record:
            confined = bool(record["confined"])
        else:
            records.append(record)
    if not end:
        records.append({"kind": "crash", "detail": _death(status, errors)})
    for record, count in zip(records, end.get("counts", ()), strict=False):
        record["count"] = count
    return Ended(records, end, printed, confined)


def _death(status: int, errors: str) -> str:
    if status == -signal.SIGKILL:
        return "the process was killed: it did not end in time, or the machine has no more memory"
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
    last = errors.strip().splitlines()[-1:] or ["no message"]
    return f"the process ended with {how}: {last[0]}"
