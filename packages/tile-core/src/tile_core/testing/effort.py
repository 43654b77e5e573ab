"""Processor time of a process, the measure of slowness on a shared machine."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

_PROCESSES = Path("/proc")
#: Fields of a process's state behind its name: its parent, and ticks of itself and of children that it has waited for.
_PARENT, _TICKS = 1, slice(11, 15)


def own_effort() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def effort(pid: int) -> float | None:
    """Return the processor seconds of a process and of all that it started.

    Parameters
    ----------
    pid
        The process's number.

    Returns
    -------
    float or None
        ``None`` where the system does not report it, or the process has ended.
    """
    ticks, children = {}, defaultdict(list)
    for entry in _PROCESSES.glob("[0-9]*/stat"):
        try:
            # The name stands in parentheses and may have any characters.
            fields = entry.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        number = int(entry.parent.name)
        ticks[number] = sum(map(int, fields[_TICKS]))
        children[int(fields[_PARENT])].append(number)
    if pid not in ticks:
        return None
    family, total = [pid], 0
    while family:
        one = family.pop()
        total += ticks[one]
        family += children[one]
    return total / os.sysconf("SC_CLK_TCK")
