"""The instruction sets of this machine's processor, by LLVM's names."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Collection
from pathlib import Path

#: LLVM's names of features that Linux calls otherwise; all others differ in dots, dashes and underscores only.
_NAMES = {
    "bmi": "bmi1", "complxnum": "fcma", "dotprod": "asimddp", "fp16fml": "asimdfhm", "fptoint": "frint",
    "fullfp16": "asimdhp", "jsconv": "jscvt", "lse": "atomics", "lse2": "uscat", "lzcnt": "abm", "neon": "asimd",
    "rcpc": "lrcpc", "rcpc-immo": "ilrcpc", "rcpc3": "lrcpc3", "rdm": "asimdrdm", "sahf": "lahflm", "sse3": "pni",
}  # fmt: skip
_PROCESSORS = Path("/proc/cpuinfo")
#: Features whose registers a process may use only with Linux's permission.
_TILES = ("amx-tile", "amx-bf16", "amx-int8")
#: Of Linux on x86-64: the system call, its two requests, and the number of the state of tile registers.
_ARCH_PRCTL, _PERMITTED, _PERMIT, _TILE_DATA = 158, 0x1022, 0x1023, 18


def lacking(needed: Collection[str]) -> list[str]:
    """Return the features that this machine's processor may lack, sorted.

    All of them where its features cannot be read. Tile registers count if the system permits their use, for which
    this process asks once.
    """
    have = _features()
    missing = {name for name in needed if _plain(_NAMES.get(name, name)) not in have}
    tiles = {name for name in needed if name in _TILES} - missing
    return sorted(missing | (set() if not tiles or _permitted() else tiles))


def hidden(named: Collection[str]) -> list[str]:
    """Return the features that this machine's system does not list, sorted.

    None where its features cannot be read.
    """
    return lacking(named) if _features() else []


@functools.cache
def _features() -> frozenset[str]:
    """Return the features that each processor has, without punctuation."""
    try:
        lines = _PROCESSORS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return frozenset()
    rows = [value.split() for name, _, value in (line.partition(":") for line in lines) if _is_features(name)]
    return frozenset.intersection(*(frozenset(map(_plain, row)) for row in rows)) if rows else frozenset()


@functools.cache
def _permitted() -> bool:
    """Whether Linux lets this process, and the processes that it forks, use tile registers."""
    if not sys.platform.startswith("linux") or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    granted = ctypes.c_uint64(0)
    with contextlib.suppress(OSError, AttributeError):
        call = ctypes.CDLL(None).syscall
        call.restype = ctypes.c_long
        # It fails where a thread has a stack for signals that cannot hold these registers.
        call(ctypes.c_long(_ARCH_PRCTL), ctypes.c_long(_PERMIT), ctypes.c_long(_TILE_DATA))
        call(ctypes.c_long(_ARCH_PRCTL), ctypes.c_long(_PERMITTED), ctypes.byref(granted))
    return bool(granted.value >> _TILE_DATA & 1)


def _is_features(name: str) -> bool:
    return name.strip() in ("flags", "Features")


def _plain(name: str) -> str:
    return name.replace(".", "").replace("-", "").replace("_", "")
