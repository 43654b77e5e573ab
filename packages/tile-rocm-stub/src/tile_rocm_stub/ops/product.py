"""Products on matrix instructions: how a lane reads its operands, and the steps along K."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.calls import address, execute
from tile_core.records import dataclass
from tile_core.simt.ops.products.lowering import RegisterProduct
from tile_core.simt.ops.products.operand import Lane, ProductOperand
from tile_core.simt.register_loops import choose, unrolled
from tile_rocm_stub.ops.families import ELEMENTS
from tile_rocm_stub.ops.metadata import Metadata
from tile_rocm_stub.ops.plan import DESCRIBED, KStep, MfmaPlan

#: Instructions along K beyond which the loop over it is not unrolled.
_MOST_STEPS = 16


class MfmaProduct(RegisterProduct[MfmaPlan]):
    """Makes the statement of a product, see `RegisterProduct`."""

    lane_names = ("lane", "lane_group", "lane_line")
    corner_names = ("wave_row", "wave_column")

    def lane_coordinates(self, number: Any) -> tuple[Any, Any]:
        """Return the group of lanes, which holds a part of K, and its line."""
        m = self.plan.chosen.m
        return tirx.floordiv(number, m), tirx.floormod(number, m)

    def tile_loops(self) -> tuple[tuple[str, int], ...]:
        """Groups of neighbouring rows, and the rows of a group."""
        rows = self.plan.chosen.rows
        return ("high", rows.high_count), ("low", rows.low_count)

    def element(self, i: Any, j: Any, *within: Any) -> tuple[Any, Any, Any]:
        """See `RegisterProduct.element`."""
        s, c, (high, low) = self.plan.split, self.plan.chosen, within
        register = (i * s.atoms_n + j) * self.plan.instruction.accumulators + high * c.rows.low_count + low
        row = self.rows + i * c.m + high * c.rows.high_step + self.lane.row * c.rows.lane_step + low
        return register, row, self.columns + j * c.n + self.lane.column

    def loop(self, guarded: bool, totals: Any, whole: bool) -> list[Any]:
        """Return the steps along K: a loop over whole units of them, then the rest."""
        p, c = self.plan.problem, self.plan.chosen
        a = self.reader(0, guarded, "a")
        b = self.reader(1, guarded, "b")
        metadata = None
        if c.sparse:
            most = self.plan.split.warps_m * self.plan.split.atoms_m * c.m
            metadata = Metadata(self.call, p, c.each, self.plan.split.atoms_m, self.rows, most, self.lane)
        new = [x for reader in (a, b, metadata) if reader is not None for x in reader.new]

        def unit(first: Any) -> list[Any]:
            """Return the steps of a unit, with the metadata that describes it."""
            if metadata is None:
                return self.step(KStep(first, c.each), a, b, metadata, totals)
            parts = [KStep(first + n * c.each, DESCRIBED, n) for n in range(DESCRIBED // c.each)]
            words = metadata.load(first)
            return [*words, *(x for part in parts for x in self.step(part, a, b, metadata, totals))]

        size = c.groups * DESCRIBED if c.sparse else c.k
        units = p.k // size
        if units * size // c.k <= _MOST_STEPS or "fragment" in (a.way, b.way):
            body = [x for n in range(units) for x in unit(n * size)]
        else:
            var = nodes.fresh("k_unit")
            body = [nodes.for_loop(var, units, nodes.seq(unit(var * size)), "serial")]
        for first in range(units * size, p.k, c.k):
            body += [] if metadata is None else metadata.load_step(first)
            body += self.step(KStep(first, c.each), a, b, metadata, totals)
        return [*new, *body]

    def reader(self, role: int, guarded: bool, name: str) -> Reader:
        """Return the reader of A (0) or B (1)."""
        c, p = self.plan.chosen, self.plan.problem
        stored = 2 if c.sparse and role == 0 else 1
        dtype = ELEMENTS.get(c.inputs[role], p.types[role])
        operand = ProductOperand(**self.operand(role, guarded), dtype=dtype, depth=p.k // stored)
        return Reader(operand, self.lane, name, c.m, c.each // stored, c.k // stored, stored)

    def step(self, step: KStep, a: Reader, b: Reader, metadata: Metadata | None, totals: Any) -> list[Any]:
        """Return the loads and instructions of one step for the wavefront's part of C."""
        s, c = self.plan.split, self.plan.chosen
        name = f"{c.name}_set{step.part}" if c.sparse else c.name

        def tile(i: Any, j: Any) -> Stmt:
            to = address(totals, [(i * s.atoms_n + j) * self.plan.instruction.accumulators], "rw")
            index = [] if metadata is None else [metadata.word(i)]
            return execute(name, [to, a.at(i, step), b.at(j, step), *index], self.call.span)

        every = unrolled("row_tile", s.atoms_m, lambda i: unrolled("column_tile", s.atoms_n, lambda j: tile(i, j)))
        return [*a.load(step), *b.load(step), every]


@dataclass
class Reader:
    """Loads a lane's elements of an operand into registers, for one step's tiles.

    Attributes
    ----------
    operand, lane, name
        What is read, by which lane, and the name of its registers.
    lines
        Lines of an instruction.
    each, depth
        Elements along K that a lane and an instruction take; of a sparse A stored ones.
    stored
        How many elements of K one of this operand stands for: 2 for a sparse A.
    """

    operand: ProductOperand
    lane: Lane
    name: str
    lines: int
    each: int
    depth: int
    stored: int

    def __post_init__(self) -> None:
        o = self.operand
        self.way = "memory" if o.array is None else "fragment"
        self.steps = -(-o.depth // self.depth)
        #: Whether instructions take the registers of a fragment as they are: beyond K these hold anything.
        self.direct = o.array is not None and o.depth % self.depth == 0 and DTYPES[o.language].container == o.dtype
        self.registers: Any = o.array
        self.new: list[Any] = []
        if not self.direct:
            self.registers, new = nodes.alloc([o.tiles * self.each], o.dtype, f"{self.name}_values", "local")
            self.new = [new]

    def at(self, tile: Any, step: KStep) -> Expr:
        """Return the address of the registers of an instruction."""
        return address(self.registers, [self._held(tile, step) if self.direct else tile * self.each])

    def load(self, step: KStep) -> list[Any]:
        """Return the statements that fill the registers for a step, zeros beyond K."""
        if self.direct:
            return []

        def one(tile: Any) -> Stmt:
            return self._neighbours(lambda e: nodes.store(
                self.registers, self._value(tile, step, e), [tile * self.each + e]
            ))  # fmt: skip

        return [unrolled(f"{self.name}_tile", self.operand.tiles, one)]

    def _neighbours(self, one: Callable[[Any], Stmt]) -> Stmt:
        """Return the loop over neighbours along K: those of memory may be read together."""
        if self.each == 1:
            return one(nodes.int_const(0))
        e = nodes.fresh(f"{self.name}_e")
        marks = {attributes.VECTOR: nodes.int_const(self.each)} if self.operand.array is None else {}
        return nodes.for_loop(e, self.each, one(e), "unroll", annotations=marks)

    def _value(self, tile: Any, step: KStep, e: Any) -> Any:
        o = self.operand
        first, apart = _over(step.first, self.stored), step.apart // self.stored
        k = self.lane.row * apart + e + first
        beyond = isinstance(first, int) and first + self.depth > o.depth
        limits = [k < o.depth] if beyond else []
        if o.array is not None:
            return choose(limits, o.taken(nodes.load(o.array, [self._held(tile, step) + e])))
        return o.load(o.clamped(o.first + tile * self.lines + self.lane.column), k, limits)

    def _held(self, tile: Any, step: KStep) -> Any:
        """Return the first register of a fragment for an instruction; such products have constant steps."""
        return (tile * self.steps + step.first // (self.depth * self.stored)) * self.each


def _over(first: Any, stored: int) -> Any:
    """Return a place along K in elements that are stored."""
    return first // stored if isinstance(first, int) else tirx.floordiv(first, stored)
