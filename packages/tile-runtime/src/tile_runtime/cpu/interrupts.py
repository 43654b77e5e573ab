"""Launches that may never end, but can still be interrupted.

Python notices an interrupt when the machine code of a kernel returns. A kernel with a `while` need not return: it runs
in a thread of its own, and the main thread, which is the one that is interrupted, waits for it. When the wait is
interrupted, the code keeps running in its thread until its condition fails or the process ends; its output is undefined
from then on, and its arrays stay alive.
"""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any

from tile_runtime.compat.exits import endless, idle
from tile_runtime.types import Argument

_SECONDS_OF_A_WAIT = 0.1
_Answer = tuple[Any, "BaseException | None"]
_Work = tuple[Callable[[], Any], "queue.SimpleQueue[_Answer]"]


def interruptible(entry: Callable[..., object]) -> Callable[..., object]:
    """Return a launch that an interrupt of the main thread leaves at once."""

    @endless
    def launch(*values: Argument) -> object:
        # Other threads are never interrupted.
        if threading.current_thread() is not threading.main_thread():
            return entry(*values)
        return _WORKERS.run(endless(lambda: entry(*values)))

    return launch


class _Worker:
    """A thread that runs one task at a time."""

    def __init__(self) -> None:
        self.work: queue.SimpleQueue[_Work] = queue.SimpleQueue()
        self.thread = threading.Thread(target=_serve, args=(self.work,), name="tile-launch", daemon=True)
        self.thread.start()

    def run(self, work: Callable[[], object]) -> _Answer:
        answer: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
        self.work.put((work, answer))
        while True:
            # An interrupt that arrives just before the wait begins does not end it: Python looks again between waits.
            try:
                return answer.get(timeout=_SECONDS_OF_A_WAIT)
            except queue.Empty:
                continue


class _Workers:
    """Keeps an idle thread for reuse, except one whose kernel is still running."""

    def __init__(self) -> None:
        self._free: _Worker | None = None

    def run(self, work: Callable[[], object]) -> object:
        runner, self._free = self._free, None
        if runner is None or not runner.thread.is_alive():  # after a fork it is not
            runner = _Worker()
        context = contextvars.copy_context()
        result, error = runner.run(lambda: context.run(work))
        self._free = runner  # not if the wait was interrupted
        if error is not None:
            raise error
        return result


@idle
def _serve(waiting: queue.SimpleQueue[_Work]) -> None:
    while True:
        work, answer = waiting.get()
        try:
            answer.put((work(), None))
        except BaseException as error:  # raised where the work came from
            answer.put((None, error))
        del work, answer


_WORKERS = _Workers()
