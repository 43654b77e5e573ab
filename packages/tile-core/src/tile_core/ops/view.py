"""``T.reshape`` and ``T.view``: another shape or element type on the same storage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import DTypeLike
from tile_core.dtypes import DType
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.ops import BadAttribute, NotATile, ViewOfPart, ViewSize
from tile_core.ir import nodes
from tile_core.ops import operands
from tile_core.values import checks
from tile_core.values.builder import current
from tile_core.values.value import Buffer, Index, Region, Tile, Value, simplify, to_index


def reshape(buffer: Buffer, shape: Sequence[int] | int) -> Buffer:
    """Return the buffer with another shape and the same row-major order of elements (see ``view``).

    Examples
    --------
    >>> R = T.reshape(S, (32, 128))
    """
    if shape is None:
        raise ViewOfPart(
            op="reshape", found="a buffer without a new shape", fix="give the extents: T.reshape(buffer, (8, 16))"
        )
    return _view("reshape", buffer, shape, None)


def view(buffer: Buffer, shape: Sequence[int] | int | None = None, dtype: DTypeLike = None) -> Buffer:
    """Return a buffer that shares storage with another.

    Parameters
    ----------
    buffer
        A whole buffer in any scope; a tensor parameter must be contiguous.
    shape
        New extents; the default keeps all but the last, which is rescaled to the new element width.
    dtype
        New element type; the bytes keep their values.

    Returns
    -------
    Buffer
        Writing through either name is seen by the other.

    Raises
    ------
    ViewSize
        If the storage sizes differ.
    ViewOfPart
        If ``buffer`` is a slice, a variable, a strided tensor, or has elements smaller than a byte.

    Examples
    --------
    >>> bits = T.view(S, dtype="uint32")
    """
    return _view("view", buffer, shape, dtype)


def _view(op: str, buffer: Tile, shape: Sequence[int] | int | None, dtype: DTypeLike) -> Buffer:
    whole = _whole(op, buffer)
    new_type = whole.dtype if dtype is None else to_dtype(dtype)
    if new_type != whole.dtype and (new_type.is_packed or whole.dtype.is_packed or "bool" in (new_type, whole.dtype)):
        raise ViewOfPart(op=op, found=f"{whole.dtype} as {new_type}", fix="convert with T.copy instead")
    dims = _default_shape(whole, new_type) if shape is None else _dims(op, shape)
    old_bits, new_bits = _bits(whole.shape, whole.dtype.bits), _bits(dims, new_type.bits)
    if old_bits != new_bits:
        raise ViewSize(op=op, shape=tuple(dims), dtype=new_type, found=new_bits, buffer=whole.name, expected=old_bits)
    builder = current(f"T.{op}")
    name = builder.unique(f"{whole.name}_view")
    scope = "" if whole.scope == "global" else whole.scope
    data = tirx.buffer_data(whole.var)
    facts = {"data": data, "scope": scope, "layout": None, "data_alignment": whole.dtype.bits // 8}
    var = tirx.decl_buffer([to_index(d) for d in dims], new_type.container, name, **facts)
    builder.emit(tirx.DeclBuffer(var, data=data, span=builder.span()))
    result = Buffer(var, dims, new_type, whole.scope, name)
    base = getattr(whole, "base", None)
    result.base = whole if base is None else base  # type: ignore[attr-defined]
    return result


def _whole(op: str, buffer: Tile) -> Buffer:
    if isinstance(buffer, Region):
        raise ViewOfPart(op=op, found=f"the slice {buffer!r}", fix="view the whole buffer and slice the view")
    if isinstance(buffer, Value) or not isinstance(buffer, Buffer):
        raise NotATile(op=op, role="buffer", found=f"an object of type {type(buffer).__name__}")
    if buffer.scope == "local.var":
        raise ViewOfPart(op=op, found=f"the variable {buffer.name}", fix="use T.reinterpret")
    if getattr(buffer, "strides", None) is not None:
        raise ViewOfPart(op=op, found=f"the strided tensor {buffer.name}", fix="copy it into shared memory first")
    return buffer


def _dims(op: str, shape: Sequence[int] | int) -> list[Index]:
    dims: list[Any] = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    found = [d if isinstance(d, Value) or (n := checks.python_int(d)) is None else n for d in dims]
    for d in found:
        if not isinstance(d, Value) and (not isinstance(d, int) or isinstance(d, bool) or d < 0):
            raise BadAttribute(op=op, name="shape", found=operands.named(d), legal="extents of at least 0")
    return found


def _default_shape(buffer: Buffer, dtype: DType) -> list[Index]:
    last = buffer.shape[-1]
    if dtype.bits == buffer.dtype.bits:
        return list(buffer.shape)
    return [*buffer.shape[:-1], last * buffer.dtype.bits // dtype.bits]


def _bits(shape: Sequence[Index], bits: int) -> int | str:
    """Return the size as an int, or as canonical text for equal products."""
    known = [d for d in shape if isinstance(d, int)]
    if len(known) == len(shape):
        return math.prod(known) * bits
    product = nodes.int_const(bits, "int64")
    for d in shape:
        product = product * nodes.cast(to_index(d), "int64")
    return str(simplify(product))
