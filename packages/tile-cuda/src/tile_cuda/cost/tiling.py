"""Tilings of a product of any shape, ranked by an estimate of their time.

    for tiling in tilings(5128, 11528, 5704)[:3]:
        kernel = matmul(5128, 11528, 5704, **tiling.arguments)

The estimate has five parts: multiplications, L2 lines of 128 bytes that tiles take (a row that begins inside of a line
takes one more; pairs of blocks may share them), bytes of device memory, the prologue and epilogue of a tile, and
multiprocessors that the last tiles leave idle. The rates are data, measured on one H100; ``tests/test_tiling.py`` holds
the ranking against measured times. It assumes an ordinary kernel with default options: tiles of A and B in a pipelined
loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_cuda.grid.l2_cache import CYCLES, LINE, lines_of_row, worth_pairs
from tile_cuda.target import Architecture, record_of

_STAYING = 32768, 256
"""Results, at most, and threads of tiles whose blocks stay and store results later."""
_STAY, _STAY_OF_BYTES = (4,), (4, 5)
"""Their stages, of elements of 16 and of 8 bits."""


@dataclass(frozen=True)
class Machine:
    """Rates of a device, per multiprocessor and cycle unless stated otherwise.

    Attributes
    ----------
    processors
        Multiprocessors.
    clock
        Cycles of a microsecond, under a load that keeps the matrix units busy.
    multiplications
        Of 16-bit elements by the matrix units; twice the rate for 8 bits.
    reached
        The part of them that its power allows.
    lines
        Cycles of a line of 128 bytes from the L2 cache to shared memory.
    memory
        Bytes of a microsecond from and to device memory, all multiprocessors together.
    result
        Cycles of the beginning of a tile and of storing its results, for 32,768 of them.
    late_epilogue
        Cycles between two tiles of a persistent block that stores results while it computes the next tile.
    launch
        Microseconds of one more launch.
    """

    processors: int
    clock: float
    multiplications: float
    reached: float
    lines: float
    memory: float
    result: float
    late_epilogue: float
    launch: float


HOPPER = Machine(132, 1550.0, 2048.0, 0.82, 2.3, 2.9e6, 4300.0, 3200.0, 3.0)
"""Of one H100 of 700 W, fitted to 252 kernels of 28 shapes. An H200 has 1.4 times the memory rate: no other rank where
memory is the limit."""

AMPERE = Machine(108, 1400.0, 1024.0, 1.0, CYCLES, 1.4e6, 5500.0, 5500.0, 3.0)
"""From data sheets, not measured: for ranks, not for times."""


@dataclass(frozen=True)
class Tiling:
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
        Blocks that share the sum of one tile; their partial results are added up by a second launch, in order.
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
) -> list[Tiling]:
    """Return tilings of a product of A (M, K) and B (K, N), fastest first.

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
        If an extent or the number of bits is none.
    """
    if min(M, N, K) < 1 or bits not in (8, 16):
        raise ValueError(f"tilings of {M} x {N} x {K} with elements of {bits} bits: extents are positive, bits 8 or 16")
    record = record_of(target.partition(":")[2] or "sm_80")
    problem = _Problem(M, N, K, bits, transposed, record, HOPPER if "wgmma" in record.features else AMPERE)
    found = [problem.estimated(t) for t in _candidates(problem) if split or t.splits == 1]
    return sorted(found, key=lambda t: t.microseconds)


@dataclass(frozen=True)
class _Problem:
    M: int
    N: int
    K: int
    bits: int
    transposed: bool
    record: Architecture
    machine: Machine

    def estimated(self, t: Tiling) -> Tiling:
        """Return a tiling with its time."""
        m, per_tile = self.machine, t.block_M * t.block_N
        tiles = -(-self.M // t.block_M) * -(-self.N // t.block_N) * t.splits
        steps = -(-self.K // (t.block_K * t.splits))
        multiplied = max(t.block_M, 64) * t.block_N * t.block_K / (m.reached * m.multiplications * 16 / self.bits)
        most = -(-tiles // m.processors)  # of one multiprocessor
        stays = most > 1 and self.may_stay(t)
        step = max(multiplied, self.lines(t, stays) * m.lines)
        ends = m.result * per_tile / 32768
        # Blocks that run beside each other hide the ends of their tiles behind each other's products.
        between = m.late_epilogue if stays else 0.0 if self.fit(t) > 1 else ends
        cycles = most * steps * step + ends + (most - 1) * between
        time = max(cycles / m.clock, self.moved() / m.memory)
        if t.splits > 1:
            time += m.launch + 8 * t.splits * self.M * self.N / m.memory
        return Tiling(t.block_M, t.block_N, t.block_K, t.threads, t.num_stages, t.splits, time)

    def may_stay(self, t: Tiling) -> bool:
        """Whether blocks are persistent where there are more tiles than run at a time (`tile_cuda.grid.persistent`)."""
        stages, (results, threads) = _STAY_OF_BYTES if self.bits == 8 else _STAY, _STAYING
        known = "wgmma" in self.record.features and t.splits == 1 and t.num_stages in stages
        return known and t.block_M * t.block_N <= results and t.threads == threads and self.fit(t) == 1

    def lines(self, t: Tiling, stays: bool = False) -> float:
        """Return the L2 lines of a K step of a tile, without sharing."""
        row_a = lines_of_row(t.block_K * self.bits // 8, self.K * self.bits // 8)
        if self.transposed:
            a, b = t.block_M * row_a, t.block_N * row_a
        else:
            # A box has rows of at most one line.
            boxes = -(-t.block_N * self.bits // 8 // LINE)
            row_b = lines_of_row(min(t.block_N * self.bits // 8, LINE), self.N * self.bits // 8)
            a, b = t.block_M * row_a, t.block_K * boxes * row_b
        aligned = (t.block_M + t.block_N) * t.block_K * self.bits / 8 / LINE
        clocks = t.block_M * t.block_N * t.block_K * self.bits / 16 / self.machine.multiplications
        if not stays or not worth_pairs(a + b, aligned, clocks):
            return a + b
        across = [a / 2 + b] if -(-self.N // t.block_N) % 2 == 0 else []
        along = [a + b / 2] if -(-self.M // t.block_M) % 2 == 0 else []
        return min([*across, *along, a + b])

    def moved(self) -> float:
        """Return the bytes that have to cross device memory."""
        return (self.M + self.N) * self.K * self.bits / 8 + 2 * self.M * self.N

    def fit(self, t: Tiling) -> int:
        """Return how many blocks fit on a multiprocessor at a time."""
        shared = self.shared(t)
        registers = 40 + t.block_M * t.block_N // t.threads
        return max(1, min(self.record.shared_bytes // shared, 65536 // (t.threads * registers)))

    def shared(self, t: Tiling) -> int:
        """Return the bytes of shared memory of a block."""
        return (t.block_M + t.block_N) * t.block_K * t.num_stages * self.bits // 8 + 2048


def _candidates(p: _Problem) -> Iterator[Tiling]:
    """Return the tilings that fit, with split-K where tiles alone would leave multiprocessors idle.


    Where shared memory does not hold all stages of a tile, it has fewer, but two at least.
    """
    for rows, columns, depth, threads, most in _tiles(p):
        wanted = (Tiling(rows, columns, depth * 16 // p.bits, threads, stages) for stages in range(most, 1, -1))
        plain = next((t for t in wanted if p.shared(t) <= p.record.shared_bytes), None)
        if plain is None:
            continue
        stages = plain.num_stages
        yield plain
        tiles = -(-p.M // rows) * -(-p.N // columns)
        splits = 2
        while tiles * splits <= 2 * p.machine.processors and 4 * splits * plain.block_K <= p.K:
            yield Tiling(*(rows, columns, plain.block_K, threads, stages), splits)
            splits *= 2


def _tiles(p: _Problem) -> tuple[tuple[int, int, int, int, int], ...]:
    """Return rows, columns, depth (of 16-bit elements), threads and stages of tiles."""
    if p.M <= 64:
        rows = max(16, 1 << (p.M - 1).bit_length())
        return (rows, 64, 128, 128, 5), (rows, 64, 64, 128, 8), (rows, 128, 64, 128, 6)
    if "wgmma" in p.record.features:
        return (
            (192, 256, 64, 384, 3), (256, 192, 64, 256, 3), (128, 256, 64, 256, 4), (256, 128, 64, 256, 4),
            (128, 128, 64, 128, 3), (128, 192, 64, 256, 4),
            (192, 128, 64, 384, 4), (64, 128, 64, 128, 4), (64, 256, 64, 128, 3), (64, 64, 64, 128, 4),
        )  # fmt: skip
    return (128, 256, 32, 256, 3), (128, 128, 32, 128, 3), (256, 128, 32, 256, 3), (64, 128, 32, 128, 4), (
        64, 64, 64, 128, 3,
    )  # fmt: skip
