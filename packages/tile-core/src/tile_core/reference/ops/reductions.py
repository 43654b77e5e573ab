"""Reductions and running reductions along one dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tile_core.compat.types import Array
from tile_core.dtypes import DTYPES
from tile_core.ir.attributes import CLEAR, DIM, KIND, NAN_PROPAGATE, REVERSE
from tile_core.reference import extremes
from tile_core.reference.elements import convert, holder
from tile_core.reference.parallel import BITS

if TYPE_CHECKING:
    from tile_core.reference.ops.operands import BoundCall

__all__ = ["reduce", "scan"]


def reduce(call: BoundCall) -> None:
    """``dst = combine over k of src[.., k, ..]``, and ``dst`` itself without ``clear``."""
    src, dst = call.args
    kind, dim, nan = str(call.attrs[KIND]), int(call.attrs[DIM]), bool(call.attrs[NAN_PROPAGATE])
    acc = "float32" if dst.dtype in ("float16", "bfloat16") else dst.dtype
    x = src.state.flushed(src.numbers(acc), acc)
    if kind in ("any", "all"):
        _truths(call, kind, dim)
        return
    if kind.startswith("abs") and holder(acc).kind in "if":
        x = np.abs(x)
    if not call.attrs[CLEAR]:
        before = dst.state.flushed(dst.numbers(acc), acc)
        shape = [1 if d == dim else e for d, e in enumerate(src.extents)]
        x = np.concatenate([np.reshape(before, shape), x], axis=dim)
    result = _reduced(kind.removeprefix("abs"), x, dim, nan)
    shaker = dst.state.shaker
    if shaker is not None and kind.endswith("sum") and x.dtype.kind == "f":
        result = shaker.shaken(result, np.abs(x).sum(axis=dim, dtype=np.float64), acc)
    if shaker is not None and kind == "prod" and x.dtype.kind == "f":
        result = shaker.shaken(result, np.abs(result) * x.shape[dim], acc)
    if x.dtype.kind == "f" and kind in ("max", "min", "absmax") and not nan:
        result = np.where(np.isnan(result), {"max": -np.inf, "min": np.inf, "absmax": 0}[kind], result)
    result = dst.state.flushed(result.astype(holder(acc)), acc)
    dst.write(dst.state.converted(result, acc, dst.dtype).reshape(dst.extents))


def scan(call: BoundCall) -> None:
    """Execute a scan: ``dst[.., i, ..]`` combines ``src[.., k, ..]`` for ``k <= i``."""
    src, dst = call.args
    kind, dim, nan = str(call.attrs[KIND]), int(call.attrs[DIM]), bool(call.attrs[NAN_PROPAGATE])
    acc = "float32" if dst.dtype in ("float16", "bfloat16") else dst.dtype
    x = src.state.flushed(src.numbers(acc), acc)
    x = np.flip(x, dim) if call.attrs[REVERSE] else x
    if kind == "max":
        result = extremes.accumulate("max", x, dim, nan)
        result = np.where(np.isnan(result), -np.inf, result) if x.dtype.kind == "f" and not nan else result
    elif kind == "prod":
        result = np.multiply.accumulate(x, axis=dim, dtype=np.float64 if x.dtype.kind == "f" else x.dtype)
        if dst.state.shaker is not None and x.dtype.kind == "f":
            result = dst.state.shaker.shaken(result, np.abs(result) * x.shape[dim], acc)
    else:
        result = np.add.accumulate(x, axis=dim, dtype=np.float64 if x.dtype.kind == "f" else x.dtype)
        if dst.state.shaker is not None and x.dtype.kind == "f":
            result = dst.state.shaker.shaken(result, np.add.accumulate(np.abs(x), axis=dim, dtype=np.float64), acc)
    result = np.flip(result, dim) if call.attrs[REVERSE] else result
    result = dst.state.flushed(result.astype(holder(acc)), acc)
    dst.write(dst.state.converted(result, acc, dst.dtype).reshape(dst.extents))


def _truths(call: BoundCall, kind: str, dim: int) -> None:
    """Whether some or all elements are not zero; codes of floats are decoded first."""
    src, dst = call.args
    found = src.numbers("float64" if DTYPES[src.dtype].is_float else src.dtype) != 0
    if not call.attrs[CLEAR]:
        shape = [1 if d == dim else e for d, e in enumerate(src.extents)]
        found = np.concatenate([np.reshape(dst.numbers(dst.dtype) != 0, shape), found], axis=dim)
    result = found.any(axis=dim) if kind == "any" else found.all(axis=dim)
    dst.write(convert(result, "bool", dst.dtype).reshape(dst.extents))


def _reduced(kind: str, x: Array, dim: int, nan: bool) -> Array:
    if kind == "sum":
        return np.add.reduce(x, axis=dim, dtype=np.float64 if x.dtype.kind == "f" else x.dtype)
    if kind == "prod":
        return np.multiply.reduce(x, axis=dim, dtype=np.float64 if x.dtype.kind == "f" else x.dtype)
    if kind in BITS:
        return BITS[kind].reduce(x, axis=dim)
    return extremes.reduce(kind, x, dim, nan)
