"""Reducers: tiles that iterations of parallel loops combine into, epoch by epoch.

An epoch begins where the reducer is allocated or with ``reducer_init``, and ends with ``finalize_reducer``.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.compat.types import DTypeLike
from tile_core.dtypes import DType, integer_range, largest
from tile_core.errors.language import BadInitial
from tile_core.errors.ops import BadAttribute, BadElementType
from tile_core.ir.attributes import KIND
from tile_core.ops import operands
from tile_core.ops.copy import copy
from tile_core.ops.fill import fill
from tile_core.values import extremes
from tile_core.values.allocation import allocate
from tile_core.values.buffer import store
from tile_core.values.builder import current
from tile_core.values.checks import shown
from tile_core.values.constants import constant
from tile_core.values.scalar import is_python
from tile_core.values.value import Buffer, Scalar, Tile, Value, as_value, bitwise, cast

_BITS = {"bitand": "and", "bitor": "or", "bitxor": "xor"}
_REDUCTIONS = ("sum", "max", "min", *_BITS)


def alloc_reducer(shape: Sequence[int], dtype: DTypeLike, op: str = "sum", replication: str | None = None) -> Buffer:
    """Allocate a tile that threads combine into; ``T.finalize_reducer`` completes it.

    Parameters
    ----------
    shape, dtype
        As for ``alloc_fragment``.
    op
        How partial results are combined: ``"sum"``, ``"max"``, ``"min"``; of integers ``"bitand"``, ``"bitor"``,
        ``"bitxor"``. Elements start at its neutral value.
    replication
        ``"all"``, ``"none"`` or ``None``: whether every thread keeps partial results; a hint.
    """
    if not isinstance(op, str) or op not in _REDUCTIONS:
        instead = f"use one of {', '.join(_REDUCTIONS)}"
        raise BadInitial(what="alloc_reducer", name="op", found=shown(op), expected="a reduction", instead=instead)
    if replication is not None and (not isinstance(replication, str) or replication not in ("all", "none")):
        instead = "use 'all' or 'none'"
        found = shown(replication)
        raise BadInitial(what="alloc_reducer", name="replication", found=found, expected="a mode", instead=instead)
    buffer = allocate("alloc_reducer", shape, dtype, "local.fragment", "reducer")
    if op in _BITS and not buffer.dtype.is_integer:
        expected, instead = "a reduction of integers with it", "use 'sum', 'max' or 'min', or an integer type"
        found = f"{op!r} of {buffer.dtype}"
        raise BadInitial(what="alloc_reducer", name="op", found=found, expected=expected, instead=instead)
    if buffer.dtype.is_reduced:
        raise BadElementType(op="alloc_reducer", role="the reducer", found=buffer.dtype, legal=buffer.dtype.container)
    current().reducers[str(buffer.var.name)] = {"op": op, "replication": replication or "all"}
    fill(buffer, neutral(op, buffer.dtype))
    return buffer


def reducer_init(reducer: Buffer) -> None:
    """Begin an epoch: every element becomes the neutral value of the reducer's operation.

    Raises
    ------
    BadAttribute
        For anything else than a ``T.alloc_reducer`` buffer.
    """
    fill(reducer, neutral(_operation("reducer_init", reducer), reducer.dtype))


def reducer_update(element: Value, value: Scalar) -> None:
    """Combine an element of a reducer with a value, by the reducer's operation.

    Parameters
    ----------
    element
        One element: ``total[i]``.
    value
        A scalar, converted to the reducer's type; a sum is computed as ``total[i] += value`` is.

    Raises
    ------
    BadAttribute
        For anything else than an element of a ``T.alloc_reducer`` buffer.
    """
    if not isinstance(element, Value) or element.element is None:
        legal = "an element of a reducer: T.reducer_update(total[i], value)"
        raise BadAttribute(op="reducer_update", name="element", found=operands.named(element), legal=legal)
    buffer, indices = element.element
    op = _operation("reducer_update", buffer)
    if op == "sum":
        store(buffer, indices, element + value)
        return
    own = constant(value, buffer.dtype) if is_python(value) else cast(as_value(value), buffer.dtype)
    if op in _BITS:
        store(buffer, indices, bitwise(_BITS[op], element, own))
    else:
        store(buffer, indices, (extremes.max if op == "max" else extremes.min)(element, own))


def finalize_reducer(reducer: Tile, dst: Tile | int | None = None, batch: int = 1) -> None:
    """End an epoch: combine the partial results, so that the reducer holds the whole result.

    Parameters
    ----------
    reducer
        The ``alloc_reducer`` buffer.
    dst
        A tile that the result is copied to as well.
    batch
        How many elements the threads exchange at a time: a hint, an int of at least 1.

    Raises
    ------
    BadAttribute
        For anything else than a ``T.alloc_reducer`` buffer.
    """
    target = None if isinstance(dst, int) else dst
    operands.integer("finalize_reducer", "batch", dst if isinstance(dst, int) else batch, 1)
    region = operands.as_region("finalize_reducer", "reducer", reducer)
    kind = _operation("finalize_reducer", region.buffer)
    operands.emit("finalize_reducer", [region], [region], {KIND: kind})
    if target is not None:
        copy(reducer, target)


def neutral(op: str, dtype: DType) -> bool | int | float:
    """Return the neutral element of a reduction as a Python number."""
    if op in ("sum", "bitor", "bitxor"):
        return 0
    if dtype == "bool":
        return op == "min"
    if dtype.is_narrow and dtype != "float8_e5m2":
        return largest(dtype) * (-1 if op == "max" else 1)
    if dtype.is_float:
        return float("-inf") if op == "max" else float("inf")
    low, high = integer_range(dtype)
    if op == "bitand":
        return high if low == 0 else -1
    return low if op == "max" else high


def _operation(function: str, reducer: object) -> str:
    made = current(f"T.{function}").reducers.get(str(reducer.var.name)) if isinstance(reducer, Buffer) else None
    if made is None:
        found = reducer.name if isinstance(reducer, Buffer) else shown(reducer)
        raise BadAttribute(op=function, name="reducer", found=found, legal="a T.alloc_reducer buffer")
    return made["op"]
