"""Pointer parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import DTypeLike, Var
from tile_core.dtypes import DType
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.language import BadArgument
from tile_core.values.builder import Builder, current
from tile_core.values.checks import python_int, shown
from tile_core.values.value import Buffer, Index, Shape, Value, constant_of, to_index

if TYPE_CHECKING:
    from tile_core.trace.parameters import Pointer


def make_tensor(
    pointer: Pointer | Value,
    shape: Sequence[Index],
    dtype: DTypeLike = None,
    strides: Sequence[Index] | None = None,
    *,
    align: int | None = None,
) -> Buffer:
    """Return a tensor at an address: ``A = T.make_tensor(p, (n, 64), "float16")``.

    Parameters
    ----------
    pointer
        A parameter annotated with ``T.ptr``, or an element of a table of them, ``T.Tensor((n,), T.ptr)``. The address
        is a multiple of an element's size.
    shape, strides
        Ints or runtime integers; contiguous without strides.
    dtype
        Element type; default: that of the pointer.
    align
        What the address of an element of a table is a multiple of, in bytes, by your word: with 16, threads may use
        wide accesses.

    Raises
    ------
    BadArgument
        If ``pointer`` is not one, the shape is not made of integers, or ``align`` is no power of two that holds an
        element.

    Notes
    -----
    Nothing checks that there is as much memory. Tensors at different pointers and elements must not overlap where one
    of them is written, as the tensors of a call must not.
    """
    from tile_core.trace.parameters import Pointer

    builder = current("T.make_tensor")
    source, pointee = _source(pointer)
    kind = pointee if dtype is None else to_dtype(dtype)
    dims = _dims("shape", shape)
    steps = None if strides is None else [to_index(s) for s in _dims("strides", strides)]
    if steps is not None and len(steps) != len(dims):
        found, expected = f"{len(steps)} strides", f"{len(dims)}, one per dimension"
        raise _argument("strides", found, expected, "leave them out for contiguous memory")
    size = max(1, kind.bits // 8)
    if align is not None and (type(align) is not int or align < size or align & (align - 1)):
        expected = f"a power of two from {size}, the bytes of an element"
        raise _argument("align", shown(align), expected, "leave it out if nothing more is known")
    data = pointer.var if isinstance(pointer, Pointer) else _address(builder, pointer, source.name)
    name = builder.hinted(f"{source.name}_tensor")
    var = tirx.decl_buffer(
        [to_index(d) for d in dims], kind.container, name, data=data, strides=steps,
        data_alignment=align or size, layout=None,
    )  # fmt: skip
    builder.emit(tirx.DeclBuffer(var, data=data, span=builder.span()))
    return Buffer(var, dims, kind, "global", name)


def _source(pointer: object) -> tuple[Pointer | Buffer, DType]:
    """Return a pointer parameter or a pointer's table, and the element type."""
    from tile_core.trace.parameters import Pointer

    if isinstance(pointer, Pointer):
        return pointer, pointer.dtype
    table = pointer.element[0] if isinstance(pointer, Value) and pointer.element is not None else None
    if table is not None and table.pointee is not None:
        return table, table.pointee
    found = f"an element of type {table.dtype}" if table is not None else f"an object of type {type(pointer).__name__}"
    found = "a tensor" if isinstance(pointer, Buffer) else found
    expected = "a parameter annotated with T.ptr, or an element of a T.Tensor(shape, T.ptr)"
    raise _argument("pointer", found, expected, "use tensors as they are")


def _address(builder: Builder, value: Value, table: str) -> Var:
    """Bind a table element as a byte pointer: passes may change element types."""
    var = tirx.Var(builder.unique(f"{table}_at"), ir.PointerType(ir.PrimType("uint8"), "global"))
    pointer = ir.Call(ir.Op.get("tirx.reinterpret"), [value.expr], ret_ty=var.ty)
    builder.emit(tirx.Bind(var, pointer, builder.span()))
    return var


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
