"""Executes the source generated for a device on the host, and finds its faults.

::

    result = tile_emulator.run(text, facts, {"a": a, "b": b, "n": 100}, dialect)
    assert result.ok, result.reports
    result.outputs["b"]

The source is compiled as C++ with the headers of a *dialect* and runs on an engine that makes every thread of a block a
fiber. Every access is checked: bounds, races, uninitialised reads, alignment. Asynchronous operations take effect as
early or as late as the device allows.
"""

from tile_emulator.api import CHECKS, RunResult, Stats, run
from tile_emulator.limits import RunLimits
from tile_emulator.reports import FaultAccess, FaultLocation, Report, Waiting

__version__ = "0.1.0"

__all__ = ["CHECKS", "FaultAccess", "FaultLocation", "Report", "RunLimits", "RunResult", "Stats", "Waiting", "run"]
