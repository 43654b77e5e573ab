"""Run the blocks of a CPU kernel on several threads: the launch that libraries import."""

from __future__ import annotations

import ctypes
import functools
import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from tile_runtime import knobs
from tile_runtime.compat.exits import idle

Task = Callable[[int], int]


class _Group(ctypes.Structure):
    """Data of a launch for a task: an unused handle, the number of tasks."""

    _fields_ = (("handle", ctypes.c_void_p), ("tasks", ctypes.c_int32))


#: A task of a launch: called with its number, the group and the captured values; not 0 is a failure.
_TASK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(_Group), ctypes.c_void_p)
#: The launch that libraries import: called with a task, its captured values, and a number of tasks or 0.
LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)


@functools.cache
def launcher() -> object:
    """Return the function that libraries import, which ctypes can pass to them."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_pool.cache_clear)  # the child has no threads
    return LAUNCH(_launch)


#: Seconds of work that one thread does in less time than it takes to wake others.
_LITTLE = 50e-6
#: Seconds of all tasks in the last launch, by the address of their function.
_work: dict[int, float] = {}


def _launch(task: int, captured: int | None, count: int) -> int:
    count = count or (1 if _work.get(task, _LITTLE) < _LITTLE else _threads())
    group = _Group(None, count)
    function = _TASK(task)
    took: list[float] = []

    def timed(number: int) -> int:
        begin = time.perf_counter()
        failed: int = function(number, ctypes.byref(group), captured)
        took.append(time.perf_counter() - begin)
        return failed

    failed = _pool().run(timed, count)
    _work[task] = sum(took)
    return failed


class _Pool:
    """Threads that wait for tasks; the calling thread takes the first task of each launch."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[tuple[Task, int, SimpleQueue[int]]] = SimpleQueue()
        self._started = 0
        self._lock = threading.Lock()

    def run(self, task: Task, count: int) -> int:
        """Run a task for each number below a count; return 0 if all do."""
        self._start(count - 1)
        done: SimpleQueue[int] = SimpleQueue()
        for number in range(1, count):
            self._waiting.put((task, number, done))
        failed = task(0)
        return functools.reduce(lambda a, b: a or b, (done.get() for _ in range(1, count)), failed)

    def _start(self, count: int) -> None:
        if self._started >= count:
            return
        with self._lock:
            while self._started < count:
                threading.Thread(target=_serve, args=(self._waiting,), name="tile-block", daemon=True).start()
                self._started += 1


@idle
def _serve(waiting: SimpleQueue[tuple[Task, int, SimpleQueue[int]]]) -> None:
    while True:
        task, number, done = waiting.get()
        done.put(task(number))
        del task, done


_pool = functools.cache(_Pool)


@functools.cache
def _threads() -> int:
    """Return the threads of a launch: the setting, or the processors of this process."""
    found = knobs.current().num_threads
    affinity = getattr(os, "sched_getaffinity", None)
    return found or (len(affinity(0)) if affinity is not None else os.cpu_count() or 1)
