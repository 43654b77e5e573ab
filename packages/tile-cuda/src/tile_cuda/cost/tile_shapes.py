"""Tile shapes of products to compare, as data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tile_core.lowering.tilings import TileShape

_WIDE = (
    (128, 256, 256), (256, 128, 256), (128, 192, 256), (192, 256, 384), (256, 192, 256), (192, 128, 384),
    (128, 128, 128), (128, 128, 256), (64, 256, 128), (64, 192, 128), (64, 128, 128), (128, 64, 128), (64, 64, 128),
)  # fmt: skip
"""Rows, columns and threads of tiles on `wgmma`."""
_WARPS = (
    (128, 256, 256), (256, 128, 256), (128, 128, 256), (128, 128, 128), (64, 128, 128), (128, 64, 128), (64, 64, 128),
)  # fmt: skip
"""Of tiles on `mma.sync`."""
_TENSOR = ((128, 256, 128), (128, 128, 128), (256, 128, 128), (128, 192, 128), (128, 64, 128))
"""Of tiles on `tcgen05`."""
_NARROW = ((64, 128, 5), (64, 64, 8), (128, 64, 6))
"""Columns, depth (of 16-bit elements) and stages of tiles of few rows."""
_FEW_ROWS = (16, 32, 64)
_STAGES = (3, 4, 5, 6, 8)
_STAGES_OF_WARPS = (2, 3, 4)
_DEPTHS, _DEPTHS_OF_WARPS = (64, 128), (32, 64)
_MOST_SPLITS = 16


def shapes_of(bits: int, wide: str, split: bool, threads: int | None = None) -> Iterator[TileShape]:
    """Yield tile shapes; of equal estimates, the first is the best.

    Parameters
    ----------
    bits
        Of an element.
    wide
        ``"wgmma"``, ``"tcgen05"`` or ``""`` for `mma.sync`.
    split
        Whether K may be split.
    threads
        The only number of threads, or ``None``.
    """
    scale = 16 / bits
    for rows, (columns, depth, stages) in product(_FEW_ROWS, _NARROW):
        yield from _split(TileShape(rows, columns, round(depth * scale), threads or 128, stages), split)
    tiles = {"wgmma": _WIDE, "tcgen05": _TENSOR}.get(wide, _WARPS)
    depths, counts = (_DEPTHS, _STAGES) if wide else (_DEPTHS_OF_WARPS, _STAGES_OF_WARPS)
    kept = dict.fromkeys((m, n, threads or t) for m, n, t in tiles)
    for (m, n, count), depth, stages in product(kept, depths, counts):
        yield from _split(TileShape(m, n, round(depth * scale), count, stages), split)


def _split(shape: TileShape, split: bool) -> Iterator[TileShape]:
    splits = 1
    while splits <= (_MOST_SPLITS if split else 1):
        yield TileShape(shape.m, shape.n, shape.k, shape.threads, shape.stages, splits)
        splits *= 2
