"""Reductions and running reductions along one dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tile_core.compat.types import Array
from tile_core.reference import extremes
from tile_core.reference.elements import convert, holder

if TYPE_CHECKING:
    from tile_core.reference.ops.operands import BoundCall

__all__ = ["reduce", "scan"]

_BITS = {"bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}


def reduce(call: BoundCall) -> None:
    """``dst = combine over k of src[.., k, ..]``, and ``dst`` itself without ``clear``."""
    src, dst = call.args
    kind, dim, nan = str(call.attrs["kind"]), int(call.attrs["dim"]), bool(call.attrs["nan_propagate"])
    acc = "float32" if dst.dtype in ("float16", "bfloat16") else dst.dtype
    x = src.numbers(acc)
    if kind.startswith("abs") and holder(acc).kind in "if":
        x = np.abs(x)
    if not call.attrs["clear"]:
        before = dst.numbers(acc)
        shape = [1 if d == dim else e for d, e in enumerate(src.extents)]
        x = np.concatenate([np.reshape(before, shape), x], axis=dim)
    result = _reduced(kind.removeprefix("abs"), x, dim, nan)
    shaker = dst.state.shaker
    if shaker is not None and kind.endswith("sum") and x.dtype.kind == "f":
        result = shaker.shaken(result, np.abs(x).sum(axis=dim, dtype=np.float64), acc)
    if x.dtype.kind == "f" and kind in ("max", "min", "absmax") and not nan:
        result = np.where(np.isnan(result), {"max": -np.inf, "min": np.inf, "absmax": 0}[kind], result)
    dst.write(convert(result.astype(holder(acc)), acc, dst.dtype).reshape(dst.extents))


def scan(call: BoundCall) -> None:
    """``dst[.., i, ..] = combine over k <= i of src[.., k, ..]``; from the end with ``reverse``."""
    src, dst = call.args
    kind, dim, nan = str(call.attrs["kind"]), int(call.attrs["dim"]), bool(call.attrs["nan_propagate"])
    acc = "float32" if dst.dtype in ("float16", "bfloat16") else dst.dtype
    x = src.numbers(acc)
    x = np.flip(x, dim) if call.attrs["reverse"] else x
    if kind == "max":
        result = extremes.accumulate("max", x, dim, nan)
        result = np.where(np.isnan(result), -np.inf, result) if x.dtype.kind == "f" and not nan else result
    else:
        result = np.add.accumulate(x, axis=dim, dtype=np.float64 if x.dtype.kind == "f" else x.dtype)
        if dst.state.shaker is not None and x.dtype.kind == "f":
            result = dst.state.shaker.shaken(result, np.add.accumulate(np.abs(x), axis=dim, dtype=np.float64), acc)
    result = np.flip(result, dim) if call.attrs["reverse"] else result
    dst.write(convert(result.astype(holder(acc)), acc, dst.dtype).reshape(dst.extents))


def _reduced(kind: str, x: Array, dim: int, nan: bool) -> Array:
    if kind == "sum":
        return np.add.reduce(x, axis=dim, dtype=np.float64 if x.dtype.kind == "f" else x.dtype)
    if kind in _BITS:
        return _BITS[kind].reduce(x, axis=dim)
    return extremes.reduce(kind, x, dim, nan)
