"""Rematerialization: tiles that exceed a thread's registers are computed again where they are read.

A row that is loaded once and read by several loops needs registers for all of its elements in between. If each element
is a function of values that do not change, every loop computes it instead. This code::

    for r: x[r] = X[tid + 32 * r]
    for r: m = max(m, x[r])
    for r: x[r] = exp(x[r] - m)
    for r: s = s + x[r]

becomes the following, with the same results in the same order::

    for r: m = max(m, X[tid + 32 * r])
    for r: s = s + exp(X[tid + 32 * r] - m)

An array is kept if a loop that writes it is not a map over its elements, if an instruction takes it, or if something
that its elements are computed from is written before they are read, unless a few registers hold a copy. Global memory
may change between barriers of the grid, so only parameters that the kernel never writes are read again; a launch
refuses arguments that overlap them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod

from tile_core.analysis.affine import linear_form
from tile_core.analysis.analyzer import Analyzer
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Expr, Key, Stmt, Var
from tile_core.ir import attributes, nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import (
    HoistingRewriter,
    StmtRewriter,
    bodies_of,
    collect,
    distinct,
    loads_of,
    map_expr,
    renamed_lets,
    replace_for,
    statements,
    substitute,
    with_bodies,
)
from tile_core.simt.memory.element_maps import ElementMap, Kept, element_map

#: Elements whose computations a loop interleaves: their loads are in flight together.
_INTERLEAVED = 16
#: Elements of a private array that may be copied because it changes.
_COPIED = 8
#: Calls whose operands are not written: of an instruction, other than through addresses.
_WRITE_NOTHING = frozenset({"tile.address", "tile.instruction"})
#: Values that one read computes at most.
_MOST_VALUES = 48


def rematerialize(
    body: Stmt, arrays: Iterable[BufferVar], constant: frozenset[BufferVar]
) -> tuple[Stmt, dict[BufferVar, str]]:
    """Return the code of a thread without arrays that its loops can compute again.

    Parameters
    ----------
    body
        The code of a thread.
    arrays
        Register arrays to eliminate.
    constant
        Tensors that nothing writes while the kernel runs.

    Returns
    -------
    tuple
        The new code, and the arrays that remain, each with the reason.
    """
    kept: dict[BufferVar, str] = {}
    left = list(arrays)
    while left:
        scopes = [_scope_of(body, a) for a in left]
        scope = scopes[0]
        chosen = {a for a, s in zip(left, scopes, strict=True) if s.same_as(scope)}
        left = [a for a in left if a not in chosen]
        while chosen:
            try:
                body = _Replace(scope, _Scope(scope, chosen, constant).rewritten(), chosen).stmt(body)
                break
            except Kept as found:
                kept[found.array] = found.reason
                chosen.remove(found.array)
    return body, kept


def constant_tensors(body: Stmt, params: Iterable[Var]) -> frozenset[BufferVar]:
    """Return the parameters that nothing writes while a kernel runs."""
    if any(nodes.dtype_of(b.var) == "handle" for b in collect(body, tirx.Bind)):
        return frozenset()  # addresses are computed
    roots: dict[BufferVar, BufferVar] = {}
    for view in collect(body, tirx.DeclBuffer):
        for var in collect(view.data, tirx.Var):
            roots[view.buffer] = roots.get(var, var)
    written = {roots.get(b, b) for b in _written(body)}
    return frozenset(p for p in params if p not in written)


def _scope_of(body: Stmt, array: BufferVar) -> Stmt:
    """Return the innermost list of statements with all accesses to an array."""
    while True:
        using = [s for s in _flat(body) if type(s) is not tirx.AllocBuffer and array in _buffers(s)]
        inner = bodies_of(using[0]) if len(using) == 1 else []
        if len(inner) != 1 or not isinstance(inner[0], tirx.SeqStmt):
            return body
        body = inner[0]


def _flat(s: Stmt) -> Iterator[Stmt]:
    """Yield the statements of a list and of its steps."""
    for x in statements(s):
        if type(x) is tirx.AttrStmt and x.attr_key == attributes.STEP:
            yield from _flat(x.body)
        else:
            yield x


def _buffers(s: Stmt) -> set[BufferVar]:
    return distinct([*[x.buffer for x in collect(s, tirx.BufferStore)], *[x.source for x in loads_of(s)]])


def _copies(made: Mapping[BufferVar, BufferVar]) -> list[Stmt]:
    indices = [(old, new, nodes.int_const(i)) for old, new in made.items() for i in range(prod(nodes.shape_of(new)))]
    return [nodes.store(new, nodes.load(old, [i]), [i]) for old, new, i in indices]


def _written(s: Stmt) -> set[BufferVar]:
    """Return the buffers that a statement may write."""
    found = [x.buffer for x in collect(s, tirx.BufferStore)]
    for c in collect(s, ir.Call):
        name = structural.op_name(c)
        if name == "tile.move" or (name == "tile.address" and str(structural.attribute(c, attributes.ACCESS)) != "r"):
            found.append(structural.item(c.args, 0).source)
        elif name not in _WRITE_NOTHING and nodes.is_tile_call(c):
            found += [x.source for x in loads_of(c)]
    return distinct(found)


class _Replace(StmtRewriter):
    """Replaces a list of statements, and drops allocations."""

    def __init__(self, old: Stmt, new: Stmt, arrays: set[BufferVar]) -> None:
        self.old, self.new, self.arrays = old, new, arrays

    def stmt(self, s: Stmt) -> Stmt:
        return self.new if s.same_as(self.old) else super().stmt(s)

    def visit_SeqStmt(self, s: Stmt) -> Stmt:
        kept = [x for x in s.seq if not (type(x) is tirx.AllocBuffer and x.buffer in self.arrays)]
        return nodes.seq([self.stmt(x) for x in kept])


class _Scope:
    """A list of statements, and the arrays of it to eliminate."""

    def __init__(self, scope: Stmt, arrays: set[BufferVar], constant: frozenset[BufferVar]) -> None:
        self.scope, self.arrays, self.constant = scope, arrays, constant
        self.atoms = list(_flat(scope))
        self.written = [_written(s) for s in self.atoms]
        self.fresh = {s.buffer for s in self.atoms if type(s) is tirx.AllocBuffer}
        #: Variables that are not visible outside of their step: position and value.
        self.bound: dict[Var, tuple[int, Expr]] = {}
        top = {s.__chandle__() for s in statements(scope)}
        for at, s in enumerate(self.atoms):
            if type(s) is tirx.Bind and s.__chandle__() not in top:
                self.bound[s.var] = at, s.value
        self.maps: dict[BufferVar, list[ElementMap]] = {a: [] for a in arrays}
        #: Copies of small private buffers that change later, by the position before which they are made.
        self.copies: dict[int, dict[BufferVar, BufferVar]] = {}
        for at, s in enumerate(self.atoms):
            if (found := element_map(at, s, arrays)) is not None:
                for array in found.indices:
                    self.maps[array].append(found)

    def source(self, buffer: BufferVar, since: int, until: int, array: BufferVar) -> BufferVar:
        """Return the buffer that holds a buffer's earlier value: itself, or a copy.

        Raises
        ------
        Kept
            If it may change in between, and is not small and private.
        """
        where = nodes.scope_of(buffer)
        if where == "global" and buffer not in self.constant:
            raise Kept(array, f"the kernel writes {buffer.name}, which it is computed from")
        if where not in ("global", "shared", *PRIVATE):
            raise Kept(array, f"it is computed from {buffer.name}")
        if not any(buffer in self.written[k] for k in range(since, until + 1)):
            return buffer
        small = where in PRIVATE and prod(nodes.shape_of(buffer)) <= _COPIED
        if not small or buffer in self.written[since]:
            raise Kept(array, f"{buffer.name}, which it is computed from, changes before it is read")
        copies = self.copies.setdefault(since, {})
        if buffer not in copies:
            size, kind = prod(nodes.shape_of(buffer)), nodes.element_type(buffer)
            copies[buffer] = nodes.alloc([size], kind, str(buffer.name), "local")[0]
        return copies[buffer]

    def rewritten(self) -> Stmt:
        """Return the list without the arrays."""
        # Statements decide about copies before earlier ones.
        new = [self.atom(at, s) for at, s in enumerate(self.atoms)]
        position = iter(range(len(self.atoms)))

        def rebuilt(s: Stmt) -> Stmt:
            if type(s) is tirx.SeqStmt:
                return nodes.seq([rebuilt(x) for x in s.seq])
            if type(s) is tirx.AttrStmt and s.attr_key == attributes.STEP:
                inner = rebuilt(s.body)
                empty = all(type(x) is tirx.Bind or nodes.is_nop(x) for x in statements(inner))
                return nodes.seq([]) if empty else with_bodies(s, [inner])
            at = next(position)
            return nodes.seq([*_copies(self.copies.get(at, {})), new[at]])

        body = rebuilt(self.scope)
        return nodes.seq([*(tirx.AllocBuffer(b) for made in self.copies.values() for b in made.values()), body])

    def atom(self, at: int, s: Stmt) -> Stmt:
        """Return a statement that computes the elements that it reads."""
        if type(s) is tirx.AllocBuffer:
            return nodes.seq([]) if s.buffer in self.arrays else s
        used = _buffers(s) & self.arrays
        if not used or (self.written[at] & self.arrays and self.written[at] <= self.arrays):
            return nodes.seq([]) if used else s
        indices = [i for x in loads_of(s) if x.source in self.arrays for i in x.indices]
        return _Interleave({v for i in indices for v in collect(i, tirx.Var)}).stmt(_Uses(self, at).stmt(s))


class _Uses(HoistingRewriter):
    """Rewrites a statement that reads arrays: before each part of it, their elements are computed."""

    def __init__(self, scope: _Scope, at: int) -> None:
        super().__init__()
        self.scope, self.at = scope, at
        self.loops: list[Stmt] = []
        #: By array the value that this statement, a map that has further effects, gives the element.
        self.own: dict[BufferVar, Expr] = {}
        #: Arrays whose element has this value under a condition.
        self.lost: set[BufferVar] = set()

    def expr(self, e: Expr) -> Expr:
        values = _ElementValues(self.scope, self.at, self.before, self.loops)

        def value(load: Expr) -> Expr:
            if load.source in self.lost:
                raise Kept(load.source, "a loop with other effects writes some of its elements")
            found = self.own.get(load.source)
            return values.value(load.source, load.indices[0], self.at) if found is None else found

        return _with_loads(e, self.scope.arrays, value)

    def body(self, s: Stmt) -> Stmt:
        outer = dict(self.own)
        new = super().body(s)
        self.own = outer
        return new

    def visit_For(self, s: Stmt) -> Stmt:
        self.loops.append(s)
        new = super().visit_For(s)
        self.loops.pop()
        return new

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        new = super().visit_IfThenElse(s)
        self.lost |= {x.buffer for x in collect(s, tirx.BufferStore)} & self.scope.arrays
        return new

    def visit_While(self, s: Stmt) -> Stmt:
        for x in loads_of(s.condition):
            if x.source in self.scope.arrays:
                raise Kept(x.source, "the condition of a loop reads it")
        return super().visit_While(s)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        if s.buffer not in self.scope.arrays:
            return super().visit_BufferStore(s)
        value = self.expr(s.value)
        self.own[s.buffer] = var = tirx.Var(s.buffer.name, nodes.dtype_of(value))
        return tirx.Bind(var, value, s.span)


class _ElementValues:
    """Computes elements for a part of a statement.

    Attributes
    ----------
    before
        Statements that run before this part.
    loops
        Loops around it.
    """

    def __init__(self, scope: _Scope, at: int, before: list[Stmt], loops: Sequence[Stmt]) -> None:
        self.scope, self.at, self.before, self.loops = scope, at, before, loops
        self.known: dict[Key, Expr] = {}

    def value(self, array: BufferVar, index: Expr, at: int) -> Expr:
        """Return the value of an element before the statement at a position."""
        found = [m for m in self.scope.maps[array] if m.position < at]
        if not found:
            if array not in self.scope.fresh:
                raise Kept(array, "it keeps values from one iteration of a loop to the next")
            return nodes.zero(nodes.element_type(array))
        key = tvm_ffi.StructuralKey((array, index, nodes.int_const(found[-1].position)))
        if key not in self.known:
            value = _Execution(self, found[-1], array, index).result
            if len(self.before) >= _MOST_VALUES:
                raise Kept(array, f"more than {_MOST_VALUES} values lead to an element")
            self.known[key] = self.bind(str(array.name), value)
        return self.known[key]

    def bind(self, name: str, value: Expr) -> Expr:
        """Return a variable with a value, or the value itself if it is trivial."""
        if isinstance(value, (tirx.Var, tirx.IntImm, tirx.FloatImm)):
            return value
        var = tirx.Var(name, nodes.dtype_of(value))
        self.before.append(tirx.Bind(var, value))
        return var

    def variables(self, found: ElementMap, array: BufferVar, index: Expr) -> dict[Var, Expr]:
        """Return the loop variables of the iteration that computes an element."""
        extents = {x.loop_var: nodes.as_int(x.extent) for x in self.loops}
        form = linear_form(index, list(extents))
        same: dict[tuple[object, object], Var] = {}
        if form is not None and nodes.as_int(form.rest) == 0:
            same = {(n, extents[v]): v for v, n in zip(extents, form.steps, strict=True)}
        ranges = Analyzer()
        for x in self.loops:
            ranges.bind(x.loop_var, ir.Range(x.min, x.min + x.extent))

        def digit(stride: int, extent: int) -> Expr:
            equal = same.get((stride, extent))
            return ranges.simplify(tirx.floormod(tirx.floordiv(index, stride), extent)) if equal is None else equal

        return {var: digit(stride, extent) for var, stride, extent in found.digits[array]}


class _Execution:
    """Executes one iteration of a map, as expressions.

    Attributes
    ----------
    result
        The value of the element afterwards.
    """

    def __init__(self, values: _ElementValues, found: ElementMap, array: BufferVar, index: Expr) -> None:
        self.values, self.map, self.array = values, found, array
        self.mapping = values.variables(found, array, index)
        self.own = {a: index if a.same_as(array) else substitute(i, self.mapping) for a, i in found.indices.items()}
        state: dict[BufferVar, Expr] = {}
        self.execute(found.nest, state, always=True)
        self.result = self.current(array, state)

    def current(self, array: BufferVar, state: Mapping[BufferVar, Expr]) -> Expr:
        found = state.get(array)
        return self.values.value(array, self.own[array], self.map.position) if found is None else found

    def execute(self, s: Stmt, state: dict[BufferVar, Expr], always: bool) -> None:
        """Execute a statement; stores to other buffers have no effect on the element."""
        if type(s) is tirx.SeqStmt:
            for x in s.seq:
                self.execute(x, state, always)
        elif type(s) is tirx.For:
            self.execute(s.body, state, always)
        elif type(s) is tirx.Bind:
            value = self.rewrite(s.value, state)
            self.mapping[s.var] = self.values.bind(str(s.var.name), value) if always else value
        elif type(s) is tirx.BufferStore and s.buffer in self.own:
            state[s.buffer] = self.rewrite(s.value, state)
        elif type(s) is tirx.IfThenElse:
            condition, sides = self.rewrite(s.condition, state), [dict(state), dict(state)]
            for side, x in zip(sides, bodies_of(s), strict=False):
                self.execute(x, side, always=False)
            for array in {**sides[0], **sides[1]}:
                values = [self.current(array, side) for side in sides]
                state[array] = values[0] if values[0].same_as(values[1]) else tirx.if_then_else(condition, *values)

    def rewrite(self, e: Expr, state: Mapping[BufferVar, Expr], at: int | None = None) -> Expr:
        """Return an expression of the nest where the element is read."""
        scope, since = self.values.scope, self.map.position if at is None else at
        if any(nodes.is_tile_call(c) for c in collect(e, ir.Call)):
            raise Kept(self.array, "instructions compute it")
        for var in collect(e, tirx.Var):
            if var in scope.bound and var not in self.mapping:
                position, value = scope.bound[var]
                self.mapping[var] = self.rewrite(value, state, position)
        others = {x.source for x in loads_of(e)} - scope.arrays
        moved = {b: scope.source(b, since, self.values.at, self.array) for b in others}

        def read(load: Expr) -> Expr:
            if load.source in moved:
                return nodes.load(moved[load.source], list(load.indices))
            if load.source in self.own and at is None:
                return self.current(load.source, state)
            return self.values.value(load.source, load.indices[0], since)

        changed = {b for b, new in moved.items() if not new.same_as(b)}
        return _with_loads(renamed_lets(substitute(e, self.mapping)), scope.arrays | changed, read, self.array)


def _with_loads(e: Expr, arrays: set[BufferVar], value: Callable[[Expr], Expr], owner: BufferVar | None = None) -> Expr:
    """Return an expression with the loads of some arrays replaced.

    Raises
    ------
    Kept
        If ``value`` does: not inside of TVM, which would turn it into an error of its own.
    """
    found: dict[Key, Expr] = {}
    for load in loads_of(e):
        if load.source in arrays:
            if any(x.source in arrays for x in loads_of(load.indices[0])):
                raise Kept(load.source if owner is None else owner, "its indices are read from other fragments")
            key = tvm_ffi.StructuralKey(load)
            found[key] = found[key] if key in found else value(load)
    return map_expr(e, lambda x: found.get(tvm_ffi.StructuralKey(x), x), ir.TensorLoad) if found else e


class _Interleave(StmtRewriter):
    """Makes loops over elements interleave the computations of few of them.

    Compilers would merge the loads of loops that are unrolled, and keep the values in registers after all.
    """

    def __init__(self, variables: set[Var]) -> None:
        self.variables = variables
        #: Elements of the loops inside the current one that are unrolled.
        self.inside = 1

    def visit_For(self, s: Stmt) -> Stmt:
        outer, self.inside = self.inside, 1
        body = self.stmt(s.body)
        inside, extent = self.inside, nodes.as_int(s.extent)
        if s.loop_var not in self.variables or not isinstance(extent, int):
            self.inside = outer
            return s if body.same_as(s.body) else replace_for(s, body)
        self.inside = max(outer, inside * extent)
        if inside * extent <= _INTERLEAVED:
            return replace_for(s, body)
        notes = {attributes.ROLE: "serial", attributes.UNROLL_FACTOR: nodes.int_const(max(1, _INTERLEAVED // inside))}
        return replace_for(s, body, kind=tirx.ForKind.SERIAL, annotations={**dict(s.annotations or {}), **notes})
