"""Partition of a product among warps: a grid over rows and columns of C."""

from __future__ import annotations

from functools import cache

from tile_core.ops.gemm import GemmWarpPolicy
from tile_core.records import dataclass


@dataclass(frozen=True)
class WarpPartition:
    """A grid of warps, and the tiles that each computes.

    Attributes
    ----------
    warps_m, warps_n
        Warps along the rows and along the columns of C; further warps have no work.
    atoms_m, atoms_n
        Instruction tiles of a warp along the rows and columns, those in the padding included.
    copies
        Neighbouring warps with the same work, which all hold its result.
    """

    warps_m: int
    warps_n: int
    atoms_m: int
    atoms_n: int
    copies: int = 1

    @property
    def warps(self) -> int:
        """Warps that have work."""
        return self.warps_m * self.warps_n * self.copies

    @property
    def work(self) -> int:
        """Instruction tiles of a warp."""
        return self.atoms_m * self.atoms_n

    def __str__(self) -> str:
        copies = f", {self.copies} with the same work" if self.copies > 1 else ""
        return f"{self.warps_m} x {self.warps_n} warps of {self.atoms_m} x {self.atoms_n} tiles{copies}"


@cache
def splits(
    tiles_m: int, tiles_n: int, warps: int, policy: int, shape: tuple[int, int] = (2, 1)
) -> tuple[WarpPartition, ...]:
    """Return partitions of instruction tiles among at most ``warps`` warps, best first.

    There are ``tiles_m`` x ``tiles_n`` tiles. Every size has a partition: the last warps of a row or column may compute
    padding. ``Square`` minimizes the work per warp, then the loads; ``FullRow`` first spreads the rows over all warps
    that reduce the work, ``FullCol`` the columns. ``shape`` is proportional to the rows and columns of an instruction
    tile.
    """
    found = {}
    for rows in range(1, min(warps, tiles_m) + 1):
        for columns in range(1, min(warps // rows, tiles_n) + 1):
            split = WarpPartition(rows, columns, -(-tiles_m // rows), -(-tiles_n // columns))
            found[split] = _cost(split, policy, shape)
    return tuple(sorted(found, key=lambda s: (*found[s], s.warps, s.warps_n)))


def _cost(split: WarpPartition, policy: int, shape: tuple[int, int]) -> tuple[int, ...]:
    work, loads = split.atoms_m * split.atoms_n, shape[0] * split.atoms_m + shape[1] * split.atoms_n
    if policy == GemmWarpPolicy.FullRow:
        return split.atoms_m, split.atoms_n
    if policy == GemmWarpPolicy.FullCol:
        return split.atoms_n, split.atoms_m
    return work, loads
