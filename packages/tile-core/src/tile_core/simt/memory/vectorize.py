"""Vectorization: a thread's accesses to adjacent elements become one vector access.

Candidate loops are marked by the annotation ``tile.vector``: their iterations belong to a data-parallel nest, so they
may run in any order, or with all loads first and all stores last. The rest of such a loop works on small arrays in
registers::

    move(x, A[i, 8 * t], 16 bytes)
    for v in 0 … 7: y[v] = f(x[v])
    move(B[i, 8 * t], y, 16 bytes)

Iterations may share an element, such as a byte with two numbers of 4 bits, or a scale of a group: it is loaded once.

Conditions are handled in this order:

1. All iterations agree (``lane_conditions.py``), such as on ``8 * t + v < 1000``: the condition is around the loop.
2. One iteration decides for all, such as the last on ``8 * t + v < n``: vectors that meet the condition have a loop of
   their own, and the others keep the condition in each iteration.
3. Other conditions, such as masks, stay in the loop. Its loads are vector accesses if they are always made, or may be
   (``speculation.py``); a vector is stored whole if all its elements are stored (``predicated_stores.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.structural import identity
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Key, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import StmtRewriter, annotation, collect, renamed, replace_for, substitute, uses_var
from tile_core.simt.memory.alignment import (
    WIDEST,
    Aligned,
    contiguous_width,
    factor,
    strides_of,
    view_roots,
    with_views,
)  # fmt: skip
from tile_core.simt.memory.lane_conditions import LaneConditions, negated
from tile_core.simt.memory.launch_assumptions import relied
from tile_core.simt.memory.predicated_stores import Flags, always_stores, assignments, is_branching
from tile_core.simt.memory.speculation import Known, Speculation
from tile_core.simt.memory.vector_bodies import (
    evaluated,
    is_plain,
    key,
    leading_conditions,
    parts_of,
    passing,
    reads_only,
    with_outcome,
)
from tile_core.simt.memory.vector_runs import SHARED, UseRegisters, VectorRun, accesses_of

if TYPE_CHECKING:
    from tile_core.layout.base import LayoutMap
    from tile_core.target import Capabilities

#: Conditions that a loop is written twice for, one inside the other, and different ones that are tried for each.
_MOST_CHOICES, _MOST_CONDITIONS = 2, 6


def vectorize(
    body: Stmt,
    capabilities: Capabilities,
    aligned: Aligned,
    layouts: Mapping[BufferVar, LayoutMap] | None = None,
    known: Known | None = None,
) -> tuple[Stmt, Aligned]:
    """Return the code of a thread with vector accesses, and the assumptions that it requires.

    Parameters
    ----------
    body
        Code of one thread, with logical indices.
    capabilities
        Which access widths the target has.
    aligned
        Known alignment of addresses.
    layouts
        Layouts of shared buffers; row-major if there is none. A layout must keep the elements of an access contiguous.
    known
        The ranges of variables that the code does not define.
    """
    known = known or Known({})
    rewriter = _VectorizeAccesses(body, capabilities.vector_bytes, aligned, dict(layouts or {}), known)
    new = rewriter.stmt(body)
    return new, relied(new, aligned, rewriter.relied)


class _VectorizeAccesses(StmtRewriter):
    def __init__(
        self,
        body: Stmt,
        widths: Sequence[int],
        aligned: Aligned,
        layouts: Mapping[BufferVar, LayoutMap],
        known: Known,
    ) -> None:
        self.widths, self.layouts = [w for w in widths if w <= WIDEST], layouts
        self.analyzer, self.choices = Analyzer(), 0
        self.known: dict[Var, int] = {}
        self.contiguous: dict[BufferVar, int] = {}
        #: The symbols whose assumed divisors the code needs, and the ones that a variable is computed from.
        self.relied: set[Var] = set()
        self.symbols: dict[Var, set[Var]] = {}
        self.passing = passing(body)
        self.roots = view_roots(body)
        self.aligned = with_views(aligned, self.roots)
        self.speculation = Speculation(body, known)

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        then, other = self.under(s.condition, s.then_case), None
        if s.else_case is not None:
            other = self.under(tirx.Not(s.condition), s.else_case)
        if then.same_as(s.then_case) and (other is None or other.same_as(s.else_case)):
            return s
        return tirx.IfThenElse(s.condition, then, other, s.span)

    def under(self, condition: Expr, s: Stmt) -> Stmt:
        """Rewrite a statement that is executed where a condition holds."""
        with self.speculation.under(condition):
            return self.stmt(s)

    def visit_Bind(self, s: Stmt) -> Stmt:
        self.speculation.record(s)
        if nodes.dtype_of(s.var).startswith(("int", "uint")):
            self.known[s.var] = factor(s.value, {**self.aligned.divisors, **self.known})
            self.symbols[s.var] = self.symbols_of([s.value])
        return s

    def visit_For(self, s: Stmt) -> Stmt:
        width, extent = annotation(s, attributes.VECTOR), nodes.as_int(s.extent)
        step = 1 if s.step is None else nodes.as_int(s.step)
        self.speculation.record(s)
        self.known[s.loop_var] = factor(s.min, self.known) if isinstance(extent, int) and extent == 1 else 1
        if step != 1 or width != extent or not isinstance(extent, int) or extent < 2 or nodes.as_int(s.min) != 0:
            return super().visit_For(s)
        before, rest = self.same_for_all(s)
        if before:
            return nodes.seq([*map(self.stmt, before), self.stmt(replace_for(s, rest))])
        found = self.decided(s, extent)
        return self.loop(s, extent, speculate=True) if found is None else found

    def same_for_all(self, s: Stmt) -> tuple[list[Stmt], Stmt]:
        """Return the loop-invariant bindings, such as the number of a row, and the rest.

        They are the first statements of the loop, so nothing that they read is written before them.
        """
        parts = parts_of(s.body)
        written = {self.root(x.buffer) for x in collect(s.body, tirx.BufferStore)}
        count = 0
        for x in parts[:-1]:
            fixed = isinstance(x, tirx.Bind) and not uses_var(x.value, s.loop_var)
            if not fixed or not reads_only(x.value, written, self.root):
                break
            count += 1
        return parts[:count], nodes.seq(parts[count:])

    # Conditions

    def decided(self, s: Stmt, trips: int) -> Stmt | None:
        """Return a loop whose first conditions are decided around it, if that widens accesses.

        A condition that all iterations agree on has one loop for each outcome. For another one, the first loop is for
        vectors whose iterations all meet it, and the second keeps the condition.
        """
        facts = {**self.aligned.divisors, **self.known}
        lanes = LaneConditions(s.loop_var, trips, facts)
        conditions = [c for c in leading_conditions(s.body) if self.is_fixed(c, s)][:_MOST_CONDITIONS]
        for c in conditions:
            same = lanes.uniform(c)
            found = None if same is None else self.by_outcome(s, trips, c, same)
            if found is not None:
                self.relied |= self.symbols_of([c]) if uses_var(c, s.loop_var) else set()
                return found
        for c in conditions:
            every = lanes.every(c)
            met = every is not None and nodes.as_int(lanes.analyzer.simplify(every)) != 0
            found = self.by_vector(s, trips, c, every, lanes) if met else None
            if found is not None:
                self.relied |= self.symbols_of([c])
                return found
        return None

    def is_fixed(self, condition: Expr, s: Stmt) -> bool:
        """Whether no iteration changes the variables or the memory of a condition."""
        if {x.var for x in collect(s.body, tirx.Bind)}.intersection(collect(condition, tirx.Var)):
            return False
        if collect(condition, ir.TensorLoad) and any(nodes.is_tile_call(c) for c in collect(s.body, ir.Call)):
            return False
        written = {self.root(x.buffer) for x in collect(s.body, tirx.BufferStore)}
        return reads_only(condition, written, self.root)

    def by_outcome(self, s: Stmt, trips: int, condition: Expr, same: Expr) -> Stmt | None:
        """Return one loop for each outcome of a condition that all iterations agree on."""
        sides = [with_outcome(s.body, condition, outcome) for outcome in (True, False)]
        if nodes.is_nop(sides[1]):
            return tirx.IfThenElse(same, self.under(same, replace_for(s, sides[0])), None, s.span)
        found = self.widened(s, {same: sides[0], tirx.Not(same): sides[1]}, accesses_of(self.loop(s, trips)))
        return None if found is None else tirx.IfThenElse(same, *found, s.span)

    def by_vector(self, s: Stmt, trips: int, condition: Expr, every: Expr, lanes: LaneConditions) -> Stmt | None:
        """Return a loop for vectors that meet a condition, and one for other vectors."""
        rest = self.loop(s, trips)
        fast = self.widened(s, {every: with_outcome(s.body, condition, True)}, accesses_of(rest))
        if fast is None:
            return None
        rest = renamed(rest)
        opposite, other = negated(condition), with_outcome(s.body, condition, False)
        never = None if opposite is None or nodes.is_nop(other) else lanes.every(opposite)
        if never is not None:
            none = self.widened(s, {never: other}, accesses_of(rest))
            rest = rest if none is None else tirx.IfThenElse(never, none[0], rest, s.span)
        return tirx.IfThenElse(every, fast[0], rest, s.span)

    def widened(self, s: Stmt, bodies: Mapping[Expr, Stmt], least: int) -> list[Stmt] | None:
        """Return a loop for each body if any has more than ``least`` vector accesses."""
        if self.choices == _MOST_CHOICES:
            return None
        self.choices += 1
        found = [self.under(condition, renamed(replace_for(s, x))) for condition, x in bodies.items()]
        self.choices -= 1
        return found if any(accesses_of(x) > least for x in found) else None

    def symbols_of(self, expressions: Sequence[Expr]) -> set[Var]:
        """Return the symbols that expressions are computed from."""
        used = {v for e in expressions for v in collect(e, tirx.Var)}
        return {x for v in used for x in self.symbols.get(v, (v,))}

    def root(self, buffer: BufferVar) -> BufferVar:
        return self.roots.get(buffer, buffer)

    # One loop

    def loop(self, s: Stmt, trips: int, speculate: bool = False) -> Stmt:
        """Return a loop with its accesses hoisted where that is legal.

        ``speculate`` permits loads that only some iterations make.
        """
        if not is_branching(s.body) or any(nodes.is_tile_call(c) for c in collect(s.body, ir.Call)):
            return super().visit_For(s)
        executed = list(assignments(s.body))
        body = [x for x, _ in executed]
        own = {x.var for x in body if isinstance(x, tirx.Bind)}
        stores = self.stores(body, s.loop_var, trips, own)
        loads = self.loads(executed, s.loop_var, trips, own, stores, speculate)
        flags = self.flags(s, trips, stores)
        if not loads and flags.keys == stores.keys():
            return super().visit_For(s)
        plain = self.plain_copy(body, loads, stores, s.loop_var, trips)
        if plain is not None:
            return plain
        before = [x for run in loads.values() for x in self.moves(run, trips, load=True)]
        after = [x for k, run in stores.items() for x in self.stored(s, run, trips, flags, k)]
        notes = {str(k): v for k, v in s.annotations.items() if str(k) != attributes.VECTOR}
        changed = UseRegisters(self, s.loop_var, trips, loads, stores).stmt(flags.stmt(s.body))
        inner = replace_for(s, nodes.seq([*flags.cleared(), changed]), annotations=notes)
        arrays = dict.fromkeys([*(r.array for r in (*loads.values(), *stores.values())), *flags.arrays.values()])
        return nodes.seq([*(tirx.AllocBuffer(a) for a in arrays), *before, inner, *after])

    def flags(self, s: Stmt, trips: int, stores: Mapping[Key, VectorRun]) -> Flags:
        """Return flags for the stores that only some iterations make."""

        def key_of(store: Stmt) -> Key:
            return self.key_at(store.buffer, list(store.indices), s.loop_var)

        return Flags(s.loop_var, trips, {k for k in stores if not always_stores(s.body, k, key_of)}, key_of)

    def stored(self, s: Stmt, run: VectorRun, trips: int, flags: Flags, k: Key) -> list[Stmt]:
        """Return the stores of a run: vector accesses if every iteration makes its own."""
        moves = self.moves(run, trips, load=False)
        if k not in flags.keys:
            return moves
        v = nodes.fresh("v", nodes.dtype_of(s.loop_var))
        one = nodes.store(run.buffer, nodes.load(run.array, [v]), [*run.start[:-1], run.start[-1] + v], s.span)
        each = nodes.for_loop(v, trips, tirx.IfThenElse(flags.is_set(k, v), one, None), "unroll", span=s.span)
        every = tirx.all(*(flags.is_set(k, nodes.int_const(at)) for at in range(trips)))
        return [tirx.IfThenElse(every, nodes.seq(moves), each, s.span)]

    def stores(self, body: Sequence[Stmt], iteration: Var, trips: int, own: set[Var]) -> dict[Key, VectorRun]:
        """Return runs of stores by key, for buffers whose stores all form runs."""
        found: dict[Key, VectorRun] = {}
        refused: set[BufferVar] = set()
        written = {self.root(x.buffer) for x in body if isinstance(x, tirx.BufferStore)}
        for x in body:
            if not isinstance(x, tirx.BufferStore) or nodes.scope_of(x.buffer) not in ("global", "shared"):
                continue
            run = self.run(x.buffer, x.indices, iteration, trips, own, written)
            if run is None:
                refused.add(self.root(x.buffer))
            else:
                found.setdefault(run.key, run)
        for root in {self.root(run.buffer) for run in found.values()} - refused:
            mine = [run for run in found.values() if self.root(run.buffer).same_as(root)]
            if not self.reads_first(root, body) or not self.are_disjoint(mine, trips):
                refused.add(root)
        return {k: run for k, run in found.items() if self.root(run.buffer) not in refused}

    def are_disjoint(self, runs: Sequence[VectorRun], trips: int) -> bool:
        """Whether no element belongs to two runs of stores, whose order is lost."""

        def apart(a: VectorRun, b: VectorRun) -> bool:
            if not a.buffer.same_as(b.buffer):
                return False
            by = [nodes.as_int(self.analyzer.simplify(x - y)) for x, y in zip(a.start, b.start, strict=True)]
            other_row = any(isinstance(n, int) and n != 0 for n in by[:-1])
            return other_row or (all(n == 0 for n in by[:-1]) and isinstance(by[-1], int) and abs(by[-1]) >= trips)

        return all(apart(a, b) for at, a in enumerate(runs) for b in runs[:at])

    def loads(
        self,
        executed: Sequence[tuple[Stmt, bool]],
        iteration: Var,
        trips: int,
        own: set[Var],
        stores: Mapping[Key, VectorRun],
        speculate: bool,
    ) -> dict[Key, VectorRun]:
        """Return the runs that loads form, by key."""
        found: dict[Key, VectorRun] = {}
        body = [x for x, _ in executed]
        written = {self.root(x.buffer) for x in body if isinstance(x, tirx.BufferStore)}
        always = [e for x, made in executed if made for e in evaluated(x) if isinstance(e, ir.TensorLoad)]
        made = {identity(e) for e in always}
        perhaps = [e for x in body for e in collect(x, ir.TensorLoad)] if speculate else []
        for load in (*always, *perhaps):
            if nodes.scope_of(load.source) not in ("global", "shared"):
                continue
            run = self.run(load.source, load.indices, iteration, trips, own, written, shared=True)
            if run is None or run.key in found:
                continue
            if identity(load) not in made and not self.speculation.allows(run.buffer, run.start, trips // run.per):
                continue
            if run.per > 1 and self.root(load.source) in written:
                continue
            if self.root(load.source) in written and not self.reads_first(self.root(load.source), body):
                continue
            # A read and a later write of the same elements go through the same registers.
            same = stores.get(run.key)
            found[run.key] = run if same is None else VectorRun(run.buffer, run.start, run.width, same.array)
        return found

    def reads_first(self, root: BufferVar, body: Sequence[Stmt]) -> bool:
        """Whether an iteration reads a buffer only before writing the same elements."""
        mine = [x for x in body if isinstance(x, tirx.BufferStore) and self.root(x.buffer).same_as(root)]
        elements = {key(x.buffer, x.indices) for x in mine}
        stored = False
        for x in body:
            for load in collect(x, ir.TensorLoad):
                if self.root(load.source).same_as(root) and (stored or elements != {key(load.source, load.indices)}):
                    return False
            stored = stored or (isinstance(x, tirx.BufferStore) and self.root(x.buffer).same_as(root))
        return True

    def run(
        self,
        buffer: BufferVar,
        indices: Sequence[Expr],
        iteration: Var,
        trips: int,
        own: set[Var],
        written: set[BufferVar],
        shared: bool = False,
    ) -> VectorRun | None:
        """Return the run of an access over all iterations; ``None`` without one.

        Indices may read memory, such as the number of a row, that no iteration writes.
        """
        if not indices or any(v in own for i in indices for v in collect(i, tirx.Var)):
            return None
        if any(uses_var(i, iteration) for i in indices[:-1]) or collect(indices[-1], ir.TensorLoad):
            return None
        if not all(reads_only(i, written, self.root) for i in indices):
            return None
        last = indices[-1]
        zero = {iteration: nodes.int_const(0, nodes.dtype_of(iteration))}
        start = (*indices[:-1], self.analyzer.simplify(substitute(last, zero)))
        per = self.per(last, start[-1], iteration, trips, shared)
        width = self.width(buffer, start, trips // per) if per else 1
        if not per or (width < 2 and per < trips):
            return None
        array = tirx.decl_buffer(
            [trips // per],
            nodes.element_type(buffer),
            f"{buffer.name}_v",
            scope="local",
            layout=None,
            data_alignment=WIDEST,
        )
        return VectorRun(buffer, start, width, array, per)

    def per(self, last: Expr, start: Expr, iteration: Var, trips: int, shared: bool) -> int:
        """Return how many successive iterations access the same element; 0 without a period."""
        kind = nodes.dtype_of(last)
        if nodes.as_int(self.analyzer.simplify(last - start - nodes.cast(iteration, kind))) == 0:
            return 1
        if not shared or not uses_var(last, iteration):
            return 0
        ranges = Analyzer()
        ranges.bind(iteration, ir.Range.from_min_extent(0, trips))
        factors = {v: self.known.get(v, 1) for v in collect(last - start, tirx.Var) if not v.same_as(iteration)}
        multiples = {v: nodes.fresh(str(v.name), nodes.dtype_of(v)) * f for v, f in factors.items() if f > 1}
        moved = substitute(last, multiples) - substitute(start, multiples)
        for per in (*SHARED, trips):
            step = tirx.floordiv(nodes.cast(iteration, kind), nodes.int_const(per, kind))
            if trips % per == 0 and nodes.as_int(ranges.simplify(moved - step)) == 0:
                return per
        return 0

    def width(self, buffer: BufferVar, start: tuple[Expr, ...], trips: int) -> int:
        """Return the number of elements that one access may have."""
        bits = DTYPES[nodes.element_type(buffer)].bits
        if nodes.as_int(strides_of(buffer)[-1]) != 1:
            return 1
        if bits == 4 and nodes.scope_of(buffer) == "global" and buffer not in self.roots:
            # Two elements of a byte: the registers hold them as memory does.
            bytes_ = self.aligned.of(buffer, start, self.known)
            return max([2 * w for w in self.widths if bytes_ % w == 0 and trips % (2 * w) == 0 and bytes_], default=1)
        if bits % 8:
            return 1
        size = bits // 8
        layout = self.layouts.get(buffer)
        if buffer in self.passing:
            bytes_ = factor(start[-1], self.known) * size or WIDEST
        elif layout is None:
            bytes_ = self.aligned.of(buffer, start, self.known)
        else:
            if buffer not in self.contiguous:
                self.contiguous[buffer] = contiguous_width(layout, WIDEST // size)
            facts = {**self.aligned.divisors, **self.known}
            offset = factor(start[-1], facts) * size or WIDEST
            most = self.contiguous[buffer] * size
            bytes_ = max((w for w in (16, 8, 4, 2, 1) if w <= most and offset % w == 0), default=1)
        fits = [w // size for w in self.widths if bytes_ % w == 0 and w % size == 0 and trips % (w // size) == 0]
        return max([n for n in fits if n >= 1], default=1)

    # The wide accesses

    def plain_copy(
        self,
        body: Sequence[Stmt],
        loads: Mapping[Key, VectorRun],
        stores: Mapping[Key, VectorRun],
        iteration: Var,
        trips: int,
    ) -> Stmt | None:
        """Return the moves of a loop that only copies; ``None`` for other loops."""
        if not is_plain(body[0]) or len(body) != 1:
            return None
        held = {}
        for buffer, indices in ((body[0].buffer, body[0].indices), (body[0].value.source, body[0].value.indices)):
            if buffer in self.passing:
                run = self.run(buffer, indices, iteration, trips, set(), {self.root(body[0].buffer)})
                held = {} if run is None else {run.key: run}
        if body[0].buffer in self.passing:
            stores = held
        elif body[0].value.source in self.passing:
            loads = held
        if len(loads) != 1 or len(stores) != 1:
            return None
        (source,), (to,) = loads.values(), stores.values()
        if source.per > 1 or nodes.element_type(source.buffer) != nodes.element_type(to.buffer):
            return None
        width = min(source.width, to.width)
        size = DTYPES[nodes.element_type(to.buffer)].bits // 8
        found = []
        for at in range(0, trips, width):
            there = self.shifted(to, at)
            found.append(
                calls.move(to.buffer, there, source.buffer, self.shifted(source, at), width * size, body[0].span)
            )
        return nodes.seq(found)

    def moves(self, run: VectorRun, trips: int, load: bool) -> list[Stmt]:
        """Return the vector accesses of a run."""
        size = run.width * DTYPES[nodes.element_type(run.buffer)].bits // 8
        if run.per == trips:
            return [nodes.store(run.array, nodes.load(run.buffer, list(run.start)), [nodes.int_const(0)])]
        found = []
        for at in range(0, trips // run.per, run.width):
            there, here = self.shifted(run, at), [nodes.int_const(at)]
            to = (run.array, here, run.buffer, there) if load else (run.buffer, there, run.array, here)
            found.append(calls.move(*to, size))
        return found

    def shifted(self, run: VectorRun, by: int) -> list[Expr]:
        """Return the indices of an iteration."""
        return [*run.start[:-1], self.analyzer.simplify(run.start[-1] + by) if by else run.start[-1]]

    def key_at(self, buffer: BufferVar, indices: Sequence[Expr], iteration: Var) -> Key:
        """Return the key of an access."""
        zero = {iteration: nodes.int_const(0, nodes.dtype_of(iteration))}
        return key(buffer, (*indices[:-1], self.analyzer.simplify(substitute(indices[-1], zero))))
