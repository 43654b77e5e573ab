"""Double buffering of registers that asynchronous instructions read (modulo variable expansion).

The reads of a product that completes in a later iteration (``async_products.py``) include its registers. The next
iteration, which begins its product before it waits for this one, must fill others. So the loop is written with two
iterations at a time: the first fills one set, the second the other::

    for j in range(trips // 2):
        iteration 2 j, on the first set; once it has waited for the iteration before: the second set has been read
        iteration 2 j + 1, on the second set; once it has waited: the first set has been read
    if trips % 2:
        the last iteration, on the first set

A variant that fills such registers allocates them in its statement and describes them in ``Placement.in_flight``.
After the wait they are read once more: a compiler, unaware of the asynchronous reads, keeps their
values until there. The variant of the wait marks this point by `retired`. If the wait is in the same list of
statements as the product, one set is enough.

One load may fill the registers of several iterations (`RegisterPrefetch`). Then the loop is unrolled by a group of
iterations, and loads the registers of the next group, so that the memory latency is hidden by a group's computation::

    load for iterations 0 to n - 1
    for j in range(trips // n):
        fill from the loaded values, except the group's last iteration; load for group j + 1
        iteration n * j; once it has waited for the iteration before: fill the last iteration's registers
        the others, each on its registers
    the iterations that are left, in the same way
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd, lcm
from typing import TYPE_CHECKING

from tile_core.analysis.affine import linear_form
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.attributes import UNROLL_FACTOR
from tile_core.ir.visit import StmtRewriter, another_buffer, collect, renamed, replace_for, substitute
from tile_core.simt.code_size import likely_operations

if TYPE_CHECKING:
    from tile_core.simt.variant import InFlight

_RETIRED = "retired"
#: Operations of a loop that is unrolled for constant slots.
_MOST_OPERATIONS = 9216


def retired(pending: int) -> Stmt:
    """Return a mark that at most ``pending`` products are in flight.

    Earlier products have read their registers.
    """
    return tirx.Evaluate(nodes.tile_call(_RETIRED, [nodes.int_const(pending)]))


def double_buffer_registers(body: Stmt, in_flight: Mapping[BufferVar, InFlight]) -> Stmt:
    """Return a per-thread program with double-buffered registers in flight, without marks."""
    return _DoubleBuffering(in_flight).stmt(body) if in_flight else body


class _DoubleBuffering(StmtRewriter):
    def __init__(self, in_flight: Mapping[BufferVar, InFlight]) -> None:
        self.in_flight = in_flight
        #: Reads of the sets of the last loop, for the mark after it.
        self.open: list[Stmt] = []
        #: Reads of arrays of the loop or branch around, for all marks in it.
        self.here: list[Stmt] = []

    def stmt(self, s: Stmt) -> Stmt:
        if type(s) not in (tirx.For, tirx.While, tirx.IfThenElse):
            return super().stmt(s)
        outer, self.here = self.here, []
        new = super().stmt(s)
        self.here = outer
        return new

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        found = self.in_flight.get(s.buffer)
        if found is None:
            return s
        if found.prefetch is None:
            self.here += found.reads
            return s
        # No loop around prefetches for several iterations.
        self.here += [substitute(x, {found.prefetch.iteration: _number(0)}) for x in found.reads]
        return nodes.seq([*_filled(s.buffer, found.first), found.prefetch.alone])

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        pending = _pending(s)
        if pending is None:
            return s
        if pending:
            return nodes.seq(list(self.here))
        found, self.here, self.open = [*self.here, *self.open], [], []
        return nodes.seq(found)

    def visit_For(self, s: Stmt) -> Stmt:
        found = _Allocated({b: f for b, f in self.in_flight.items() if f.beyond or f.prefetch is not None})
        found.stmt(s.body)
        prefetch = [b for b in found.buffers if self.is_prefetched_in(b, s)]
        if len(prefetch) == 1 == len(found.buffers):
            return self.unrolled_by_group(s, prefetch[0], self.in_flight[prefetch[0]])
        beyond = [b for b in found.buffers if self.in_flight[b].prefetch is None]
        return self.two_at_a_time(s, beyond) if beyond and not prefetch else super().visit_For(s)

    def is_prefetched_in(self, buffer: BufferVar, loop: Stmt) -> bool:
        """Whether registers are prefetched by the iterations of a loop."""
        prefetch = self.in_flight[buffer].prefetch
        return prefetch is not None and bool({loop.loop_var} & set(collect(prefetch.load, tirx.Var)))

    def unrolled_by_group(self, s: Stmt, held: BufferVar, made: InFlight) -> Stmt:
        """Return a loop unrolled by groups of iterations, and its prefetched registers."""
        prefetch, kind, k = made.prefetch, nodes.dtype_of(s.loop_var), s.loop_var
        assert prefetch is not None
        iterations = nodes.int_const(prefetch.iterations, kind)
        self.open += [
            renamed(substitute(x, {prefetch.iteration: _number(u)}))
            for u in range(prefetch.iterations)
            for x in made.reads
        ]

        def loaded(at: Expr) -> Stmt:
            return renamed(substitute(prefetch.load, {k: at}))

        def iteration(u: int, first: Expr) -> Stmt:
            at = first + nodes.int_const(u, kind)
            before = _number((u - 1) % prefetch.iterations if made.beyond else u)
            reads = [substitute(x, {prefetch.iteration: before}) for x in made.reads]
            fill = [renamed(prefetch.fill), loaded(first + iterations)] if u == 0 else []
            last = [prefetch.last] if u == 0 and made.beyond else []
            body = _PrefetchedIteration((prefetch.iteration, held), fill, [*reads, *last]).stmt(s.body)
            return renamed(substitute(body, {k: at, prefetch.iteration: _number(u)}))

        block, trips = nodes.fresh(f"{k.name}_block", kind), nodes.as_int(s.extent)
        every = [iteration(u, s.min + block * iterations) for u in range(prefetch.iterations)]
        count = trips // prefetch.iterations if isinstance(trips, int) else tirx.floordiv(s.extent, iterations)
        count = nodes.int_const(count, kind) if isinstance(count, int) else count
        parts = [*_filled(held, made.first), *map(tirx.AllocBuffer, prefetch.arrays), loaded(s.min)]
        parts.append(replace_for(s, nodes.seq(every), loop_var=block, min=nodes.int_const(0, kind), extent=count))
        rest = s.min + count * iterations
        for u in range(prefetch.iterations - 1):
            if isinstance(trips, int):
                parts += [iteration(u, rest)] if u < trips % prefetch.iterations else []
            else:
                parts.append(
                    tirx.IfThenElse(nodes.int_const(u, kind) < s.extent - count * iterations, iteration(u, rest), None)
                )
        return nodes.seq(parts)

    def two_at_a_time(self, s: Stmt, first: Sequence[BufferVar]) -> Stmt:
        """Return a loop whose iterations alternate between arrays ``first`` and copies of them."""
        swap = {b: another_buffer(b, f"{b.name}_odd") for b in first}
        swap |= {second: b for b, second in swap.items()}
        reads = [x for b in first for x in self.in_flight[b].reads]
        other = [substitute(x, swap) for x in reads]
        self.open += [*reads, *other]
        body = _Iteration(first, other).stmt(s.body)  # no other product lasts: `async_product`
        kind = nodes.dtype_of(s.loop_var)
        pair, two = nodes.fresh(f"{s.loop_var.name}_pair", kind), nodes.int_const(2, kind)
        begin = pair * two if nodes.as_int(s.min) == 0 else s.min + pair * two

        def iteration(at: Expr, odd: bool) -> Stmt:
            return renamed(substitute(body, {s.loop_var: at} | (swap if odd else {})))

        both = nodes.seq([iteration(begin, False), iteration(begin + nodes.int_const(1, kind), True)])
        parts = [x for b in first for array in (b, swap[b]) for x in _filled(array, self.in_flight[b].first)]
        loop = replace_for(s, both, loop_var=pair, min=nodes.int_const(0, kind), extent=_half(s.extent, kind))
        parts.append(_with_constant_slots(loop))
        trips = nodes.as_int(s.extent)
        if not isinstance(trips, int) or trips % 2:
            last = iteration(s.min + s.extent - nodes.int_const(1, kind), False)
            is_odd = tirx.floormod(s.extent, two) == nodes.int_const(1, kind)
            parts.append(last if isinstance(trips, int) else tirx.IfThenElse(is_odd, last, None, s.span))
        return nodes.seq(parts)


class _Allocated(StmtRewriter):
    """Find the arrays in flight of a loop, without the arrays of inner loops."""

    def __init__(self, in_flight: Mapping[BufferVar, InFlight]) -> None:
        self.in_flight, self.buffers = in_flight, list[BufferVar]()

    def visit_For(self, s: Stmt) -> Stmt:
        return s

    def visit_IfThenElse(self, s: Stmt) -> Stmt:
        return self.without_prefetch(s, super().visit_IfThenElse)

    def visit_While(self, s: Stmt) -> Stmt:
        return self.without_prefetch(s, super().visit_While)

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        if s.buffer in self.in_flight:
            self.buffers.append(s.buffer)
        return s

    def without_prefetch(self, s: Stmt, visit: Callable[[Stmt], Stmt]) -> Stmt:
        """Visit a statement that an iteration may skip: nothing in it is prefetched."""
        outer, self.in_flight = self.in_flight, {b: f for b, f in self.in_flight.items() if f.prefetch is None}
        visit(s)
        self.in_flight = outer
        return s


class _PrefetchedIteration(StmtRewriter):
    """An iteration whose registers are prefetched: they are allocated outside, and its number is known."""

    def __init__(self, given: tuple[Var, BufferVar], fill: Sequence[Stmt], behind: Sequence[Stmt]) -> None:
        (self.iteration, self.held), self.fill, self.behind = given, fill, behind

    def visit_Bind(self, s: Stmt) -> Stmt:
        return nodes.seq([]) if s.var.same_as(self.iteration) else s

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        return nodes.seq(list(self.fill)) if s.buffer.same_as(self.held) else s

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        return s if _pending(s) is None else nodes.seq(list(self.behind))


class _Iteration(StmtRewriter):
    """An iteration whose arrays are allocated outside; the other ones are read after its wait."""

    def __init__(self, arrays: Sequence[BufferVar], other: Sequence[Stmt]) -> None:
        self.arrays, self.other = frozenset(arrays), other

    def visit_AllocBuffer(self, s: Stmt) -> Stmt:
        return nodes.seq([]) if s.buffer in self.arrays else s

    def visit_Evaluate(self, s: Stmt) -> Stmt:
        return s if _pending(s) is None else nodes.seq(list(self.other))


def _pending(s: Stmt) -> int | None:
    """Return the value of a mark; ``None`` for other statements."""
    return int(nodes.as_int(s.value.args[0])) if nodes.is_tile_call(s.value, _RETIRED) else None


def _number(number: int) -> Expr:
    return nodes.int_const(number)


def _half(extent: Expr, kind: str) -> Expr:
    trips = nodes.as_int(extent)
    return nodes.int_const(trips // 2, kind) if isinstance(trips, int) else tirx.floordiv(extent, 2)


def _with_constant_slots(loop: Stmt) -> Stmt:
    """Unroll a short loop until the slots of its stages are constants.

    Addresses, descriptors and barriers of an iteration then take few operations.
    """
    trips, var = nodes.as_int(loop.extent), loop.loop_var
    if not isinstance(trips, int):
        return loop
    factor = 1
    for e in collect(loop.body, tirx.FloorMod):
        form, period = linear_form(e.a, [var]), nodes.as_int(e.b)
        if form is not None and form.steps != (0,) and isinstance(period, int):
            factor = lcm(factor, period // gcd(period, form.steps[0]))
    if factor == 1 or trips < factor or factor * likely_operations(loop.body) > _MOST_OPERATIONS:
        return loop
    notes = {**dict(loop.annotations or {}), UNROLL_FACTOR: nodes.int_const(factor)}
    return replace_for(loop, loop.body, annotations=notes)


def _filled(buffer: BufferVar, first: Expr) -> list[Stmt]:
    """Return an allocation and its first values, which are read after the first wait."""
    (count,) = nodes.shape_of(buffer)
    return [tirx.AllocBuffer(buffer), *(nodes.store(buffer, first, [i]) for i in range(int(nodes.as_int(count))))]
