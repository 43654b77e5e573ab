"""Cost of a kernel with one product, as data: performance warnings name better tiles.

The numbers are fitted to 189 kernels that were timed on Hopper (float16, 4096 x 4096 x 4096, dense and 2:4 sparse; the
tables are tests). An iteration takes as long as its products, as its copies, or as one block alone with its waits,
divided by the blocks that run at a time, whichever is the most; what has no registers comes on top. All 134 of these
kernels that took more than twice as long as the best are estimated at 1.33 times or more, as 33 others are;
the fastest took 1.23 times as long. `tile_cuda.cost.chains` is about two chained products.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tile_core.dtypes import DTYPES
from tile_core.lowering.variant import Reject
from tile_core.passes.performance import PerformanceNote
from tile_core.simt.notes import ARENA
from tile_core.simt.ops.gemm_problem import Problem
from tile_cuda.cost import chains
from tile_cuda.cost.slow_tiles import LEAST, ProductLoop, performance_notes, product_loop, stages_of
from tile_cuda.occupancy import most_registers
from tile_cuda.ops.warpgroup_cost import MULTIPLICATIONS, SHARED_BYTES
from tile_cuda.ops.warpgroup_plan import CHUNK, MOST_COLUMNS, ROWS, WARPGROUP, family_of
from tile_cuda.options import MOST_REGISTERS
from tile_cuda.target import REGISTERS, WGMMA

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.passes.lower_ops import OpChoice
    from tile_core.passes.spine import Plan

FAR = 1.33
"""Cycles from which estimates lead to a performance warning: they were too low by a factor of up to 1.9."""
_COPIED = 48.0
"""Bytes that a multiprocessor gets from the second-level cache in a cycle."""
_LATENCY = 1230.0
"""Cycles from a copy to its operands."""
_WAITS, _PER_GROUP = 150.0, 12.0
"""Cycles of an iteration in which the threads of a block wait for each other, and more for each 128 of them."""
_RESULTS = 4100.0
"""Cycles of a tile's begin and of its results, for 128 x 256 elements."""
_WARP_RATES = {False: 0.43, True: 0.34}
"""Part of the matrix units' rate that mma.sync reaches; sparse products do half of the work."""
_CONVERTED = 0.03
"""Cycles of a sum that an iteration converts to the accumulator's type and back."""
_SPILLED, _IN_MEMORY = 0.15, 1.5
"""Cycles of an iteration for a register of a thread beyond those that it has, and for a sum in memory."""
_OTHERS = 30
_TILES = ((128, 256, 256), (256, 128, 256), (128, 128, 128), (64, 256, 128))
"""Rows, columns and threads of tiles that are fast."""
_THREADS, _BLOCKS = 2048, 32
_OF_WARPGROUPS = "cuda.wgmma"
"""What names of variants begin with that multiply on instructions of warpgroups."""


@dataclass(frozen=True)
class Config:
    """How a product is tiled.

    Attributes
    ----------
    m, n, k, threads, stages
        A block's tile, its threads, and the slots of its operands; 1 if its loop waits for its copies.
    bits, sparse
        Of an element; whether A is.
    groups
        Warpgroups along rows and columns, each with its rows of 64 and columns; ``None`` for mma.sync products.
    warps
        Warps along rows and columns, where it is one of warps.
    shared
        Bytes of shared memory of a block.
    trips
        Iterations of its loop.
    tiles
        Of a warp or warpgroup along rows and columns: its instructions.
    kept
        Type of its accumulator in the program if it is not the instruction's: each iteration converts it.
    refused
        Why it is not a wgmma product, if that was tried.
    """

    m: int
    n: int
    k: int
    threads: int
    stages: int
    bits: int
    sparse: bool
    shared: int
    trips: int
    groups: tuple[int, int, int, int] | None
    warps: tuple[int, int] = (1, 1)
    tiles: tuple[int, int] = (0, 0)
    kept: str = ""
    refused: str = ""

    @property
    def limit(self) -> int:
        """Registers that a thread can have."""
        return most_registers(self.threads)

    @property
    def accumulators(self) -> int:
        """Accumulator registers of a thread."""
        return 4 * prod(self.tiles) or self.m * self.n // self.threads

    @property
    def needed(self) -> int:
        """Registers that a thread needs: also for operands that its instructions take from there."""
        held = self.accumulators + (self.accumulators // 2 if self.kept else 0)
        return held + (_OTHERS // 2 if self.groups else 8 * self.tiles[0] + 4 * self.tiles[1])

    @property
    def beyond(self) -> float:
        """Cycles of an iteration for what has no registers."""
        if self.accumulators > MOST_REGISTERS:
            return _IN_MEMORY * self.accumulators * self.threads
        return _SPILLED * max(0, self.needed - self.limit) * self.threads

    @property
    def operands(self) -> float:
        """Bytes of the operands of an iteration."""
        a = self.m * self.k * self.bits / 8
        return a * (0.5 + 1 / self.bits if self.sparse else 1) + self.n * self.k * self.bits / 8

    @property
    def products(self) -> float:
        """Cycles in which the matrix units, or what feeds them, are busy with an iteration."""
        half, rate = 2 if self.sparse else 1, MULTIPLICATIONS * 16 / self.bits
        if self.groups is None:
            rows, columns = self.m / self.warps[0], self.n / self.warps[1]
            read = prod(self.warps) * (rows / half + columns) * self.k * self.bits / 8 / SHARED_BYTES
            return max(self.m * self.n * self.k / half / rate / _WARP_RATES[self.sparse], read)
        high, wide, rows, columns = self.groups
        cycles, left = 0.0, columns
        while left > 0:
            count = min(left, MOST_COLUMNS)
            work = ROWS * count * CHUNK * 8 / self.bits / rate  # a sparse one does half of twice as much
            cycles, left = cycles + max(work, CHUNK * (ROWS + count * half) / SHARED_BYTES), left - count
        return cycles * rows * high * wide * self.k * self.bits / (8 * CHUNK * half)

    @property
    def blocks(self) -> int:
        """Blocks that run at a time on a multiprocessor."""
        registers = -(-(self.m * self.n // self.threads + _OTHERS) // 8) * 8
        by = 232_448 // (self.shared + 1024), REGISTERS // (registers * self.threads), _THREADS // self.threads, _BLOCKS
        return max(1, min(by))

    @property
    def alone(self) -> float:
        """Cycles of an iteration of a block that has the multiprocessor for itself."""
        one = self.products + self.converted + _WAITS + _PER_GROUP * self.threads / WARPGROUP
        if self.stages == 1:
            return one + _LATENCY + self.operands / _COPIED
        loads = (one + _LATENCY) / (self.stages - 1) if self.stages > 2 else one + _LATENCY / 2
        return max(one, loads)

    @property
    def converted(self) -> float:
        """Cycles of an iteration for converting accumulators of another type."""
        return _CONVERTED * self.m * self.n if self.kept else 0.0

    @property
    def cycles(self) -> float:
        """Cycles of a multiprocessor for a million multiplications."""
        trip = max(self.products, self.operands / _COPIED, self.alone / self.blocks) + self.beyond
        total = self.trips * trip + _RESULTS * self.m * self.n / 2**15
        return total * 1e6 / (self.m * self.n * self.k * self.trips)

    @property
    def reason(self) -> str:
        """The reason why it is slow."""
        if self.accumulators > MOST_REGISTERS:
            needs = f"its accumulator needs {self.accumulators} registers of each thread"
            return f"{needs}, which has at most {self.limit}: it spills to local memory"
        if self.beyond > max(self.products, self.converted):
            return f"it needs about {self.needed} registers of each thread, which has at most {self.limit}"
        if self.converted > self.products / 2:
            return f"its accumulator has type {self.kept}, which each iteration converts"
        if self.groups is None:
            return "its product runs on mma.sync" + (f" ({self.refused})" if self.refused else "")
        if self.stages <= 2:
            return f"with {stages_of(self.stages)} its threads wait for copies"
        if self.operands / _COPIED >= max(self.products, self.alone / self.blocks):
            return "copying its operands takes longer than multiplying them"
        if self.alone / self.blocks > self.products:
            return "its iterations are short compared with the waits in them"
        return "its instructions are narrow: they read more than they multiply"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The parameters that its author chooses."""
        return self.m, self.n, self.k, self.threads, self.stages

    @property
    def also(self) -> str:
        """Further properties of the better configurations."""
        return ", and a float32 accumulator" if self.kept else ""

    def __str__(self) -> str:
        return f"{self.m} x {self.n} x {self.k} with {self.threads} threads and {stages_of(self.stages)}"


def note_slow(plan: Plan, ctx: Context) -> Plan:
    """Add a performance note if other tiles are estimated to be far faster."""
    loop = product_loop(plan) if ctx.capabilities.fact(WGMMA) else None
    if loop is None:
        return plan
    budget, found, chain = ctx.capabilities.shared_bytes, config_of(plan), chains.chain_of(plan)
    notes: tuple[PerformanceNote, ...] = ()
    if found is not None:
        least = loop.least(loop.blocks * found.trips * found.m * found.n * found.k / 1e6)
        others = [c for c in better(found, budget) if loop.is_full((found.m, found.n), (c.m, c.n))]
        notes = performance_notes(found, others, FAR, least)
    elif chain is not None:
        least = loop.least(loop.blocks * loop.trips * chain.m * chain.n)
        rows = [c for c in chains.better(chain, budget) if loop.is_full((chain.m, chain.width), (c.m, 1))]
        notes = performance_notes(chain, rows, chains.FAR, least)
    if notes and loop.waits:
        notes = (PerformanceNote("tiles", f"loop not pipelined: {loop.waits}"),)
    return plan.replace(slow=(*plan.slow, *notes)) if notes else plan


def better(found: Config, budget: int) -> list[Config]:
    """Return the legal configurations to compare one with.

    Parameters
    ----------
    budget
        Bytes of shared memory that a block can have.
    """
    k = 1024 // found.bits
    made = []
    for m, n, threads in _TILES:
        groups = threads // WARPGROUP, 1, m // ROWS // (threads // WARPGROUP), n
        trips = max(1, found.trips * found.k // k)
        one = Config(m, n, k, threads, 4, found.bits, found.sparse, 0, trips, groups)
        for stages in (4, 3):
            shared = int(stages * one.operands)
            made.append(Config(m, n, k, threads, stages, found.bits, found.sparse, shared, trips, groups))
    return [c for c in made if c.shared <= budget]


def config_of(plan: Plan) -> Config | None:
    """Return the configuration of a kernel with one large product that wgmma supports."""
    products = [c for c in plan.choices if c.call.name in ("gemm", "gemm_sp")]
    loop = product_loop(plan)
    if len(products) != 1 or loop is None:
        return None
    found = _config(products[0], plan, loop)
    return None if found is None or loop.blocks * loop.trips * found.m * found.n * found.k < LEAST else found


def _config(choice: OpChoice, plan: Plan, loop: ProductLoop) -> Config | None:
    variant, call = choice.selection.variant, choice.call
    p, sparse = Problem.of(call), call.name == "gemm_sp"
    made = variant.plan(call) if hasattr(variant, "plan") else None
    if made is None or isinstance(made, Reject) or family_of(p.types, sparse) is None:
        return None
    refused = next((r.reason for r in choice.selection.rejected if r.name.startswith(_OF_WARPGROUPS)), "")
    s, bits, wide = made.split, DTYPES[p.a.dtype].bits, variant.name.startswith(_OF_WARPGROUPS)
    groups = (s.warps_m, s.warps_n, s.atoms_m, s.atoms_n * 8) if wide else None
    return Config(
        p.m, p.n, p.k, made.threads, loop.stages, bits, sparse, plan[ARENA].bytes, loop.trips, groups,
        (s.warps_m, s.warps_n), (s.atoms_m, s.atoms_n), p.c.dtype if DTYPES[p.c.dtype].bits < 32 else "",
        refused,
    )  # fmt: skip
