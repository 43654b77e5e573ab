"""Compute offsets of elements: in 32 bits where these suffice, else in 64.

The offset in a large tensor has two parts. The leading dimensions, mostly uniform in a block, move the pointer
by 64-bit arithmetic. The others, which span less than 2**31 elements, remain 32-bit arithmetic::

    W[e, r, c] of (256, 4096, 7168)     (W + (long long)e * 29360128LL)[r * 7168 + c]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr
from tile_core.ir import nodes
from tile_core.ir.visit import collect

__all__ = ["is_wide", "leading_dimensions", "offset"]

#: Extent and stride of a dimension; integers if constant.
_Size = tuple[Any, Any]


def leading_dimensions(buffer: BufferVar, wide_symbols: bool) -> int:
    """Return the number of leading dimensions whose offset needs 64 bits.

    The offset along the others fits into 32. It is 0 where no such parts exist: the whole offset then has the width of
    `is_wide`.

    Parameters
    ----------
    buffer
        Any buffer.
    wide_symbols
        Whether products of 32-bit symbols may exceed 32 bits.
    """
    sizes = _sizes(buffer)
    if not is_wide(buffer, wide_symbols) or _has_wide_extents(buffer):
        return 0
    count = next(n for n in range(1, len(sizes) + 1) if not _exceeds(sizes[n:]))
    return count if count < len(sizes) else 0


def is_wide(buffer: BufferVar, wide_symbols: bool) -> bool:
    """Whether offsets in a buffer need 64 bits; see `leading_dimensions`."""
    if _has_wide_extents(buffer):
        return True
    sizes = _sizes(buffer)
    return (wide_symbols or _are_constant(sizes)) and _exceeds(sizes)


def offset(
    buffer: BufferVar, indices: Any, dims: range, wide: bool, simplified: Callable[[Expr], Expr]
) -> Expr:  # fmt: skip
    """Return the offset of an element along some dimensions, in elements.

    Parameters
    ----------
    buffer, indices
        The element.
    dims
        The dimensions.
    wide
        Whether it is computed in 64 bits.
    simplified
        Simplifies an index.
    """
    strides, shape = structural.items(buffer.ty.strides), structural.items(buffer.ty.shape)
    zero: Any = nodes.int_const(0, "int64" if wide else "int32")
    total, rows = zero, zero
    at = list(indices) if isinstance(indices, (list, tuple)) else structural.items(indices)
    several = len(at) > 1
    if len(at) == 1 and not strides and not wide and isinstance(at[0], ir.Expr):
        return simplified(at[0])
    for d in dims:
        stride = nodes.as_int(strides[d]) if strides else _product(shape[d + 1 :], wide)
        factor = _wide(stride) if wide else stride
        total = total + (nodes.cast(at[d], "int64") if wide else at[d]) * factor
        if several:
            inner = simplified(at[d])
            rows = rows + (nodes.cast(inner, "int64") if wide else inner) * factor
    whole = simplified(total)
    # A sum of rows and columns reads best; factoring their common terms may be worth more.
    return rows if several and _operations(rows) <= _operations(whole) else whole


def _has_wide_extents(buffer: BufferVar) -> bool:
    """Whether an extent is a symbol of 64 bits, or a constant beyond 32."""
    extents = nodes.shape_of(buffer)
    return bool([n for n in extents if (n >= 2**31 if isinstance(n, int) else nodes.dtype_of(n) == "int64")])


def _sizes(buffer: BufferVar) -> list[_Size]:
    extents = nodes.shape_of(buffer)
    strides = [nodes.as_int(s) for s in structural.items(buffer.ty.strides)]
    if not strides:
        strides = [1]
        for n in reversed(extents[1:]):
            known = isinstance(n, int) and isinstance(strides[0], int)
            strides.insert(0, n * strides[0] if known else None)
    return list(zip(extents, strides[: len(extents)], strict=True))


def _are_constant(sizes: list[_Size]) -> bool:
    return not [n for size in sizes for n in size if not isinstance(n, int)]


def _exceeds(sizes: list[_Size]) -> bool:
    """Whether offsets along dimensions may be 2**31 - 1 or more.

    A single extent of type ``int32`` is less.
    """
    if _are_constant(sizes):
        reach = 0
        for n, step in sizes:
            if not n:
                return False
            reach += (n - 1) * abs(step)
        return reach >= 2**31 - 1
    return len(sizes) > 1 or sizes[0][1] != 1


def _product(extents: list[Expr], wide: bool) -> Any:
    known = math.prod(n for n in map(nodes.as_int, extents) if isinstance(n, int))
    symbols = [e for e in extents if not isinstance(nodes.as_int(e), int)]
    if not symbols:
        return known
    total: Any = known if known != 1 else None
    for e in symbols:
        factor = _wide(e) if wide else e
        total = factor if total is None else total * factor
    return total


def _wide(e: Any) -> Expr:
    return nodes.int_const(e, "int64") if isinstance(e, int) else nodes.cast(e, "int64")


def _operations(e: Expr) -> int:
    return len(collect(e, (tirx.Add, tirx.Sub, tirx.Mul, tirx.FloorDiv, tirx.FloorMod)))
