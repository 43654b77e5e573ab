"""Pointer parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import DTypeLike
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.language import BadArgument
from tile_core.values.builder import current
from tile_core.values.checks import python_int, shown
from tile_core.values.value import Buffer, Index, Shape, Value, constant_of, to_index, tvm_name

if TYPE_CHECKING:
    from tile_core.trace.parameters import Pointer


def make_tensor(
    pointer: Pointer, shape: Sequence[Index], dtype: DTypeLike = None, strides: Sequence[Index] | None = None
) -> Buffer:
    """Return a tensor at a pointer parameter: ``A = T.make_tensor(p, (n, 64), "float16")``.

    Parameters
    ----------
    pointer
        A parameter annotated with ``T.ptr``.
    shape, strides
        Ints or runtime integers; contiguous without strides.
    dtype
        Element type; default: that of the pointer.

    Raises
    ------
    BadArgument
        If ``pointer`` is not one, or the shape is not made of integers.
    """
    from tile_core.trace.parameters import Pointer

    builder = current("T.make_tensor")
    if not isinstance(pointer, Pointer):
        found = "a tensor" if isinstance(pointer, Buffer) else f"an object of type {type(pointer).__name__}"
        raise _argument("pointer", found, "a parameter annotated with T.ptr", "use tensors as they are")
    element = pointer.dtype if dtype is None else to_dtype(dtype)
    dims = _dims("shape", shape)
    steps = None if strides is None else [to_index(s) for s in _dims("strides", strides)]
    if steps is not None and len(steps) != len(dims):
        found, expected = f"{len(steps)} strides", f"{len(dims)}, one per dimension"
        raise _argument("strides", found, expected, "leave them out for contiguous memory")
    name = builder.hinted(f"{pointer.name}_tensor")
    var = tirx.decl_buffer(
        [to_index(d) for d in dims], tvm_name(element), name, data=pointer.var, strides=steps,
        data_alignment=max(1, element.bits // 8), layout=None,
    )  # fmt: skip
    builder.emit(tirx.DeclBuffer(var, data=pointer.var, span=builder.span()))
    return Buffer(var, dims, element, "global", name)


def _dims(what: str, dims: Shape) -> list[Index]:
    return [_dim(what, d) for d in (dims if isinstance(dims, (tuple, list)) else (dims,))]


def _dim(what: str, x: object) -> Index:
    constant = constant_of(x) if isinstance(x, Value) else python_int(x)
    if constant is not None:
        if not 0 <= constant < 2**63:
            raise _argument(what, shown(constant), "ints of at least 0 and at most 63 bits", "correct the extents")
        return constant
    if isinstance(x, Value) and x.dtype.is_integer:
        return x
    raise _argument(what, shown(x), "ints or runtime integers", "pass the extents as scalar parameters")


def _argument(name: str, found: str, expected: str, instead: str) -> BadArgument:
    return BadArgument(function="make_tensor", name=name, found=found, expected=expected, instead=instead)
