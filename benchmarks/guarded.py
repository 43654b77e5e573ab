"""A benchmark that goes on with its next line after a fault or a stall of the device."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from sides import Row

_T = TypeVar("_T")

_STALL = 150.0  # seconds without a line of output
_BEGIN = "begin: "
_BEGUN = "BENCHMARK_BEGUN"  # lines that another process began, one a line; set in processes that measure


def each(torch: Any, lines: Mapping[str, Callable[[], Row | None]]) -> list[Row]:
    """Return the rows of lines that another process has not begun; an exception costs its line alone."""
    rows: list[Row] = []
    begun = os.environ.get(_BEGUN, "").split("\n")
    for name, line in lines.items():
        if name in begun:
            continue
        print(f"{_BEGIN}{name}", flush=True)
        try:
            row = line()
            rows += [] if row is None else [row]
            print("row:", row, flush=True)
        except Exception:
            traceback.print_exc()
            sys.stderr.flush()
            _leave_if_lost(torch)
        gc.collect()
        torch.cuda.empty_cache()
    return rows


def spoken(results: Iterable[_T]) -> list[_T]:
    """Return results as a list, and print how many there are every ten seconds."""
    found: list[_T] = []
    last = time.perf_counter()
    for result in results:
        found.append(result)
        if time.perf_counter() - last > 10:
            last = time.perf_counter()
            print(f"{len(found)} compiled", flush=True)
    return found


def guard(main: Callable[[], None]) -> None:
    """Run a benchmark in a process that is started again, after the last line, if it ends or stalls."""
    if _BEGUN in os.environ:
        main()
        return
    begun: list[str] = [""]
    while True:
        before = len(begun)
        code = _watched({**os.environ, _BEGUN: "\n".join(begun)}, begun)
        if code == 0 or len(begun) == before:
            sys.exit(code)
        print(f"the process ended with {code} in {begun[-1]!r}; the others follow", flush=True)


def _watched(environment: dict[str, str], begun: list[str]) -> int:
    """Run this script, append the lines that it begins, and end it when it prints nothing for long."""
    command = [sys.executable, *sys.argv]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        timer = _timer(process.pid)
        for text in process.stdout:
            timer.cancel()
            timer = _timer(process.pid)
            print(text, end="", flush=True)
            if text.startswith(_BEGIN):
                begun.append(text[len(_BEGIN) :].rstrip("\n"))
        timer.cancel()
    return process.returncode


def _timer(group: int) -> threading.Timer:
    timer = threading.Timer(_STALL, os.killpg, (group, signal.SIGKILL))
    timer.daemon = True
    timer.start()
    return timer


def _leave_if_lost(torch: Any) -> None:
    """End the process if its device has a fault, which every later call reports again."""
    try:
        torch.cuda.synchronize()
    except Exception:
        os._exit(3)
