"""Python numbers as values of any element type."""

from __future__ import annotations

import math

from tile_core.dtypes import DType
from tile_core.values.promotion import check_fits, computed
from tile_core.values.scalar import Value, as_value, cast
from tile_runtime.numerics.literals import round_number

__all__ = ["constant"]


def constant(number: float, dtype: DType) -> Value:
    """Return a Python number as a value of a type, rounded once.

    What is beyond a type that is not computed with becomes what a conversion makes of it.
    """
    wide = computed(dtype)
    if wide == dtype:
        return as_value(number, dtype)
    check_fits(number, wide)
    nearest = round_number(number, str(dtype))
    if not dtype.is_narrow:
        return as_value(nearest, dtype)
    return cast(as_value(nearest if math.isfinite(nearest) else number, wide), dtype)
