"""The order of packed weights, as data.

In a tile of 16 rows and 16 of K of a 16-bit type, lane ``4 g + t`` of a warp multiplies elements ``2t``, ``2t + 1``,
``2t + 8`` and ``2t + 9`` of row ``g``: the fragment of A and, with columns for rows, of B in the matrix instructions of
warps of 32 lanes. Of 32 elements along K these are 8, which are one word in packed order. Both elements of a register
are 16 bits apart in it, so that one shift and one mask extract them.
"""

from __future__ import annotations

from tile_core.compat.types import Expr
from tile_core.ir import nodes

__all__ = ["GROUP", "RUNS", "WORD", "word_and_shift"]

#: Elements along K that are permuted among themselves, and those of one word.
GROUP, WORD = 32, 8
#: Bits of an element's number in its group that stay together: the lowest of them, how many, and the lowest bit of the
#: element's place that they become. The three lowest bits of a place count the elements of a word.
RUNS = ((0, 1, 2), (1, 2, 3), (3, 2, 0))


def word_and_shift(index: Expr) -> tuple[Expr, Expr]:
    """Return an element's word in its row, and its lowest bit there.

    Parameters
    ----------
    index
        The element's number along K.
    """
    kind = nodes.dtype_of(index)

    def const(n: int) -> Expr:
        return nodes.int_const(n, kind)

    word, shift = index // const(GROUP) * const(GROUP // WORD), const(0)
    for first, count, to in RUNS:
        bits = index // const(1 << first) % const(1 << count)
        if 1 << to < WORD:
            shift = shift + bits * const(4 << to)
        else:
            word = word + bits * const((1 << to) // WORD)
    return word, shift
