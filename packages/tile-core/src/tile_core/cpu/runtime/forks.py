"""Launches on several cores before and after a fork.

TVM keeps a pool of threads for each thread that launches, and a forked child has none of them: its first launch would
deadlock, and so would its exit, in the destructor of a condition variable that lost threads wait for. So the pool
is woken before a fork: threads that have just worked look for more by themselves for a while, and wait for
nothing. The child can then let go of the pool. It does so at once, and gets one with as many threads: the memory of
lost threads may be given to the first thread that the child starts.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tile_core.compat.tvm import tvm, tvm_ffi
from tile_core.compat.types import Array

_RESET = "_ZN3tvm7runtime9threading15ResetThreadPoolEv"  # tvm::runtime::threading::ResetThreadPool()

# Identifiers of the threads that have a pool; with _ANY among them, all threads may.
_owners: set[int] = set()
_ANY = -1


def parallel(entry: Callable[..., object]) -> Callable[..., object]:
    """Return a launch on several cores for this process and its forked children."""
    _register()
    owners, ident = _owners, threading.get_ident

    def launch(*values: Array) -> object:
        owners.add(ident())
        return entry(*values)

    return launch


def expect_any_thread() -> None:
    """Expect a pool in every thread: machine code is launched without Python from now on."""
    _register()
    _owners.add(_ANY)


def _owns(thread: int) -> bool:
    return thread in _owners or _ANY in _owners


def _before() -> None:
    if _owns(threading.get_ident()):
        library = _library()
        # Each thread of the pool meets the others once: nothing is computed.
        library.TVMBackendParallelLaunch(ctypes.cast(library.TVMBackendParallelBarrier, ctypes.c_void_p), None, 0)


def _in_child() -> None:
    me = threading.get_ident()
    forked = _owns(me)
    _owners.intersection_update({_ANY})
    if not forked:
        return
    _owners.add(me)
    reset = getattr(_library(), _RESET, None)
    if reset is not None:
        reset()
    else:  # the launching thread alone, which needs no others
        tvm_ffi.get_global_func("runtime.config_threadpool")(0, 1)


@functools.cache
def _register() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_child=_in_child)


@functools.cache
def _library() -> Any:
    folder = Path(tvm.__file__).parent / "lib"
    return ctypes.CDLL(str(next(folder.glob("libtvm_runtime.[sd]*"))))
