"""Threads that may not enter the compiler: daemon threads at exit, and stacks without frames.

A daemon thread that returns from C++ while the interpreter ends is unwound by the system. Destructors of TVM's FFI do
not allow that, and the process would abort. So the exit waits until other threads have left the compiler and the
launches. A thread that enters again ends, as if it had called ``sys.exit``.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

from tile_runtime.errors.base import StackExhausted

SECONDS_OF_WORK = 60.0
"""How long the exit waits for another thread's pass or launch."""

SECONDS_OF_ENDLESS_WORK = 0.5
"""How long it waits for a kernel with a `while`, which may never return."""

FRAMES = 300
"""Frames that must be left: passes take some 100, and more for each nested loop."""

_ending = False
_launches: list[tuple[type, str]] = []
_idle: set[CodeType] = set()
_endless: set[CodeType] = set()
_Function = Callable[..., Any]


def leave_at_exit() -> None:
    """Make the end of the process wait for other threads; called when TVM is imported."""
    atexit.register(_end)


def gate_at_exit(owner: type, *methods: str) -> None:
    """Make launching methods of a class end other threads at process exit."""
    _launches.extend((owner, name) for name in methods)


def idle(function: _Function) -> _Function:
    """Mark a function whose innermost frame is an idle thread of tile."""
    _idle.add(function.__code__)
    return function


def endless(function: _Function) -> _Function:
    """Mark a function whose call may never return."""
    _endless.add(function.__code__)
    return function


def check_thread() -> None:
    """Refuse work of the compiler in a thread that could not finish it.

    Raises
    ------
    SystemExit
        The process ends, and this is not the thread that ends it.
    StackExhausted
        Python has so few frames left that a callback of TVM may find none, which its FFI does not survive.
    """
    if _ending and threading.current_thread() is not threading.main_thread():
        raise SystemExit
    limit = sys.getrecursionlimit()
    try:
        sys._getframe(max(limit - FRAMES, 0))
    except ValueError:  # the stack is not that deep
        return
    raise StackExhausted(limit=limit)


def _end() -> None:
    global _ending
    _ending = True
    for owner, name in _launches:
        setattr(owner, name, _gated(getattr(owner, name)))
    begin = time.monotonic()
    while (waits := max(map(_seconds, _others()), default=0.0)) and time.monotonic() - begin < waits:
        time.sleep(0.001)


def _gated(method: _Function) -> _Function:
    def call(*args: Any, **keywords: Any) -> Any:
        check_thread()
        return method(*args, **keywords)

    return call


def _others() -> Iterator[FrameType]:
    """Yield the innermost frame of each thread other than this one."""
    me = threading.get_ident()
    return (frame for ident, frame in sys._current_frames().items() if ident != me)


def _seconds(innermost: FrameType) -> float:
    """Return how long to wait for a thread: zero outside of the compiler and launches."""
    if innermost.f_code in _idle:
        return 0.0
    seconds, frame = 0.0, innermost
    while frame is not None:
        if frame.f_code in _endless:
            return SECONDS_OF_ENDLESS_WORK
        package, _, rest = str(frame.f_globals.get("__name__", "")).partition(".")
        if package in ("tvm", "tvm_ffi") or (package.startswith("tile_") and not rest.startswith("cli.")):
            seconds = SECONDS_OF_WORK
        frame = frame.f_back  # type: ignore[assignment]
    return seconds
