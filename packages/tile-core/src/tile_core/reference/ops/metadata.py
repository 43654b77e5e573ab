"""Metadata of sparse products: what no matrix instruction defines is the user's error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tile_core.compat.types import Array
from tile_core.dtypes import DTYPES
from tile_core.errors.execution import UndefinedMetadata
from tile_core.ir.attributes import ORIGINS, TRANSPOSE_E
from tile_core.ops.held_codes import LEGAL_NIBBLES, METADATA

if TYPE_CHECKING:
    from tile_core.reference.ops.operands import BoundCall
    from tile_core.reference.ops.regions import MemoryRegion

__all__ = ["matrix_dims", "refuse_illegal"]


def refuse_illegal(call: BoundCall, words: Array, nibbles: Array, values: Array, group: int) -> None:
    """Refuse undefined metadata; 0 means indices 0 and 1, which is harmless for zeros.

    Parameters
    ----------
    call
        A sparse product.
    words, nibbles, values
        Its metadata, those of each group, and its stored values, a line for each row of A.
    group
        Elements of a group.

    Raises
    ------
    UndefinedMetadata
        Naming the first group.
    """
    legal = np.isin(nibbles, LEGAL_NIBBLES[METADATA[group]])
    legal |= (nibbles == 0) & ((values[:, 1::2] == 0) if group == 4 else True)
    if legal.all():
        return
    e, turned = call.args[1], bool(call.attrs[TRANSPOSE_E])
    row, at = (int(i) for i in np.argwhere(~legal)[0])
    bits, column = int(nibbles[row, at]), at // (DTYPES[e.dtype].bits // 4)
    both = f"{bits & 3} and {bits >> 2}"
    inside = (column, row) if turned else (row, column)
    raise UndefinedMetadata(
        location=_word_location(e, inside, bits and words[row, column], call.attrs[ORIGINS]),
        bits=f"{bits:#06b}", group=at, row=row, first=group * at, last=group * (at + 1) - 1,
        found=f"elements {both}" if group == 4 else f"halves of elements {both}", where=call.where,
    )  # fmt: skip


def matrix_dims(extents: Sequence[int]) -> tuple[int, int]:
    """Return the two dimensions of a matrix operand, as ``View.matrix_dims``."""
    long = [d for d, e in enumerate(extents) if e != 1]
    last = len(extents) - 1
    if not long or long[0] >= last - 1:
        return last - 1, last
    return (long[0], long[1]) if len(long) == 2 else (long[0], last)


def _word_location(e: MemoryRegion, inside: tuple[int, int], word: Array, origins: Sequence[tuple[str, int]]) -> str:
    """Return the location of a word, in an argument or else in the tile."""
    tile = e.memory.root.name
    for name, number in origins:
        memory = e.state.memories[number]
        if word and memory.dtype == e.dtype:
            found = np.argwhere(memory.block == word)
            if len(found):
                return f"{name}{[int(i) for i in found[0]]}"
    at = list(e.mins)
    for d, i in zip(matrix_dims(e.extents), inside, strict=True):
        at[d] += i
    given = " and ".join(name for name, _ in origins if name != tile)
    return f"{tile}{[int(i) for i in at]}" + (f", from {given}" if given else "")
