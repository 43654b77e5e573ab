"""Names of launches in profiles: ``torch.profiler`` while it records, and NVTX ranges with ``TILE_NVTX=1``.

Neither costs a launch anything when it is not used: functions of calls with torch tensors read one attribute of torch,
which its own code reads for the same purpose, and launches have ranges only if that was set when a kernel was made.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tile_runtime import knobs
from tile_runtime.compat.nvtx import range_functions
from tile_runtime.errors.setup import NoNvtx

__all__ = ["TorchRecord", "ranged", "torch_record"]


class TorchRecord:
    """The name of a kernel's launches for ``torch.profiler``.

    Attributes
    ----------
    profiler
        The module whose ``_is_profiler_enabled`` is true while a profiler records.
    begin
        Returns a context that records the launch inside.
    """

    def __init__(self, profiler: Any, name: str) -> None:
        self.profiler = profiler
        self.begin: Callable[[], AbstractContextManager[Any]] = functools.partial(profiler.record_function, name)

    def __call__(self) -> AbstractContextManager[Any]:
        """Return a context for one launch."""
        return self.begin() if self.profiler._is_profiler_enabled else contextlib.nullcontext()


def torch_record(kernel: str) -> TorchRecord | None:
    """Return the record of a kernel's launches; ``None`` without a torch that has one."""
    torch = sys.modules.get("torch")
    profiler = None if torch is None else getattr(getattr(torch, "autograd", None), "profiler", None)
    if profiler is None or not hasattr(profiler, "_is_profiler_enabled"):
        return None
    return TorchRecord(profiler, f"tile::{kernel}")


def ranged(launch: Callable[..., object], kernel: str) -> Callable[..., object]:
    """Return a launch that is an NVTX range, if ``TILE_NVTX`` is set.

    Raises
    ------
    NoNvtx
        Nothing that makes ranges is installed.
    """
    if not knobs.current().nvtx:
        return launch
    functions = range_functions(kernel)
    if functions is None:
        raise NoNvtx(kernel=kernel)
    push, pop = functions

    def named(*values: object) -> object:
        push()
        try:
            return launch(*values)
        finally:
            pop()

    return named
