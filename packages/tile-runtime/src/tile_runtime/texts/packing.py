"""Encode the values of a launch as bytes, parameter by parameter."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from tile_runtime.abi.kernel_text import LaunchFacts, ParamFact
from tile_runtime.dtypes import DTYPES
from tile_runtime.errors.launch import LaunchNotOffered
from tile_runtime.records import dataclass

_POINTER = "Q"
_CODES = {
    "bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q",
    "uint64": "Q", "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip


@dataclass(frozen=True)
class Field:
    """How the value of one parameter is written.

    Attributes
    ----------
    position
        Of the parameter in the function's list.
    pointer
        Whether it is the address of an array.
    code
        Its format, as of ``struct`` without padding.
    encoded
        The element type whose codes are written in place of values, because Python has no format for it; else empty.
    """

    position: int
    pointer: bool
    code: str
    encoded: str = ""

    @property
    def bytes(self) -> int:
        """Its size in bytes; that of pointers and scalars is also their alignment."""
        return struct.calcsize("<" + self.code)

    def written(self, value: float) -> float:
        """Return the encoded value: itself or its code."""
        if not self.encoded:
            return value
        from tile_runtime.numerics.codecs import encode

        return int(encode(float(value), self.encoded))


def fields_of(facts: LaunchFacts, runtime: str, *, constants: bool = False) -> tuple[Field, ...]:
    """Return how the parameters of a function are written, in order.

    Parameters
    ----------
    facts
        The function's facts.
    runtime
        Name of the runtime, for messages.
    constants
        Whether the runtime encodes descriptors, see `texts.constants`.

    Raises
    ------
    LaunchNotOffered
        A parameter is opaque bytes of a backend, and the runtime cannot make them.
    """
    return tuple(_field(facts, i, param, runtime, constants) for i, param in enumerate(facts.params))


def encode(fields: Sequence[Field], values: Sequence[float]) -> list[float]:
    """Return the values of a launch with codes where fields are written as codes."""
    given = list(values)
    for field in fields:
        given[field.position] = field.written(given[field.position])
    return given


def require_single_blocks(facts: LaunchFacts, runtime: str) -> None:
    """Refuse a text with clusters, for a runtime that cannot launch them.

    Raises
    ------
    LaunchNotOffered
        With the extents of the cluster.
    """
    if facts.cluster != (1, 1, 1):
        what = f"clusters of {' x '.join(map(str, facts.cluster))} blocks"
        raise LaunchNotOffered(kernel=facts.kernel, runtime=runtime, what=what, where=facts.where)


def _field(facts: LaunchFacts, position: int, param: ParamFact, runtime: str, constants: bool) -> Field:
    if param.kind == "pointer":
        return Field(position, True, _POINTER)
    if param.kind == "opaque" and constants and param.descriptor is not None:
        return Field(position, False, f"{param.bytes}s")
    if param.kind == "opaque":
        what = f"parameters of {param.bytes} bytes of its own, as {param.name!r} is"
        raise LaunchNotOffered(kernel=facts.kernel, runtime=runtime, what=what, where=facts.where)
    kind = DTYPES[str(param.dtype)]
    name, storage = kind.container, kind.storage
    if name in _CODES:
        return Field(position, False, _CODES[name])
    return Field(position, False, _CODES[storage], name if kind.is_float else "")
