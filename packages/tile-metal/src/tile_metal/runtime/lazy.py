"""Describe arrays of MLX that are not computed yet, and compute the results of launches."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from tile_core.compat.types import Argument
from tile_core.errors.base import TileError
from tile_runtime.calls.arrays import ArrayFacts
from tile_runtime.calls.dlpack import contiguous_strides

Typed = Callable[[Exception], TileError]
"""Returns the catalogue's error for an exception of MLX."""

_TRACED = "during function transformations"


def lazy_facts(array: Argument) -> ArrayFacts:
    """Return the facts of an array of MLX without computing it.

    Its strides are those of contiguous memory, because MLX copies an input of a kernel that is not.
    """
    shape = tuple(array.shape)
    kind, index = array.__dlpack_device__()
    return ArrayFacts(
        library="mlx",
        dtype=str(array.dtype).rpartition(".")[2],
        itemsize=array.dtype.size,
        shape=shape,
        strides=contiguous_strides(shape),
        device=(int(kind), int(index)),
        pointer=0,
        writable=False,
        why_read_only="an immutable mlx array",
        handle=id(array),  # arrays are values: only the same object is written and read
    )


class PendingResults:
    """Arrays that launches have given a content that may not be computed yet.

    An array without another reference is forgotten, so that nothing is computed in vain.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[weakref.ref[Any], Typed]] = {}
        self._all: list[Argument] | None = None

    def add(self, owner: Argument, content: Argument, typed: Typed) -> None:
        """Add the new content of an array."""
        key = id(owner)
        self._waiting[key] = (weakref.ref(owner, lambda _: self._waiting.pop(key, None)), typed)
        if self._all is not None:
            self._all.append(content)

    def made_by(self, launch: Callable[[], object], launches: int) -> Sequence[Argument]:
        """Launch repeatedly, and return all contents that these launches made."""
        made: list[Argument] = []
        self._all = made
        try:
            for _ in range(launches):
                launch()
        finally:
            self._all = None
        return made

    def compute(self, mx: Any) -> None:
        """Compute all results.

        Raises
        ------
        TileError
            A kernel does not compile, or the device reports a fault.
        """
        waiting, self._waiting = self._waiting, {}
        for owner, typed in waiting.values():
            array = owner()
            try:
                if array is not None:
                    mx.eval(getattr(array, "memory", array))
            except (RuntimeError, ValueError) as error:
                if _TRACED not in str(error):  # the function that is traced computes it
                    raise typed(error) from error
