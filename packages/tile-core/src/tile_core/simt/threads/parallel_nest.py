"""One data-parallel nest as loops over the registers of a thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Span, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import StmtRewriter, collect, map_expr, substitute
from tile_core.layout.fragment import FragmentLayout
from tile_core.simt.code_size import operations
from tile_core.simt.ops.reducer import assigned, is_update
from tile_core.simt.placement.locality_proof import uniform_register
from tile_core.simt.placement.tile_uses import Nest, TileAccess
from tile_core.simt.register_loops import MOST_REGISTERS
from tile_core.simt.variant import Block, Placement

if TYPE_CHECKING:
    from tile_core.layout.digits import Digit


#: Trip count up to which loops over registers are unrolled where no fragment asks for it.
_UNROLLED = 16
#: Above about this many instructions loops over registers are not unrolled, although arrays then leave registers:
#: compilers would take minutes.
_MOST_WRITTEN_OUT = 3000
#: How much more where all iterations update a few registers: in memory these would cost an access each.
_FOR_REDUCERS = 4


class NestWriter:
    """Writes the code of one thread for a nest.

    Parameters
    ----------
    nest
        The nest; its accesses of fragments are by logical indices.
    own
        The layout of its iterations, or ``None`` if its extents are not known at compile time.
    block
        The threads.
    placement
        The placement of fragments.
    """

    def __init__(self, nest: Nest, own: FragmentLayout | None, block: Block, placement: Placement) -> None:
        self.nest, self.own, self.block, self.placement = nest, own, block, placement
        self.analyzer = Analyzer()
        self.analyzer.bind(block.thread, ir.Range.from_min_extent(0, block.count))

    def write(self, s: Stmt) -> Stmt:
        """Return the statement."""
        if self.own is None:
            return self.counted(s.span)
        return self.spread(self.own, s.span)

    # Iterations of constant extents

    def spread(self, own: FragmentLayout, span: Span) -> Stmt:
        """Return loops over registers, and the contribution of the thread index to each index."""
        digits = [(d, g) for d, group in enumerate(own.dims) for g in group if g.extent > 1]
        registers = sorted(((d, g) for d, g in digits if g.axis == "register"), key=lambda pair: -pair[1].stride)
        loop_vars = {g: nodes.fresh("r" if g.stride > 1 or len(registers) == 1 else "v") for _, g in registers}
        starts = [nodes.int_const(0)] * len(own.dims)
        binds = []
        for d, group in enumerate(own.dims):
            part = self.part(own, group, lambda g: own.digit(self.block.thread, g) if g.axis == "thread" else None)
            if part is not None:
                start = nodes.fresh(str(self.nest.variables[d].name))
                value = self.analyzer.simplify(part)
                binds.append(tirx.Bind(start, value))
                most = int(self.analyzer.const_int_bound(value).max_value)
                self.analyzer.bind(start, ir.Range.from_min_extent(0, most + 1))
                starts[d] = start
        for g, loop_var in loop_vars.items():
            self.analyzer.bind(loop_var, ir.Range.from_min_extent(0, g.extent))
        moves = [self.part(own, group, loop_vars.get) for group in own.dims]
        at = [start if move is None else start + move for start, move in zip(starts, moves, strict=True)]
        body = self.body(own, at, [nodes.int_const(0) if m is None else m for m in moves])
        body = self.loops(own, registers, loop_vars, at, body, span)
        conditions = own.holds(self.block.thread)
        if own.replicas > 1 and not self.keeps_copies():
            conditions = [*conditions, *own.is_first(self.block.thread)]
        if conditions:
            body = tirx.IfThenElse(tirx.all(*conditions), body, None, span)
        return nodes.seq([*binds, body])

    def part(self, own: FragmentLayout, group: tuple[Digit, ...], value: Any) -> Expr | None:
        """Return the contribution of some digits to a coordinate, or ``None`` if they have none."""
        total: Expr | None = None
        weight = prod(g.extent for g in group)
        for g in group:
            weight //= g.extent
            found = value(g) if g.extent > 1 else None
            if found is not None:
                term = found if weight == 1 else found * weight
                total = term if total is None else total + term
        return total

    def loops(
        self,
        own: FragmentLayout,
        registers: list[tuple[int, Digit]],
        loop_vars: Mapping[Digit, Var],
        at: list[Expr],
        body: Stmt,
        span: Span,
    ) -> Stmt:
        """Wrap the body in loops over registers, guarded by the conditions that exclude the padding."""
        in_registers = any(x in self.placement.arrays for x in self.buffers())
        inner: tuple[int, Digit] | None = registers[-1] if registers else None
        width = inner[1].extent if inner is not None and own.dims[-1] and inner[1] is own.dims[-1][-1] else 0
        is_vector = inner is not None and width > 0 and inner[1].stride == 1
        # The iterations of a vector become one access.
        short = own.registers // (width if is_vector else 1) <= _UNROLLED
        most = _MOST_WRITTEN_OUT * (_FOR_REDUCERS if self.updates_reducers() else 1)
        heavy = own.registers * operations(self.nest.body, 1) > most or self.overflows()
        unroll = (in_registers or short) and not heavy
        if heavy and width > _UNROLLED:
            is_vector = False
        whole = is_vector and own.shape[-1] % width == 0
        guarded = self.touches_memory() or not self.covers(own)
        conditions = [self.analyzer.simplify(c) for c in own.inside(at)] if guarded else []
        if conditions and not whole:
            body = tirx.IfThenElse(tirx.all(*conditions), body, None, span)
        for depth, (_, g) in enumerate(reversed(registers)):
            vector = depth == 0 and is_vector
            notes = {attributes.VECTOR: nodes.int_const(g.extent)} if vector else {}
            if heavy and not vector:
                notes = {attributes.UNROLL_FACTOR: nodes.int_const(1)}
            role = "unroll" if unroll or vector else "serial"
            body = nodes.for_loop(loop_vars[g], g.extent, body, role, annotations=notes, span=span)
            if conditions and whole and depth == 0:
                first = {loop_vars[g]: nodes.int_const(0)}
                body = tirx.IfThenElse(
                    tirx.all(*(self.analyzer.simplify(substitute(c, first)) for c in conditions)), body, None, span
                )
        return body

    def body(self, own: FragmentLayout, at: list[Expr], moves: list[Expr]) -> Stmt:
        """Return the body at an iteration.

        ``moves`` is the iteration of the same register in the first thread.
        """
        shifted = [start + a if start != 0 else a for start, a in zip(self.nest.starts, at, strict=True)]
        first = [start + a if start != 0 else a for start, a in zip(self.nest.starts, moves, strict=True)]
        mapping = {v: self.analyzer.simplify(a) for v, a in zip(self.nest.variables, shifted, strict=True)}
        zero = dict(zip(self.nest.variables, first, strict=True))
        body = _ReplaceFragments(self, own, zero).stmt(self.nest.body)
        body = substitute(body, mapping)
        guards = own.is_first(self.block.thread) if own.replicas > 1 and self.keeps_copies() else []
        return _First(tirx.all(*guards)).stmt(body) if guards else body

    def updates_reducers(self) -> bool:
        """Whether a reducer in registers is updated."""
        stored = {x.buffer for x in collect(self.nest.body, tirx.BufferStore)}
        return any(b in self.placement.reducers for b in stored)

    def overflows(self) -> bool:
        """Whether a fragment is larger than a thread's registers: then it lies in local memory."""
        return any(
            _registers(self.placement.arrays[b]) > MOST_REGISTERS for b in self.buffers() if b in self.placement.arrays
        )

    # Accesses of the body

    def buffers(self) -> set[BufferVar]:
        """Return every buffer that the body reads or writes."""
        found = {x.buffer for x in collect(self.nest.body, tirx.BufferStore)}
        return found | {x.source for x in collect(self.nest.body, ir.TensorLoad)}

    def touches_memory(self) -> bool:
        """Whether anything but registers is read or written, so that the padding must be skipped."""
        scopes = {nodes.scope_of(b) for b in self.buffers() if b not in self.placement.arrays}
        loops = collect(self.nest.body, (tirx.While, tirx.For))
        return bool(scopes & {"global", "shared"}) or bool(loops) or _has_calls(self.nest.body)

    def covers(self, own: FragmentLayout) -> bool:
        """Whether padding of iterations is padding of fragments.

        Fragments are then written whole, and read in place.

        An iteration of the padding must write only padding, so every store is indexed by every padded variable.
        """
        at = {v: d for d, v in enumerate(self.nest.variables)}
        wide = {d for d in at.values() if own.padded[d] != own.shape[d]}
        if wide and (any(start != 0 for start in self.nest.starts) or self.writes_apart()):
            return False
        stores = [(x.buffer, x.indices, True) for x in collect(self.nest.body, tirx.BufferStore)]
        loads = [(x.source, x.indices, False) for x in collect(self.nest.body, ir.TensorLoad)]
        for buffer, indices, is_store in [*stores, *loads]:
            known = self.placement.fragments.get(buffer)
            if known is None or buffer not in self.placement.arrays:
                continue
            named = set()
            for d, index in enumerate(indices):
                mine = at.get(index) if isinstance(index, tirx.Var) else None
                if mine is None and (is_store or nodes.as_int(index) != 0):
                    if known.shape[d] != 1:
                        return False
                elif mine is not None:
                    named.add(mine)
                    if known.padded[d] < own.padded[mine] or (is_store and known.shape[d] != own.shape[mine]):
                        return False
            if is_store and not wide <= named:
                return False
        return True

    def writes_apart(self) -> bool:
        """Whether a private array or scalar is live across iterations, besides fragments."""
        own = {a.buffer for a in collect(self.nest.body, tirx.AllocBuffer)} | set(self.placement.arrays)
        return any(x.buffer not in own for x in collect(self.nest.body, tirx.BufferStore))

    def keeps_copies(self) -> bool:
        """Whether threads that hold copies must all run: something private is written."""
        own = {a.buffer for a in collect(self.nest.body, tirx.AllocBuffer)}
        written = {x.buffer for x in collect(self.nest.body, tirx.BufferStore)} - own
        return any(b in self.placement.arrays or nodes.scope_of(b) in PRIVATE for b in written)

    # Iterations of unknown trip count

    def counted(self, span: Span) -> Expr:
        """Return a loop that distributes all iterations cyclically over the threads."""
        extents = [nodes.cast(nodes.int_const(0) + loop.extent, "int64") for loop in self.nest.loops]
        total: Expr | None = nodes.int_const(1, "int64")
        for e in extents:
            total = total * e
        count = nodes.int_const(self.block.count, "int64")
        iteration, flat = nodes.fresh("turn", "int64"), nodes.fresh("flat", "int64")
        mapping, rest = {}, flat
        for loop, e in reversed(list(zip(self.nest.loops, extents, strict=True))):
            dtype = nodes.dtype_of(loop.loop_var)
            mapping[loop.loop_var] = nodes.cast(tirx.floormod(rest, e), dtype) + loop.min
            rest = tirx.floordiv(rest, e)
        body = tirx.IfThenElse(flat < total, substitute(self.nest.body, mapping), None, span)
        value = iteration * count + nodes.cast(self.block.thread, "int64")
        inner = nodes.seq([tirx.Bind(flat, value), body])
        return nodes.for_loop(iteration, tirx.floordiv(total + (count - 1), count), inner, span=span)


class _ReplaceFragments(StmtRewriter):
    """Replaces elements of fragments by registers."""

    def __init__(self, owner: NestWriter, own: FragmentLayout, zero: dict[Var, Expr]) -> None:
        self.owner, self.own, self.zero = owner, own, zero

    def expr(self, e: Expr) -> Expr:
        return map_expr(e, self.load, ir.TensorLoad)

    def load(self, e: Expr) -> Expr:
        array = self.owner.placement.arrays.get(e.source)
        return e if array is None else nodes.load(array, [self.register(e.source, e.indices, False)], e.span)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        new = super().visit_BufferStore(s)
        array = self.owner.placement.arrays.get(s.buffer)
        if array is None:
            return new
        at = self.register(s.buffer, s.indices, True)
        kind = self.owner.placement.reducers.get(s.buffer)
        if kind is None:
            return tirx.BufferStore(array, new.value, [at], s.span)
        thread = self.owner.block.thread
        if not is_update(s, kind):
            first = self.owner.placement.fragments[s.buffer].is_first(thread)
            value = assigned(new.value, kind, nodes.element_type(array), first)
            return tirx.BufferStore(array, value, [at], s.span)
        mine = self.own.is_first(thread)
        update = tirx.BufferStore(array, new.value, [at], s.span)
        return tirx.IfThenElse(tirx.all(*mine), update, None, s.span) if mine else update

    def register(self, buffer: BufferVar, indices: Sequence[Expr], is_store: bool) -> Expr:
        known = self.owner.placement.fragments[buffer]
        inner = _enclosing(self.owner.nest, indices)
        access = TileAccess(buffer, tuple(indices), is_store, inner)
        if uniform_register(access, self.owner.nest, self.own, known):
            indices = [substitute(i, self.zero) for i in indices]
        return self.owner.analyzer.simplify(nodes.int_const(0) + known.register(list(indices)))


def _enclosing(nest: Nest, indices: Sequence[Expr]) -> tuple[tuple[Var, Expr, Expr], ...]:
    used = {v for i in indices for v in collect(i, tirx.Var)}
    loops = [x for x in collect(nest.body, tirx.For) if x.loop_var in used]
    return tuple((x.loop_var, x.min, x.extent) for x in loops)


class _First(StmtRewriter):
    """Restricts writes to common memory to the first of the threads that hold copies."""

    def __init__(self, condition: Expr) -> None:
        self.condition = condition

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        common = nodes.scope_of(s.buffer) in ("global", "shared")
        return tirx.IfThenElse(self.condition, s, None, s.span) if common else s

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        return s if nodes.is_nop(s) else tirx.IfThenElse(self.condition, s, None, s.span)


def _registers(array: BufferVar) -> int:
    return int(nodes.as_int(array.shape[0])) * -(-DTYPES[nodes.element_type(array)].bits // 32)


def _has_calls(s: Stmt) -> bool:
    return any(nodes.is_tile_call(c) for c in collect(s, ir.Call))
