"""Declarations of parameters: tensors, pointers and symbolic dimensions."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from tile_core.compat.types import DTypeLike, Var
from tile_core.dtypes import DTYPES, DType
from tile_core.dtypes import dtype as to_dtype
from tile_core.errors.language import BadArgument
from tile_core.errors.locations import placed
from tile_core.errors.naming import naming
from tile_core.records import dataclass

if TYPE_CHECKING:
    from tile_core.values.buffer import Buffer as BufferValue
    from tile_core.values.scalar import Index, Shape, Value


@dataclass(frozen=True)
class TensorType:
    """A declared tensor.

    Attributes
    ----------
    shape
        Extents: Python ints, symbols of ``T.dynamic``, or arithmetic on them; ``()`` for one element.
    dtype
        Element type.
    strides
        Strides in elements, or ``None`` for contiguous row-major memory.
    pointee
        Of a table of addresses, which are ``int64``: the element type at each of them.
    """

    shape: tuple[Index, ...]
    dtype: DType
    strides: tuple[Index, ...] | None = None
    pointee: DType | None = None


@dataclass(frozen=True)
class PointerType:
    """A declared pointer.

    Attributes
    ----------
    dtype
        Type of the pointee.
    """

    dtype: DType


#: Keywords of other dialects' buffers.
_DIALECTS = ("scope", "data", "elem_offset", "data_alignment", "offset_factor", "buffer_type", "axis_separators")


class _TensorFactory:
    """Declare a tensor parameter with its shape and element type: ``A: T.Tensor((M, N), "float16")``."""

    def __init__(self, name: str) -> None:
        self.name = name

    @placed
    def __call__(
        self,
        shape: Shape,
        dtype: DTypeLike | PointerType | _PointerFactory = "float32",
        strides: Shape | BufferValue | None = None,
        **hints: object,
    ) -> TensorType:
        """Declare a tensor, or return a view of a buffer: ``T.Tensor(shape, dtype, other.data)`` is ``T.view``.

        Parameters
        ----------
        shape
            Extents, outermost first.
        dtype
            Element type; ``T.ptr`` or ``T.ptr(dtype)`` for a table of addresses, see ``T.make_tensor``.
        strides
            Strides in elements; ``None`` for contiguous row-major memory. Or a buffer, whose storage is meant.
        **hints
            ``data``, a buffer too; ``scope`` and similar keywords of other dialects; no effect.
        """
        from tile_core.values.checks import hints as check_hints

        memory = strides if hasattr(strides, "whole") else hints.pop("data", None)
        if memory is not None:
            from tile_core.vocabulary import word

            with naming(self.name):
                return cast("TensorType", word("view")(memory, shape, dtype))
        check_hints(self.name, hints, _DIALECTS)
        dims = _dims(self.name, "shape", shape)
        if strides is not None:
            strides = _dims(self.name, "strides", strides)
            if len(strides) != len(dims):
                raise BadArgument(
                    function=self.name, name="strides", found=f"{len(strides)} strides", expected=f"{len(dims)}",
                    instead="give one stride per dimension",
                )  # fmt: skip
        if isinstance(dtype, (PointerType, _PointerFactory)):
            return TensorType(
                dims, to_dtype("int64"), strides, (dtype if isinstance(dtype, PointerType) else ptr()).dtype
            )
        kind = to_dtype(dtype)
        if kind.is_packed and (strides is not None or not dims):
            raise BadArgument(
                function=self.name, name="strides" if dims else "shape", found="given" if dims else "()",
                expected=f"a contiguous tensor of at least one dimension, since two elements of {kind} share a byte",
                instead="use T.Tensor(shape, dtype), and slice it in the kernel",
            )  # fmt: skip
        return TensorType(dims, kind, strides)

    def __getitem__(self, item: Any) -> TensorType:
        """Declare a tensor: ``T.Tensor[(M, N), "float16"]``, ``T.Tensor[n, "int8"]``, ``T.Tensor[M, N]`` of float32."""
        if isinstance(item, tuple) and len(item) == 2 and (isinstance(item[0], (tuple, list)) or _is_type(item[1])):
            return self(item[0], item[1])
        return self(item)

    def __repr__(self) -> str:
        return f"T.{self.name}"


class _PointerFactory:
    """Declare a pointer parameter: ``p: T.ptr`` to bytes, ``p: T.ptr("float16")`` to elements of a type."""

    @placed
    def __call__(self, dtype: DTypeLike = "uint8", storage_scope: str = "global") -> PointerType:
        return PointerType(to_dtype(dtype))

    def __repr__(self) -> str:
        return "T.ptr"


class _RefType:
    """Declare a macro parameter passed by reference: assignments change the caller's variable."""

    def __repr__(self) -> str:
        return "T.Ref"


class _StridedFactory:
    """Declare a tensor with strides in elements, one per dimension: ints or symbols."""

    def __call__(
        self, shape: Shape, strides: Shape | None, dtype: DTypeLike | PointerType | _PointerFactory = "float32"
    ) -> TensorType:
        return _TensorFactory("StridedTensor")(shape, dtype, strides)

    def __getitem__(self, item: Any) -> TensorType:
        """Declare a tensor with strides: ``T.StridedTensor[(M, N), (s, 1), "float16"]``."""
        return self(*item) if isinstance(item, tuple) else self(item, None)

    def __repr__(self) -> str:
        return "T.StridedTensor"


Tensor = _TensorFactory("Tensor")
StridedTensor = _StridedFactory()
Buffer = _TensorFactory("Buffer")
ptr = _PointerFactory()
Ref = _RefType()


@placed
def dynamic(name: str, dtype: DTypeLike = "int32") -> Value | tuple[Value, ...]:
    """Return a symbolic dimension that arguments determine at the call: ``m = T.dynamic("m")``.

    Parameters
    ----------
    name
        Its name, or several: ``m, n = T.dynamic("m, n")``. The same name is the same symbol.
    dtype
        ``"int32"`` or ``"int64"``.
    """
    if not isinstance(name, str):
        raise BadArgument(
            function="dynamic", name="name", found=repr(name), expected="text", instead='write T.dynamic("m")'
        )
    names = [n for n in name.replace(",", " ").split() if n]
    if not names or not all(n.isidentifier() for n in names):
        instead = 'write T.dynamic("m") or T.dynamic("m, n")'
        raise BadArgument(function="dynamic", name="name", found=repr(name), expected="identifiers", instead=instead)
    element = to_dtype(dtype)
    if element not in ("int32", "int64"):
        instead = 'leave it out, or use "int64"'
        found = repr(str(element))
        raise BadArgument(function="dynamic", name="dtype", found=found, expected="int32 or int64", instead=instead)
    symbols = tuple(_symbol(n, str(element)) for n in names)
    return symbols[0] if len(symbols) == 1 else symbols


def is_symbol(var: Var) -> bool:
    """Whether an IR variable is a symbolic dimension."""
    return any(var.same_as(_symbol(str(var.name), t).expr) for t in ("int32", "int64"))


@functools.cache
def _symbol(name: str, dtype: str) -> Value:
    from tile_core.compat.tvm import tirx
    from tile_core.values.scalar import Value

    return Value(tirx.Var(name, dtype), to_dtype(dtype))


def _is_type(x: object) -> bool:
    """Whether an object names an element type, and not an extent."""
    return (
        isinstance(x, (str, type, PointerType, _PointerFactory))
        or type(x).__name__ == "dtype"
        or type(x).__module__.startswith("numpy.dtype")
    )


def _dims(function: str, name: str, dims: Any) -> tuple[Index, ...]:
    if isinstance(dims, str) or (isinstance(dims, Sequence) and any(isinstance(d, str) for d in dims)):
        instead = 'make symbols first: m = T.dynamic("m")'
        if isinstance(dims, str) and dims in DTYPES:
            instead = f'the shape comes first: T.{function}((M, N), "{dims}")'
        raise BadArgument(function=function, name=name, found=repr(dims), expected="extents", instead=instead)
    return tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
