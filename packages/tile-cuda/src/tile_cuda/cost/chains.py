"""Cost of two chained products of a loop, as in attention.

The numbers are fitted to 151 kernels of attention forward that were timed on an H100 (float16, 2 x 16 heads of 4096
positions, d = 128, and d = 64 causal; the table is a test). An iteration takes as long as the units are busy with it,
or as one block alone needs with its waits, divided by the blocks that run at a time. What is far beyond comes on top:
rows that several warps share, weights that go through shared memory, registers that spill, and fragments in memory.
All 80 of these kernels that took more than twice as long as the best are estimated at 1.5 times or more, as 19 others
are; the fastest of these took 1.40 times as long.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

from tile_core.dtypes import DTYPES
from tile_core.lowering.variant import Reject
from tile_core.simt.notes import ARENA
from tile_core.simt.ops.gemm_problem import Problem
from tile_cuda.cost.slow_tiles import LEAST, product_loop, stages_of
from tile_cuda.occupancy import most_registers
from tile_cuda.ops.warpgroup_cost import MULTIPLICATIONS
from tile_cuda.ops.warpgroup_plan import COLUMNS, ROWS, WARPGROUP
from tile_cuda.target import REGISTERS

if TYPE_CHECKING:
    from tile_core.passes.lower_ops import OpChoice
    from tile_core.passes.spine import Plan
    from tile_core.simt.ops.products.plan import ProductPlan

FAR = 1.5
"""Cycles from which estimates lead to a performance warning."""
_WAITS = 1000.0
"""Cycles of an iteration in which a warpgroup waits: for its products, and for rows to be reduced."""
_LATENCY, _COPIED = 1230.0, 48.0
"""Cycles from a copy to its operands, and bytes that a multiprocessor gets in a cycle."""
_ALONE, _BUSY, _ROW = 0.18, 0.07, 1.5
"""Cycles of an element of the scores in a warpgroup that is alone, in a full multiprocessor, and there of a row."""
_HALF = 0.14
"""More cycles of an element of scores in 16 bits, which are converted for each step."""
_WARP_RATE = 0.43
"""Part of the rate of the matrix units that products of warps reach."""
_SHARED_ROWS = 0.3
"""Cycles of an element in each warpgroup of a block whose rows several warps share."""
_MOVED = 0.35
"""Cycles of an element of weights that go through shared memory to the threads that multiply them."""
_IDLE = 0.7
"""Part of an iteration that is lost for each idle warpgroup beside one that multiplies."""
_SPILLED = 0.4
"""Cycles of a register beyond those of a thread."""
_IN_MEMORY = (10.0, 3.0)
"""Cycles of a 32-bit word of scores, and of the result, in memory."""
_THREADS, _SHARED, _BLOCKS = 2048, 232_448, 32
_ROWS, _COLUMNS, _GROUPS, _STAGES = (64, 128), (64, 128), (64, 128), (2, 3)
"""Rows and columns of tiles that can be fast, rows of a warpgroup, and stages."""


@dataclass(frozen=True)
class Spread:
    """The split of a product over warpgroups (``wide``) or warps, and their tiles."""

    wide: bool
    high: int
    across: int
    rows: int
    columns: int

    @property
    def accumulators(self) -> int:
        """Accumulator registers (32 bits) of a thread."""
        return 4 * self.rows * self.columns

    @property
    def threads(self) -> int:
        """Threads that multiply."""
        return self.high * self.across * (WARPGROUP if self.wide else WARPGROUP // 4)

    @property
    def rows_of_warps(self) -> tuple[int, int, bool]:
        """The rows of a warp, for comparison between the two products."""
        return self.high * (4 if self.wide else 1), self.rows, self.wide and self.rows > 1


@dataclass(frozen=True)
class Chain:
    """How two chained products are tiled.

    Attributes
    ----------
    m, n
        Rows and columns of the scores: queries and keys of a tile.
    depth, width
        K of the first product, and columns of the second: elements of a head.
    threads, stages
        Of a block, and the slots of its operands; 1 if its loop waits for its copies.
    bits, kept
        Of an element of the operands; the type of the scores where that is not the accumulator's.
    shared
        Bytes of shared memory of a block.
    first, second
        How the products are spread.
    """

    m: int
    n: int
    depth: int
    width: int
    threads: int
    stages: int
    bits: int
    kept: str
    shared: int
    first: Spread
    second: Spread

    @property
    def limit(self) -> int:
        """Registers that a thread can have."""
        return most_registers(self.threads)

    @property
    def needed(self) -> int:
        """Registers that a thread needs."""
        held = self.first.accumulators + self.second.accumulators + (self.first.accumulators // 2 if self.kept else 0)
        return round(1.1 * held) + 12 * self.second.rows + 8

    @property
    def in_memory(self) -> tuple[bool, bool]:
        """Whether the scores and the result, each, exceed the registers of a thread."""
        return self.first.accumulators > self.limit, self.second.accumulators > self.limit

    @property
    def blocks(self) -> int:
        """Blocks that run at a time on a multiprocessor."""
        registers = -(-min(self.limit, self.needed) // 8) * 8
        by = _SHARED // (self.shared + 1024), REGISTERS // (registers * self.threads), _THREADS // self.threads, _BLOCKS
        return max(1, min(by))

    @property
    def products(self) -> float:
        """Cycles of the matrix units."""
        rate = MULTIPLICATIONS * 16 / self.bits
        sides = ((self.first, self.depth), (self.second, self.width))
        return sum(self.m * self.n * k / rate / (1 if s.wide else _WARP_RATE) for s, k in sides)

    @property
    def groups(self) -> float:
        """Warpgroups that multiply."""
        return max(1.0, max(self.first.threads, self.second.threads) / WARPGROUP)

    @property
    def alone(self) -> float:
        """Cycles of an iteration of a block alone on a multiprocessor; its warpgroups run concurrently."""
        scores = self.m * self.n * (_ALONE + _HALF * bool(self.kept)) / self.groups
        one = _WAITS + scores + self.products / (1 if self.is_in_lockstep else self.groups)
        if self.stages == 1:
            one += _LATENCY + self.n * (self.depth + self.width) * self.bits / 8 / _COPIED
        return one * (1 + _IDLE * self.idle)

    @property
    def is_in_lockstep(self) -> bool:
        """Whether all warpgroups multiply at a time, and then none.

        The block's barrier is all that orders them. Two alternate, and overlap two iterations where a thread has
        registers for the scores of both. Of three with 192 x 128 scores an iteration took 1.21 times as long for each
        row (d = 128, H200).
        """
        return self.groups > 2 and self.needed + self.first.accumulators > self.limit

    @property
    def idle(self) -> float:
        """Warpgroups that have nothing to multiply for each that has."""
        return max(0.0, self.threads / WARPGROUP / self.groups - 1)

    @property
    def is_shared(self) -> bool:
        """Whether several warps share rows."""
        return self.second.across > 1

    @property
    def is_moved(self) -> bool:
        """Whether the threads that multiply weights are not those that hold them."""
        return not self.is_shared and self.first.rows_of_warps != self.second.rows_of_warps

    @cached_property
    def beyond(self) -> dict[str, float]:
        """Cycles of an iteration for what a kernel should not do, by the reason."""
        size, n = self.m * self.n, self.limit
        found: dict[str, float] = {}
        words = [s.accumulators * self.threads * c for s, c in zip((self.first, self.second), _IN_MEMORY, strict=True)]
        if any(self.in_memory):
            most = max(self.first.accumulators, self.second.accumulators)
            reason = f"its fragments need {most} registers of each thread, which has at most {n}: they spill"
            found[reason] = sum(w for w, there in zip(words, self.in_memory, strict=True) if there)
        elif self.needed > n:
            reason = f"its fragments need about {self.needed} registers of each thread, which has at most {n}"
            found[reason] = _SPILLED * (self.needed - n) * self.threads
        if self.is_shared:
            reason = "rows of its scores are spread over several warps, which exchange parts in every iteration"
            found[reason] = _SHARED_ROWS * size * self.threads / WARPGROUP
        if self.is_moved:
            reason = "other threads multiply its weights than hold them: they go through shared memory"
            found[reason] = _MOVED * size
        return found

    @property
    def busy(self) -> float:
        """Cycles of an iteration in which the units of a multiprocessor are busy."""
        return self.products + self.m * self.n * (_BUSY + _HALF * bool(self.kept)) + self.m * _ROW

    @property
    def cycles(self) -> float:
        """Cycles of a multiprocessor for an element of the scores."""
        return (max(self.busy, self.alone / self.blocks) + sum(self.beyond.values())) / (self.m * self.n)

    @property
    def reason(self) -> str:
        """The reason why it is slow."""
        rest = max(self.busy, self.alone / self.blocks)
        if self.beyond and max(self.beyond.values()) > 0.4 * rest:
            return max(self.beyond, key=lambda reason: self.beyond[reason])
        if self.kept and _HALF * self.m * self.n > 0.2 * self.busy:
            return f"its scores are kept in {self.kept}, which are converted in every iteration"
        if self.idle:
            all_of_them = self.threads // WARPGROUP
            idle = round(all_of_them - self.groups)
            return f"{idle} of its {all_of_them} warpgroups {'multiplies' if idle == 1 else 'multiply'} nothing"
        if self.stages == 1:
            return "with 1 stage its threads wait for copies"
        if self.blocks == self.groups == 1:
            return "its only warpgroup waits for its products, and no other block fits beside it"
        return "its iterations are short compared with the waits in them"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The parameters that its author chooses."""
        return self.m, self.n, self.threads, self.stages

    @property
    def also(self) -> str:
        """Further properties of the better configurations."""
        return ", and scores of float32" if self.kept else ""

    def __str__(self) -> str:
        return f"{self.m} x {self.n} scores with {self.threads} threads and {stages_of(self.stages)}"


def better(found: Chain, budget: int) -> list[Chain]:
    """Return the legal configurations to compare one with.

    Parameters
    ----------
    budget
        Bytes of shared memory that a block can have.
    """
    made = []
    for m, n, rows, stages in product(_ROWS, _COLUMNS, _GROUPS, _STAGES):
        if m % rows:
            continue
        groups, tiles = m // rows, rows // ROWS
        first, second = (Spread(True, groups, 1, tiles, wide // COLUMNS) for wide in (n, found.width))
        shared = (m * found.depth + stages * n * (found.depth + found.width)) * found.bits // 8
        one = replace(
            found, m=m, n=n, threads=groups * WARPGROUP, stages=stages, kept="", shared=shared, first=first,
            second=second,
        )  # fmt: skip
        made += [one] if shared <= budget and one.needed <= one.limit else []
    return made


def chain_of(plan: Plan) -> Chain | None:
    """Return the configuration of a kernel with two large chained products in a loop."""
    choices: dict[object, OpChoice] = {}
    for choice in plan.choices:
        if choice.call.name.startswith("gemm"):
            choices.setdefault(choice.call.where, choice)  # overlapped loops have copies before and after
    loop = product_loop(plan)
    if len(choices) != 2 or loop is None or any(c.call.name != "gemm" for c in choices.values()):
        return None
    one, other = choices.values()
    first, second = Problem.of(one.call), Problem.of(other.call)
    # Fragments that two products want in different places are in shared memory.
    measured = DTYPES[first.a.dtype].bits == DTYPES[second.a.dtype].bits == 16
    chained = second.a.scope == "local.fragment" or first.c.scope == "shared"
    made = _plan(one), _plan(other)
    if not measured or not chained or (first.m, first.n) != (second.m, second.k) or made[0] is None or made[1] is None:
        return None
    if loop.blocks * loop.trips * first.m * first.n * (first.k + second.n) < LEAST:
        return None
    return Chain(
        first.m, first.n, first.k, second.n, made[0].threads, loop.stages, DTYPES[first.a.dtype].bits,
        first.c.dtype if DTYPES[first.c.dtype].bits == 16 else "", plan[ARENA].bytes, _spread(one, made[0]),
        _spread(other, made[1]),
    )  # fmt: skip


def _plan(choice: OpChoice) -> ProductPlan | None:
    """Return the plan of a product on matrix instructions."""
    variant = choice.selection.variant
    made = variant.plan(choice.call) if hasattr(variant, "plan") else None
    return None if isinstance(made, Reject) else made


def _spread(choice: OpChoice, made: ProductPlan) -> Spread:
    s = made.split
    wide = choice.selection.variant.name.startswith("cuda.wgmma")
    return Spread(wide, s.warps_m, s.warps_n, s.atoms_m, s.atoms_n)
