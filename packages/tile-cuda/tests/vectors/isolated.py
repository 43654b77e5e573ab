"""Run cases in child processes, isolated from crashes of processes and device contexts.

A child reads names of cases from standard input, one a line, and reports progress on standard output: a line
when a case begins, and one with its result. After a fault a CUDA context runs nothing any more, so a child stops
at the first case that fails, and the others go on in a fresh one.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

_MARK = "\x1e"
"""Begins the lines that are meant for the parent; libraries print others."""


@dataclass
class Outcome:
    """Results of cases.

    Attributes
    ----------
    results
        What cases returned, by name.
    failed
        Why cases failed, by name.
    left
        Cases that were not run, because too many had failed before.
    """

    results: dict[str, Any] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)


def answer(run: Callable[[str], Any]) -> None:
    """Run the cases of standard input as a child; write ``run``'s results as JSON."""
    for name in sys.stdin.read().splitlines():
        _send({"begins": name})
        try:
            result = run(name)
        except Exception as error:
            _send({"failed": name, "error": f"{type(error).__name__}: {error}"})
            raise SystemExit(1) from error
        _send({"ended": name, "result": result})


def run_isolated(
    command: Sequence[str], names: Sequence[str], *, batch: int = 64, most_failures: int = 100, seconds: float = 120,
    say: Callable[[str], None] = print,
) -> Outcome:  # fmt: skip
    """Run all cases in children, a batch in each, and return their results.

    Parameters
    ----------
    command
        Starts a child, which calls `answer`.
    names
        The cases.
    batch
        Cases of one child.
    most_failures
        After n failures the rest is skipped: the device is gone, or all cases have one mistake.
    seconds
        Time of one case, the start of its process included.
    say
        Receives a line of progress for each child and for each failure.

    Raises
    ------
    RuntimeError
        A child ended before it began a case.
    """
    outcome, waiting = Outcome(), list(names)
    while waiting and len(outcome.failed) < most_failures:
        done = _child(command, waiting[:batch], outcome, seconds, say)
        waiting = waiting[done:]
        say(f"{len(outcome.results)} of {len(names)} done, {len(outcome.failed)} failed, {len(waiting)} to go")
    outcome.left = waiting
    return outcome


def _child(
    command: Sequence[str], names: Sequence[str], outcome: Outcome, seconds: float, say: Callable[[str], None]
) -> int:  # fmt: skip
    """Run cases in one child until a failure, and return the number of cases."""
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True)
        assert child.stdin is not None
        assert child.stdout is not None
        lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        reader = threading.Thread(target=_read, args=(child.stdout, lines), daemon=True)
        reader.start()
        try:
            child.stdin.write("\n".join(names))
            child.stdin.close()
        except BrokenPipeError:
            pass  # it ended: its output follows below
        done, running, reason = 0, "", ""
        try:
            for message in _messages(lines, seconds):
                running = message.get("begins", running)
                if "ended" in message:
                    outcome.results[running] = message["result"]
                    done, running = done + 1, ""
                reason = message.get("error", "")
                if reason:  # with a dead context even the end of a process may take its time
                    break
        except queue.Empty:
            reason = f"it took more than {seconds:g} s"
        child.kill()
        code = child.wait()
        reader.join()
        child.stdout.close()
        if done == len(names):
            return done
        said.seek(0)
        tail = said.read()[-2000:].strip()
        if not running:
            raise RuntimeError(f"a child ended with {code} before it began a case: {tail}")
        last = tail.splitlines()[-1] if tail else "nothing was said"
        outcome.failed[running] = reason or f"its process ended with {code}: {last}"
        say(f"{running} failed: {outcome.failed[running]}")
        return done + 1


def _messages(lines: queue.SimpleQueue[dict[str, Any] | None], seconds: float) -> Iterator[dict[str, Any]]:
    """Yield a child's messages; raise ``queue.Empty`` after ``seconds`` without one."""
    while (message := lines.get(timeout=seconds)) is not None:
        yield message


def _read(pipe: IO[str], lines: queue.SimpleQueue[dict[str, Any] | None]) -> None:
    for line in pipe:
        if line.startswith(_MARK):
            lines.put(json.loads(line[1:]))
    lines.put(None)


def _send(message: dict[str, Any]) -> None:
    print(_MARK + json.dumps(message), flush=True)
