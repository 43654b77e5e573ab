"""Estimated time of a kernel whose blocks multiply tiles in a pipelined loop.

The estimate has six parts: multiplications, L2 lines of 128 bytes that tiles take (a row that begins inside of a line
takes one more; pairs of blocks may multicast them), latency of loads where few blocks run at a time, bytes of device
memory, the prologue and epilogue of a tile, and multiprocessors that the last tiles leave idle. Multiplications and
loads disturb each other where both take long. The rates are data, fitted to 339 kernels that were timed on Hopper
(``tests/records``) and to products with (N, K) weights on an H200; ``tests/test_tiling.py`` holds the ranking against
measured times. It assumes default options.
"""

from __future__ import annotations

from math import gcd

from tile_core.records import dataclass
from tile_cuda.grid.l2_cache import CYCLES, LINE, lines_of_row, worth_pairs
from tile_cuda.occupancy import most_registers
from tile_cuda.ops.warpgroup_cost import SHARED_BYTES, WARP_RATES
from tile_cuda.ops.warpgroup_plan import CHUNK, MOST_COLUMNS, ROWS, WARPGROUP, partial_columns
from tile_cuda.target import WARP

_PERSISTENT = 32768, 2 * WARPGROUP
"""Elements of a tile, at most, and threads of persistent blocks with an overlapped epilogue."""
_RING, _RING_OF_BYTES = (4, 8), (4, 5, 8)
"""Their stages, of elements of 16 and of 8 bits (`tile_cuda.grid.persistent`)."""
_SHARPNESS = 4.4
"""Exponent with which multiplications and loads add up: infinite if they did not disturb each other."""
_OF_MEMORY = 8.0
"""The same of all cycles and device memory."""
_READS, _LEAST_READS = 0.1, 0.625
"""Part of the power that an instruction takes for shared-memory reads; reads of the widest one."""
_SPARSE_ROWS = 1.1
"""Time of a warpgroup's sparse products of several instructions along rows, each with its metadata, relative to one."""
_PROMOTED = 0.42
"""Time of products whose results are promoted: this and their reads, relative to others (H200, tiles of 128 rows)."""
_WAITS, _PER_GROUP, _LATENCY = 90.0, 10.0, 1650.0
"""Cycles of an iteration with barriers of the block, more for each warpgroup, and from a copy to its operands."""
_OTHERS, _OF_WARPS = 40, 60
"""Registers of a thread beside its accumulators: of wgmma and of mma.sync products."""
_SCRATCH = 2048
"""Bytes of shared memory beside the tiles."""


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
    warps
        Whether `mma.sync` reaches the rate of the matrix units.
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
    warps: bool = False


HOPPER = Machine(132, 1550.0, 2048.0, 0.92, 2.13, 2.9e6, 3900.0, 2750.0, 3.0)
"""Of one H100 of 700 W. An H200 has 1.4 times the memory rate: no other rank where memory is the limit."""
AMPERE = Machine(108, 1400.0, 1024.0, 1.0, CYCLES, 1.4e6, 5500.0, 5500.0, 3.0, warps=True)
"""From data sheets, not measured: for ranks, not for times."""
BLACKWELL = Machine(148, 1800.0, 4096.0, 0.9, 1.7, 7.0e6, 5500.0, 5500.0, 3.0)
"""From data sheets, not measured; `mma.sync` at the part of the rate that it has on Hopper is an assumption."""


@dataclass(frozen=True)
class TileProduct:
    """One product of a block, and its operands' place in global memory.

    Attributes
    ----------
    m, n, k
        The tile; K is dense.
    bits
        Of an element of A and B.
    kind
        Key of ``WARP_RATES``.
    sparse
        Whether A is 2:4 sparse.
    wide
        ``"wgmma"``, ``"tcgen05"`` or ``""`` for `mma.sync`.
    transposed
        Whether A is stored as (K, M), and B as (N, K).
    held
        Whether A is in registers.
    pitches
        Bytes from row to row of A and B in global memory; 0 if the rows are aligned or unknown.
    trips
        Trip count.
    promoted
        Whether threads add partial accumulators of 8-bit floats in float32.
    """

    m: int
    n: int
    k: int
    bits: int
    kind: str
    sparse: bool
    wide: str
    transposed: tuple[bool, bool]
    held: bool
    pitches: tuple[int, int]
    trips: int
    promoted: bool = False

    @property
    def a_bits(self) -> float:
        """Bits of an element of dense A, with its metadata."""
        return self.bits / 2 + 2 * CHUNK / self.bits / 8 if self.sparse else self.bits

    @property
    def step_bytes(self) -> int:
        """Bytes of shared memory for the operands of an iteration."""
        a = 0 if self.held else self.m * self.k * self.a_bits / 8
        return round(a + self.n * self.k * self.bits / 8)

    def cycles(self, machine: Machine, threads: int) -> float:
        """Return the cycles of the matrix units for an iteration."""
        rate = machine.multiplications * machine.reached * 16 / self.bits * (2 if self.sparse else 1)
        if self.wide == "tcgen05":
            return max(self.m, 2 * ROWS) * self.n * self.k / rate
        if not self.wide:
            part = 1.0 if machine.warps else WARP_RATES[self.kind] * (0.5 if machine is BLACKWELL else 1.0)
            return max(self.m * self.n * self.k / rate / part, self._read_by_warps(threads // WARP))
        high, columns = self._of_group(threads)
        reads = (ROWS * (not self.held) + columns * (2 if self.sparse else 1)) / (2 * columns)
        bound = max(1.0, reads) * (1 + _READS * max(0.0, min(1.0, reads) - _LEAST_READS))
        if self.sparse and self.m > ROWS * high:
            bound *= _SPARSE_ROWS
        if self.promoted:
            wide = self._partial_columns(threads)
            bound *= _PROMOTED + (ROWS * (not self.held) + wide) / (2 * wide)
        return max(self.m, ROWS) * self.n * self.k / rate * bound

    def partial_registers(self, threads: int) -> int:
        """Return the registers of a thread for partial accumulators."""
        return self._partial_columns(threads) // 2 if self.promoted else 0

    def _of_group(self, threads: int) -> tuple[int, int]:
        """Return warpgroups along rows, and the columns of each."""
        groups = max(1, threads // WARPGROUP)
        high = gcd(max(1, self.m // ROWS), groups)
        return high, min(MOST_COLUMNS, max(8, self.n * high // groups))

    def _partial_columns(self, threads: int) -> int:
        """Return the columns of an instruction whose results are promoted."""
        high, columns = self._of_group(threads)
        needed = -(-self.m // (ROWS * high)) * columns // 2 + _OTHERS
        return partial_columns(columns, needed, most_registers(threads))

    def lines(self) -> tuple[float, float]:
        """Return the L2 lines of A and B in an iteration."""
        a = 0.0 if self.held and not self.pitches[0] else self._lines(0, self.m)
        return a, self._lines(1, self.n)

    def aligned(self) -> float:
        """Return the L2 lines of A and B if rows were aligned."""
        return (self.m * self.a_bits + self.n * self.bits) * self.k / 8 / LINE

    def metadata_registers(self, threads: int) -> int:
        """Return the registers of a thread for the metadata of an iteration."""
        groups = max(1, threads // WARPGROUP)
        return -(-self.m // (ROWS * groups)) * self.k * self.bits // 1024 + 1 if self.sparse else 0

    def _lines(self, operand: int, extent: int) -> float:
        along_k = not self.transposed[0] if operand == 0 else self.transposed[1]
        bits, pitch = (self.a_bits if operand == 0 else self.bits), self.pitches[operand]
        rows, size = (extent, self.k * bits / 8) if along_k else (self.k, extent * bits / 8)
        if not along_k and operand == 0 and self.sparse:
            rows, size = self.k // 2, extent * self.bits / 8
        # A box has rows of at most one line.
        boxes = max(1.0, -(-size // LINE)) if not along_k else 1.0
        return rows * boxes * lines_of_row(round(size if along_k else min(size, LINE)), pitch)

    def _read_by_warps(self, warps: int) -> float:
        """Return the cycles of warps' operand loads from shared memory, each for its tile."""
        grids = ((high, warps // high) for high in range(1, warps + 1) if warps % high == 0)
        a = 0.0 if self.held else self.m * self.k * self.a_bits / 8
        b = self.n * self.k * self.bits / 8
        return min((a * wide + b * high for high, wide in grids), default=0.0) / SHARED_BYTES


@dataclass(frozen=True)
class TileKernel:
    """A kernel of tile products, for an estimate.

    Attributes
    ----------
    products
        Of an iteration.
    tiles
        Blocks.
    threads, stages
        Of a block and its loop.
    splits
        Blocks that share K of a tile.
    other_shared
        Bytes of shared memory beside the stages of operands.
    moved
        Bytes that cross device memory.
    more
        Microseconds of other launches.
    grid
        Tiles along N and M if known; 0 otherwise.
    shared_bytes
        Shared memory of a block at most.
    """

    products: tuple[TileProduct, ...]
    tiles: int
    threads: int
    stages: int
    splits: int
    other_shared: int
    moved: float
    more: float
    grid: tuple[int, int]
    shared_bytes: int

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        return sum(p.step_bytes for p in self.products) * self.stages + self.other_shared + _SCRATCH

    @property
    def accumulators(self) -> int:
        """Accumulator registers of a thread."""
        return sum(p.m * p.n for p in self.products if p.wide != "tcgen05") // self.threads

    @property
    def blocks(self) -> int:
        """Blocks that run at a time on a multiprocessor."""
        registers = _OTHERS + self.accumulators + sum(p.partial_registers(self.threads) for p in self.products)
        return max(1, min(self.shared_bytes // max(1, self.shared), 65536 // (self.threads * registers)))

    def illegal(self) -> str:
        """Return why a block exceeds a multiprocessor; empty if it does not."""
        if self.shared - _SCRATCH > self.shared_bytes:
            return f"tiles of {self.stages} stages take {self.shared} of {self.shared_bytes} bytes of shared memory"
        needed, limit = self.accumulators, most_registers(self.threads)
        needed += _OTHERS if all(p.wide for p in self.products) else _OF_WARPS
        needed += sum(p.metadata_registers(self.threads) + p.partial_registers(self.threads) for p in self.products)
        return f"a thread needs about {needed} of {limit} registers" if needed > limit else ""

    def time(self, machine: Machine) -> tuple[float, str]:
        """Return microseconds and their limit."""
        multiplied = sum(p.cycles(machine, self.threads) for p in self.products)
        most = -(-self.tiles // machine.processors)  # of one multiprocessor
        persistent = most > 1 and self._is_persistent()
        loaded = self._lines(persistent, multiplied * machine.reached) * machine.lines
        busy = float((multiplied**_SHARPNESS + loaded**_SHARPNESS) ** (1 / _SHARPNESS))
        waits = 0.0 if persistent else _WAITS + _PER_GROUP * self.threads / WARPGROUP
        one = multiplied + waits
        alone = max(one, (one + _LATENCY) / (self.stages - 1) if self.stages > 2 else one + _LATENCY / self.stages)
        alone /= min(self.blocks, most)
        trips = max(p.trips for p in self.products)
        ends = machine.result * max(p.m * p.n for p in self.products) / 32768
        # Blocks that run beside each other hide part of the ends of their tiles behind each other's products.
        between = machine.late_epilogue if persistent else ends
        cycles = most * trips * max(busy, alone) + ends + (most - 1) * between
        memory = self.moved / machine.memory
        limit = "the latency of its loads" if alone > busy else "loads from L2" if loaded > multiplied else ""
        limit = "device memory" if memory > cycles / machine.clock else limit or "the matrix units"
        waves = f"{self.tiles} tiles, at most {most} on each of {machine.processors} multiprocessors"
        both = (cycles / machine.clock) ** _OF_MEMORY + memory**_OF_MEMORY
        return float(both ** (1 / _OF_MEMORY)) + self.more, f"{waves}; limited by {limit}"

    def _is_persistent(self) -> bool:
        """Whether blocks are persistent where there are more tiles than run at a time (`tile_cuda.grid.persistent`)."""
        (p, *others), (results, threads) = self.products, _PERSISTENT
        ring = _RING_OF_BYTES if p.bits == 8 else _RING
        known = p.wide == "wgmma" and not others and self.splits == 1 and self.stages in ring
        return known and p.m * p.n <= results and self.threads == threads and self.blocks == 1

    def _lines(self, persistent: bool, clocks: float) -> float:
        """Return the L2 lines of an iteration; pairs of persistent blocks load an operand once."""
        each = [p.lines() for p in self.products]
        a, b = (sum(one[i] for one in each) for i in (0, 1))
        if not persistent or not worth_pairs(a + b, sum(p.aligned() for p in self.products), clocks):
            return a + b
        across = [a / 2 + b] if self.grid[0] and self.grid[0] % 2 == 0 else []
        along = [a + b / 2] if self.grid[1] and self.grid[1] % 2 == 0 else []
        return min([*across, *along, a + b])
