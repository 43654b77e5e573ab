"""Tile shapes of a dense product, ranked by estimated time.

``tile.tilings`` ranks the tile parameters of any factory; this function remains for one minor version.
"""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass

from tile_core.lowering.tilings import TileShape
from tile_cuda.cost.tile_shapes import shapes_of
from tile_cuda.cost.tile_time import AMPERE, BLACKWELL, HOPPER, Machine, TileKernel, TileProduct
from tile_cuda.target import Architecture, record_of


@dataclass(frozen=True)
class ProductTiling:
    """How the blocks of a kernel divide a product.

    Attributes
    ----------
    block_M, block_N, block_K
        A block's tile of the result, and its steps along K.
    threads
        Of a block.
    num_stages
        Of the pipelined loop over K.
    splits
        Blocks that share K of one tile; their partial results are added up by a second launch, in order.
    microseconds
        Estimated time.
    """

    block_M: int
    block_N: int
    block_K: int
    threads: int
    num_stages: int
    splits: int = 1
    microseconds: float = 0.0

    @property
    def arguments(self) -> dict[str, int]:
        """The arguments by the names that kernels usually have; ``splits`` if it is not 1."""
        names = ("block_M", "block_N", "block_K", "threads", "num_stages")
        found = {name: getattr(self, name) for name in names}
        return found if self.splits == 1 else {**found, "splits": self.splits}

    def __str__(self) -> str:
        tile = f"{self.block_M}x{self.block_N}x{self.block_K}_t{self.threads}_s{self.num_stages}"
        return f"{tile}_split{self.splits}" if self.splits > 1 else tile


def tilings(
    M: int, N: int, K: int, bits: int = 16, target: str = "cuda:sm_90a", *, transposed: bool = False, split: bool = True
) -> list[ProductTiling]:
    """Return tilings of a product of A (M, K) and B (K, N), fastest first.

    Deprecated: ``tile.tilings`` ranks the parameters of your own factory.

    Parameters
    ----------
    M, N, K
        The shape.
    bits
        Of an element of A and B, 8 or 16; results have 16 and accumulators 32.
    target
        The target; times are calibrated for ``cuda:sm_90a`` only.
    transposed
        Whether B is stored as (N, K).
    split
        Whether split-K is allowed.

    Raises
    ------
    UnknownArchitecture
        Naming the nearest one that is known.
    ValueError
        If an extent or the number of bits is not supported.
    """
    text = "tile_cuda.cost.tiling.tilings is deprecated: use tile.tilings(factory, shapes)"
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    return ranked(M, N, K, bits, target, transposed, split)


def ranked(M: int, N: int, K: int, bits: int, target: str, transposed: bool, split: bool) -> list[ProductTiling]:
    """Return the tilings of a product, see `tilings`."""
    if min(M, N, K) < 1 or bits not in (8, 16):
        raise ValueError(f"tilings of {M} x {N} x {K} with elements of {bits} bits: extents are positive, bits 8 or 16")
    record = record_of(target.partition(":")[2] or "sm_80")
    problem = _Problem(M, N, K, bits, transposed, record)
    found = [t for s in shapes_of(bits, problem.wide, False) for t in problem.candidates(s) if split or t.splits == 1]
    return sorted(dict.fromkeys(found), key=lambda t: t.microseconds)


@dataclass(frozen=True)
class _Problem:
    M: int
    N: int
    K: int
    bits: int
    transposed: bool
    record: Architecture

    @property
    def wide(self) -> str:
        return "wgmma" if "wgmma" in self.record.features else ""

    @property
    def machine(self) -> Machine:
        return HOPPER if self.wide else BLACKWELL if "tcgen05" in self.record.features else AMPERE

    def candidates(self, s: TileShape) -> list[ProductTiling]:
        """Return a tile shape with its time, also with split-K where multiprocessors would be idle."""
        tiles = -(-self.M // s.m) * -(-self.N // s.n)
        if s.m >= 2 * max(16, self.M):
            return []
        found = []
        splits = 1
        while splits == 1 or (tiles * splits <= 2 * self.machine.processors and 4 * splits * s.k <= self.K):
            kernel = self.kernel(dataclasses.replace(s, splits=splits), tiles * splits)
            if kernel.illegal():
                break
            found.append(ProductTiling(s.m, s.n, s.k, s.threads, s.stages, splits, kernel.time(self.machine)[0]))
            splits *= 2
        return found

    def kernel(self, s: TileShape, tiles: int) -> TileKernel:
        size = self.bits // 8
        wide = self.wide if s.m >= 64 else ""
        trips = -(-self.K // (s.k * s.splits))
        kind = "int8" if self.bits == 8 else "16"
        pitches = self.K * size, (self.K if self.transposed else self.N) * size
        product = TileProduct(
            s.m, s.n, s.k, self.bits, kind, False, wide, (False, self.transposed), False, pitches, trips
        )
        moved = (self.M + self.N) * self.K * size + 2 * self.M * self.N
        partial = 8 * s.splits * self.M * self.N / self.machine.memory + self.machine.launch
        grid = -(-self.N // s.n), -(-self.M // s.m)
        more = partial if s.splits > 1 else 0.0
        shared = self.record.shared_bytes
        return TileKernel((product,), tiles, s.threads, s.stages, s.splits, 0, moved, more, grid, shared)
