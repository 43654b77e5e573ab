"""The scalars of a launch as one structure of C: each at its natural alignment, passed in words of 64 bits."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from tile_core.abi.kernel_text import LaunchFacts
from tile_core.dtypes import DTYPES
from tile_core.errors.base import InternalError

_CODES = {
    "bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q",
    "uint64": "Q", "float16": "e", "float32": "f",
}  # fmt: skip
WORD = 8
_LEAST = 4


class Packer:
    """Packs the scalars among the values of a launch.

    Parameters
    ----------
    facts
        Of the text.

    Attributes
    ----------
    size
        Bytes of the structure, a multiple of its largest alignment and of 4; 0 without scalars.
    words
        Words of 64 bits that hold it.
    """

    def __init__(self, facts: LaunchFacts) -> None:
        codes, at, largest = [], 0, _LEAST
        self._fields: list[tuple[int, str]] = []
        for i, param in enumerate(facts.params):
            if param.kind == "pointer":
                continue
            code, coded = _code_of(facts, i)
            width = struct.calcsize("<" + code)
            codes.append("x" * (-at % width) + code)
            at += -at % width + width
            largest = max(largest, width)
            self._fields.append((i, str(param.dtype) if coded else ""))
        codes.append("x" * (-at % largest))
        self._struct = struct.Struct("<" + "".join(codes))
        self.size = self._struct.size if self._fields else 0
        self.words = -(-self.size // WORD)

    def pack(self, values: Sequence[Any]) -> bytes:
        """Return the bytes of the structure for the values of a launch, one per parameter of the text."""
        return self._struct.pack(*(_encoded(values[i], coded) for i, coded in self._fields))


def words_of(data: bytes) -> list[int]:
    """Return bytes as signed words of 64 bits, the last filled up with zeros."""
    count = -(-len(data) // WORD)
    return list(struct.unpack(f"<{count}q", data.ljust(WORD * count, b"\0")))


def _encoded(value: Any, coded: str) -> Any:
    if not coded:
        return value
    from tile_core.numerics.codecs import encode

    return int(encode(float(value), coded))


def _code_of(facts: LaunchFacts, index: int) -> tuple[str, bool]:
    """Return the format of a scalar, and whether its value is a code."""
    param = facts.params[index]
    kind = DTYPES.get(str(param.dtype))
    if param.kind == "scalar" and kind == "tfloat32":
        return "f", False
    code = _CODES.get(str(kind.storage)) if param.kind == "scalar" and kind is not None else None
    if code is None or kind is None:
        detail = f"{facts.entry} has the {param.kind} parameter {param.name!r} of type {param.dtype!r}"
        raise InternalError(stage="loading", detail=detail, where=facts.where)
    return code, kind.is_float and kind.storage != str(kind)
