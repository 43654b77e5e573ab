"""Scalar arguments that tvm-ffi cannot represent: unsigned numbers beyond ``int64``, floats stored as codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tile_runtime.calls.convert import coded_number
from tile_runtime.dtypes import DTYPES
from tile_runtime.types import Argument


def coded(dtypes: Sequence[str | None]) -> dict[int, str]:
    """Return position and element type of the scalars to convert before a launch.

    Parameters
    ----------
    dtypes
        Per parameter the element type of a scalar, ``None`` for anything else.
    """
    return {
        i: d for i, d in enumerate(dtypes)
        if d == "uint64" or (d is not None and DTYPES[d].is_float and DTYPES[d].storage != DTYPES[d].container)
    }  # fmt: skip


def with_codes(entry: Callable[..., object], kinds: Mapping[int, str]) -> Callable[..., object]:
    """Return a launch that converts the scalars at these positions."""

    def launch(*values: Argument) -> object:
        given = list(values)
        for i, dtype in kinds.items():
            given[i] = coded_number(given[i], dtype)
        return entry(*given)

    return launch
