"""The instruction sets of this machine's processor, by LLVM's names."""

from __future__ import annotations

import functools
from collections.abc import Collection
from pathlib import Path

#: LLVM's names of features that Linux calls otherwise; all others differ in dots, dashes and underscores only.
_NAMES = {
    "bmi": "bmi1", "complxnum": "fcma", "dotprod": "asimddp", "fp16fml": "asimdfhm", "fptoint": "frint",
    "fullfp16": "asimdhp", "jsconv": "jscvt", "lse": "atomics", "lse2": "uscat", "lzcnt": "abm", "neon": "asimd",
    "rcpc": "lrcpc", "rcpc-immo": "ilrcpc", "rcpc3": "lrcpc3", "rdm": "asimdrdm", "sahf": "lahflm", "sse3": "pni",
}  # fmt: skip
_PROCESSORS = Path("/proc/cpuinfo")


def lacking(needed: Collection[str]) -> list[str]:
    """Return the features that this machine's processor may lack, sorted.

    All of them where its features cannot be read.
    """
    have = _features()
    return sorted(name for name in needed if _plain(_NAMES.get(name, name)) not in have)


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


def _is_features(name: str) -> bool:
    return name.strip() in ("flags", "Features")


def _plain(name: str) -> str:
    return name.replace(".", "").replace("-", "").replace("_", "")
