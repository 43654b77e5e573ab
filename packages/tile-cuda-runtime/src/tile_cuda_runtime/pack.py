"""Launch arguments in the driver's format: a reusable array of the values' addresses."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence

from tile_runtime.abi.kernel_text import LaunchFacts
from tile_runtime.texts.packing import encode, fields_of

SLOT = 8
"""Bytes of memory for one value that a call passes."""


class Pack:
    """Memory for the values of one launch at a time.

    Attributes
    ----------
    values
        A slot per parameter: of 8 bytes, or of the size of a constant of the launch.
    addresses
        Address of an array that holds the address of each slot.
    """

    __slots__ = ("_table", "addresses", "values")

    def __init__(self, codes: Sequence[str]) -> None:
        sizes = [struct.calcsize("<" + code) for code in codes]
        self.values = ctypes.create_string_buffer(max(sum(sizes), 1))
        start = ctypes.addressof(self.values)
        addresses = [start + sum(sizes[:i]) for i in range(len(sizes))]
        self._table = (ctypes.c_void_p * max(len(sizes), 1))(*addresses)
        self.addresses = ctypes.addressof(self._table)


class SlotPacker:
    """Writes values into packs, and keeps packs for the next launch.

    A pack belongs to one launch from `take` to `put`, so that threads never share one. Only the first launch of each
    concurrent thread allocates one.

    Parameters
    ----------
    facts
        Of the function that is launched.

    Raises
    ------
    LaunchNotOffered
        A parameter is of a kind that is not filled.
    """

    def __init__(self, facts: LaunchFacts) -> None:
        fields = fields_of(facts, "cuda", constants=True)
        self._encoded = [f for f in fields if f.encoded]
        self.codes: Sequence[str] = [f.code + "x" * (SLOT - f.bytes) for f in fields]
        """Format of each value in its slot, those of constants last."""
        self._free: list[Pack] = []
        self.put: Callable[[Pack], None] = self._free.append
        """Called to give a pack back."""
        self.write: Callable[..., None] = struct.Struct("<" + "".join(self.codes)).pack_into
        """Called as ``write(pack.values, 0, *values, *constants)``."""
        self.plain = not self._encoded
        """Whether values are written as they are; otherwise they need `encode`."""

    @property
    def encoded(self) -> tuple[int, ...]:
        """Positions of the values that need `encode`."""
        return tuple(f.position for f in self._encoded)

    def take(self) -> Pack:
        """Return a pack with exclusive use."""
        try:
            return self._free.pop()
        except IndexError:
            return Pack(self.codes)

    def encode(self, values: Sequence[float]) -> list[float]:
        """Return the values, with those whose element type has no Python format encoded."""
        return encode(self._encoded, values)
