"""Conditions: whether one is known while tracing, and if not, its truth value."""

from __future__ import annotations

from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.values.value import Buffer, Value, as_value, cast


def as_condition(x: object) -> Value | None:
    """Return the truth value of a runtime value, or ``None`` if Python can decide."""
    if isinstance(x, Buffer) and x.is_scalar:
        x = x.value()
    elif not isinstance(x, Value):
        if not isinstance(x, tirx.Expr) or isinstance(x, Buffer):
            return None
        x = as_value(x)
    return cast(x, DTYPES["bool"])
