"""Pass exceptions of signal handlers, such as time-outs, to the caller unchanged.

A handler runs between two instructions of any function. Its exception passes through code that turns all exceptions
into errors of the catalogue, and through TVM, which keeps only the text of an exception. So handlers are watched while
a kernel is traced or compiled, and elsewhere a handler is recognized in the traceback.
"""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

_Handler = Callable[[int, "FrameType | None"], Any]


def is_interrupt(error: BaseException | None) -> bool:
    """Whether a signal handler raised an exception."""
    if error is None:
        return False
    if isinstance(error, KeyboardInterrupt):
        return True
    trace = error.__traceback__
    while trace is not None:
        if _is_handler(trace.tb_frame):
            return True
        trace = trace.tb_next
    return False


def passed_on(error: BaseException) -> None:
    """Raise an exception again if a signal's handler raised it."""
    if is_interrupt(error):
        raise error


class watched:
    """Watch handlers in this block, and raise their exceptions instead of derived errors.

    Only the main thread runs handlers of Python's. Blocks nest: each watches the handlers that it finds.
    """

    def __enter__(self) -> None:
        self.raised: list[BaseException] = []
        self.handlers: dict[int, tuple[_Handler, _Handler]] = {}
        if threading.current_thread() is threading.main_thread():
            try:
                self._install()
            except BaseException:  # a handler ran, and raised
                self._remove()
                raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._remove()
        except BaseException:
            self._remove()
            raise
        found = [e for e in self.raised if (_is_lost(e) if error is None else _follows(error, e))]
        origin = found[-1] if found else None
        if origin is not None and origin is not error:
            raise origin from origin.__cause__

    def _install(self) -> None:
        for number in _SIGNALS:
            handler: Any = signal.getsignal(number)
            if callable(handler) and handler is not signal.default_int_handler and type(handler) is not signal.Handlers:
                watcher = functools.partial(_watch, handler, self.raised)
                self.handlers[number] = handler, watcher
                signal.signal(number, watcher)

    def _remove(self) -> None:
        for number, (handler, watcher) in self.handlers.items():
            if signal.getsignal(number) is watcher:  # a handler may have set another one
                signal.signal(number, handler)


def _watch(handler: _Handler, raised: list[BaseException], number: int, frame: FrameType | None) -> Any:
    try:
        return handler(number, frame)
    except BaseException as error:
        raised.append(error)
        raise


def _is_lost(origin: BaseException) -> bool:
    """Whether an exception was caught by this package or by TVM, not by the user."""
    trace = origin.__traceback__
    module = "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
    return module.startswith(("tile_", "tvm"))


def _follows(error: BaseException, origin: BaseException) -> bool:
    """Whether an exception is, was raised from, or is TVM's copy of another one."""
    seen: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo:
        e = todo.pop()
        if e is None or any(e is s for s in seen):
            continue
        if e is origin or (hasattr(e, "__tvm_ffi_error__") and str(e) == str(origin)):
            return True
        seen.append(e)
        todo += [e.__cause__, e.__context__]
    return False


def _is_handler(frame: FrameType) -> bool:
    """Whether a frame is a handler's: one of its arguments is the interrupted frame."""
    code, back = frame.f_code, frame.f_back
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 0x04)]
    values = [frame.f_locals.get(n) for n in names]
    return back is not None and any(v is back or (type(v) is tuple and any(x is back for x in v)) for v in values)


_SIGNALS = sorted(signal.valid_signals())
