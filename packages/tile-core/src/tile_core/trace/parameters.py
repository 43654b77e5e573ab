"""From declarations to parameters of the IR."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, get_args, get_origin

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Var
from tile_core.dtypes import DType
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.language import BadParameter, UnknownDType, annotate
from tile_core.ir.program import Dim, ParamInfo, dim_of
from tile_core.values.builder import Builder
from tile_core.values.checks import python_int, shown
from tile_core.values.types import PointerType, TensorType, ptr
from tile_core.values.value import Buffer, Index, Value, constant_of

#: What to do about a dimension that is no number of elements.
_FIX = "write the number of elements, or a symbol where calls decide: m = T.dynamic('m')"


def declare(builder: Builder, name: str, annotation: object) -> tuple[Expr, Buffer | Pointer | Value, ParamInfo]:
    """Return the IR parameter, its value in the kernel, and the declaration.

    Raises
    ------
    BadParameter
        If the annotation declares no parameter.
    """
    if annotation is ptr:
        annotation = ptr()
    if isinstance(annotation, TensorType):
        return tensor(builder, name, annotation)
    if isinstance(annotation, PointerType):
        var = tirx.Var(builder.unique(name), ir.PointerType(ir.PrimType(annotation.dtype.container), "global"))
        return var, Pointer(var, annotation.dtype, name), ParamInfo(name, "pointer", str(annotation.dtype))
    try:
        dtype = None if annotation is None else to_dtype(annotation)
    except UnknownDType:
        dtype = None
    if dtype is None:
        expected = "a tensor or an element type"
        found = f"annotated with {shown(annotation)}"
        raise BadParameter(name=name, kernel=builder.name, found=found, expected=expected, fix=annotate(name))
    return scalar(builder, name, dtype)


def declaration_of(annotation: object) -> object:
    """Return the first declaration of ``Annotated[T.Buffer, T.Tensor(...)]``; other annotations as they are."""
    if get_origin(annotation) is not Annotated:
        return annotation
    found = (x for x in get_args(annotation)[1:] if isinstance(x, (TensorType, PointerType, DType)) or x is ptr)
    return next(found, annotation)


class Pointer:
    """A pointer parameter; ``T.make_tensor`` gives it a shape."""

    def __init__(self, var: Var, dtype: DType, name: str) -> None:
        self.var = var
        self.dtype = dtype
        self.name = name


def scalar(builder: Builder, name: str, dtype: DType) -> tuple[Var, Value, ParamInfo]:
    """Declare a scalar parameter."""
    if dtype.is_narrow or dtype.is_packed:
        expected = "a scalar of at least 8 bits other than an 8-bit float"
        fix = f'pass a T.float32, or a tensor of one element: `{name}: T.Tensor((1,), "{dtype}")`'
        raise BadParameter(name=name, kernel=builder.name, found=f"of type {dtype}", expected=expected, fix=fix)
    var = tirx.Var(builder.unique(name), dtype.container)
    builder.scalars.append(var)
    return var, Value(var, dtype), ParamInfo(name, "scalar", str(dtype))


def tensor(builder: Builder, name: str, declared: TensorType) -> tuple[BufferVar, Buffer, ParamInfo]:
    """Declare a tensor parameter."""
    shape = [_extent(builder, name, d, dim) for d, dim in enumerate(declared.shape)]
    strides = declared.strides
    steps = None if strides is None else [_stride(builder, name, d, dim) for d, dim in enumerate(strides)]
    dtype = declared.dtype
    count = math.prod(d for d in shape if isinstance(d, int))
    if count >= 2**62:
        found, expected = f"of {shown(count)} elements", "fewer than 2**62, which memory can hold"
        fix = "declare fewer, or several tensors"
        raise BadParameter(name=name, kernel=builder.name, found=found, expected=expected, fix=fix)
    wide = _is_wide(shape, steps)
    buffer = tirx.decl_buffer(
        [_ir_dim(d, wide) for d in shape],
        dtype.container,
        builder.unique(name),
        strides=None if steps is None else [_ir_dim(s, wide) for s in steps],
        # TVM assumes 64 bytes by default and does not check; arrays of other libraries are aligned to an element.
        data_alignment=max(1, dtype.bits // 8),
        layout=None,
    )
    for dim in (*shape, *(steps or ())):
        _note_symbols(builder, dim)
    info = ParamInfo(
        name,
        "tensor",
        str(dtype),
        tuple(_plain(d) for d in shape),
        None if steps is None else tuple(map(_plain, steps)),
        declared.pointee is not None,
    )
    value = Buffer(buffer, shape, dtype, "global", name)
    value.pointee = declared.pointee
    return buffer, value, info


def _is_wide(shape: Sequence[Index], strides: Sequence[Index] | None) -> bool:
    known = [d for d in shape if isinstance(d, int)]
    last = math.prod(known)
    if strides is not None:
        pairs = zip(shape, strides, strict=True)
        last = max(last, sum(e * s for e, s in pairs if isinstance(e, int) and isinstance(s, int)))
    # TVM refuses constant int32 shapes of more elements than an int32 can count.
    return last > 2**31 - 1


def _ir_dim(dim: Index, wide: bool) -> Expr:
    if isinstance(dim, int):
        return tirx.IntImm("int64" if wide else "int32", dim)
    return tirx.Cast("int64", dim.expr) if wide and dim.dtype == "int32" else dim.expr


def _plain(dim: Index) -> Dim:
    return dim if isinstance(dim, int) else dim_of(dim.expr)


def _extent(builder: Builder, name: str, d: int, dim: object) -> Index:
    value = _dimension(builder, name, f"dimension {d}", dim)
    if isinstance(value, int) and value < 0:
        found = f"dimension {d} is {value}"
        raise BadParameter(name=name, kernel=builder.name, found=found, expected="an extent of at least 0", fix=_FIX)
    return value


def _stride(builder: Builder, name: str, d: int, dim: Index) -> Index:
    value = _dimension(builder, name, f"stride {d}", dim)
    if isinstance(value, int) and value < 0:
        found = f"stride {d} is {value}"
        fix = "write the number of elements from one index to the next, or leave the strides out"
        raise BadParameter(name=name, kernel=builder.name, found=found, expected="a stride of at least 0", fix=fix)
    return value


def _dimension(builder: Builder, name: str, what: str, dim: object) -> Index:
    constant = constant_of(dim) if isinstance(dim, Value) else python_int(dim)
    if constant is not None:
        if constant < 2**48:
            return constant
        expected = "at most 2**48 elements along a dimension"
        found = f"{what} is {shown(constant)}"
        raise BadParameter(name=name, kernel=builder.name, found=found, expected=expected, fix="write a smaller number")
    if isinstance(dim, Value) and dim.dtype in ("int32", "int64"):
        return dim
    found, expected = f"{what} is {shown(dim)}", "an int or a symbol of T.dynamic"
    whole = isinstance(dim, float) and math.isfinite(dim) and dim >= 0
    fix = f"write {int(dim)}, or a symbol: m = T.dynamic('m')" if whole else _FIX  # type: ignore[call-overload]
    if hasattr(dim, "__dlpack__"):
        fix = "arrays are arguments of the compiled kernel: call what the factory returns with them, make(8)(a, b)"
    raise BadParameter(name=name, kernel=builder.name, found=found, expected=expected, fix=fix)


def _note_symbols(builder: Builder, dim: Index) -> None:
    if isinstance(dim, int):
        return
    for var in tirx.analysis.undefined_vars(tirx.Evaluate(dim.expr), []):
        builder.symbols[str(var.name)] = var
