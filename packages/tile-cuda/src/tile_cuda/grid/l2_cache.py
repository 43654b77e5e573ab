"""What tiles take from the second-level cache: lines of 128 bytes, whole ones even where a row begins inside of one.

A copy of a box brings rows of at most one line. Rows whose distance is no multiple of a line begin anywhere in one, so
that most of them take two; where it is one of sectors, every other one does. On an H100 a multiprocessor gets a line in
about two cycles, whoever else asks for it. Blocks of a cluster, which load a tile once for all of them, need fewer.
"""

from __future__ import annotations

LINE = 128
"""Bytes of a line."""
CYCLES = 2.06
"""That a line takes from the second cache to shared memory, measured on one H100 with all multiprocessors at work."""
WORTH_IT = 1.2
"""Lines that tiles take at least, of those that aligned ones would, and of those that there is time for."""
_SECTOR = 32


def worth_pairs(lines: float, aligned: float, clocks: float) -> bool:
    """Whether pairs of blocks that stay are faster where they load what both read for each other.

    Parameters
    ----------
    lines, aligned
        That the operands of an iteration take, and that they would take if rows began where lines do.
    clocks
        Of the product.
    """
    return lines >= WORTH_IT * aligned and CYCLES * lines >= WORTH_IT * clocks


def lines_of_row(size: int, pitch: int) -> float:
    """Return how many lines a piece of a row touches, where rows are ``pitch`` bytes apart."""
    whole = size / LINE
    if pitch % LINE == 0:
        return whole
    return whole + (0.5 if pitch % _SECTOR == 0 else 1.0)
