"""Traffic of tiles from the L2 cache: whole lines, wherever a row begins.

A TMA box has rows of at most one line. Rows whose pitch is not a multiple of a line begin anywhere in one, so that most
of them touch two lines; if it is a multiple of a sector, every other one does. On an H100 a multiprocessor gets a line
in about two cycles, independent of the others. Blocks of a cluster, which load a tile once for all, need fewer lines.
"""

from __future__ import annotations

LINE = 128
"""Bytes of a line."""
CYCLES = 2.06
"""Cycles of a line from the L2 cache to shared memory, measured on one H100 with all multiprocessors active."""
WORTH_IT = 1.2
"""Lines that tiles take at least, of those that aligned ones would, and of those that there is time for."""
_SECTOR = 32


def worth_pairs(lines: float, aligned: float, clocks: float) -> bool:
    """Whether clusters of two persistent blocks that multicast common operands are faster.

    Parameters
    ----------
    lines, aligned
        L2 lines of an iteration's operands, and lines they would take if rows were aligned.
    clocks
        Of the product.
    """
    return lines >= WORTH_IT * aligned and CYCLES * lines >= WORTH_IT * clocks


def lines_of_row(size: int, pitch: int) -> float:
    """Return the lines that a segment of a row touches, for rows ``pitch`` bytes apart."""
    whole = size / LINE
    if pitch % LINE == 0:
        return whole
    return whole + (0.5 if pitch % _SECTOR == 0 else 1.0)
