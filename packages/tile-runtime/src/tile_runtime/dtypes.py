"""Element types: one interned ``DType`` per type, with its facts.

A ``DType`` is a ``str`` (its canonical name), so that it compares, hashes and prints as users write it. It can be
called inside a kernel to cast (``T.float16(x)``).
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

from tile_runtime.dtype_table import ALIASES, TABLE, ElementType, Format
from tile_runtime.errors.dtypes import UnknownDType
from tile_runtime.errors.guess import hint


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
    form
        The layout of a float's bits.
    row
        The other facts of the table.
    """

    kind: str
    bits: int
    storage: str
    exponent: int
    mantissa: int
    form: Format | None
    row: ElementType

    __slots__ = ("bits", "exponent", "form", "kind", "mantissa", "row", "storage")

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
    def is_reduced(self) -> bool:
        """Whether elements are numbers of a wider float type, rounded to fewer mantissa bits."""
        return self.is_float and self.storage != self and self.storage.startswith("float")

    @property
    def is_computed(self) -> bool:
        """Whether arithmetic has results of this type, neither narrow nor reduced."""
        return not (self.is_narrow or self.is_reduced)

    @property
    def container(self) -> str:
        """Name of the wider type of a reduced type, else of the type itself."""
        return self.storage if self.is_reduced else str(self)

    @property
    def has_zero(self) -> bool:
        """Whether zero is a value: not of types of scales."""
        return self.form is None or self.form.signed

    @property
    def has_nan(self) -> bool:
        """Whether NaN is a value."""
        return self.form is not None and self.form.has_nan

    @property
    def is_fp8(self) -> bool:
        """Whether the type is an 8-bit float for operands of products, not for scales."""
        return self.is_narrow and self.bits == 8 and self.has_zero

    @property
    def fill(self) -> float:
        """The value of out-of-bounds reads: zero, or the least value of a type without one."""
        return 0 if self.form is None or self.has_zero else 2.0**-self.form.bias

    @property
    def is_packed(self) -> bool:
        """Whether several elements share a byte in memory (4-bit types, low nibble first)."""
        return self.bits < 8 and self.kind != "bool"

    def numpy(self) -> Any:
        """The NumPy (or ml_dtypes) dtype object with the same values."""
        import numpy as np

        try:
            return np.dtype(self.container)
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
            from tile_runtime.errors.dtypes import TorchMissing

            raise TorchMissing(reason=str(error), instead="use numpy() of the type") from error
        found = getattr(torch, f"{self}_x2" if self.is_float and self.is_packed else self.container, None)
        if found is None:
            raise UnknownDType(found=str(self), hint="torch has no such type: pass arrays of another library")
        return found

    def __call__(self, value: Any) -> Any:
        """Convert a value inside a kernel: ``T.cast(value, self)``."""
        return _converters[-1](value, self)


def convert_by(convert: Callable[[Any, DType], Any]) -> None:
    """Set the meaning of a call of an element type, which is the language's."""
    _converters.append(convert)


def _no_language(value: Any, dtype: DType) -> Any:
    raise TypeError(f"{dtype} converts values inside a kernel only")


_converters: list[Callable[[Any, DType], Any]] = [_no_language]


def _make(row: ElementType) -> DType:
    dtype = DType(row.name)
    dtype.kind, dtype.bits, dtype.storage = row.kind, row.bits, row.storage or row.name
    dtype.form, dtype.row = row.form, row
    dtype.exponent, dtype.mantissa = (0, 0) if row.form is None else (row.form.exponent, row.form.mantissa)
    return dtype


DTYPES: dict[str, DType] = {row.name: _make(row) for row in TABLE}


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
        raise UnknownDType(found=spec, hint=hint(name, [*DTYPES, *ALIASES], known, "{!r}"))
    return found


def integer_range(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type."""
    if dtype.kind == "uint":
        return 0, 2**dtype.bits - 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1


def largest(dtype: DType) -> float:
    """Return the greatest finite value of a float type."""
    assert dtype.form is not None
    return dtype.form.maximum


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
        return [str(d) for d in DTYPES.values() if (d.kind, d.bits) == (_KINDS.get(said[1]), int(said[2]))]
    return [str(d) for d in DTYPES.values() if len(name) > 3 and name.lower() in d]


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
    return ALIASES.get(name, name)
