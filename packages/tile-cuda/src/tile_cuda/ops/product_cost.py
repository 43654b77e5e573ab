"""Cost of a block's product: cycles, registers, shared memory and L2 lines.

An instruction of a warpgroup takes as long as its multiplications, or as reading its operands from shared memory,
whichever is more (A once for each instruction, B once for all four warps): measured on one H200. Warps on ``mma.sync``
load operands themselves, each for its tile. A TMA box has rows of at most one line of the L2 cache. Rows whose pitch is
not a multiple of a line begin anywhere in one, so that most of them touch two lines; if it is a multiple of a sector,
every other one does.
"""

from __future__ import annotations

from dataclasses import replace

from tile_core.records import dataclass
from tile_core.simt.ops.warp_partition import WarpPartition
from tile_cuda.machine import LINE, SECTOR, SHARED_BYTES, Machine, machine_of
from tile_cuda.occupancy import most_registers
from tile_cuda.ops.warpgroup_plan import CHUNK, COLUMNS, MOST_COLUMNS, ROWS, WarpgroupPlan, partial_columns
from tile_cuda.target import WARP

_READS, _LEAST_READS = 0.1, 0.625
"""Part of the power that an instruction takes for shared-memory reads; reads of the widest one."""
_SPARSE_ROWS = 1.1
"""Time of a warpgroup's sparse products of several instructions along rows, each with its metadata, relative to one."""
_PROMOTED = 0.42
"""Time of products whose results are promoted: this and their reads, relative to others (H200, tiles of 128 rows)."""
_OTHER_REGISTERS = 20
"""Registers of a thread beside the accumulators of its warpgroup, at least."""
WAIT = 32
"""Cycles that the fence of a product, its commit and the wait for it take while other warps have work: assumed."""


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
        ``"sparse"`` for 2:4 sparse A, ``"fp8"``, ``"int8"`` or the number of bits.
    unit
        ``"wgmma"``, ``"tcgen05"`` or ``""`` for `mma.sync`.
    split
        The warpgroups or warps along rows and columns, and the instructions of each.
    held
        Whether A is in registers.
    copied
        Whether each iteration copies A.
    transposed
        Whether A is stored as (K, M), and B as (N, K).
    pitches
        Bytes from row to row of A and B in global memory; 0 if the rows are aligned or unknown.
    promoted
        Whether threads add partial accumulators of 8-bit floats in float32.
    kept
        Type of the accumulator in the program if it is not the instruction's: each iteration converts it.
    """

    m: int
    n: int
    k: int
    bits: int
    kind: str
    unit: str
    split: WarpPartition
    held: bool = False
    copied: bool = True
    transposed: tuple[bool, bool] = (False, False)
    pitches: tuple[int, int] = (0, 0)
    promoted: bool = False
    kept: str = ""

    @property
    def step_bytes(self) -> int:
        """Bytes of shared memory for the operands of an iteration."""
        a = self.m * self.k * self._a_bits / 8 if self.copied and not self.held else 0
        return round(a + self.n * self.k * self.bits / 8)

    @property
    def accumulators(self) -> int:
        """Accumulator registers of a thread."""
        return 0 if self.unit == "tcgen05" else 4 * self.split.atoms_m * self.split.atoms_n

    def registers(self, threads: int) -> int:
        """Return the registers of a thread for accumulators, partial ones included, and for metadata."""
        metadata = self.split.atoms_m * self.k * self.bits // 1024 + 1 if self._sparse and self.unit else 0
        partial = self._partial_columns(threads) // 2 if self.promoted else 0
        return self.accumulators + (self.accumulators // 2 if self.kept else 0) + metadata + partial

    @property
    def others(self) -> int:
        """Registers of a thread for everything else: for operands of `mma.sync`, too."""
        return _OTHER_REGISTERS if self.unit else 8 * self.split.atoms_m + 4 * self.split.atoms_n

    def least(self, machine: Machine) -> float:
        """Return the cycles of an iteration's multiplications on the fastest instructions."""
        return self.m * self.n * self.k * self.bits / 16 / machine.matrix / (2 if self._sparse else 1)

    def cycles(self, machine: Machine, threads: int) -> float:
        """Return the cycles of the matrix units, and of what feeds them, for an iteration."""
        if self.unit == "tcgen05":
            return self.least(machine) * max(1.0, 2 * ROWS / self.m)
        if not self.unit:
            slower = machine.matrix / machine.mma_sync(self.kind)
            return max(self.least(machine) * slower, self._read_by_warps(threads // WARP) / SHARED_BYTES)
        s, half = self.split, 2 if self._sparse else 1
        wide = self._partial_columns(threads) if self.promoted else MOST_COLUMNS
        a, columns, one = 0 if self.held else ROWS, s.atoms_n * COLUMNS, 0.0
        for at in range(0, columns, wide):
            count = min(wide, columns - at)
            one += CHUNK * max(ROWS * count / 2 / machine.matrix, (a + count * half) / SHARED_BYTES)
        one *= _SPARSE_ROWS if self._sparse and s.atoms_m > 1 else 1
        one *= _PROMOTED + (a + wide) / (2 * wide) if self.promoted else 1
        return one * s.atoms_m * s.warps * self.k * self.bits / (8 * CHUNK * half)

    @property
    def power(self) -> float:
        """Power that its instructions take, relative to the widest one: narrow ones read more."""
        if self.unit != "wgmma":
            return 1.0
        columns = min(MOST_COLUMNS, self.split.atoms_n * COLUMNS)
        reads = ((0 if self.held else ROWS) + columns * (2 if self._sparse else 1)) / (2 * columns)
        return 1 + _READS * max(0.0, min(1.0, reads) - _LEAST_READS)

    def lines(self) -> tuple[float, float]:
        """Return the L2 lines of A and B in an iteration."""
        is_loaded = self.copied and (not self.held or self.pitches[0] > 0)
        return self._lines(0, self.m) if is_loaded else 0.0, self._lines(1, self.n)

    def aligned(self) -> float:
        """Return the L2 lines of A and B if rows were aligned."""
        return (self.m * self._a_bits + self.n * self.bits) * self.k / 8 / LINE

    @property
    def _sparse(self) -> bool:
        return self.kind == "sparse"

    @property
    def _a_bits(self) -> float:
        """Bits of an element of dense A, with its metadata."""
        return self.bits / 2 + 2 * CHUNK / self.bits / 8 if self._sparse else self.bits

    def _partial_columns(self, threads: int) -> int:
        """Return the columns of an instruction whose results are promoted."""
        needed = self.accumulators + 2 * _OTHER_REGISTERS
        return partial_columns(self.split.atoms_n * COLUMNS, needed, most_registers(threads))

    def _lines(self, operand: int, extent: int) -> float:
        along_k = not self.transposed[0] if operand == 0 else self.transposed[1]
        bits, pitch = (self._a_bits if operand == 0 else self.bits), self.pitches[operand]
        rows, size = (extent, self.k * bits / 8) if along_k else (self.k, extent * bits / 8)
        if not along_k and operand == 0 and self._sparse:
            rows, size = self.k // 2, extent * self.bits / 8
        boxes = 1.0 if along_k else max(1.0, -(-size // LINE))
        return rows * boxes * lines_of_row(round(size if along_k else min(size, LINE)), pitch)

    def _read_by_warps(self, warps: int) -> float:
        """Return the bytes of warps' operand loads from shared memory.

        Measured on an H100: float16 products of 64 x 64 x 64 take 0.66 ms on 8 warps where two warpgroups take 0.46,
        and scores of 64 x 32 on 4 warps make attention forward 1.2 to 1.4 times as slow.
        """
        a, b = self.m * self.k * self.bits / (16 if self._sparse else 8), self.n * self.k * self.bits / 8
        if self.held:
            return b * warps
        grids = ((high, warps // high) for high in range(1, warps + 1) if warps % high == 0)
        return min((a * wide + b * high for high, wide in grids), default=0.0)


def kind_of(bits: int, sparse: bool, total: str) -> str:
    """Return the kind of a product, see `TileProduct`."""
    return "sparse" if sparse else str(bits) if bits > 8 else "int8" if total == "int32" else "fp8"


def lines_of_row(size: int, pitch: int) -> float:
    """Return the L2 lines of a row's segment, for rows ``pitch`` bytes apart."""
    return size / LINE + (0.0 if pitch % LINE == 0 else 0.5 if pitch % SECTOR == 0 else 1.0)


@dataclass(frozen=True)
class InstructionEstimate:
    """Cycles of a block's product on either instruction, and those for promotion."""

    warpgroups: int
    warps: int
    adds: int = 0

    @property
    def is_worth_it(self) -> bool:
        """Whether warpgroups are faster."""
        return self.warpgroups < self.warps

    def __str__(self) -> str:
        adds = f", {self.adds} of them for promotion" if self.adds else ""
        return f"estimated {self.warpgroups} cycles{adds}, on mma.sync {self.warps}"


def estimate(plan: WarpgroupPlan) -> InstructionEstimate:
    """Return the estimate of a plan, for ``wgmma="auto"``."""
    p, f, threads, hopper = plan.problem, plan.family, plan.threads, machine_of("sm_90a")
    kind = kind_of(f.bits, f.sparse, f.total)
    one = TileProduct(p.m, p.n, p.k, f.bits, kind, "wgmma", plan.split, not plan.shared(0), promoted=plan.promote > 0)
    plain, warps = replace(one, promoted=False), replace(one, promoted=False, unit="")
    total = one.cycles(hopper, threads)
    adds = round(total - plain.cycles(hopper, threads))
    return InstructionEstimate(round(total + WAIT), round(warps.cycles(hopper, threads)), adds)
