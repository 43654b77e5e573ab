"""What products on matrix instructions share: what is asked, the plan of a call, its accumulators and its main loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.layout import DigitLayout, Layout, LayoutMap, Swizzle, make_swizzled_layout, row_major
from tile_core.ops.base import View
from tile_core.simt.calls import address, execute, part, step
from tile_core.simt.distribution import Distribution
from tile_core.simt.ops import runs
from tile_core.simt.ops.policy import Split, splits
from tile_core.simt.ops.problem import Problem, placed, policy_of
from tile_core.simt.ops.walk import unrolled
from tile_core.simt.variant import SimtCall
from tile_cuda.ops.atoms import Family, family
from tile_cuda.ops.fragments import WARP, accumulator, operand_a, operand_b
from tile_cuda.ops.operand import Lanes, Loader, Operand, words
from tile_cuda.ops.totals import Totals

#: Registers of accumulators and fragments beyond which those of the next step are not read ahead. Architectures without
#: units for 8-bit floats convert them in registers of their own.
_AHEAD, _AHEAD_FP8 = 232, 176
#: Instructions of a step below which they are not divided into parts with reads between them.
_LEAST_PARTED = 16
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
        c for v in (plan.problem.a, plan.problem.b) if v.scope == "shared" for c in runs.conditions(v, call.ranges)
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
        f = self.plan.family
        steps = self._steps(a)
        big = f.shapes[0]
        size_a, size_b = a.tiles * words(big, a), b.tiles * words(big * f.dense_blocks, b)
        parts = _column_parts(f, self.plan.split) if len(steps) > 1 else 1
        held = a.tiles * b.tiles * 2 * f.halves + 2 * (size_a + size_b // parts)
        held += 0 if self.metadata is None else 2 * a.tiles
        slots = 2 if len(steps) > 1 and held <= (_AHEAD_FP8 if f.is_fp8 else _AHEAD) else 1
        parts = min(parts, slots)
        regs_a, new_a = nodes.alloc([slots * size_a], f.word, "a_words", "local")
        regs_b, new_b = nodes.alloc([slots * size_b // parts], f.word, "b_words", "local")
        loads = Loader(a, self.lanes, regs_a, "a"), Loader(b, self.lanes, regs_b, "b")
        counts = {blocks for _, blocks in steps}
        out = [new_a, new_b, *loads[0].prepare(counts), *loads[1].prepare({c * f.dense_blocks for c in counts})]
        if self.metadata is not None:
            out += self.metadata.prepare()

        if len(steps) > _MOST_STEPS and self.metadata is None:
            return out + self._rolled(steps, loads, (regs_a, regs_b), totals)
        stretch = _Stretch(self, steps, loads, (regs_a, regs_b), (size_a, size_b // parts), slots, parts, totals)
        # The operands of the last step are in the registers that those of the first one are not in.
        self.in_parts = whole and slots == 2 and len(steps) % 2 == 0
        return stretch.in_parts(out) if self.in_parts else [*out, *stretch.plain()]

    def _rolled(self, steps: list[tuple[int, int]], loads: Any, registers: Any, totals: Any) -> list[Any]:
        """Return a loop over the steps that are alike, and the others after it."""
        big = self.plan.family.shapes[0]
        whole = min(o.operand.depth // o.operand.family.block for o in loads) // big
        a, b = loads[0].operand, loads[1].operand
        var = nodes.fresh("k_step")

        def one(start: Any, blocks: int) -> list[Any]:
            found = loads[0].load(start, blocks, 0) + loads[1].load(start, blocks, 0)
            return [*found, self._multiply(a, b, registers, (0, 0), totals, start, blocks)]

        # Registers are not indexed by variables: with a fragment among the operands the loop is written out.
        role = "unroll" if any(o.way == "fragment" for o in loads) else "serial"
        out = [nodes.for_loop(var, whole, nodes.seq(one(var * big, big)), role)] if whole else []
        for start, blocks in steps[whole:]:
            out += one(start, blocks)
        return out

    def _steps(self, a: Operand) -> list[tuple[int, int]]:
        """Return (first block of A, blocks) of each instruction along K."""
        shapes, found, at = self.plan.family.shapes, [], 0
        while at < a.blocks:
            size = next((x for x in shapes if x <= a.blocks - at), shapes[-1])
            found.append((at, size))
            at += size
        return found

    def _multiply(
        self, a: Operand, b: Operand, registers: Any, slots: tuple[int, int], totals: Any, start: Any, blocks: int,
        columns: range | None = None,
    ) -> Any:  # fmt: skip
        """Return the instructions of one step for all tiles of the warp, or for some of its columns of tiles.

        Dense products go down one column of tiles and up the next: each instruction has A or B in common with the one
        before it. On an H200 that takes 2 to 6 percent off products of float16 in tiles of 128 x 128 x 64 and 256 x 128
        x 64; the best sparse ones are slower with it.
        """
        f, s = self.plan.family, self.plan.split
        columns = range(s.atoms_n) if columns is None else columns
        each_a, each_b = words(blocks, a), words(blocks * f.dense_blocks, b)
        per = 2 * f.halves

        def tile(i: Any, j: Any) -> Any:
            to = (i * s.atoms_n + j + columns.start) * per
            args = [
                address(totals, [to], "rw"),
                address(registers[0], [slots[0] + i * each_a]),
                address(registers[1], [slots[1] + j * each_b]),
                address(totals, [to]),
            ]
            selector = 0
            if self.metadata is not None:
                word, selector = self.metadata.word(i, start, blocks)
                args.append(word)
            return execute(f.name(blocks, selector), args, self.call.span)

        def column(j: Any) -> Any:
            return unrolled("row_tile", s.atoms_m, lambda i: tile(_there_and_back(i, s.atoms_m, j), j))

        if self.metadata is None:
            return unrolled("column_tile", len(columns), column)
        return unrolled("row_tile", s.atoms_m, lambda i: unrolled("column_tile", len(columns), lambda j: tile(i, j)))


class _Stretch:
    """The steps along K, written out: operands are read one unit ahead as far as there are registers for it.

    A unit is what a step computes of one part of the columns: A is held for two steps, but B for two units only, and
    reads are spread more evenly over the instructions.
    """

    def __init__(
        self,
        lower: _Lower,
        steps: list[tuple[int, int]],
        loads: tuple[Loader, Loader],
        registers: tuple[Any, Any],
        sizes: tuple[int, int],
        slots: int,
        parts: int,
        totals: Any,
    ) -> None:
        self.lower, self.steps, self.loads, self.registers = lower, steps, loads, registers
        self.sizes, self.slots, self.parts, self.totals = sizes, slots, parts, totals
        self.units = len(steps) * parts

    def plain(self) -> list[Any]:
        """Return the steps."""
        first = self.load(0) if self.slots > 1 else []
        return [*first, *(x for n in range(self.units) for x in self.unit(n))]

    def in_parts(self, setup: list[Any]) -> list[Any]:
        """Return the steps with marks on what can be moved between the turns of a loop."""
        last = self.units - 1
        out = [part("setup", [*self.lower.head(), *setup]), part("first", self.load(0))]
        if self.lower.metadata is None:
            out += [x for n in range(last) for x in self.unit(n)]
        else:  # more is read for each instruction, so that queues and arithmetic of addresses hold it up
            out += [part("ring", []), *(part("middle", self.unit(n)) for n in range(last))]
        return [*out, *self.ready(last), part("last", [self.multiply(last)])]

    def unit(self, number: int) -> list[Any]:
        """Return one unit, and the reads of the next one's operands if they are read ahead."""
        if self.slots == 1:
            return [*self.load(number), *self.ready(number), self.multiply(number)]
        ahead = self.load(number + 1) if number + 1 < self.units else []
        return [*self.ready(number), *ahead, self.multiply(number)]

    def load(self, number: int) -> list[Any]:
        """Return the reads of a unit's operands, except for those that the unit before has as well."""
        step, of = divmod(number, self.parts)
        start, blocks = self.steps[step]
        dense = self.lower.plan.family.dense_blocks
        found: list[Any] = []
        if of == 0:
            data = self.lower.metadata
            found += [] if data is None else data.load(start)
            found += self.loads[0].load(start, blocks, step % self.slots * self.sizes[0])
        slot = number % self.slots * self.sizes[1]
        return found + self.loads[1].load(start * dense, blocks * dense, slot, self.columns(of))

    def ready(self, number: int) -> list[Any]:
        """Return what makes metadata fit for a unit's instructions: in front of the reads of that of the next one."""
        step, of = divmod(number, self.parts)
        data = self.lower.metadata
        return [] if data is None or of else data.ready(self.steps[step][0])

    def multiply(self, number: int) -> Any:
        """Return a unit's instructions."""
        step, of = divmod(number, self.parts)
        start, blocks = self.steps[step]
        a, b = self.loads[0].operand, self.loads[1].operand
        slots = (step % self.slots * self.sizes[0], number % self.slots * self.sizes[1])
        return self.lower._multiply(a, b, self.registers, slots, self.totals, start, blocks, self.columns(of))

    def columns(self, of: int) -> range:
        """Return the columns of tiles of a part."""
        count = self.lower.plan.split.atoms_n // self.parts
        return range(of * count, (of + 1) * count)


def _there_and_back(i: Any, count: int, turn: Any) -> Any:
    """Return i, or counted from the end in every second turn."""
    if count == 1 or isinstance(nodes.as_int(turn), int):  # a single row, or a single turn
        return i
    return tirx.Select(tirx.floormod(turn, 2) == 0, i, count - 1 - i)


def _column_parts(f: Family, s: Split) -> int:
    """Return into how many parts a step's columns are divided: two for a sparse product, if both have enough of them.

    Its B is twice as large, so that the operands of two whole steps leave no registers for those of the next turn.
    Reads must still take four matrices at a time, and the instructions of a part as long as the reads of the next one.
    """
    if not f.sparse or f.is_fp8:
        return 1
    per_read = max(1, 4 // (f.shapes[0] * f.dense_blocks))
    whole = s.atoms_n % (2 * per_read) == 0
    return 2 if whole and s.atoms_m * s.atoms_n >= _LEAST_PARTED else 1
