"""The arguments of a launch as the driver wants them: an array of addresses of values, used again and again."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

from tile_core.abi.kernel_text import LaunchFacts
from tile_core.dtypes import DTYPES
from tile_core.errors.base import InternalError

_CODES = {
    "bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q",
    "uint64": "Q", "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip
SLOT = 8
"""Bytes of memory for one value."""


class Pack:
    """Memory for the values of one launch at a time.

    Attributes
    ----------
    values
        One slot of 8 bytes per parameter.
    addresses
        Address of an array that holds the address of each slot.
    """

    __slots__ = ("_table", "addresses", "values")

    def __init__(self, count: int) -> None:
        self.values = ctypes.create_string_buffer(max(count, 1) * SLOT)
        start = ctypes.addressof(self.values)
        self._table = (ctypes.c_void_p * max(count, 1))(*(start + SLOT * i for i in range(count)))
        self.addresses = ctypes.addressof(self._table)


class Packer:
    """Writes values into packs, and keeps packs for the next launch.

    A pack belongs to one launch from `take` to `put`, so that threads never share one, and a launch allocates none but
    the first of each thread that launches at the same time.

    Parameters
    ----------
    facts
        Of the function that is launched.
    """

    def __init__(self, facts: LaunchFacts) -> None:
        codes, self._encoded = [], []
        for i, param in enumerate(facts.params):
            code, coded = _code_of(facts, i)
            codes.append(code + "x" * (SLOT - struct.calcsize("<" + code)))
            if coded:
                self._encoded.append((i, str(param.dtype)))
        self._count = len(codes)
        self.codes: Sequence[str] = codes
        """Format of each value in its slot."""
        self._free: list[Pack] = []
        self.put: Callable[[Pack], None] = self._free.append
        """Called to give a pack back."""
        self.write: Callable[..., None] = struct.Struct("<" + "".join(codes)).pack_into
        """Called as ``write(pack.values, 0, *values)``."""
        self.plain = not self._encoded
        """Whether values are written as they are; otherwise they need `encode`."""

    @property
    def encoded(self) -> tuple[int, ...]:
        """Positions of the values that need `encode`."""
        return tuple(i for i, _ in self._encoded)

    def take(self) -> Pack:
        """Return a pack that nobody else uses."""
        try:
            return self._free.pop()
        except IndexError:
            return Pack(self._count)

    def encode(self, values: Sequence[Any]) -> list[Any]:
        """Return the values with those of element types that Python has no format for as codes."""
        from tile_core.numerics.codecs import encode

        given = list(values)
        for i, dtype in self._encoded:
            given[i] = int(encode(float(given[i]), dtype))
        return given


def _code_of(facts: LaunchFacts, index: int) -> tuple[str, bool]:
    """Return the format of a parameter, and whether its value is a code."""
    param = facts.params[index]
    if param.kind == "pointer":
        return "Q", False
    if param.kind == "opaque":
        detail = f"{facts.entry} has the opaque parameter {param.name!r}, which nothing fills"
        raise InternalError(stage="loading", detail=detail, where=facts.where)
    dtype = DTYPES[str(param.dtype)]
    if dtype == "tfloat32":
        return "f", False
    return _CODES[str(dtype.storage)], dtype.is_float and dtype.storage != str(dtype)
