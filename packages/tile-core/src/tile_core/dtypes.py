"""Element types: one interned ``DType`` per type, with its facts.

A ``DType`` is a ``str`` (its canonical name), so that it compares, hashes and prints as users write it. It can be
called inside a kernel to cast (``T.float16(x)``).
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from tile_core.errors.guess import hint
from tile_core.errors.language import UnknownDType
from tile_core.vocabulary import word


class DType(str):
    """An element type.

    Attributes
    ----------
    kind
        ``"bool"``, ``"int"``, ``"uint"`` or ``"float"``.
    bits
        Width of one element in bits.
    storage
        Name of the type whose bits hold an element in memory (``"uint8"`` for the 8-bit floats).
    """

    kind: str
    bits: int
    storage: str
    exponent: int
    mantissa: int

    __slots__ = ("bits", "exponent", "kind", "mantissa", "storage")

    @property
    def is_float(self) -> bool:
        """Whether the type is a floating-point type of any width."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether the type is a signed or unsigned integer (bool is neither)."""
        return self.kind in ("int", "uint")

    @property
    def is_narrow(self) -> bool:
        """Whether the type is a float of at most 8 bits, stored and converted only."""
        return self.kind == "float" and self.bits <= 8

    @property
    def is_packed(self) -> bool:
        """Whether several elements share a byte in memory (4-bit types, low nibble first)."""
        return self.bits < 8 and self.kind != "bool"

    def numpy(self) -> Any:
        """The NumPy (or ml_dtypes) dtype object with the same values."""
        import numpy as np

        if self == "tfloat32":
            return np.dtype("float32")
        try:
            return np.dtype(str(self))
        except TypeError:
            return np.dtype(getattr(importlib.import_module("ml_dtypes"), str(self)))

    def as_torch(self) -> Any:
        """Return torch's type with the same values: ``T.float16.as_torch()`` is ``torch.float16``.

        Raises
        ------
        TorchMissing
            torch is not installed.
        UnknownDType
            torch has no such type.
        """
        try:
            torch = importlib.import_module("torch")
        except ImportError as error:
            from tile_core.errors.sparse import TorchMissing

            raise TorchMissing(reason=str(error), instead="use numpy() of the type") from error
        name = {"float4_e2m1fn": "float4_e2m1fn_x2", "tfloat32": "float32"}.get(str(self), str(self))
        found = getattr(torch, name, None)
        if found is None:
            raise UnknownDType(found=str(self), hint="torch has no such type: pass arrays of another library")
        return found

    def __call__(self, value: Any) -> Any:
        """Convert a value inside a kernel: ``T.cast(value, self)``."""
        return word("cast")(value, self)


def _make(name: str, kind: str, bits: int, storage: str = "", exponent: int = 0, mantissa: int = 0) -> DType:
    dtype = DType(name)
    dtype.kind, dtype.bits, dtype.storage = kind, bits, storage or name
    dtype.exponent, dtype.mantissa = exponent, mantissa
    return dtype


_ALL = [
    _make("bool", "bool", 8),
    *[_make(f"int{b}", "int", b) for b in (8, 16, 32, 64)],
    *[_make(f"uint{b}", "uint", b) for b in (8, 16, 32, 64)],
    _make("int4", "int", 4, "uint8"),
    _make("uint4", "uint", 4, "uint8"),
    _make("float64", "float", 64, "", 11, 52),
    _make("float32", "float", 32, "", 8, 23),
    _make("tfloat32", "float", 32, "float32", 8, 10),
    _make("float16", "float", 16, "", 5, 10),
    _make("bfloat16", "float", 16, "uint16", 8, 7),
    _make("float8_e4m3fn", "float", 8, "uint8", 4, 3),
    _make("float8_e4m3fnuz", "float", 8, "uint8", 4, 3),
    _make("float8_e5m2", "float", 8, "uint8", 5, 2),
    _make("float8_e5m2fnuz", "float", 8, "uint8", 5, 2),
    _make("float8_e8m0fnu", "float", 8, "uint8", 8, 0),
    _make("float4_e2m1fn", "float", 4, "uint8", 2, 1),
]

DTYPES: dict[str, DType] = {str(d): d for d in _ALL}

_ALIASES = {
    "half": "float16", "float": "float32", "double": "float64", "int": "int32", "long": "int64", "short": "int16",
    "char": "int8", "uint": "uint32", "ulong": "uint64", "ushort": "uint16", "uchar": "uint8", "bf16": "bfloat16",
    "fp16": "float16", "fp32": "float32", "tf32": "tfloat32", "float8_e4m3": "float8_e4m3fn", "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2", "float4_e2m1fn_x2": "float4_e2m1fn", "bool_": "bool",
}  # fmt: skip


def dtype(spec: Any) -> DType:
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
    if type(spec) is DType:
        return spec
    found = DTYPES.get(_name_of(spec))
    if found is None:
        name = _name_of(spec)
        known = f"use one of: {', '.join(_relatives(name) or DTYPES)}"
        raise UnknownDType(found=spec, hint=hint(name, [*DTYPES, *_ALIASES], known, "{!r}"))
    return found


def integer_range(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type."""
    if dtype.kind == "uint":
        return 0, 2**dtype.bits - 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1


def largest(dtype: DType) -> float:
    """Return the greatest finite value of a float type."""
    known = {
        "float64": 1.7976931348623157e308, "float32": 3.4028234663852886e38, "tfloat32": 3.4011621342146535e38,
        "float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float8_e4m3fn": 448.0, "float8_e4m3fnuz": 240.0,
        "float8_e5m2": 57344.0, "float8_e5m2fnuz": 57344.0, "float8_e8m0fnu": 2.0**127, "float4_e2m1fn": 6.0,
    }  # fmt: skip
    return known[str(dtype)]


#: How other languages begin the names of types.
_KINDS = {
    "f": "float",
    "fp": "float",
    "float": "float",
    "i": "int",
    "s": "int",
    "int": "int",
    "u": "uint",
    "ui": "uint",
}


def _relatives(name: str) -> list[str]:
    """Return the types of another language's name for a kind and width, such as ``"fp8"``."""
    said = re.fullmatch(r"(?:mx|nv)?([a-z]+)(\d+)", name.lower())
    if said is not None:
        return [str(d) for d in _ALL if (d.kind, d.bits) == (_KINDS.get(said[1]), int(said[2]))]
    return [str(d) for d in _ALL if len(name) > 3 and name.lower() in d]


def _name_of(spec: Any) -> str:
    if isinstance(spec, str):
        name = spec
    elif isinstance(spec, type):
        name = {float: "float32", int: "int32", bool: "bool"}.get(spec, spec.__name__)
    elif isinstance(getattr(spec, "name", None), str):
        name = spec.name
    else:
        name = str(spec)
    name = name.rpartition(".")[2]
    return _ALIASES.get(name, name)
