"""The least and greatest value of an integer expression, from what is known while tracing."""

from __future__ import annotations

from tile_core.analysis.ranges import Interval, Ranges, whole
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.ir import nodes
from tile_core.ir.grammar import SYMBOL_HEADROOM
from tile_core.ir.visit import collect
from tile_core.values.builder import tracing
from tile_core.values.types import is_symbol

__all__ = ["interval"]


def interval(e: Expr) -> Interval:
    """Return the range of an integer expression, by default that of its type.

    Symbolic sizes are not negative, and leave headroom for a tile (K422).
    """
    ranges, active = Ranges(), tracing()
    for var in set(collect(e, tirx.Var)):
        if is_symbol(var):
            ranges.set(var, (0, whole(nodes.dtype_of(var))[1] - SYMBOL_HEADROOM))
        elif active is not None and var in active.ranges:
            ranges.set(var, active.ranges[var])
    return ranges.of(e)
