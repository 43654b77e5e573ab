"""Vectorization: a thread's accesses to adjacent elements become one vector access.

Candidate loops are marked by the annotation ``tile.vector``: their iterations belong to a data-parallel nest, so they
may run in any order, or with all loads first and all stores last. The rest of such a loop works on small arrays in
registers::

    move(x, A[i, 8 * t], 16 bytes)
    for v in 0 … 7: y[v] = f(x[v])
    move(B[i, 8 * t], y, 16 bytes)

Iterations may share an element, such as a byte with two numbers of 4 bits, or a scale of a group: it is loaded once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Expr, Key, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import calls, nodes
from tile_core.ir.visit import StmtRewriter, annotation, collect, map_expr, renamed, replace_for, substitute, uses_var
from tile_core.records import dataclass
from tile_core.simt.memory.alignment import WIDEST, Aligned, contiguous_width, factor, strides_of, with_views

if TYPE_CHECKING:
    from tile_core.layout.base import LayoutMap
    from tile_core.target import Capabilities

#: Annotation of a loop whose iterations are independent and access adjacent elements of the last dimension.
VECTOR = "tile.vector"
#: Conditions that a loop is written twice for, one inside the other.
_MOST_CHOICES = 2


def vectorize(
    body: Stmt, capabilities: Capabilities, aligned: Aligned, layouts: Mapping[BufferVar, LayoutMap] | None = None
) -> Stmt:
    """Return the code of a thread with vector accesses.

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
    """
    return _VectorizeAccesses(body, capabilities.vector_bytes, aligned, dict(layouts or {})).stmt(body)


@dataclass(frozen=True)
class _Run:
    """Accesses to adjacent elements by the iterations of a loop.

    Attributes
    ----------
    buffer
        The buffer.
    start
        Indices of the first iteration.
    width
        Elements per vector access.
    array
        The registers between the accesses and the loop.
    per
        Successive iterations that access the same element.
    """

    buffer: BufferVar
    start: tuple[Expr, ...]
    width: int
    array: BufferVar
    per: int = 1

    @property
    def key(self) -> Key:
        """The key shared by accesses of the same elements."""
        return _key(self.buffer, self.start)


class _VectorizeAccesses(StmtRewriter):
    def __init__(
        self, body: Stmt, widths: Sequence[int], aligned: Aligned, layouts: Mapping[BufferVar, LayoutMap]
    ) -> None:
        self.widths = [w for w in widths if w <= WIDEST]
        self.layouts = layouts
        self.analyzer = Analyzer()
        self.known: dict[Var, int] = {}
        self.contiguous: dict[BufferVar, int] = {}
        self.choices = 0
        self.passing = _passing(body)
        self.roots: dict[BufferVar, BufferVar] = {}
        for view in collect(body, tirx.DeclBuffer):
            for var in collect(view.data, tirx.Var):
                self.roots[view.buffer] = self.roots.get(var, var)
        self.aligned = with_views(aligned, self.roots)

    def visit_Bind(self, s: Stmt) -> Stmt:
        if nodes.dtype_of(s.var).startswith(("int", "uint")):
            self.known[s.var] = factor(s.value, {**self.aligned.divisors, **self.known})
        return s

    def visit_For(self, s: Stmt) -> Stmt:
        width, extent = annotation(s, VECTOR), nodes.as_int(s.extent)
        step = 1 if s.step is None else nodes.as_int(s.step)
        self.known[s.loop_var] = factor(s.min, self.known) if isinstance(extent, int) and extent == 1 else 1
        if step != 1 or width != extent or not isinstance(extent, int) or extent < 2 or nodes.as_int(s.min) != 0:
            return super().visit_For(s)
        body = s.body
        if isinstance(body, tirx.IfThenElse) and body.else_case is None and self.invariant(body, s.loop_var):
            inner = self.stmt(replace_for(s, body.then_case))
            return tirx.IfThenElse(body.condition, inner, None, body.span)
        before, rest = self.same_for_all(s)
        if before:
            return nodes.seq([*map(self.stmt, before), self.stmt(replace_for(s, rest))])
        condition = self.choice(s, extent)
        if condition is None:
            return self.loop(s, extent)
        was, self.choices = self.choices, self.choices + 1
        both = [self.stmt(renamed(replace_for(s, _ChosenSide(condition, side).stmt(body)))) for side in (True, False)]
        self.choices = was
        return tirx.IfThenElse(condition, *both, s.span)

    def same_for_all(self, s: Stmt) -> tuple[list[Stmt], Stmt]:
        """Return the loop-invariant bindings, such as the number of a row, and the rest.

        They are the first statements of the loop, so nothing that they read is written before them.
        """
        parts = list(s.body.seq) if isinstance(s.body, tirx.SeqStmt) else [s.body]
        written = {self.root(x.buffer) for x in collect(s.body, tirx.BufferStore)}
        count = 0
        for x in parts[:-1]:
            fixed = isinstance(x, tirx.Bind) and not uses_var(x.value, s.loop_var)
            if not fixed or not _reads_only(x.value, written, self.root):
                break
            count += 1
        return parts[:count], nodes.seq(parts[count:])

    def choice(self, s: Stmt, trips: int) -> Expr | None:
        """Return a loop-invariant condition that prevents a vector load."""
        own = {x.var for x in collect(s.body, tirx.Bind)}
        written = {self.root(x.buffer) for x in collect(s.body, tirx.BufferStore)}
        if self.choices == _MOST_CHOICES or not _is_straight(s.body):
            return None
        for e in collect(s.body, ir.Call):
            if nodes.operator_name(e) != "if_then_else" or own.intersection(collect(e.args[0], tirx.Var)):
                continue
            if uses_var(e.args[0], s.loop_var) or not _reads_only(e.args[0], written, self.root):
                continue
            loads = [x for side in e.args[1:] for x in collect(side, ir.TensorLoad)]
            for x in loads:
                outside = nodes.scope_of(x.source) in ("global", "shared") and uses_var(x, s.loop_var)
                if outside and self.run(x.source, x.indices, s.loop_var, trips, own, written, shared=True):
                    return e.args[0]
        return None

    def invariant(self, branch: Stmt, var: Var) -> bool:
        """Whether a condition is loop-invariant, regardless of the body's stores."""
        if uses_var(branch.condition, var) or any(nodes.is_tile_call(c) for c in collect(branch.condition, ir.Call)):
            return False
        written = {self.root(x.buffer) for x in collect(branch, tirx.BufferStore)}
        return _reads_only(branch.condition, written, self.root)

    def root(self, buffer: BufferVar) -> BufferVar:
        return self.roots.get(buffer, buffer)

    # One loop

    def loop(self, s: Stmt, trips: int) -> Stmt:
        """Return a loop with its accesses hoisted where that is legal."""
        body = list(s.body.seq) if isinstance(s.body, tirx.SeqStmt) else [s.body]
        if not all(isinstance(x, (tirx.BufferStore, tirx.Bind)) for x in body):
            return super().visit_For(s)
        if any(nodes.is_tile_call(c) for c in collect(s.body, ir.Call)):
            return super().visit_For(s)
        own = {x.var for x in body if isinstance(x, tirx.Bind)}
        stores = self.stores(body, s.loop_var, trips, own)
        loads = self.loads(body, s.loop_var, trips, own, stores)
        if not loads and not stores:
            return super().visit_For(s)
        plain = self.plain_copy(body, loads, stores, s.loop_var, trips)
        if plain is not None:
            return plain
        before = [x for run in loads.values() for x in self.moves(run, trips, load=True)]
        after = [x for run in stores.values() for x in self.moves(run, trips, load=False)]
        notes = {str(k): v for k, v in s.annotations.items() if str(k) != VECTOR}
        inner = replace_for(s, _UseRegisters(self, s.loop_var, trips, loads, stores).stmt(s.body), annotations=notes)
        arrays = {run.array: None for run in (*loads.values(), *stores.values())}
        return nodes.seq([*(tirx.AllocBuffer(a) for a in arrays), *before, inner, *after])

    def stores(self, body: Sequence[Stmt], iteration: Var, trips: int, own: set[Var]) -> dict[Key, _Run]:
        """Return runs of stores by key, for buffers whose stores all form runs."""
        found: dict[Key, _Run] = {}
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
            if not self.reads_first(root, body):
                refused.add(root)
        return {k: run for k, run in found.items() if self.root(run.buffer) not in refused}

    def loads(
        self, body: Sequence[Stmt], iteration: Var, trips: int, own: set[Var], stores: Mapping[Key, _Run]
    ) -> dict[Key, _Run]:
        """Return the runs that loads form, by key."""
        found: dict[Key, _Run] = {}
        written = {self.root(x.buffer) for x in body if isinstance(x, tirx.BufferStore)}
        for x in body:
            for load in _always(x):
                if nodes.scope_of(load.source) not in ("global", "shared"):
                    continue
                run = self.run(load.source, load.indices, iteration, trips, own, written, shared=True)
                if run is None or run.key in found:
                    continue
                if run.per > 1 and self.root(load.source) in written:
                    continue
                if self.root(load.source) in written and not self.reads_first(self.root(load.source), body):
                    continue
                # A read and a later write of the same elements go through the same registers.
                same = stores.get(run.key)
                found[run.key] = run if same is None else _Run(run.buffer, run.start, run.width, same.array)
        return found

    def reads_first(self, root: BufferVar, body: Sequence[Stmt]) -> bool:
        """Whether an iteration reads a buffer only before writing the same elements."""
        mine = [x for x in body if isinstance(x, tirx.BufferStore) and self.root(x.buffer).same_as(root)]
        elements = {_key(x.buffer, x.indices) for x in mine}
        stored = False
        for x in body:
            for load in collect(x, ir.TensorLoad):
                if self.root(load.source).same_as(root) and (stored or elements != {_key(load.source, load.indices)}):
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
    ) -> _Run | None:
        """Return the run of an access over all iterations; ``None`` without one.

        Indices may read memory, such as the number of a row, that no iteration writes.
        """
        if not indices or any(v in own for i in indices for v in collect(i, tirx.Var)):
            return None
        if any(uses_var(i, iteration) for i in indices[:-1]) or collect(indices[-1], ir.TensorLoad):
            return None
        if not all(_reads_only(i, written, self.root) for i in indices):
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
        return _Run(buffer, start, width, array, per)

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
        for per in (2, trips):
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
        self, body: Sequence[Stmt], loads: Mapping[Key, _Run], stores: Mapping[Key, _Run], iteration: Var, trips: int
    ) -> Stmt | None:
        """Return the moves of a loop that only copies; ``None`` for other loops."""
        if not _is_plain(body[0]) or len(body) != 1:
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

    def moves(self, run: _Run, trips: int, load: bool) -> list[Stmt]:
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

    def shifted(self, run: _Run, by: int) -> list[Expr]:
        """Return the indices of an iteration."""
        return [*run.start[:-1], self.analyzer.simplify(run.start[-1] + by) if by else run.start[-1]]

    def key_at(self, buffer: BufferVar, indices: Sequence[Expr], iteration: Var) -> Key:
        """Return the key of an access."""
        zero = {iteration: nodes.int_const(0, nodes.dtype_of(iteration))}
        return _key(buffer, (*indices[:-1], self.analyzer.simplify(substitute(indices[-1], zero))))


class _UseRegisters(StmtRewriter):
    """Rewrites a loop's body to use registers."""

    def __init__(
        self, owner: _VectorizeAccesses, at: Var, trips: int, loads: Mapping[Key, _Run], stores: Mapping[Key, _Run]
    ) -> None:  # fmt: skip
        self.owner, self.iteration, self.trips, self.loads, self.stores = owner, at, trips, loads, stores

    def expr(self, e: Expr) -> Expr:
        return map_expr(e, self.load, ir.TensorLoad)

    def load(self, e: Expr) -> Expr:
        run = self.loads.get(self.owner.key_at(e.source, list(e.indices), self.iteration)) if len(e.indices) else None
        if run is None or self.per_of(e.indices) != run.per:
            return e
        iteration = self.iteration if run.per == 1 else tirx.floordiv(self.iteration, nodes.int_const(run.per))
        return nodes.load(run.array, [nodes.int_const(0) if run.per == self.trips else iteration], e.span)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        new = super().visit_BufferStore(s)
        run = self.stores.get(self.owner.key_at(s.buffer, list(s.indices), self.iteration)) if len(s.indices) else None
        return new if run is None else tirx.BufferStore(run.array, new.value, [self.iteration], s.span)

    def per_of(self, indices: Sequence[Expr]) -> int:
        """Return how far an access advances with the loop."""
        last = indices[-1]
        base = substitute(last, {self.iteration: nodes.int_const(0, nodes.dtype_of(self.iteration))})
        return self.owner.per(last, base, self.iteration, self.trips, True)


class _ChosenSide(StmtRewriter):
    """Replaces choices by one condition by the value of one side."""

    def __init__(self, condition: Expr, side: bool) -> None:
        self.condition, self.side = condition, side

    def expr(self, e: Expr) -> Expr:
        return map_expr(e, self.call, ir.Call)

    def call(self, e: Expr) -> Expr:
        if nodes.operator_name(e) != "if_then_else":
            return e
        if not tvm_ffi.structural_equal(e.args[0], self.condition, map_free_vars=False):
            return e
        return e.args[1] if self.side else e.args[2]


def _is_straight(s: Stmt) -> bool:
    """Whether a body consists of assignments only."""
    parts = list(s.seq) if isinstance(s, tirx.SeqStmt) else [s]
    return all(isinstance(x, (tirx.BufferStore, tirx.Bind)) for x in parts)


def _reads_only(e: Expr, written: set[BufferVar], root: Callable[[BufferVar], BufferVar]) -> bool:
    """Whether an expression reads none of some buffers, and calls nothing of a target."""
    if any(nodes.is_tile_call(c) for c in collect(e, ir.Call)):
        return False
    return not any(root(x.source) in written for x in collect(e, ir.TensorLoad))


def _is_plain(s: Stmt) -> bool:
    """Whether a statement copies one element without a conversion."""
    return isinstance(s, tirx.BufferStore) and isinstance(s.value, ir.TensorLoad)


def _passing(body: Stmt) -> set[BufferVar]:
    """Return register arrays that only pass elements on, in loops without other work.

    Instructions may access them besides, as words: elements are then moved as words, too.
    """
    plain: Counter[BufferVar] = Counter()
    for loop in collect(body, tirx.For):
        if annotation(loop, VECTOR) and _is_plain(loop.body):
            store, load = loop.body, loop.body.value
            if (nodes.scope_of(store.buffer) == "local") != (nodes.scope_of(load.source) == "local"):
                plain.update((store.buffer, load.source))
    as_words = calls.accessed_as_words(body)
    every = Counter([x.buffer for x in collect(body, tirx.BufferStore) if x.buffer not in as_words])
    every.update(x.source for x in collect(body, ir.TensorLoad))
    every.subtract(as_words)
    return {b for b, count in plain.items() if nodes.scope_of(b) == "local" and every[b] == count}


def _always(s: Stmt) -> list[Expr]:
    """Return the loads that every execution of a statement performs."""
    found: list[Expr] = []

    def visit(e: Expr) -> None:
        if isinstance(e, (tirx.And, tirx.Or)):
            visit(e.a)
        elif nodes.operator_name(e) == "if_then_else":
            visit(e.args[0])
        elif isinstance(e, ir.TensorLoad):
            found.append(e)
            for i in e.indices:
                visit(i)
        elif isinstance(e, ir.Call):
            for a in e.args:
                visit(a)
        elif isinstance(e, tirx.Select):
            # Both values of a select are computed, but the program may rely on one of them being skipped.
            visit(e.condition)
        else:
            for name in ("a", "b", "value"):
                if hasattr(e, name) and not isinstance(e, (tirx.IntImm, tirx.FloatImm)):
                    visit(getattr(e, name))

    visit(s.value)
    for i in s.indices if isinstance(s, tirx.BufferStore) else ():
        visit(i)
    return found


def _key(buffer: BufferVar, indices: Sequence[Expr]) -> Key:
    return tvm_ffi.StructuralKey((buffer, *indices))
