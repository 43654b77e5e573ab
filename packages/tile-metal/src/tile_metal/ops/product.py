"""What products on matrix instructions share: the plan of a call, its accumulators and its loop over K."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.calls import address, execute, step
from tile_core.layout import Layout, LayoutMap, strided
from tile_core.ops.base import View
from tile_core.ops.copy import convert
from tile_core.ops.gemm import matrix
from tile_core.simt.distribution import Distribution
from tile_core.simt.memory import contiguity
from tile_core.simt.ops.gemm_problem import Problem, placed, policy_of
from tile_core.simt.ops.warp_partition import Split, splits
from tile_core.simt.register_loops import choose, unrolled, when
from tile_core.simt.variant import SimtCall
from tile_metal.ops.atoms import Unit, operand_type
from tile_metal.ops.fragments import SIMD, accumulator, operand_a, operand_b
from tile_metal.ops.operand import Lanes, Loader, Operand
from tile_metal.ops.sparse import Metadata, contribution, finite

TOTAL = "float32"
"""Element type of all accumulators in registers."""

PADDED = "rows apart by a vector more"
"""Note of a layout that this module asks for; ``pipeline`` takes it back where memory is short."""

#: Steps beyond which the loop over K is not written out.
_MOST_STEPS = 16


@dataclass(frozen=True)
class Plan:
    """How a product is computed: the instruction, its operands' type, and the simdgroups."""

    problem: Problem
    unit: Unit
    operand: str
    split: Split
    threads: int

    @classmethod
    def of(cls, call: SimtCall, unit: Unit) -> Plan | None:
        """Return the plan that fits best to what is decided about fragments; ``None`` if there is no instruction."""
        problem = Problem.of(call)
        operand = operand_type(*problem.types)
        warps = call.block.count // SIMD
        if operand is None or not warps:
            return None
        tiles = -(-problem.m // unit.m), -(-problem.n // unit.n)
        ratio = max(1, unit.m // unit.n)
        plans = [
            cls(problem, unit, operand, s, call.block.count)
            for s in splits(*tiles, warps, policy_of(call, problem), ratio)
        ]
        return next((p for p in plans if p.fits(call.places.distributions)), plans[0])

    def fragment(self, role: int) -> Distribution:
        """Return the distribution that the buffer of A (0), B (1) or C (2) has if it is a fragment."""
        p, how = self.problem, (self.split, self.unit, self.threads)
        view, turned = ((p.a, p.turned_a), (p.b, p.turned_b), (p.c, False))[role]
        found = (operand_a(p.m, p.k, *how), operand_b(p.k, p.n, *how), accumulator(p.m, p.n, *how))[role]
        return placed(found, view.extents, *view.matrix_dims(), turned)

    def fits(self, known: Mapping[Any, Distribution]) -> bool:
        """Whether all fragments whose place is decided are where this plan needs them."""
        for role, view in enumerate((self.problem.a, self.problem.b, self.problem.c)):
            found = known.get(view.buffer)
            if found is not None:
                mine = self.fragment(role)
                if found != mine and not found.same_as(mine):
                    return False
        return True

    def __str__(self) -> str:
        return f"{self.unit.function(TOTAL, self.operand)}, {self.split}"


def wanted(plan: Plan, call: SimtCall) -> dict[int, Distribution | LayoutMap]:
    """Return what A, B and C must be as fragments, and should be in threadgroup memory."""
    p = plan.problem
    found: dict[int, Distribution | LayoutMap] = {}
    for role, (position, view) in enumerate(zip(p.positions, (p.a, p.b, p.c), strict=True)):
        if view.scope == "local.fragment":
            if view.extents == tuple(nodes.shape_of(view.buffer)):
                found[position] = plan.fragment(role)
        elif role < 2 and view.scope == "shared" and view.buffer not in call.places.layouts:
            layout = padded(tuple(nodes.shape_of(view.buffer)), DTYPES[view.dtype].bits)
            if layout is not None:
                found[position] = layout
    return found


@cache
def padded(shape: tuple[int, ...], bits: int) -> LayoutMap | None:
    """Return a layout whose rows are 16 bytes longer, so that 8 rows of a block lie in different banks.

    ``None`` if rows are no whole vectors of 16 bytes, or lie in different banks anyway.
    """
    if bits < 8 or not all(isinstance(n, int) for n in shape) or shape[-1] * bits % 128 or shape[-1] * bits // 128 % 2:
        return None
    strides, distance = [1], shape[-1] + 128 // bits
    for extent in reversed(shape[1:-1]):
        strides.insert(0, distance)
        distance *= extent
    if len(shape) < 2:
        return None
    return Layout(shape, strided(shape, [distance, *strides]), span=distance * shape[0], note=PADDED)


def multiply(plan: Plan, call: SimtCall) -> Any:
    """Return the statement of the whole product for one thread.

    Operands that may reach beyond their buffers are looked at once: where they do, elements outside are zero.
    """
    p = plan.problem
    outside = [
        c for v in (p.a, p.b) if v.scope in ("shared", "global") for c in contiguity.conditions(v, call.ranges)
    ]  # fmt: skip
    lower = _Lower(plan, call)
    body = lower.body(guarded=False)
    if outside:
        body = tirx.IfThenElse(tirx.all(*outside), body, _Lower(plan, call, lower).body(guarded=True), call.span)
    whole = nodes.seq([*lower.head(), body])
    used = plan.split.warps * SIMD
    if used != plan.threads:
        whole = tirx.IfThenElse(call.block.thread < used, whole, None, call.span)
    return step(whole, call.span)


def metadata_of(call: SimtCall) -> Metadata | None:
    """Return the metadata of a sparse product's A."""
    if call.name != "gemm_sp":
        return None
    return Metadata(call.args[1], bool(call.attrs["transpose_E"]), int(call.attrs["group"]))


class _Lower:
    def __init__(self, plan: Plan, call: SimtCall, other: _Lower | None = None) -> None:
        self.plan, self.call = plan, call
        names = ("lane", "lane_row", "lane_column", "simd_row", "simd_column")
        self.vars: tuple[Any, ...] = other.vars if other else tuple(map(nodes.fresh, names))
        self.lanes = Lanes(*self.vars[:3])
        self.rows, self.columns = self.vars[3:]

    def head(self) -> list[Any]:
        """Bind the lane's place in a block and the simdgroup's corner of C."""
        s, u, thread, lane = self.plan.split, self.plan.unit, self.call.block.thread, self.lanes.lane
        warp = tirx.floordiv(thread, SIMD)
        column = 0 if s.warps_n == 1 else (warp if s.warps_m == 1 else tirx.floormod(warp, s.warps_n))
        row = 0 if s.warps_m == 1 else (warp if s.warps_n == 1 else tirx.floordiv(warp, s.warps_n))
        values = (
            (lane, tirx.floormod(thread, SIMD)),
            (self.lanes.row, tirx.floordiv(lane, 16) * 4 + tirx.floordiv(tirx.floormod(lane, 8), 2)),
            (self.lanes.column,
             tirx.floormod(tirx.floordiv(lane, 8), 2) * (2 * u.each) + tirx.floormod(lane, 2) * u.each),
            (self.rows, row * (s.atoms_m * u.m)),
            (self.columns, column * (s.atoms_n * u.n)),
        )  # fmt: skip
        return [tirx.Bind(v, nodes.int_const(e) if isinstance(e, int) else e) for v, e in values]

    def body(self, guarded: bool) -> Any:
        """Return the product with operands inside of their buffers, or possibly not."""
        totals, start, end = self.totals()
        return nodes.seq([*start, *self.loop(*self.operands(guarded), totals), *end])

    def operands(self, guarded: bool) -> tuple[Operand, Operand]:
        p, u, s, places = self.plan.problem, self.plan.unit, self.plan.split, self.call.places

        def make(view: View, turned: bool, role: int, **sizes: Any) -> Operand:
            return Operand(
                view, turned, role == 0, p.types[role], self.plan.operand, u, depth=p.k,
                array=places.arrays.get(view.buffer), layout=places.layouts.get(view.buffer), guarded=guarded,
                ranges=self.call.ranges, **sizes,
            )  # fmt: skip

        kept = metadata_of(self.call)
        most = s.warps_m * s.atoms_m * u.m, s.warps_n * s.atoms_n * u.n
        a = make(p.a, p.turned_a, 0, lines=p.m, tiles=s.atoms_m, first=self.rows, most=most[0], metadata=kept)
        b = make(p.b, p.turned_b, 1, lines=p.n, tiles=s.atoms_n, first=self.columns, most=most[1])
        return a, b

    # The loop over K

    def loop(self, a: Operand, b: Operand, totals: Any) -> list[Any]:
        """Return the steps along K: a loop over whole ones, then the rest."""
        out: list[Any] = []
        loaders = []
        for operand, name in ((a, "a"), (b, "b")):
            registers, new = nodes.alloc([operand.tiles * operand.size], operand.dtype, f"{name}_values", "local")
            loaders.append(Loader(operand, self.lanes, registers, name))
            out += [] if loaders[-1].in_place else [new]
        steps, whole = -(-a.depth // self.plan.unit.k), a.depth // self.plan.unit.k

        sparse = a.metadata is not None

        def one(at: Any) -> list[Any]:
            loads, product = [*loaders[0].load(at), *loaders[1].load(at)], self.multiplied(loaders, totals, at)
            if not sparse:
                return [*loads, product]
            odd, new_odd = nodes.alloc([1], "int32", "odd", "local")
            registers, count = loaders[1].registers, b.tiles * b.size
            clean = [new_odd, nodes.store(odd, nodes.int_const(0), [0]), finite(registers, count, b.dtype, odd)]
            return [*loads, *clean, product, self.rest(a, b, totals, at, odd)]

        # Registers are not indexed by variables: with a fragment among the operands the loop is written out.
        short = whole <= _MOST_STEPS or any(o.way == "fragment" for o in (a, b))
        if whole == 1:
            out += one(0)
        elif whole:
            var = nodes.fresh("k_step")
            out.append(nodes.for_loop(var, whole, nodes.seq(one(var)), "unroll" if short else "serial"))
        return out + [x for at in range(whole, steps) for x in one(at)]

    def rest(self, a: Operand, b: Operand, totals: Any, at: Any, odd: Any) -> Any:
        """Return the statement that adds what numbers of B contribute that the instructions took for zero."""
        unit, k = self.plan.unit.k, nodes.fresh("k_odd")
        found = nodes.tile_call("any_sync", [tirx.NE(odd[0], nodes.int_const(0))], ret="bool")
        limits = [at * unit + k < a.depth] if a.depth % unit else []

        def one(r: Any, i: Any, j: Any) -> Any:
            row, column = (tirx.min(x, nodes.int_const(n - 1)) for x, n in ((i, a.lines), (j, b.lines)))
            return contribution(a.metadata, a, b, (row, column, at * unit + k), totals, r)

        return tirx.IfThenElse(found, nodes.for_loop(k, unit, when(limits, self.each(one))), None)

    def multiplied(self, loaders: list[Loader], totals: Any, at: Any) -> Any:
        """Return the instructions of one step for all of the simdgroup's part of C."""
        s, u = self.plan.split, self.plan.unit
        name, size = u.function(TOTAL, self.plan.operand), u.m * u.n // SIMD

        def tile(i: Any, j: Any) -> Any:
            to = address(totals, [(i * s.atoms_n + j) * size], "rw")
            return execute(name, [to, loaders[0].at(i, at), loaders[1].at(j, at)], self.call.span)

        return unrolled("row_tile", s.atoms_m, lambda i: unrolled("column_tile", s.atoms_n, lambda j: tile(i, j)))

    # C

    def totals(self) -> tuple[Any, list[Any], list[Any]]:
        """Return the accumulators' array, the statements before and those after the product."""
        c, clear, zero = self.plan.problem.c, self.plan.problem.clear, nodes.zero(TOTAL)
        array = self.call.places.arrays.get(c.buffer)
        if array is not None and nodes.element_type(array) == TOTAL:
            if clear is False:
                return array, [], []
            cleared = self.each(lambda r, *_: nodes.store(array, zero, [r]))
            return array, [cleared if clear is True else tirx.IfThenElse(clear, cleared, None, self.call.span)], []
        s, u = self.plan.split, self.plan.unit
        count = s.atoms_m * s.atoms_n * u.m * u.n // SIMD
        totals, new = nodes.alloc([count], TOTAL, "totals", "local")

        def begin(r: Any, i: Any, j: Any) -> Any:
            if clear is True:
                return nodes.store(totals, zero, [r])
            value = convert(nodes.load(array, [r]) if array is not None else self.read(i, j), TOTAL)
            return nodes.store(totals, value if clear is False else tirx.if_then_else(clear, zero, value), [r])

        def end(r: Any, i: Any, j: Any) -> Any:
            value = convert(nodes.load(totals, [r]), c.dtype)
            return nodes.store(array, value, [r]) if array is not None else self.write(value, i, j)

        return totals, [new, self.each(begin)], [self.each(end)]

    def read(self, i: Any, j: Any) -> Any:
        c = self.plan.problem.c
        at = matrix(c, False, i, j)
        return choose([*self.real(i, j), *contiguity.inside(c, at, self.call.ranges)], nodes.load(c.buffer, at))

    def write(self, value: Any, i: Any, j: Any) -> Any:
        c = self.plan.problem.c
        at = matrix(c, False, i, j)
        stored = nodes.store(c.buffer, value, at, self.call.span)
        limits = [*self.real(i, j), *contiguity.inside(c, at, self.call.ranges)]
        return tirx.IfThenElse(tirx.all(*limits), stored, None) if limits else stored

    def real(self, i: Any, j: Any) -> list[Any]:
        """Return the conditions under which an element is not in the padding."""
        p, s, u = self.plan.problem, self.plan.split, self.plan.unit
        found = [i < p.m] if s.warps_m * s.atoms_m * u.m != p.m else []
        return [*found, *([j < p.n] if s.warps_n * s.atoms_n * u.n != p.n else [])]

    def each(self, body: Callable[[Any, Any, Any], Any]) -> Any:
        """Return loops over the accumulators: ``body`` gets the register, and the row and column of C."""
        s, u = self.plan.split, self.plan.unit
        high, wide = u.m // 8, u.n // u.columns

        def one(mi: Any, ni: Any, across: Any, down: Any, e: Any) -> Any:
            register = ((mi * s.atoms_n + ni) * wide + across) * (high * u.each) + down * u.each + e
            row = self.rows + mi * u.m + down * 8 + self.lanes.row
            return body(register, row, self.columns + ni * u.n + across * u.columns + self.lanes.column + e)

        return unrolled("row_tile", s.atoms_m, lambda mi: unrolled("column_tile", s.atoms_n, lambda ni: unrolled(
            "across", wide, lambda across: unrolled("down", high, lambda down: unrolled(
                "e", u.each, lambda e: one(mi, ni, across, down, e))))))  # fmt: skip
