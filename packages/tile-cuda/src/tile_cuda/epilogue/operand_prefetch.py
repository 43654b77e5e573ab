"""Epilogue operand prefetch: scale and bias vectors are loaded before the main loop.

An epilogue that loads a scale for each column of its accumulator would load one element per column of a thread, and
each load waits for global memory while the matrix units are idle. Loaded before the main loop, a thread has one of
them, or a few; behind the loop they go through shared memory. Along rows each thread has few elements and loads what it
needs directly::

    copy V[base : base + n] to fragment                before the loop
    for k: the product
    copy fragment to line                              where the nest begins; for a vector along rows, nothing
    for i, j: C[i, j] = f(C[i, j], line[j])            or fragment[i]

Where the epilogue overlaps the next tile (``SUBTILE``), threads have registers for the column vector behind the loop,
and a barrier there would let warpgroups wait for each other: it is not prefetched. On an H100, products of 8-bit floats
with scales run at 0.980 times the library's speed that way, and at 0.972 times with the prefetch.

Results do not change: elements outside of a tensor read as its safe value, by single loads or by a copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tile_core.analysis.flow import Flow, names_of
from tile_core.analysis.point import Point
from tile_core.analysis.proofs import linear_parts
from tile_core.analysis.uniformity import Varying
from tile_core.compat.structural import identity
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.fresh_names import FreshNames
from tile_core.ir.visit import StmtRewriter, collect, distinct, loads_of, map_expr, role, substitute
from tile_core.lowering.variant import Reject
from tile_core.ops.base import is_op
from tile_core.ops.effects import effects
from tile_core.passes.check_launch_order import WAIT
from tile_core.records import dataclass
from tile_core.simt.notes import BLOCK
from tile_core.simt.pipelining.async_products import accumulator_of, products_of
from tile_core.simt.pipelining.late_epilogue import SUBTILE
from tile_core.simt.variant import SimtCall
from tile_cuda.epilogue.prefetch_budget import SharedMemoryBudget
from tile_cuda.epilogue.staged import EpilogueFragments, results_of
from tile_cuda.ops.warpgroup_plan import WarpgroupPlan

if TYPE_CHECKING:
    from tile_core.context import Context
    from tile_core.passes.spine import Plan

_REGISTERS = 6
"""Registers of a thread for prefetched lines: a scale for each row and column of 256 x 128 accumulators takes 5."""


def prefetch_epilogue_operands(plan: Plan, ctx: Context, products: Sequence[SimtCall]) -> Plan:
    """Prefetch vectors that epilogues read before the loops of their products.

    Parameters
    ----------
    products
        Products of the program on wgmma instructions.
    """
    if not products or not any(_has(plan.params, load.source) for load in loads_of(plan.body)):
        return plan
    found = _Search(plan, ctx, products).found()
    return plan.replace(body=_Rewriter(plan, found).stmt(plan.body)) if found else plan


@dataclass(frozen=True)
class _Line:
    """A part of a tensor with one element per row or column of an accumulator.

    Attributes
    ----------
    tensor, corner, extent, axis
        The part; axis 0 stands for rows, 1 for columns.
    registers
        Registers of a thread that hold it.
    loads
        The loads that take its elements, by nest.
    """

    tensor: BufferVar
    corner: tuple[Expr, ...]
    extent: int
    axis: int
    registers: int
    loads: dict[int, list[Expr]] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Of shared memory."""
        return self.extent * DTYPES[nodes.element_type(self.tensor)].bits // 8 if self.axis else 0

    def is_same(self, other: _Line) -> bool:
        """Whether it has the elements of another one."""
        if not self.tensor.same_as(other.tensor) or (self.extent, self.axis) != (other.extent, other.axis):
            return False
        return all(tvm_ffi.structural_equal(a, b) for a, b in zip(self.corner, other.corner, strict=True))


@dataclass(frozen=True)
class _Prefetch:
    """The lines of the nests behind a loop.

    Attributes
    ----------
    loop, nests
        These statements.
    lines
        What the nests take.
    """

    loop: Stmt
    nests: tuple[Stmt, ...]
    lines: tuple[_Line, ...]


class _Search:
    """Finds lines that can be prefetched."""

    def __init__(self, plan: Plan, ctx: Context, products: Sequence[SimtCall]) -> None:
        self.params, self.threads = plan.params, plan[BLOCK].count
        self.apart = any(SUBTILE in s.value.attrs for s in collect(plan.body, tirx.Evaluate) if is_op(s))
        self.products, self.varying = products, Varying(plan.body)
        self.flow = self.varying.flow
        accumulators = [call.args[accumulator_of(call)].buffer for call in products]
        self.results: EpilogueFragments = results_of(plan.body, accumulators, every=False)
        #: Tensors with an annotated element order.
        self.kept = {*map(str, plan.program.layouts)}
        self.written = _written(plan.body)
        #: A statement that stands at several places would have to be rewritten differently there.
        self.times = Counter(identity(p.stmt) for p in self.flow.points)
        self._defined: dict[Point, set[Var]] = {}
        self.budget = SharedMemoryBudget(self.flow, self.results, self.threads, ctx)

    def found(self) -> list[_Prefetch]:
        """Return the lines of all loops."""
        if any(nodes.scope_of(b) == "global" and not _has(self.params, b) for b in self.written):
            return []  # what is at an address may be any tensor
        every = [self.behind(p) for p in self.flow.points if p.kind == "for" and role(p.stmt) == "pipelined"]
        return [x for x in every if x is not None]

    def behind(self, loop: Point) -> _Prefetch | None:
        """Return the lines of the nests behind a loop."""
        if self.times[identity(loop.stmt)] > 1 or loop.role is not None or self.varying.divergent(loop):
            return None
        if not any(_has(self.results.accumulators, b) for s in products_of(loop.stmt) for b in names_of(s)):
            return None
        siblings = self.flow.top if loop.around is None else loop.around.parts[loop.side]
        lines: list[_Line] = []
        nests: list[Point] = []
        for p in siblings[siblings.index(loop) + 1 :]:
            if any(nodes.is_tile_call(c, WAIT) for c in collect(p.stmt, ir.Call)):
                break  # before it, launches before this one may still write the vectors
            if p.kind == "for" and role(p.stmt) == "pipelined" and products_of(p.stmt):
                break  # its own nests are behind it
            self.add(loop, p, lines)
            nests.append(p)
        kept = self.that_fit(loop, nests, lines)
        used = [p.stmt for p in nests if any(identity(p.stmt) in x.loads for x in kept)]
        return _Prefetch(loop.stmt, tuple(used), tuple(kept)) if kept else None

    def that_fit(self, loop: Point, nests: Sequence[Point], lines: Sequence[_Line]) -> list[_Line]:
        """Return the lines that fit in registers and shared memory and save loads."""
        kept: list[_Line] = []
        for line in sorted(lines, key=lambda x: -x.axis):
            chosen = [*kept, line]
            spans = [p for p in nests if any(identity(p.stmt) in x.loads for x in chosen if x.axis)]
            if sum(x.registers for x in chosen) > _REGISTERS:
                continue
            if line.axis == 0 or self.budget.has([x.bytes for x in chosen if x.axis], loop, spans):
                kept = chosen
        self.budget.take(x.bytes for x in kept)
        return kept

    def add(self, loop: Point, nest: Point, lines: list[_Line]) -> None:
        """Add the lines that a nest takes to those of nests before it."""
        variables, extents = _nest_of(nest.stmt)
        if len(variables) != 2 or self.times[identity(nest.stmt)] > 1:
            return
        accumulator = self.accumulator_elements(nest.stmt, variables, extents)
        if accumulator is None:
            return
        for load in loads_of(nest.stmt):
            line = self.line(load, loop, (variables, extents), accumulator)
            if line is None:
                continue
            known = next((x for x in lines if x.is_same(line)), line)
            if known is line:
                lines.append(line)
            known.loads.setdefault(identity(nest.stmt), []).append(load)

    def accumulator_elements(self, nest: Stmt, variables: Sequence[Var], extents: Sequence[int]) -> BufferVar | None:
        """Return the accumulator that a nest accesses at exactly the elements of its iterations."""
        stores = [(s.buffer, list(s.indices)) for s in collect(nest, tirx.BufferStore)]
        for buffer, indices in [*stores, *((x.source, list(x.indices)) for x in loads_of(nest))]:
            if not _has(self.results.plain, buffer) or nodes.shape_of(buffer) != list(extents):
                continue
            if all(i.same_as(v) for i, v in zip(indices, variables, strict=True)):
                return buffer
        return None

    def line(
        self, load: Expr, loop: Point, nest: tuple[Sequence[Var], Sequence[int]], accumulator: BufferVar
    ) -> _Line | None:
        """Return the line of a load, if it can be read before the loop."""
        tensor, bits = load.source, DTYPES[nodes.element_type(load.source)].bits
        if not _has(self.params, tensor) or _has(self.written, tensor) or str(tensor.name) in self.kept:
            return None
        if nodes.scope_of(tensor) != "global" or bits < 8 or not load.indices:
            return None
        variables, extents = nest
        *fixed, last = [self.with_values(i, loop) for i in load.indices]
        axis = _axis(last, variables)
        if axis is None or (axis and self.apart):
            return None
        # At the first element: so it overflows nowhere where the nest's own index does not.
        first = substitute(last, {variables[axis]: nodes.int_const(0)})
        corner = (*fixed, first)
        if not all(self.is_known(e, loop) for e in corner):
            return None
        held = -(-extents[axis] // self.threads) if axis else self.rows(accumulator)
        return _Line(tensor, corner, extents[axis], axis, held * max(1, bits // 32))

    def rows(self, accumulator: BufferVar) -> int:
        """Return the number of accumulator rows of a thread; all rows if it is unknown."""
        for call in self.products:
            plan = WarpgroupPlan.for_call(call)
            if not isinstance(plan, Reject) and nodes.shape_of(
                call.args[accumulator_of(call)].buffer
            ) == nodes.shape_of(accumulator):
                return 2 * int(plan.split.atoms_m)
        return int(nodes.shape_of(accumulator)[0])

    def with_values(self, index: Expr, loop: Point) -> Expr:
        """Return an index without the names that values have at or behind a loop."""
        binds = {
            p.stmt.var: p.stmt.value
            for p in self.flow.points[loop.order :]
            if type(p.stmt) is tirx.Bind and not nodes.is_tile_call(p.stmt.value)
        }
        index = nodes.int_const(0) + index if isinstance(index, int) else index
        while any(v in binds for v in collect(index, tirx.Var)):
            index = substitute(index, binds)
        return index

    def is_known(self, e: Expr, loop: Point) -> bool:
        """Whether an expression is uniform and has the same value before and behind a loop."""
        if self.varying.expr(e) or any(nodes.is_tile_call(c) for c in collect(e, ir.Call)):
            return False
        loads = loads_of(e)
        if any(not _has(self.params, x.source) or _has(self.written, x.source) for x in loads):
            return False
        named = distinct(collect(e, tirx.Var)) - {x.source for x in loads}
        return not named & self.defined_from(loop)

    def defined_from(self, loop: Point) -> set[Var]:
        """Return the variables that a loop or code behind it defines, and those within expressions."""
        if loop not in self._defined:
            behind = self.flow.points[loop.order :]
            found = {p.stmt.loop_var for p in behind if p.kind == "for"}
            found |= {p.stmt.var for p in behind if type(p.stmt) is tirx.Bind}
            self._defined[loop] = found | {x.var for x in collect(self.flow.body, tirx.Let)}
        return self._defined[loop]


class _Rewriter(StmtRewriter):
    def __init__(self, plan: Plan, found: Sequence[_Prefetch]) -> None:
        self.loops = {identity(x.loop): x for x in found}
        self.nests = {identity(nest): x for x in found for nest in x.nests}
        made = [a.buffer for a in collect(plan.body, tirx.AllocBuffer)]
        self.name = FreshNames(str(v.name) for v in (*plan.params, *collect(plan.body, tirx.Var), *made))
        #: What a nest takes elements from, by line.
        self.tiles: dict[int, BufferVar] = {}
        self.fragments: dict[int, BufferVar] = {}

    def stmt(self, s: Stmt) -> Stmt:
        """Rewrite one statement."""
        key = identity(s)
        if key in self.nests:
            return self.nest(s, self.nests[key])
        new = super().stmt(s)
        return nodes.seq([*self.before(self.loops[key]), new]) if key in self.loops else new

    def before(self, prefetch: _Prefetch) -> list[Stmt]:
        """Return the statements before a loop."""
        made: list[Stmt] = []
        for line in prefetch.lines:
            dtype, name = nodes.element_type(line.tensor), str(line.tensor.name)
            fragment, alloc = nodes.alloc([line.extent], dtype, self.name(f"{name}_ahead"), "local.fragment")
            made.append(alloc)
            tile = fragment
            if line.axis:
                tile, alloc = nodes.alloc([line.extent], dtype, self.name(f"{name}_line"), "shared")
                made.append(alloc)
            self.fragments[id(line)], self.tiles[id(line)] = fragment, tile
            extents = [*[1] * (len(line.corner) - 1), line.extent]
            source = nodes.region(line.tensor, list(line.corner), extents)
            made.append(_copy(source, _whole(fragment), prefetch.nests[0].span))
        return made

    def nest(self, s: Stmt, prefetch: _Prefetch) -> Stmt:
        """Return a nest that reads lines, behind the copies of lines that it uses first."""
        key, copies = identity(s), []
        for line in (x for x in prefetch.lines if key in x.loads):
            tile = self.tiles[id(line)]
            if line.axis and key == next(identity(n) for n in prefetch.nests if identity(n) in line.loads):
                copies.append(_copy(_whole(self.fragments[id(line)]), _whole(tile), s.span))
        taken = [(load, line) for line in prefetch.lines for load in line.loads.get(key, ())]
        variables, _ = _nest_of(s)

        def load(e: Expr) -> Expr:
            line = next((x for old, x in taken if e.same_as(old)), None)
            return e if line is None else nodes.load(self.tiles[id(line)], [variables[line.axis]], e.span)

        new = map_expr(s, load, ir.TensorLoad)
        return nodes.seq([*copies, new])


def _copy(source: Expr, to: Expr, span: Any) -> Stmt:
    return tirx.Evaluate(nodes.tile_call("copy", [source, to], {}), span)


def _whole(buffer: BufferVar) -> Expr:
    shape = nodes.shape_of(buffer)
    return nodes.region(buffer, [nodes.int_const(0)] * len(shape), shape)


def _written(body: Stmt) -> set[BufferVar]:
    """Return the buffers that a program may write, views as what they are views of."""
    flow = Flow(body, effects)
    return {flow.root(a.buffer) for a in flow.accesses if a.write}


def _nest_of(s: Stmt) -> tuple[list[Var], list[int]]:
    """Return variables and extents of perfectly nested data-parallel loops that begin at 0."""
    variables, extents = [], []
    while isinstance(s, tirx.For) and role(s) == "parallel":
        extent = nodes.as_int(s.extent)
        if nodes.as_int(s.min) != 0 or not isinstance(extent, int) or nodes.as_int(s.step) not in (None, 1):
            return [], []
        variables.append(s.loop_var)
        extents.append(extent)
        s = s.body
    return variables, extents


def _axis(index: Expr, variables: Sequence[Var]) -> int | None:
    """Return the one of two variables that an index adds to other terms, or ``None``."""
    named = [axis for axis, v in enumerate(variables) if any(v.same_as(x) for x in collect(index, tirx.Var))]
    if len(named) != 1 or nodes.dtype_of(index) != "int32":
        return None
    parts = linear_parts(index, [variables[named[0]]])
    return named[0] if parts and nodes.as_int(parts[0]) == 1 else None


def _has(buffers: Collection[BufferVar], buffer: BufferVar) -> bool:
    return any(buffer.same_as(b) for b in buffers)
