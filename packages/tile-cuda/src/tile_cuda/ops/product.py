"""What products on matrix instructions share: what is asked, the plan of a call, its accumulators and its main loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.calls import step
from tile_core.layout import DigitLayout, Layout, LayoutMap, Swizzle, make_swizzled_layout, row_major
from tile_core.ops.base import View
from tile_core.simt.distribution import Distribution
from tile_core.simt.memory import contiguity
from tile_core.simt.ops.gemm_problem import Problem, placed, policy_of
from tile_core.simt.ops.warp_partition import Split, splits
from tile_core.simt.variant import SimtCall
from tile_cuda.ops.atoms import Family, family
from tile_cuda.ops.fragments import WARP, accumulator, operand_a, operand_b
from tile_cuda.ops.operand import Lanes, Loader, Operand
from tile_cuda.ops.steps import RowByRow, Step, StepByStep, Work, rolled
from tile_cuda.ops.totals import Totals

#: Steps beyond which the loop over K is not written out.
_MOST_STEPS = 16


@dataclass(frozen=True)
class Plan:
    """How a product is computed: the instructions and the warps."""

    problem: Problem
    family: Family
    split: Split
    threads: int

    @classmethod
    def of(cls, call: SimtCall, fp8: bool, sparse: bool) -> Plan | None:
        """Return the plan that fits best to what is decided about fragments; ``None`` if there are no instructions."""
        problem = Problem.of(call)
        chosen_family = family(*problem.types, fp8, sparse)
        warps = call.block.count // WARP
        if chosen_family is None or not warps:
            return None
        tiles_m, tiles_n = -(-problem.m // chosen_family.rows), -(-problem.n // 8)
        every = splits(tiles_m, tiles_n, warps, policy_of(call, problem))
        plans = (cls(problem, chosen_family, s, call.block.count) for s in every)
        first = None
        for plan in plans:
            first = first or plan
            if plan.fits(call.places.distributions):
                return plan
        return first

    def fragment(self, role: int) -> Distribution:
        """Return the distribution that the buffer of A (0), B (1) or C (2) has if it is a fragment."""
        p, f, s = self.problem, self.family, self.split
        if role == 0:
            view, turned = p.a, p.turned_a
            found = operand_a(p.m, p.k // 2 if self.compressed else p.k, s, f, self.threads)
        elif role == 1:
            view, turned = p.b, p.turned_b
            found = operand_b(p.k, p.n, s, f, self.threads)
        else:
            view, turned = p.c, False
            found = accumulator(p.m, p.n, s, f, self.threads)
        return placed(found, view.extents, *view.matrix_dims(), turned)

    @property
    def compressed(self) -> bool:
        """Whether A holds half of K."""
        return self.family.sparse

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
        f = self.family
        return f"{f.name(f.shapes[0])}, {self.split}"


def wanted(plan: Plan, call: SimtCall) -> dict[int, Distribution | LayoutMap]:
    """Return what A, B and C must be as fragments, and should be in shared memory."""
    p = plan.problem
    found: dict[int, Distribution | LayoutMap] = {}
    for role, (position, view) in enumerate(zip(p.positions, (p.a, p.b, p.c), strict=True)):
        if view.scope == "local.fragment":
            if view.extents == tuple(nodes.shape_of(view.buffer)):
                found[position] = plan.fragment(role)
        elif role < 2 and view.buffer not in call.places.layouts:
            layout = swizzled(tuple(nodes.shape_of(view.buffer)), DTYPES[view.dtype].bits)
            if layout is not None:
                found[position] = layout
    return found


@cache
def swizzled(shape: tuple[int, ...], bits: int) -> LayoutMap | None:
    """Return a layout in which neither 8 rows of 16 bytes nor 8 vectors along a row meet in a bank.

    ``None`` if the plain order is as good: rows of an odd number of 16 bytes never meet, others cannot be read by rows.
    """
    row = shape[-1] * bits
    if row % 256 or 128 % bits:
        return None
    if row % 1024 == 0 or row & (row - 1) == 0:
        return make_swizzled_layout(shape, bits)
    # Panels as of make_swizzled_layout would put vectors along a row in the same banks. In plain order, 16 bytes are
    # XORed with the number of their 128 bytes: rows that begin in the same bank differ in it.
    chunks, base = row // 128, (128 // bits).bit_length() - 1
    exponent = min(3, (chunks & -chunks).bit_length() - 1)
    plain = row_major(shape)
    return Layout(shape, DigitLayout(shape, plain.digits, swizzles=(Swizzle(exponent, base, 3),)), note="swizzled rows")


def multiply(plan: Plan, call: SimtCall, make_metadata: Any = None) -> Any:
    """Return the statement of the whole product for one thread.

    Parameters
    ----------
    plan
        The plan.
    call
        The call, with all places decided.
    make_metadata
        For a sparse product, a function from (lanes, first row of the warp) to a ``Metadata``.
    """
    lower = _Lower(plan, call, make_metadata)
    outside = [
        c
        for v in (plan.problem.a, plan.problem.b)
        if v.scope == "shared"
        for c in contiguity.conditions(v, call.ranges)
    ]
    body = lower.body(guarded=False, whole=not outside)
    if outside:
        body = tirx.IfThenElse(tirx.all(*outside), body, lower.body(guarded=True, whole=False), call.span)
    used = plan.split.warps * WARP
    whole = body if lower.in_parts else nodes.seq([*lower.head(), body])
    if used != plan.threads:
        whole = tirx.IfThenElse(call.block.thread < used, whole, None, call.span)
    return step(whole, call.span)


class _Lower:
    def __init__(self, plan: Plan, call: SimtCall, make_metadata: Any) -> None:
        self.plan, self.call = plan, call
        self.lanes = Lanes(nodes.fresh("lane"), nodes.fresh("lane_g"), nodes.fresh("lane_t"))
        self.rows, self.columns = nodes.fresh("warp_row"), nodes.fresh("warp_column")
        self.metadata = make_metadata(self.lanes, self.rows) if make_metadata else None
        self.in_parts = False

    def head(self) -> list[Any]:
        """Bind the lane and the warp's corner of C."""
        s, f, thread = self.plan.split, self.plan.family, self.call.block.thread
        warp = tirx.floordiv(thread, WARP)
        column = 0 if s.warps_n == 1 else (warp if s.warps_m == 1 else tirx.floormod(warp, s.warps_n))
        row = 0 if s.warps_m == 1 else (warp if s.warps_n == 1 else tirx.floordiv(warp, s.warps_n))
        lane = self.lanes
        values = (
            (lane.lane, tirx.floormod(thread, WARP)),
            (lane.g, tirx.floordiv(lane.lane, 4)),
            (lane.t, tirx.floormod(lane.lane, 4)),
            (self.rows, row * (s.atoms_m * f.rows)),
            (self.columns, column * (s.atoms_n * 8)),
        )
        return [tirx.Bind(v, nodes.int_const(e) if isinstance(e, int) else e) for v, e in values]

    def body(self, guarded: bool, whole: bool) -> Any:
        """Return the product with operands inside of their buffers or possibly not; ``whole`` if it is all there is."""
        a, b = self._operands(guarded)
        totals, start, end = Totals(self).statements()
        whole = whole and not start and not end and self.plan.split.warps * WARP == self.plan.threads
        return nodes.seq([*start, *self._loop(a, b, totals, whole), *end])

    def _operands(self, guarded: bool) -> tuple[Operand, Operand]:
        p, f, s, places = self.plan.problem, self.plan.family, self.plan.split, self.call.places

        def make(view: View, turned: bool, role: int, **sizes: Any) -> Operand:
            array = places.arrays.get(view.buffer)
            layout = places.layouts.get(view.buffer)
            return Operand(
                view,
                turned,
                p.types[role],
                (f.a, f.b)[role],
                f,
                array=array,
                layout=layout,
                guarded=guarded,
                ranges=self.call.ranges,
                **sizes,
            )

        stored = p.k // 2 if f.sparse else p.k
        a = make(
            p.a, p.turned_a, 0, lines=p.m, depth=stored, halves=f.halves, tiles=s.atoms_m, first=self.rows,
            most=s.warps_m * s.atoms_m * f.rows,
        )  # fmt: skip
        b = make(
            p.b, not p.turned_b, 1, lines=p.n, depth=p.k, halves=1, tiles=s.atoms_n, first=self.columns,
            most=s.warps_n * s.atoms_n * 8,
        )  # fmt: skip
        return a, b

    # The loop over K

    def _loop(self, a: Operand, b: Operand, totals: Any, whole: bool) -> list[Any]:
        """Return the steps along K; in parts that can be moved between turns of a loop around a ``whole`` product."""
        work = Work(self.plan, self.call, Loader(a, self.lanes, "a"), Loader(b, self.lanes, "b"), totals, self.metadata)
        steps = self._steps(a)
        if self.metadata is not None:
            order: RowByRow | StepByStep = RowByRow(work, steps)
        elif len(steps) > _MOST_STEPS:
            return rolled(work, steps)
        else:
            order = StepByStep(work, steps)
        self.in_parts = whole and order.can_turn
        return order.in_parts(self.head()) if self.in_parts else order.plain()

    def _steps(self, a: Operand) -> list[Step]:
        """Return the steps along K."""
        shapes, at = self.plan.family.shapes, 0
        found: list[Step] = []
        while at < a.blocks:
            many = [] if self.metadata is None else self.metadata.steps(at, a.blocks)
            found += many or [Step(at, next((x for x in shapes if x <= a.blocks - at), shapes[-1]))]
            at = max(s.first + s.of_a[-1] for s in found) + 1
        return found
