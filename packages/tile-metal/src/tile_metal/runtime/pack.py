"""Scalars of a launch as one C structure: naturally aligned, in 64-bit words."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tile_core.abi.kernel_text import LaunchFacts
from tile_core.compat.types import Argument
from tile_core.errors.base import InternalError
from tile_runtime.texts.packing import fields_of

WORD = 8
_LEAST = 4


class StructPacker:
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

    Raises
    ------
    LaunchNotOffered
        A parameter is of a kind that is not filled.
    InternalError
        A parameter is of a type that Metal does not have.
    """

    def __init__(self, facts: LaunchFacts) -> None:
        self._fields = [f for f in fields_of(facts, "metal") if not f.pointer]
        double = next((f for f in self._fields if f.code == "d"), None)
        if double is not None:
            detail = f"{facts.entry} has the parameter {facts.params[double.position].name!r} of double precision"
            raise InternalError(stage="loading", detail=detail, where=facts.where)
        codes, at = [], 0
        for field in self._fields:
            padding = -at % field.bytes
            codes.append("x" * padding + field.code)
            at += padding + field.bytes
        codes.append("x" * (-at % max(_LEAST, *(f.bytes for f in self._fields), 0)))
        self._struct = struct.Struct("<" + "".join(codes))
        self.size = self._struct.size if self._fields else 0
        self.words = -(-self.size // WORD)

    def pack(self, values: Sequence[Argument]) -> bytes:
        """Return the structure's bytes for a launch's values, one per parameter."""
        return self._struct.pack(*(f.written(values[f.position]) for f in self._fields))


def words_of(data: bytes) -> list[int]:
    """Return bytes as signed words of 64 bits, the last filled up with zeros."""
    count = -(-len(data) // WORD)
    return list(struct.unpack(f"<{count}q", data.ljust(WORD * count, b"\0")))
