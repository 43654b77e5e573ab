"""How often a loop runs: Python's ``len(range(start, stop, step))``, whatever the bounds.

The distance of two 32-bit bounds may need 33 bits. Where the known ranges of the bounds do not exclude that, the count
is computed in 64 bits, and is a 64-bit number if it may not fit into 32. A distance of 64-bit bounds is computed
without a sign; no loop ever runs 2**63 times, so greater counts are that.
"""

from __future__ import annotations

import builtins

from tile_core.analysis.ranges import whole
from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.values import extremes
from tile_core.values.builder import current
from tile_core.values.intervals import interval
from tile_core.values.scalar import cast, compare, derive
from tile_core.values.value import Index, Value, as_value, floordiv, to_index

__all__ = ["bound_of", "trip_count", "type_of"]

_LIMIT = 2**63 - 1


def bound_of(value: Value) -> Value:
    """Return a runtime bound as ``int32`` or ``int64``, with ``uint64`` clamped."""
    if value.dtype == "uint64":
        value = as_value(extremes.min(value, _LIMIT))
    index = to_index(value)
    return derive(index, DTYPES[nodes.dtype_of(index)], value)


def trip_count(start: Index, stop: Index, step: int) -> Index:
    """Return the trip count of a loop: 0 or less if it does not run.

    Parameters
    ----------
    start, stop
        Python ints, or values of type ``int32`` or ``int64``.
    step
        Not 0.
    """
    low, high = (start, stop) if step > 0 else (stop, start)
    size = builtins.abs(step)
    if isinstance(low, int) and isinstance(high, int):
        return builtins.min(builtins.max(0, -(-(high - low) // size)), _LIMIT)
    kind = type_of(low, high)
    (least, _), most = whole(kind), whole(kind)[1]
    a, b = interval(to_index(low)), interval(to_index(high))
    shortest, longest = b[0] - a[1], b[1] - a[0]
    if longest + size - 1 <= most and shortest >= least:
        return high - low if size == 1 else floordiv(high - low + (size - 1), size)
    x, y = (cast(as_value(v), DTYPES[kind]) for v in (low, high))
    if longest <= most:
        return _rounded_up(y - x if shortest > least else extremes.max(y, x) - x, size)
    if kind == "int64":
        return _wide(x, y, size)
    count = _rounded_up(y.astype("int64") - x.astype("int64"), size)
    return count.astype("int32") if -(-longest // size) <= most and shortest // size >= least else count


def type_of(*bounds: Index) -> str:
    """Return the type of a loop variable: ``int64`` if a bound requires it."""
    return "int64" if any(nodes.dtype_of(to_index(b)) == "int64" for b in bounds) else "int32"


def _rounded_up(distance: Value, size: int) -> Value:
    """Return the quotient rounded up; its sum with a divisor might overflow."""
    return distance if size == 1 else floordiv(distance - 1, size) + 1


def _wide(low: Value, high: Value, size: int) -> Value:
    unsigned = DTYPES["uint64"]
    count = _rounded_up(cast(high, unsigned) - cast(low, unsigned), size)
    fitting = cast(extremes.min(count, as_value(_LIMIT, unsigned)), DTYPES["int64"])
    runs = compare(tirx.LT, low, high)
    trips = tirx.Select(runs.expr, fitting.expr, as_value(0, fitting.dtype).expr)
    return as_value(current("a loop").bind("trips", trips))
