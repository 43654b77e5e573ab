# Written by tools/editor_stubs.py from the vocabulary; `python tools/editor_stubs.py` writes it anew.
"""The element types of ``T``, and declarations of parameters."""

from builtins import bool as _bool, float as _float, int as _int
from typing import Any, TypeAlias

from typing_extensions import Self
from tile_core.ir.program import Program
from tile_core.language._types import Buffer as Buffer, DTypeLike, Scalar, Shape, Value

PrimFunc: TypeAlias = Program

class _ElementType(type):
    kind: str
    bits: _int
    storage: str
    exponent: _int
    mantissa: _int
    @property
    def is_float(cls) -> _bool:
        """Whether the type is a floating-point type of any width."""
    @property
    def is_integer(cls) -> _bool:
        """Whether the type is a signed or unsigned integer (bool is neither)."""
    @property
    def is_narrow(cls) -> _bool:
        """Whether the type is a float of at most 8 bits, stored and converted only."""
    @property
    def is_reduced(cls) -> _bool:
        """Whether elements are numbers of a wider float type, rounded to fewer mantissa bits."""
    @property
    def is_computed(cls) -> _bool:
        """Whether arithmetic has results of this type, neither narrow nor reduced."""
    @property
    def container(cls) -> str:
        """Name of the wider type of a reduced type, else of the type itself."""
    @property
    def has_zero(cls) -> _bool:
        """Whether zero is a value: not of types of scales."""
    @property
    def has_nan(cls) -> _bool:
        """Whether NaN is a value."""
    @property
    def is_fp8(cls) -> _bool:
        """Whether the type is an 8-bit float for operands of products, not for scales."""
    @property
    def fill(cls) -> _float:
        """The value of out-of-bounds reads: zero, or the least value of a type without one."""
    @property
    def is_packed(cls) -> _bool:
        """Whether several elements share a byte in memory (4-bit types, low nibble first)."""
    def numpy(cls) -> Any:
        """The NumPy (or ml_dtypes) dtype object with the same values."""
    def as_torch(cls) -> Any:
        """Return torch's type with the same values: ``T.float16.as_torch()`` is ``torch.float16``.

        Raises
        ------
        TorchMissing
            torch is not installed.
        UnknownDType
            torch has no such type.
        """
    def __eq__(cls, other: object) -> _bool: ...
    def __hash__(cls) -> _int: ...

class _Element(Value, metaclass=_ElementType):
    """A scalar of an element type."""
    def __new__(cls, value: Scalar) -> Self: ...

class bool(_Element):
    """Truth value of 8 bits: an element type, and the conversion to it in a kernel."""

class int8(_Element):
    """Signed integer of 8 bits: an element type, and the conversion to it in a kernel."""

class int16(_Element):
    """Signed integer of 16 bits: an element type, and the conversion to it in a kernel."""

short = int16

class int32(_Element):
    """Signed integer of 32 bits: an element type, and the conversion to it in a kernel."""

int = int32

class int64(_Element):
    """Signed integer of 64 bits: an element type, and the conversion to it in a kernel."""

long = int64

class uint8(_Element):
    """Unsigned integer of 8 bits: an element type, and the conversion to it in a kernel."""

class uint16(_Element):
    """Unsigned integer of 16 bits: an element type, and the conversion to it in a kernel."""

class uint32(_Element):
    """Unsigned integer of 32 bits: an element type, and the conversion to it in a kernel."""

uint = uint32

class uint64(_Element):
    """Unsigned integer of 64 bits: an element type, and the conversion to it in a kernel."""

class int4(_Element):
    """Signed integer of 4 bits: an element type, and the conversion to it in a kernel."""

class uint4(_Element):
    """Unsigned integer of 4 bits: an element type, and the conversion to it in a kernel."""

class float64(_Element):
    """Floating point of 64 bits: an element type, and the conversion to it in a kernel."""

double = float64

class float32(_Element):
    """Floating point of 32 bits: an element type, and the conversion to it in a kernel."""

float = float32

class tfloat32(_Element):
    """Floating point of 32 bits: an element type, and the conversion to it in a kernel."""

class float16(_Element):
    """Floating point of 16 bits: an element type, and the conversion to it in a kernel."""

half = float16

class bfloat16(_Element):
    """Floating point of 16 bits: an element type, and the conversion to it in a kernel."""

class float8_e4m3fn(_Element):
    """Floating point of 8 bits: an element type, and the conversion to it in a kernel."""

float8_e4m3 = float8_e4m3fn

class float8_e4m3fnuz(_Element):
    """Floating point of 8 bits: an element type, and the conversion to it in a kernel."""

class float8_e5m2(_Element):
    """Floating point of 8 bits: an element type, and the conversion to it in a kernel."""

class float8_e5m2fnuz(_Element):
    """Floating point of 8 bits: an element type, and the conversion to it in a kernel."""

class float8_e8m0fnu(_Element):
    """Floating point of 8 bits: an element type, and the conversion to it in a kernel."""

class float4_e2m1fn(_Element):
    """Floating point of 4 bits: an element type, and the conversion to it in a kernel."""

def dtype(name: DTypeLike) -> type[_Element]:
    """Return the ``DType`` that ``spec`` names.

    Parameters
    ----------
    spec
        A ``DType``, a name or alias, a NumPy or ml_dtypes dtype or scalar type, a torch dtype, or a Python scalar type.

    Raises
    ------
    UnknownDType
        If it names none.
    """

class Tensor(Buffer):
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

class StridedTensor(Buffer):
    """Declare a tensor with strides in elements, one per dimension: ints or symbols."""
    def __init__(self, shape: Shape, strides: Shape | None, dtype: DTypeLike = "float32") -> None: ...

class ptr:
    """Declare a pointer parameter: ``p: T.ptr`` to bytes, ``p: T.ptr("float16")`` to elements of a type."""
    def __init__(self, dtype: DTypeLike = "uint8", storage_scope: str = "global") -> None: ...

Ref: TypeAlias = Any
"""Declare a macro parameter passed by reference: assignments change the caller's variable."""
