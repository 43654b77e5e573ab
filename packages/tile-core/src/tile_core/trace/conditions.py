"""Conditions: is this known while tracing, and if not, what is its truth."""

from __future__ import annotations

from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.values.value import Buffer, Value, as_value, cast


def as_condition(x: Any) -> Value | None:
    """Return the truth of a runtime value as a ``bool`` value, or ``None`` if Python can decide."""
    if isinstance(x, Buffer) and x.is_scalar:
        x = x.value()
    elif not isinstance(x, Value):
        if not isinstance(x, tirx.Expr) or isinstance(x, Buffer):
            return None
        x = as_value(x)
    return cast(x, DTYPES["bool"])
