"""Estimated time of a kernel whose blocks multiply tiles in a loop.

Tilings and warnings about slow tiles share it. An iteration takes as long as its products and its L2 lines, which
disturb each other where both take long, or as one block alone needs with its waits and the latency of its loads,
divided by the blocks that run at a time, whichever is more. What a kernel should not do comes on top: registers that
spill, fragments in memory, rows that several warps share. Then there are the beginning and the results of a tile,
device memory, and multiprocessors that the last tiles leave idle. The second of two chained products multiplies a
function of the first one's results, as in attention; their loop also computes exponentials.

The figures are fitted to half of the products and of attention forward that were timed on H100 and H200
(``tests/records``, ``tests/test_slow_products.py``) and judged by the other half: see ``tests/test_product_times.py``.
"""

from __future__ import annotations

from functools import cached_property

from tile_core.records import dataclass
from tile_cuda.machine import Machine
from tile_cuda.occupancy import blocks_at_a_time, most_registers
from tile_cuda.ops.product_cost import TileProduct
from tile_cuda.ops.warpgroup_plan import WARPGROUP
from tile_cuda.options import MOST_REGISTERS, SPLIT_BLOCKS
from tile_cuda.target import WARP

RING, RING_OF_BYTES = (4, 8), (4, 8, 5)
"""Ring sizes for which persistent blocks were faster, on an H100 or H200, of elements of 16 and of 8 bits.

By tiles of 128 x 256 and 256 x 128, float16, 8192 and 4096, 4 stages: 1.015 and 1.027 times as fast as without, sparse
1.04 and 1.05, 8-bit floats 1.03. With 3 stages 0.97, with 5 from 0.94 to 1.05; with tiles of 128 x 128, two blocks at a
time, 0.95. Sparse products of 8 bits with 5 stages were 1.04 (e4m3) and 1.07 (int8) times as fast as without.
"""
WORTH_PAIRS = 1.2
"""L2 lines from which pairs of blocks multicast: of those of aligned rows, and of those that there is time for."""
_PERSISTENT = 32768, 2 * WARPGROUP
"""Elements of a tile, at most, and threads of persistent blocks with an overlapped epilogue."""
_LATE = 2750.0
"""Cycles between two tiles of a persistent block that stores results while it computes the next tile."""
_SHARPNESS, _OF_MEMORY = 4.4, 5.0
"""Exponents with which multiplications and loads, and all cycles and device memory add up."""
_WAITS, _PER_GROUP, _LATENCY = 90.0, 10.0, 1650.0
"""Cycles of an iteration with barriers of the block, more for each warpgroup, and from a copy to its operands."""
_ISSUED, _OF_INSTRUCTION = 16.0, 16 * 8 * 256
"""Cycles of a warp's instruction of `mma.sync` with its loads, if few warps run, and its products times bits."""
_CHAIN_WAITS, _COOL = 880.0, 0.78
"""The same of chained products; their time relative to 1,550 MHz, since less power lets the clock rise to 1,980."""
_ALONE, _BUSY, _ROW = 0.17, 0.06, 2.0
"""Cycles of an exponential in a warpgroup that is alone, in a full multiprocessor, and there of a row."""
_CONVERTED = 0.02, 0.12
"""Cycles of an accumulator that an iteration converts to its type and back: of one product, and of scores."""
_DEQUANTIZED = 0.06, 0.04
"""Cycles of an element of an operand that threads write: of a warpgroup beside its products, and of all warps."""
_IDLE = 0.67
"""Part of an iteration of chained products that is lost for each idle warpgroup beside one that multiplies."""
_SHARED_ROWS = 0.23
"""Cycles of an element of the scores in each warpgroup of a block whose rows several warps share."""
_SPILLED, _IN_MEMORY = (0.15, 0.43), ((1.5,), (10.0, 3.0))
"""Cycles of a register beyond those of a thread, and of accumulators in memory: of one product, and of chained ones."""
_MEET, _SENDER, _SENT = 2000.0, 800.0, 20.0
"""Cycles of two barriers of a cluster, and of each block that sends its accumulators; elements that it sends in one."""
_SHARED_TRIPS = 16
"""Iterations of each block of a cluster, at least: shorter loops were not measured."""
_NEIGHBOURS = 1.3
"""Time of iterations where blocks of a cluster share an access to L2, relative to blocks that are spread out."""
_HELD = {2: 132, 4: 120, 8: 96}
"""Multiprocessors of an H200 that hold clusters of these sizes at a time: with more, some ran after the others."""
_CONVERTING = 256
"""Threads of a multiprocessor that hide each other's waits while they convert operands; more were slower."""
_OF_ROW = 12
"""Registers of a thread for each row of an instruction whose exponentials it computes."""


@dataclass(frozen=True)
class TileKernel:
    """A kernel of tile products, for an estimate.

    Attributes
    ----------
    machine
        The device.
    products
        Of an iteration.
    chained
        Whether the second product multiplies a function of the first one's results.
    tiles, trips
        Blocks, and the trip count of their loop.
    threads, stages
        Of a block, and the slots of its operands; 1 if its loop waits for its copies.
    shared, shared_bytes
        Bytes of shared memory of a block, and all that it can have.
    moved
        Bytes that cross device memory.
    more
        Microseconds of other launches.
    grid
        Tiles along N and M if known; 0 otherwise.
    may_persist
        Whether blocks may process several tiles.
    refused
        Why a product is not one of warpgroups, if that was tried.
    may_split
        Whether blocks of a cluster may share the iterations of a tile.
    dequantized
        Elements of operands that threads write in each iteration.
    """

    machine: Machine
    products: tuple[TileProduct, ...]
    chained: bool
    tiles: int
    trips: int
    threads: int
    stages: int
    shared: int
    shared_bytes: int
    moved: float = 0.0
    more: float = 0.0
    grid: tuple[int, int] = (0, 0)
    may_persist: bool = True
    refused: str = ""
    may_split: bool = False
    dequantized: int = 0

    @property
    def limit(self) -> int:
        """Registers that a thread can have."""
        return most_registers(self.threads)

    @cached_property
    def registers(self) -> int:
        """Registers that a thread needs."""
        others = (p.others + _OF_ROW * p.split.atoms_m * self.chained for p in self.products)
        return sum(p.registers(self.threads) for p in self.products) + max(others)

    @cached_property
    def blocks(self) -> int:
        """Blocks that run at a time on a multiprocessor."""
        registers = min(self.limit, self.registers)
        return blocks_at_a_time(self.threads, registers, self.shared, self.shared_bytes, self.machine.threads)

    @property
    def most(self) -> int:
        """Tiles of one multiprocessor at most."""
        return -(-self.tiles // self.machine.processors)

    def illegal(self) -> str:
        """Return why a block exceeds a multiprocessor; empty if it does not."""
        if self.shared > self.shared_bytes:
            return f"tiles of {self.stages} stages take {self.shared} of {self.shared_bytes} bytes of shared memory"
        alone = len(self.products) == 1
        spare = max(p.others for p in self.products if p.unit) if alone and self._is_wide else 0
        needed = self.registers + spare
        return f"a thread needs about {needed} of {self.limit} registers" if needed > self.limit else ""

    @property
    def _is_wide(self) -> bool:
        return all(p.unit for p in self.products)

    @cached_property
    def is_persistent(self) -> bool:
        """Whether blocks are persistent where there are more tiles than run at a time (`tile_cuda.grid.persistent`)."""
        p, (results, threads) = self.products[0], _PERSISTENT
        known = self.may_persist and p.unit == "wgmma" and len(self.products) == 1 and self.most > 1
        fits = p.m * p.n <= results and self.threads == threads and self.blocks == 1
        return known and fits and self.stages in (RING_OF_BYTES if p.bits == 8 else RING)

    @cached_property
    def multiplied(self) -> float:
        """Cycles of the matrix units for an iteration."""
        cycles = (p.cycles(self.machine, self.threads) * (1 if self.chained else p.power) for p in self.products)
        return sum(cycles) * (_COOL if self.chained else 1 / self.machine.power)

    @cached_property
    def loaded(self) -> float:
        """Cycles of L2 lines for an iteration; pairs of persistent blocks load an operand once."""
        a, b = (sum(p.lines()[i] for p in self.products) for i in (0, 1))
        aligned = sum(p.aligned() for p in self.products)
        clocks = self.multiplied * self.machine.power
        ways = [a + b]
        if self.is_persistent and worth_pairs(self.machine, a + b, aligned, clocks):
            ways += [way for way, n in ((a / 2 + b, self.grid[0]), (a + b / 2, self.grid[1])) if n and n % 2 == 0]
        return min(ways) * self.machine.line

    @property
    def groups(self) -> float:
        """Warpgroups that multiply."""
        return max(1.0, max(p.split.warps * (WARPGROUP if p.unit else WARP) for p in self.products) / WARPGROUP)

    @property
    def kept(self) -> str:
        """Type of accumulators that each iteration converts; empty if there are none."""
        return next((p.kept for p in self.products if p.kept), "")

    @property
    def _elements(self) -> int:
        """Elements of the first accumulator, the scores of chained products."""
        return self.products[0].m * self.products[0].n

    @cached_property
    def computed(self) -> float:
        """Cycles of an iteration's products and exponentials."""
        exponentials = self._elements * _BUSY + self.products[0].m * _ROW + self._converted
        return self.multiplied + (exponentials if self.chained else _DEQUANTIZED[1] * self.dequantized)

    @cached_property
    def busy(self) -> float:
        """Cycles of an iteration for these and for its L2 lines."""
        return float((self.computed**_SHARPNESS + self.loaded**_SHARPNESS) ** (1 / _SHARPNESS))

    @property
    def alone(self) -> float:
        """Cycles of a block's iteration with waits and latency, divided by concurrent blocks."""
        return self._waiting_block / min(self.blocks, self.most)

    @cached_property
    def _waiting_block(self) -> float:
        """Cycles of a block's iteration with waits and latency."""
        one, slots = self.multiplied + self._converted, max(1.5, self.stages - 1)
        if self.chained:
            # Two warpgroups alternate, and overlap iterations where a thread has registers for the scores of both.
            # More than two multiply at the same time, and then wait.
            lockstep = self.groups > 2 and self.registers + self.products[0].accumulators > self.limit
            one = self.multiplied / (1 if lockstep else self.groups) + _CHAIN_WAITS
            one = (one + self._elements * _ALONE / self.groups) * (1 + _IDLE * self._idle)
            slots = self.stages
        elif not self.is_persistent:
            one += _DEQUANTIZED[0] * self.dequantized * WARPGROUP / self.threads
            one = max(one, self._issued) + _WAITS + _PER_GROUP * self.threads / WARPGROUP
        exposed = one + _LATENCY + self.loaded if self.stages == 1 else (one + _LATENCY) / slots
        return max(one, exposed)

    @property
    def _issued(self) -> float:
        """Cycles in which a warp issues its products of an iteration on `mma.sync`."""
        bits = sum(p.m * p.n * p.k * p.bits for p in self.products if not p.unit)
        return _ISSUED * bits / _OF_INSTRUCTION / (self.threads / WARP)

    @property
    def _converted(self) -> float:
        return _CONVERTED[self.chained] * self._elements if self.kept else 0.0

    @property
    def _idle(self) -> float:
        """Warpgroups that have nothing to multiply for each that has."""
        return max(0.0, self.threads / WARPGROUP / self.groups - 1)

    @cached_property
    def beyond(self) -> dict[str, float]:
        """Cycles of an iteration for what a kernel should not do, by the reason."""
        held, n, found = [p.accumulators for p in self.products], self.limit, dict[str, float]()
        if sum(held) > MOST_REGISTERS + 1 or held[0] > MOST_REGISTERS:
            words = sum(c * count for c, count in zip(_IN_MEMORY[self.chained], held, strict=False) if count > n)
            reason = f"its accumulators need {max(held)} registers of each thread, which has at most {n}"
            found[f"{reason}: they spill to local memory"] = words * self.threads
        if self.registers > n and not any(found.values()):
            reason = f"it needs about {self.registers} registers of each thread, which has at most {n}"
            found[reason] = _SPILLED[self.chained] * (self.registers - n) * self.threads
        if self.chained and self.products[1].split.warps_n > 1:
            reason = "rows of its scores are spread over several warps, which exchange parts in every iteration"
            found[reason] = _SHARED_ROWS * self._elements * self.threads / WARPGROUP
        return found

    @cached_property
    def split(self) -> int:
        """Blocks of a cluster that share the iterations of a tile (`tile_cuda.grid.split`)."""
        last, processors = self.products[-1], self.machine.processors
        fits = [1]
        for n in SPLIT_BLOCKS if self.may_split else ():
            beside = min(self.blocks, max(1, _CONVERTING // self.threads) if self.dequantized else 1)
            held = min(processors * beside, processors * _HELD[n] // 132 * self.blocks)
            small = (n - 1) * last.m * last.n * 4 <= self.shared_bytes
            fits += [n] if small and _SHARED_TRIPS * n <= self.trips and self.tiles * n <= held else []
        return min(fits, key=self._time)

    @property
    def time(self) -> float:
        """Microseconds of all launches."""
        return self._time(self.split)

    def _time(self, blocks: int) -> float:
        """Return the microseconds of all launches, with some blocks for each tile."""
        machine, last = self.machine, self.products[-1]
        ends = machine.result * last.m * last.n / 32768
        # Blocks that run beside each other hide part of the ends of their tiles behind each other's products.
        between = _LATE if self.is_persistent else ends
        most = -(-self.tiles * blocks // machine.processors)
        iteration = max(self.busy, self._waiting_block / min(self.blocks, most)) + sum(self.beyond.values())
        cycles = most * -(-self.trips // blocks) * iteration + ends + (self.most - 1) * between
        if blocks > 1:
            cycles *= _NEIGHBOURS
            cycles += _MEET + (blocks - 1) * (_SENDER + last.m * last.n / _SENT)
        both = (cycles / machine.clock) ** _OF_MEMORY + (self.moved / machine.memory) ** _OF_MEMORY
        return float(both ** (1 / _OF_MEMORY)) + self.more

    @property
    def bound(self) -> str:
        """Its waves and its limit, as the end of a sentence."""
        units = "exponentials and products" if self.chained else "the matrix units"
        waits = "the waits of its warpgroups" if self.chained else "the latency of its loads"
        limit = waits if self.alone > self.busy else "loads from L2" if self.loaded > self.computed else units
        if self.moved / self.machine.memory > 0.9 * (self.time - self.more):
            limit = "device memory"
        processors = self.machine.processors
        return f"{self.tiles} tiles, at most {self.most} on each of {processors} multiprocessors; limited by {limit}"

    @property
    def reason(self) -> str:
        """The reason why it is slow: the largest cost of an iteration."""
        least, costs = sum(p.least(self.machine) for p in self.products), dict(self.beyond)
        narrow = sum(p.cycles(self.machine, self.threads) for p in self.products) - least
        waits = self.alone - self.busy - (0.0 if self.chained else self._converted)
        if self._is_wide:
            costs["its instructions are narrow: they read more than they multiply"] = narrow
            costs[self._waiting] = waits
        else:
            costs["its product runs on mma.sync" + f" ({self.refused})" * bool(self.refused)] = narrow + max(0.0, waits)
        costs[f"its accumulator has type {self.kept}, which each iteration converts"] = self._converted
        costs["copying its operands takes longer than multiplying them"] = self.loaded - self.computed
        return max(costs, key=lambda reason: costs[reason])

    @property
    def _waiting(self) -> str:
        """The reason of waits."""
        if self.stages <= (1 if self.chained else 2):
            return f"with {stages_of(self.stages)} its threads wait for copies"
        if self.chained and self._idle:
            every, idle = self.threads // WARPGROUP, round(self.threads / WARPGROUP - self.groups)
            return f"{idle} of its {every} warpgroups {'multiplies' if idle == 1 else 'multiply'} nothing"
        return "its iterations are short compared with the waits in them"


def stages_of(count: int) -> str:
    """Return a number of stages as text."""
    return "1 stage" if count == 1 else f"{count} stages"


def worth_pairs(machine: Machine, lines: float, aligned: float, clocks: float) -> bool:
    """Whether clusters of two persistent blocks that multicast common operands are faster.

    Parameters
    ----------
    lines, aligned
        L2 lines of an iteration's operands, and lines they would take if rows were aligned.
    clocks
        Of the product.
    """
    return lines >= WORTH_PAIRS * aligned and machine.line * lines >= WORTH_PAIRS * clocks
