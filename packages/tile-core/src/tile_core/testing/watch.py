"""The watchdog: search chunks in worker processes, which are killed after a time limit.

A worker runs many programs. It sends the text of every program before it begins, and when a build or a run starts. A
program that exceeds the limit, or ends the process, is a failure like a wrong result. The limit is processor time, so a
busy machine does not matter; a program that waits forever uses none, and is a failure after a multiple of the limit.
"""

from __future__ import annotations

import contextlib
import faulthandler
import math
import multiprocessing
import os
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from multiprocessing.connection import Connection, wait
from typing import Any

from tile_core.errors import TileError
from tile_core.records import dataclass
from tile_core.testing.effort import effort, own_effort
from tile_core.testing.search import Chunk, WrongProgram, search

#: Seconds that the start of a worker may take.
_STARTING = 300.0
#: Limit of a program on the wall clock, as a multiple of the processor-time limit.
_WAITING = 6


@dataclass
class Summary:
    """The findings of a watched search.

    Attributes
    ----------
    counts
        How many programs (or expressions) were right, compiled (where nothing is launched), refused, skipped, or ran.
    failures
        ``(kind, text)``: ``"wrong"``, ``"internal error"``, ``"over time"`` or ``"crashed"``, with the program.
    slowest
        ``"build"`` and ``"run"``: seconds of the processor, or by the clock if these are fewer, and the program.
    seconds
        Wall time.
    """

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, str]] = field(default_factory=list)
    slowest: dict[str, tuple[float, str]] = field(default_factory=dict)
    seconds: float = 0.0

    def table(self) -> dict[str, object]:
        """Return the summary as JSON takes it."""
        kinds = Counter(kind for kind, _ in self.failures)
        numbers = {k: self.counts[k] for k in ("right", "compiled", "ran", "refused", "skipped")}
        numbers |= {k: kinds[k] for k in ("wrong", "internal error", "over time", "crashed")}
        slowest = {k: {"seconds": round(s, 3), "program": text} for k, (s, text) in self.slowest.items()}
        failures = [{"kind": k, "report": text} for k, text in self.failures]
        return {"counts": numbers, "seconds": round(self.seconds, 1), "slowest": slowest, "failures": failures}


@dataclass
class _Worker:
    process: Any
    pipe: Connection
    chunk: Chunk | None = None
    left: int = 0
    text: str = ""
    phase: str = "start"
    since: float = 0.0
    begun: float = 0.0  # seconds of the processor when the phase began


class Watch:
    """A runner of chunks in worker processes.

    Parameters
    ----------
    target, runtime, seed, options
        Of the sessions.
    jobs
        How many processes.
    limit
        Seconds of the processor that a build or a run may take.
    seconds
        No chunk begins this many seconds after the first one.
    """

    def __init__(
        self, target: str, runtime: str | None, seed: int = 0, jobs: int = 1, limit: float = 20.0,
        seconds: float = math.inf, options: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        self.given = (target, runtime, seed, options)
        self.jobs, self.limit, self.seconds = jobs, limit, seconds
        self.context = multiprocessing.get_context("spawn")
        self.summary = Summary()
        self._first = math.inf

    def run(self, chunks: Sequence[Chunk], count: Callable[[str, int], None], say: Callable[[str], Any]) -> Summary:
        """Run chunks until none is left, or the time is up.

        Raises
        ------
        TileError
            If the target, its runtime or its options serve no session.
        """
        start, left = time.monotonic(), deque(chunks)
        workers = [self._start() for _ in range(min(self.jobs, len(left)))]
        try:
            while left or any(w.chunk is not None for w in workers):
                if time.monotonic() - self._first > self.seconds:
                    left.clear()
                for w in workers:
                    if w.chunk is None and left and w.phase == "idle":
                        self._give(w, left.popleft())
                wait([w.pipe for w in workers], timeout=0.5)
                for n, w in enumerate(workers):
                    again = self._listen(w, count, say)
                    if again is not None:
                        left.extend(again)
                        workers[n] = self._start() if w.phase == "dead" else w
        finally:
            for w in workers:
                _kill(w)
        self.summary.seconds = time.monotonic() - start
        return self.summary

    def _start(self) -> _Worker:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=serve, args=(theirs, *self.given), daemon=True)
        process.start()
        theirs.close()
        return _Worker(process, ours, since=time.monotonic())

    def _give(self, w: _Worker, chunk: Chunk) -> None:
        self._first = min(self._first, time.monotonic())
        w.chunk, w.left, w.phase, w.text, w.since = chunk, chunk.count, "draw", "", time.monotonic()
        with contextlib.suppress(OSError):
            w.pipe.send(chunk)

    def _listen(self, w: _Worker, count: Callable[[str, int], None], say: Callable[[str], Any]) -> list[Chunk] | None:
        """Take a worker's messages; return chunks to repeat if its chunk broke off."""
        try:
            while w.pipe.poll():
                kind, *rest = w.pipe.recv()
                if kind == "counted":
                    count(*rest)
                    w.left -= rest[1]
                elif kind == "wrong":
                    return self._wrong(w, rest, say)
                elif kind == "no session":
                    raise rest[0]
                elif kind == "done":
                    w.chunk, w.phase = None, "idle"
                else:
                    self._progress(w, kind, rest)
        except (EOFError, OSError):
            w.process.join(5)
            if w.phase == "start":
                raise RuntimeError(f"a worker ended with {w.process.exitcode} before it began") from None
            w.phase = "dead"
            return self._failed(w, "crashed", f"the process ended with {w.process.exitcode}\n\n{w.text}", say)
        over = {"start": _STARTING, "idle": 1e9, "draw": 15 * self.limit}.get(w.phase, self.limit)
        if _is_over(w, over):
            _kill(w)
            why = f"the {w.phase} took more than {over:.0f} s"
            w.phase = "dead"
            return self._failed(w, "over time", f"{why}\n\n{w.text}", say)
        return None

    def _wrong(self, w: _Worker, finding: list[Any], say: Callable[[str], Any]) -> list[Chunk]:
        """Record a wrong program; after a device fault continue in a new process.

        The program is then run alone there.
        """
        text, example, lost = finding
        chunk = w.chunk
        if chunk is not None and chunk.alone >= 0:
            text = f"alone in a fresh process it fails too:\n{text}"
        if not lost or chunk is None:
            return self._failed(w, _kind(text), text, say)
        _kill(w)
        w.phase = "dead"
        again = self._failed(w, _kind(text), text, say)
        return again if chunk.alone >= 0 else [replace(chunk, alone=example), *again]

    def _progress(self, w: _Worker, kind: str, rest: list[Any]) -> None:
        if kind == "ready":
            w.phase = "idle"
        elif kind == "program":
            (w.text, w.begun), w.phase = rest, "draw"
        elif kind == "end":
            name, seconds, w.begun = rest
            if seconds > self.summary.slowest.get(name, (0.0, ""))[0]:
                self.summary.slowest[name] = (seconds, w.text)
            w.phase = "draw"
        else:
            w.phase, (w.begun,) = kind, rest
        w.since = time.monotonic()

    def _failed(self, w: _Worker, kind: str, text: str, say: Callable[[str], Any]) -> list[Chunk]:
        self.summary.failures.append((kind, text))
        say(f"--- {kind} ({w.chunk}):\n{text}\n")
        chunk, left = w.chunk, w.left - 1
        w.chunk = None
        if w.phase != "dead":
            w.phase = "idle"
        if chunk is None or left <= 0 or chunk.kind == "indices" or chunk.alone >= 0:
            return []
        return [replace(chunk, seed=chunk.seed + 500_009, count=left)]


def serve(
    pipe: Connection, target: str, runtime: str | None, seed: int, options: Mapping[str, object] | None = None
) -> None:
    """Run chunks in a worker process until the pipe closes."""
    from tile_core.testing.run import Session

    faulthandler.enable()
    warnings.simplefilter("ignore")  # a slow way of an op is not what the fuzzer looks for

    class Telling(Session):
        """A session that reports the start and duration of each build and run."""

        def compile(self, program: Any) -> Any:
            return _timed(pipe, "build", lambda: super(Telling, self).compile(program))

        def call(self, kernel: Any, params: Any, arrays: Any) -> None:
            _timed(pipe, "run", lambda: super(Telling, self).call(kernel, params, arrays))

    def note(text: str) -> None:
        pipe.send(("program", text, own_effort()))

    try:
        session = Telling(target, runtime, seed, options=options)
    except TileError as error:
        pipe.send(("no session", error))
        return
    pipe.send(("ready",))
    while True:
        try:
            chunk = pipe.recv()
        except EOFError:
            return
        try:
            search(chunk, session, lambda *x: pipe.send(("counted", *x)), note)
        except WrongProgram as error:
            pipe.send(("wrong", str(error), error.example, error.lost))
        except Exception:  # a defect of the fuzzer itself is a failure like others
            pipe.send(("wrong", traceback.format_exc(), 0, False))
        else:
            pipe.send(("done",))


def _timed(pipe: Connection, name: str, function: Callable[[], Any]) -> Any:
    start, begun = time.monotonic(), own_effort()
    pipe.send((name, begun))
    try:
        return function()
    finally:
        now = own_effort()
        pipe.send(("end", name, min(time.monotonic() - start, now - begun), now))


def _is_over(w: _Worker, limit: float) -> bool:
    """Return whether a phase exceeded its time, on the wall clock if necessary."""
    passed = time.monotonic() - w.since
    if passed <= limit or w.phase == "idle":
        return False
    used = effort(w.process.pid) if w.phase != "start" else None
    return used is None or used - w.begun > limit or passed > _WAITING * limit


def _kill(w: _Worker) -> None:
    """Kill a worker, which may hang in a compiler."""
    if w.process.is_alive():
        w.process.kill()
    w.process.join(10)
    w.pipe.close()


def _kind(report: str) -> str:
    internal = "InternalError" in report or "internal error" in report or "Traceback" in report
    return "internal error" if internal else "wrong"


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
