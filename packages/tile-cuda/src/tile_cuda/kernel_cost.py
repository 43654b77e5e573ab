"""What a kernel with one product costs, as data: kernels that are far from the best are told, with what is better.

The numbers are fitted to 82 kernels that were timed on Hopper (float16, 4096 x 4096 x 4096, dense and 2:4 sparse; the
table is a test). An iteration takes as long as its products, as its copies, or as one block alone needs with its waits,
divided by the blocks that run at a time, whichever is the most. Of these kernels, all that took more than twice as long
as the best are estimated at 1.4 times or more, and of those estimated so the fastest took 1.27 times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2, prod
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import collect, role
from tile_core.lowering.variant import Reject
from tile_core.simt.notes import ARENA, BLOCK, PIPELINE
from tile_core.simt.ops.gemm_problem import Problem
from tile_cuda.ops.warpgroup_cost import MULTIPLICATIONS, REGISTERS, SHARED_BYTES
from tile_cuda.ops.warpgroup_plan import CHUNK, MOST_COLUMNS, ROWS, WARPGROUP
from tile_cuda.target import WGMMA

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.passes.lower_ops import OpChoice
    from tile_core.passes.spine import Plan

FAR = 1.4
"""Estimates from which a kernel is told: they were too low by a factor of up to 1.9."""
_LEAST = 2**33
"""Multiplications of a launch, below which tiles are small because the problem is."""
_COPIED = 48.0
"""Bytes that a multiprocessor gets from the second-level cache in a cycle."""
_LATENCY = 1230.0
"""Cycles from a copy to its operands."""
_WAITS, _PER_GROUP = 150.0, 12.0
"""Cycles of an iteration in which the threads of a block wait for each other, and more for each 128 of them."""
_RESULTS = 4100.0
"""Cycles of a tile's begin and of its results, for 128 x 256 elements."""
_WARP_RATES = {False: 0.43, True: 0.34}
"""Part of the rate of the matrix units that products of warps reach, of which sparse ones do half of the work."""
_OTHERS = 30
_TILES = ((128, 256, 256), (256, 128, 256), (128, 128, 128), (64, 256, 128))
"""Rows, columns and threads of tiles that are fast."""
_THREADS, _BLOCKS = 2048, 32
_OF_WARPGROUPS = "cuda.wgmma"
"""What names of variants begin with that multiply on instructions of warpgroups."""
_NEAR = 1.15


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
        Warpgroups along rows and columns, each with so many rows of 64 and columns; ``None`` for products of warps.
    warps
        Warps along rows and columns, where it is one of warps.
    refused
        Why it is no product of warpgroups, if that was tried.
    shared
        Bytes of shared memory of a block.
    trips
        Iterations of its loop.
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
    refused: str = ""

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
        one = self.products + _WAITS + _PER_GROUP * self.threads / WARPGROUP
        if self.stages == 1:
            return one + _LATENCY + self.operands / _COPIED
        ahead = (one + _LATENCY) / (self.stages - 1) if self.stages > 2 else one + _LATENCY / 2
        return max(one, ahead)

    @property
    def cycles(self) -> float:
        """Cycles of a multiprocessor for a million multiplications."""
        trip = max(self.products, self.operands / _COPIED, self.alone / self.blocks)
        total = self.trips * trip + _RESULTS * self.m * self.n / 2**15
        return total * 1e6 / (self.m * self.n * self.k * self.trips)

    @property
    def reason(self) -> str:
        """What keeps it from being faster."""
        if self.groups is None:
            return "its product runs on instructions of warps" + (f" ({self.refused})" if self.refused else "")
        if self.stages <= 2:
            return f"with {self.stages} stage{'s' * (self.stages > 1)} its threads wait for copies"
        if self.operands / _COPIED >= max(self.products, self.alone / self.blocks):
            return "copying its operands takes longer than multiplying them"
        if self.alone / self.blocks > self.products:
            return "its iterations are short beside what threads wait in them"
        return "its instructions are narrow, and read more than they multiply"

    def __str__(self) -> str:
        return f"{self.m} x {self.n} x {self.k} with {self.threads} threads and {self.stages} stages"


def tell_slow(plan: Plan, ctx: Context) -> Plan:
    """Note a sentence about a large product that is estimated to be far slower than with other tiles."""
    if not ctx.capabilities.fact(WGMMA):
        return plan
    found = config_of(plan)
    return plan if found is None else plan.replace(slow=sentences(found, ctx.capabilities.shared_bytes))


def sentences(found: Config, room: int) -> tuple[str, ...]:
    """Return what is said about a configuration; nothing if it is near the best.

    Parameters
    ----------
    room
        Bytes of shared memory that a block can have.
    """
    others = [c for c in better(found) if c.shared <= room]
    best = min((c.cycles for c in others), default=found.cycles)
    times = found.cycles / best
    if times < FAR:
        return ()
    near = [c for c in others if c.cycles <= _NEAR * best]
    nearest = min(near, key=lambda c: sum(abs(log2(a / b)) for a, b in zip(_sizes(c), _sizes(found), strict=True)))
    return (
        f"tiles of {found} are estimated to take {times:.1f} times as long as the best, since {found.reason}; "
        f"the nearest better ones are {nearest}",
    )


def better(found: Config) -> list[Config]:
    """Return the configurations that one is compared with."""
    k = 1024 // found.bits
    made = []
    for m, n, threads in _TILES:
        groups = threads // WARPGROUP, 1, m // ROWS // (threads // WARPGROUP), n
        trips = max(1, found.trips * found.k // k)
        one = Config(m, n, k, threads, 4, found.bits, found.sparse, 0, trips, groups)
        for stages in (4, 3):
            shared = int(stages * one.operands)
            made.append(Config(m, n, k, threads, stages, found.bits, found.sparse, shared, trips, groups))
    return made


def config_of(plan: Plan) -> Config | None:
    """Return the configuration of a kernel that has one large product, in a loop or alone."""
    products = [c for c in plan.choices if c.call.name in ("gemm", "gemm_sp")]
    loops = [s for s in collect(plan.program.func.body, tirx.For) if role(s) in ("grid", "pipelined")]
    extents = [nodes.as_int(s.extent) for s in loops]
    if len(products) != 1 or not all(isinstance(n, int) for n in extents):
        return None
    trips = [int(n) for s, n in zip(loops, extents, strict=True) if role(s) == "pipelined"]
    made = plan[PIPELINE].loops
    if len(trips) != 1 or len(made) != 1:
        return None
    found = _config(products[0], plan, trips[0], made[0].stages or 1)
    return None if found is None or prod(map(int, extents)) * found.m * found.n * found.k < _LEAST else found


def _config(choice: OpChoice, plan: Plan, trips: int, stages: int) -> Config | None:
    variant, call = choice.selection.variant, choice.call
    made = variant.plan(call) if hasattr(variant, "plan") else None
    if made is None or isinstance(made, Reject):
        return None
    refused = next((r.reason for r in choice.selection.rejected if r.name.startswith(_OF_WARPGROUPS)), "")
    p, s = Problem.of(call), made.split
    bits, wide = DTYPES[p.a.dtype].bits, variant.name.startswith(_OF_WARPGROUPS)
    groups = (s.warps_m, s.warps_n, s.atoms_m, s.atoms_n * 8) if wide else None
    return Config(
        p.m, p.n, p.k, plan[BLOCK].count, stages, bits, call.name == "gemm_sp", plan[ARENA].bytes, trips, groups,
        (s.warps_m, s.warps_n), refused,
    )  # fmt: skip


def _sizes(c: Config) -> tuple[int, ...]:
    return c.m, c.n, c.k, c.threads, c.stages
