"""Loads of tensors that nothing writes, an iteration before they are used.

An iteration that waits for a copy, a barrier or a product begins its own loads after that: scales of a block of the
operands, numbers of pages, the elements of a mask. Each waits for global memory again. Where the position of such an
element follows from the iteration alone, it is loaded one iteration before::

    ahead = S[row, 0]
    for k:
        wait; y = f(x[k], ahead)
        if k + 1 < n: ahead = S[row, k + 1]

If the elements of following iterations are adjacent, as scales of the blocks of a row are, one vector access loads them
for a group of iterations, and the loop is unrolled by the group::

    ahead[0:4] = S[row, 0:4]
    for j in range(n / 4):
        for u in unroll(4): wait; y = f(x[4 * j + u], ahead[u])
        if j + 1 < n / 4: ahead[0:4] = S[row, 4 * (j + 1) : ...]

The load follows the last use: a copy of the element at the begin of an iteration would wait for it there, since
assemblers move such copies up behind the load. An element that is the same in each iteration is loaded once, before the
loop. Vector accesses are loaded likewise.
Loads to arrays that outlive the iteration remain: they are of another iteration already.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import gcd, prod
from typing import Any

from tile_core.analysis.affine import linear_form
from tile_core.analysis.analyzer import Analyzer
from tile_core.analysis.flow import names_of
from tile_core.analysis.quotients import simplified
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import BufferVar, Call, Expr, Key, Mutator, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import attributes, calls, nodes
from tile_core.ir.visit import StmtRewriter, collect, loads_of, map_expr, replace_for, substitute, uses_var
from tile_core.records import dataclass
from tile_core.simt.code_size import likely_operations
from tile_core.simt.memory.alignment import WIDEST, Aligned, strides_of
from tile_core.simt.memory.element_units import in_units

__all__ = ["MOST_PREFETCHED", "prefetch_loads"]

#: Registers of a thread, of 32 bits, for the elements of an iteration.
MOST_PREFETCHED = 16

#: Iterations of a group, and operations of their code.
_GROUPS, _MOST_OPERATIONS = (4, 2), 6144

#: Calls of which a load is an address, not a value.
_ADDRESSES = ("address", "move")
_ROLE = {attributes.ROLE: "unroll"}
_UNROLLED = (tirx.ForKind.UNROLLED, tirx.ForKind.VECTORIZED)


def prefetch_loads(
    body: Stmt, constant: Collection[BufferVar], thread: Var, threads: int, aligned: Aligned | None = None
) -> Stmt:  # fmt: skip
    """Return the code of a thread with loads an iteration ahead in loops that wait.

    Parameters
    ----------
    body
        Code of one thread, with logical indices.
    constant
        Tensors that nothing writes while the kernel runs.
    thread, threads
        The variable of the thread's number in the block, and how many the block has.
    aligned
        The alignment of addresses that vector accesses may rely on.
    """
    return _PrefetchLoads(constant, thread, threads, aligned or Aligned()).stmt(body) if constant else body


class _PrefetchLoads(StmtRewriter):
    def __init__(self, constant: Collection[BufferVar], thread: Var, threads: int, aligned: Aligned) -> None:
        self.constant, self.thread, self.threads, self.aligned = constant, thread, threads, aligned
        self._found = False

    def visit_For(self, s: Stmt) -> Stmt:
        outer, self._found = self._found, False
        new = super().visit_For(s)
        if not self._found and s.kind == tirx.ForKind.SERIAL and nodes.as_int(s.extent) != 1 and _waits(s.body):
            self._found = True
            new = _LoadsOfLoop(new, self.constant, self.thread, self.threads, self.aligned).rewritten()
        self._found = self._found or outer
        return new


@dataclass(frozen=True)
class _PrefetchedLoad:
    """Loads of one tensor at positions that follow from the iteration.

    Attributes
    ----------
    load
        The load, in variables that are known before the loop, and of the loops around it.
    conditions
        The conditions of which one holds where it is made; none if it always is.
    around
        The unrolled loops that its position depends on.
    shared
        For each of them, how many following iterations load the same element.
    changes
        Whether iterations load different elements.
    elements
        The elements of this iteration, for each iteration of ``around``; behind their last use those of the next.
    width
        Bytes of a vector access; 0 for a load of one element.
    grouped
        Whether the vector has the elements of several iterations.
    """

    load: Expr
    conditions: list[Expr]
    around: tuple[Stmt, ...]
    shared: tuple[int, ...]
    changes: bool
    elements: BufferVar
    width: int = 0
    grouped: bool = False

    @property
    def registers(self) -> int:
        """Registers for the elements of an iteration."""
        return self.count * max(1, self.width // 4)

    @property
    def count(self) -> int:
        """Accesses of an iteration."""
        return prod(self._counts)

    @property
    def _counts(self) -> list[int]:
        return [int(loop.extent) // shared for loop, shared in zip(self.around, self.shared, strict=True)]

    @property
    def position(self) -> Expr:
        """Number of the element in the registers."""
        return self._at([in_units(x.loop_var, n) for x, n in zip(self.around, self.shared, strict=True)])

    def _at(self, numbers: Sequence[Expr]) -> Expr:
        """Return the place of the access with a number in each loop."""
        at: Expr = nodes.int_const(0)
        for count, number in zip(self._counts, numbers, strict=True):
            at = at * nodes.int_const(count) + nodes.cast(number, "int32")
        each = _elements(self.load.source, self.width)
        return at * nodes.int_const(each) if each > 1 else at

    def moved(self, to: BufferVar, at: Expr, load: Expr) -> Stmt:
        """Return the move of an element, or of a vector, to an array."""
        if self.width:
            return calls.move(to, [at], load.source, list(load.indices), self.width, load.span)
        return nodes.store(to, load, [at])

    def also(self, conditions: Sequence[Expr]) -> None:
        """Load under these conditions, too."""
        if not conditions:
            self.conditions.clear()
            return
        condition = tirx.all(*conditions)
        if self.conditions and not any(tvm_ffi.structural_equal(condition, c) for c in self.conditions):
            self.conditions.append(condition)

    def loaded(self, iteration: Var, at: Expr) -> Stmt:
        """Return the loads of an iteration."""
        numbers = [nodes.fresh(str(loop.loop_var.name), nodes.dtype_of(loop.loop_var)) for loop in self.around]
        values = {iteration: at}
        for loop, shared, n in zip(self.around, self.shared, numbers, strict=True):
            values[loop.loop_var] = n * nodes.int_const(shared, nodes.dtype_of(n)) if shared > 1 else n
        s = self.moved(self.elements, self._at(numbers), substitute(self.load, values))
        if self.conditions:
            s = tirx.IfThenElse(substitute(tirx.any(*self.conditions), values), s, None)
        for number, count in reversed([*zip(numbers, self._counts, strict=True)]):
            s = nodes.for_loop(number, count, s, "unroll")
        return s


class _LoadsOfLoop(StmtRewriter):
    """Rewrites one loop."""

    def __init__(
        self, loop: Stmt, constant: Collection[BufferVar], thread: Var, threads: int, aligned: Aligned
    ) -> None:  # fmt: skip
        self.loop, self.constant, self.thread, self.aligned = loop, constant, thread, aligned
        #: Of the loads to replace: the number of the iteration in its group.
        self.inside: Var | None = None
        self.analyzer = Analyzer()
        self.analyzer.bind(thread, ir.Range.from_min_extent(0, threads))
        self.found: dict[Key, _PrefetchedLoad] = {}
        #: The loads to replace, once all are found.
        self.chosen: set[Key] = set()
        #: Values of the variables that the loop defines; ``None`` if they are not known before it.
        self.values: dict[Var, Expr | None] = dict.fromkeys(
            v.loop_var if isinstance(v, tirx.For) else v.var
            for v in collect(loop.body, (tirx.For, tirx.Bind, tirx.Let))
        )
        self.uses = _uses(loop.body)
        self.allocated = {a.buffer for a in collect(loop.body, tirx.AllocBuffer)}
        self.around: list[Stmt] = []
        self.conditions: list[Expr | None] = []
        self.by_role = False

    def rewritten(self) -> Stmt:
        """Return the loop with loads before it, or itself."""
        self.stmt(self.loop.body)
        left = MOST_PREFETCHED
        for key, a in self.found.items():
            if a.registers <= left:
                self.chosen.add(key)
                left -= a.registers
        if not self.chosen:
            return self.loop
        group = self.in_groups()
        body = self.stmt(self.loop.body)
        found = [a for key, a in self.found.items() if key in self.chosen]
        k, first = self.loop.loop_var, self.loop.min
        end = first + self.loop.extent
        arrays = [tirx.AllocBuffer(a.elements) for a in found]
        before = nodes.seq([a.loaded(k, first) for a in found])
        trips = nodes.as_int(self.loop.extent)
        if not (isinstance(trips, int) and trips > 0):
            before = tirx.IfThenElse(first < end, before, None)
        if group > 1:
            return nodes.seq([*arrays, before, self.by_group(body, found, group)])
        following = k + nodes.int_const(1, nodes.dtype_of(k))
        parts = list(body.seq) if type(body) is tirx.SeqStmt else [body]
        last = {
            a.elements: max((i for i, s in enumerate(parts) if a.elements in names_of(s)), default=len(parts) - 1)
            for a in found if a.changes
        }  # fmt: skip
        for at in sorted(set(last.values()), reverse=True):
            loads = [a.loaded(k, following) for a in found if last.get(a.elements) == at]
            parts.insert(at + 1, tirx.IfThenElse(following < end, nodes.seq(loads), None))
        return nodes.seq([*arrays, before, replace_for(self.loop, nodes.seq(parts))])

    def in_groups(self) -> int:
        """Let each chosen load fetch the elements of a group of iterations; return their number."""
        trips, first = nodes.as_int(self.loop.extent), nodes.as_int(self.loop.min)
        changing = {key: a for key, a in self.found.items() if key in self.chosen and a.changes}
        others = sum(a.registers for key, a in self.found.items() if key in self.chosen and not a.changes)
        if not changing or not isinstance(trips, int) or not isinstance(first, int):
            return 1
        for group in _GROUPS:
            if trips % group or first % group or trips == group:
                continue
            if group * likely_operations(self.loop.body) > _MOST_OPERATIONS:
                continue
            wide = {key: self.widened(a, group) for key, a in changing.items()}
            if all(wide.values()) and others + sum(a.registers for a in wide.values() if a) <= MOST_PREFETCHED:
                self.found |= {key: a for key, a in wide.items() if a}
                self.inside = nodes.fresh("inside", nodes.dtype_of(self.loop.loop_var))
                return group
        return 1

    def widened(self, a: _PrefetchedLoad, group: int) -> _PrefetchedLoad | None:
        """Return a load for a group of iterations; ``None`` if it is no vector access."""
        k, size = self.loop.loop_var, DTYPES[nodes.element_type(a.load.source)].bits // 8
        *rows, last = a.load.indices
        if a.width or size < 1 or size * group > WIDEST or (size * group) % 4:
            return None
        form = linear_form(last, [k])
        if form is None or form.steps != (1,) or any(uses_var(x, k) for x in (*rows, *a.conditions)):
            return None
        if nodes.as_int(strides_of(a.load.source)[-1]) != 1:
            return None
        if self.aligned.of(a.load.source, list(a.load.indices), {k: group}) < size * group:
            return None
        elements = _held(a.load.source, a.count * group, wide=True)
        return replace(a, elements=elements, width=size * group, grouped=True)

    def by_group(self, body: Stmt, found: Sequence[_PrefetchedLoad], group: int) -> Stmt:
        """Return the loop over groups of iterations."""
        k, kind = self.loop.loop_var, nodes.dtype_of(self.loop.loop_var)
        assert self.inside is not None
        inside, j, number = self.inside, nodes.fresh(str(k.name), kind), nodes.int_const(group, kind)
        each = nodes.for_loop(self.inside, group, substitute(body, {k: j * number + inside}), "unroll")
        following = j + nodes.int_const(1, kind)
        end = nodes.int_const((int(nodes.as_int(self.loop.min)) + int(nodes.as_int(self.loop.extent))) // group, kind)
        loads = nodes.seq([a.loaded(k, following * number) for a in found if a.changes])
        first = nodes.int_const(int(nodes.as_int(self.loop.min)) // group, kind)
        loop = replace_for(self.loop, nodes.seq([each, tirx.IfThenElse(following < end, loads, None)]), min=first)
        return replace_for(loop, loop.body, loop_var=j, extent=end - first)

    # Statements

    def visit_For(self, s: Stmt) -> Stmt:
        extent = nodes.as_int(s.extent)
        fixed = isinstance(extent, int) and nodes.as_int(s.min) == 0
        if not fixed or not (s.kind in _UNROLLED or (extent <= MOST_PREFETCHED and not _waits(s.body))):
            return self._under(None, s)
        self.values[s.loop_var] = s.loop_var
        self.analyzer.bind(s.loop_var, ir.Range.from_min_extent(0, s.extent), True)
        self.around.append(s)
        new = super().visit_For(s)
        self.around.pop()
        self.values[s.loop_var] = None
        # Registers are not indexed by variables.
        held = any(loop.loop_var.same_as(s.loop_var) for key in self.chosen for loop in self.found[key].around)
        return replace_for(new, new.body, kind=tirx.ForKind.UNROLLED, annotations=_ROLE) if held else new

    def visit_While(self, s: Stmt) -> Stmt:
        return s

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        condition = self.expr(s.condition)
        then = self._under(s.condition, s.then_case)
        other = None if s.else_case is None else self._under(tirx.Not(s.condition), s.else_case)
        return tirx.IfThenElse(condition, then, other, s.span)

    def visit_AttrStmt(self, s: Stmt) -> Stmt:
        outer, self.by_role = self.by_role, self.by_role or s.attr_key == attributes.ONLY
        new = super().visit_AttrStmt(s)
        self.by_role = outer
        return new

    def visit_Bind(self, s: Stmt) -> Stmt:
        self.values[s.var] = self.known(s.value)
        return super().visit_Bind(s)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        return s if self.outlives(s.buffer) and _is_copied(s.value) else super().visit_BufferStore(s)

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        if not nodes.is_tile_call(s.value, "move"):
            return super().visit_Evaluate(s)
        to, load = s.value.args
        width = int(nodes.as_int(s.value.attrs[attributes.BYTES]))
        key = self._key(load, width) if self.is_staged(to.source) else None
        if key not in self.chosen:
            return s
        found = self.found[key]
        return calls.move(to.source, list(to.indices), found.elements, [found.position], width, s.span)

    def is_staged(self, array: BufferVar) -> bool:
        """Whether the elements of an array go to shared memory only."""
        if not nodes.scope_of(array).startswith("local"):
            return False  # a plain copy, whose schedule is that of its loop
        seen: set[Var] = set()
        pending, staged = [array], False
        while pending:
            at = pending.pop()
            scope = nodes.scope_of(at) if tirx.is_buffer_var(at) else ""
            if scope == "global" or (scope and self.outlives(at)):
                return False
            staged = staged or scope == "shared"
            pending += [] if at in seen or scope == "shared" else self.uses.get(at, ())
            seen.add(at)
        return staged

    def outlives(self, buffer: BufferVar) -> bool:
        """Whether an array of the thread outlives an iteration."""
        return nodes.scope_of(buffer).startswith("local") and buffer not in self.allocated

    def _under(self, condition: Expr | None, s: Stmt) -> Stmt:
        self.conditions.append(None if condition is None else self.known(condition))
        new = super().visit_For(s) if condition is None else self.stmt(s)
        self.conditions.pop()
        return new

    # Expressions

    def handlers(self) -> list[Any]:
        """Return the functions that replace parts of expressions."""
        return [(ir.TensorLoad, self._load), (ir.Call, self._call), ((tirx.And, tirx.Or), self._joined)]

    def expr(self, e: Expr) -> Expr:
        """Replace loads."""
        return structural.mutated(e, self.handlers()) if any(x.source in self.constant for x in loads_of(e)) else e

    def _call(self, e: Call, mutator: Mutator) -> Expr:
        if any(nodes.is_tile_call(e, name) for name in _ADDRESSES):
            return e
        if nodes.operator_name(e) != "if_then_else":
            return mutator.default_mutate(e)
        condition, yes, no = e.args
        sides = [self._side(c, x, mutator) for c, x in ((condition, yes), (tirx.Not(condition), no))]
        return tirx.if_then_else(mutator.mutate(condition), *sides, span=e.span)

    def _joined(self, e: Expr, mutator: Mutator) -> Expr:
        condition = e.a if type(e) is tirx.And else tirx.Not(e.a)
        return type(e)(mutator.mutate(e.a), self._side(condition, e.b, mutator))

    def _side(self, condition: Expr, e: Expr, mutator: Mutator) -> Expr:
        self.conditions.append(self.known(condition))
        new = mutator.mutate(e)
        self.conditions.pop()
        return new

    def _load(self, e: Expr, mutator: Mutator) -> Expr:
        key = self._key(e)
        if key not in self.chosen:
            return mutator.default_mutate(e)
        found = self.found[key]
        at = found.position
        if found.grouped and self.inside is not None:
            at = at + nodes.cast(self.inside, "int32")
        return nodes.load(found.elements, [at], e.span)

    def _key(self, e: Expr, width: int = 0) -> Key | None:
        """Return the key of a load that may be prefetched; ``None`` of others."""
        if e.source not in self.constant or nodes.scope_of(e.source) != "global":
            return None
        if any(c is None for c in self.conditions):
            return None
        indices = [self.known(i) for i in e.indices]
        if any(i is None for i in indices):
            return None
        used = {v for x in indices for v in collect(x, tirx.Var)}
        conditions = [c for c in self.conditions if c is not None]
        around = tuple(loop for loop in self.around if loop.loop_var in used)
        every = used.union(v for c in conditions for v in collect(c, tirx.Var))
        if any(loop.loop_var in every - used for loop in self.around):
            return None
        if self.by_role and self.thread in every:
            return None
        # An element that changes is loaded under conditions of each iteration, another under those of the first.
        changes = self.loop.loop_var in every
        key = tvm_ffi.StructuralKey((e.source, nodes.int_const(width), nodes.int_const(int(changes)), *indices))
        shared = tuple(_shared(loop, [*indices, *conditions]) for loop in around)
        old = self.found.get(key)
        if old is not None:
            old.also(conditions)
            shared = tuple(map(gcd, old.shared, shared))  # a later condition may differ between iterations
            if shared == old.shared:
                return key
        count = prod(int(loop.extent) // n for loop, n in zip(around, shared, strict=True))
        elements = _held(e.source, count * _elements(e.source, width), wide=bool(width))
        every_time = old.conditions if old is not None else [tirx.all(*conditions)] if conditions else []
        load = nodes.load(e.source, indices, e.span)
        self.found[key] = _PrefetchedLoad(load, every_time, around, shared, changes, elements, width)
        return key

    def known(self, e: Expr) -> Expr | None:
        """Return an expression in variables that are known before the loop, or ``None``."""
        if loads_of(e) or any(nodes.is_tile_call(c) for c in collect(e, ir.Call)):
            return None
        mapping = {v: self.values[v] for v in collect(e, tirx.Var) if v in self.values}
        if any(value is None for value in mapping.values()):
            return None
        new = substitute(e, {v: x for v, x in mapping.items() if x is not None and x is not v})
        return simplified(new, self.analyzer)


def _shared(loop: Stmt, used: Sequence[Expr]) -> int:
    """Return how many following iterations of a loop have the same values of expressions."""
    v, divisors = loop.loop_var, [int(loop.extent)]

    def without(x: Expr) -> Expr:
        by = nodes.as_int(x.b)
        if not (isinstance(by, int) and by > 0 and x.a.same_as(v)):
            return x
        divisors.append(by)
        return nodes.zero(nodes.dtype_of(x))

    return 1 if any(uses_var(map_expr(e, without, tirx.FloorDiv), v) for e in used) else gcd(*divisors)


def _held(tensor: BufferVar, count: int, wide: bool) -> BufferVar:
    """Return the registers for elements of a tensor; ``wide``: vector accesses fill them."""
    aligned = {"data_alignment": WIDEST} if wide else {}
    kind = nodes.element_type(tensor)
    return tirx.decl_buffer([count], kind, f"{tensor.name}_ahead", scope="local", layout=None, **aligned)


def _elements(tensor: BufferVar, width: int) -> int:
    """Return the elements of a vector access, or 1."""
    return width * 8 // DTYPES[nodes.element_type(tensor)].bits if width else 1


def _is_copied(value: Expr) -> bool:
    """Whether a value is an element of memory, or a constant outside of it."""
    if nodes.operator_name(value) == "if_then_else":
        return _is_copied(value.args[1]) and not loads_of(value.args[2])
    return type(value) is ir.TensorLoad or (type(value) is tirx.Cast and _is_copied(value.value))


def _uses(body: Stmt) -> dict[Var, set[Var]]:
    """Return the arrays and names that are computed from each array and name."""
    found: dict[Var, set[Var]] = {}
    for s in collect(body, (tirx.BufferStore, tirx.Bind)):
        to = s.buffer if type(s) is tirx.BufferStore else s.var
        for source in (*collect(s.value, tirx.Var), *(x.source for x in loads_of(s.value))):
            found.setdefault(source, set()).add(to)
    for c in collect(body, ir.Call):
        if nodes.is_tile_call(c, "move"):
            found.setdefault(c.args[1].source, set()).add(c.args[0].source)
    return found


def _waits(body: Stmt) -> bool:
    """Whether statements call instructions, which may wait for other threads or for copies."""
    called = [s.value for s in collect(body, tirx.Evaluate) if nodes.is_tile_call(s.value)]
    return any(not nodes.is_tile_call(call, "move") for call in called)
