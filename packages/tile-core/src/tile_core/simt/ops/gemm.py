"""Dense products on ordinary arithmetic units, where no matrix instruction applies."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.calls import move, step
from tile_core.layout import LayoutMap, row_major
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.legality import Asked, Legality
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import View
from tile_core.ops.copy import convert
from tile_core.ops.gemm import matrix
from tile_core.records import dataclass
from tile_core.simt.memory import contiguity
from tile_core.simt.ops.gemm_problem import Problem, asked, placed
from tile_core.simt.register_loops import choose, unrolled
from tile_core.simt.variant import SimtCall, SimtVariant

if TYPE_CHECKING:
    from tile_core.context import Context

#: Unroll factor of the loop over K.
_UNROLLED = 4


@dataclass(frozen=True)
class ThreadGrid:
    """The grid of threads over C, with strided rows and vectors of columns per thread.

    Rows of a thread have the stride ``rows``; its runs have ``vector`` columns.

    Attributes
    ----------
    rows, columns
        Threads along the rows and columns of C.
    each_m
        Rows of a thread.
    runs_n, vector
        Runs of adjacent columns of a thread, and their length.
    """

    rows: int
    columns: int
    each_m: int
    runs_n: int
    vector: int

    @property
    def each_n(self) -> int:
        """Columns of a thread."""
        return self.runs_n * self.vector


@cache
def grid_of(m: int, n: int, threads: int) -> ThreadGrid:
    """Return the grid with the least work per thread, then the fewest loads."""

    def part(columns: int, vector: int) -> ThreadGrid:
        rows = threads // columns
        return ThreadGrid(rows, columns, -(-m // rows), -(-n // (columns * vector)), vector)

    every = [part(c, v) for c in range(1, threads + 1) for v in (4, 2, 1)]
    return min(every, key=lambda g: (g.each_m * g.each_n, g.each_m + g.each_n // g.vector, -g.columns))


class GemmByThreads(SimtVariant):
    """GEMM on threads for all types and sizes, with A and B in shared memory.

    C is in a fragment or in shared memory.
    """

    op = "gemm"
    priority = -500
    fallback = True
    in_order = True
    legality = Legality(scopes=dict.fromkeys("ABC", ("shared", "fragment")))

    def __init__(self, owner: str) -> None:
        self.name = f"{owner}.simt.gemm"

    def asked(self, call: SimtCall, ctx: Context) -> Asked:
        """State the facts of a call for the legality table."""
        return asked(call, False)

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept operands in shared memory or fragments."""
        if call.divergent:
            return Reject("one thread executes it for itself")
        answer = super().accepts(call, ctx)
        if isinstance(answer, Reject):
            return answer
        p = Problem.of(call)
        g = grid_of(p.m, p.n, call.block.count)
        return Accept(note=f"{g.rows} x {g.columns} threads of {g.each_m} x {g.each_n} elements")

    def layouts(self, call: SimtCall, ctx: Context) -> Mapping[int, LayoutMap]:
        """Return the layout of C; A and B stay in shared memory for many readers."""
        p = Problem.of(call)
        found: dict[int, LayoutMap] = {}
        if p.c.scope == "local.fragment" and p.c.extents == tuple(nodes.shape_of(p.c.buffer)):
            own = accumulators(p.m, p.n, grid_of(p.m, p.n, call.block.count), call.block.count)
            found[2] = placed(own, p.c.extents, *p.c.matrix_dims(), False)
        for position, view in enumerate((p.a, p.b)):
            if view.scope == "local.fragment":
                found[position] = row_major(nodes.shape_of(view.buffer))
        return found

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the product for one thread."""
        return _ThreadProduct(call).statement()


def accumulators(m: int, n: int, g: ThreadGrid, threads: int) -> FragmentLayout:
    """Return the layout of C: registers enumerate rows, runs of columns, columns."""
    rows = (Digit(g.each_m, g.each_n, "register"), Digit(g.rows, g.columns, "thread"))
    columns = (Digit(g.runs_n, g.vector, "register"), Digit(g.columns, 1, "thread"), Digit(g.vector, 1, "register"))
    return FragmentLayout((m, n), (rows, columns), threads)


class _ThreadProduct:
    def __init__(self, call: SimtCall) -> None:
        self.call, self.p = call, Problem.of(call)
        self.g = grid_of(self.p.m, self.p.n, call.block.count)
        self.row, self.column = nodes.fresh("row"), nodes.fresh("column")
        kind = self.p.c.dtype
        self.kind = "float32" if kind in ("float16", "bfloat16") else kind

    def statement(self) -> Stmt:
        g, call = self.g, self.call
        array = call.placement.arrays.get(self.p.c.buffer)
        direct = array is not None and nodes.element_type(array) == self.kind
        totals, new = (array, None) if direct else nodes.alloc([g.each_m * g.each_n], self.kind, "totals", "local")
        thread = call.block.thread
        head = [
            tirx.Bind(self.row, tirx.floordiv(thread, g.columns)),
            tirx.Bind(self.column, tirx.floormod(thread, g.columns) * g.vector),
        ]
        body = nodes.seq(
            [*head, new, self.begin(totals, array, direct), self.loop(totals), self.end(totals, array, direct)]
        )
        if g.rows * g.columns != call.block.count:
            body = tirx.IfThenElse(thread < g.rows * g.columns, body, None, call.span)
        return step(body, call.span)

    # C

    def each(self, body: Stmt) -> Stmt:
        g = self.g

        def one(i: Expr, c: Expr, e: Expr) -> Stmt:
            return body((i * g.runs_n + c) * g.vector + e, self.row_of(i), self.column_of(c) + e)

        return unrolled("i", g.each_m, lambda i: unrolled(
            "c", g.runs_n, lambda c: unrolled("e", g.vector, lambda e: one(i, c, e))))  # fmt: skip

    def row_of(self, i: Expr) -> Expr:
        return self.row + i * self.g.rows

    def column_of(self, c: Expr) -> Expr:
        return self.column + c * (self.g.columns * self.g.vector)

    def begin(self, totals: BufferVar, array: BufferVar | None, direct: bool) -> Stmt | None:
        clear, zero = self.p.clear, nodes.zero(self.kind)
        if direct and clear is False:
            return None
        if direct:
            body = self.each(lambda r, *_: nodes.store(totals, zero, [r]))
            return body if clear is True else tirx.IfThenElse(clear, body, None, self.call.span)

        def one(r: Expr, i: Expr, j: Expr) -> Stmt:
            if clear is True:
                return nodes.store(totals, zero, [r])
            held = nodes.load(array, [r]) if array is not None else self.read(i, j)
            value = convert(held, self.kind)
            return nodes.store(totals, value if clear is False else tirx.if_then_else(clear, zero, value), [r])

        return self.each(one)

    def end(self, totals: BufferVar, array: BufferVar | None, direct: bool) -> Stmt | None:
        if direct:
            return None

        def one(r: Expr, i: Expr, j: Expr) -> Stmt:
            value = convert(nodes.load(totals, [r]), self.p.c.dtype)
            return nodes.store(array, value, [r]) if array is not None else self.write(value, i, j)

        return self.each(one)

    def read(self, i: Expr, j: Expr) -> Expr:
        at = matrix(self.p.c, False, i, j)
        return choose(
            [*self.real(i, j), *contiguity.inside(self.p.c, at, self.call.ranges)], nodes.load(self.p.c.buffer, at)
        )

    def write(self, value: Expr, i: Expr, j: Expr) -> Stmt:
        at = matrix(self.p.c, False, i, j)
        limits = [*self.real(i, j), *contiguity.inside(self.p.c, at, self.call.ranges)]
        stored = nodes.store(self.p.c.buffer, value, at, self.call.span)
        return tirx.IfThenElse(tirx.all(*limits), stored, None) if limits else stored

    def real(self, i: Expr, j: Expr) -> list[Expr]:
        g, p = self.g, self.p
        found = [i < p.m] if g.rows * g.each_m != p.m else []
        return [*found, *([j < p.n] if g.columns * g.each_n != p.n else [])]

    # The loop over K

    def loop(self, totals: BufferVar) -> Stmt:
        k = self.p.k
        left, new_left = nodes.alloc([self.g.each_m], self.kind, "a_values", "local")
        right, new_right = nodes.alloc([self.g.each_n], self.kind, "b_values", "local")
        var, whole = nodes.fresh("k_step"), k // _UNROLLED

        def one(at: Expr) -> Stmt:
            return self.one_step(totals, left, right, at)

        main = None
        if whole:
            inner = unrolled("k_inner", _UNROLLED, lambda u: one(var * _UNROLLED + u))
            main = nodes.for_loop(var, whole, inner, "serial")
        rest = unrolled("k_rest", k % _UNROLLED, lambda u: one(u + whole * _UNROLLED)) if k % _UNROLLED else None
        return nodes.seq([new_left, new_right, main, rest])

    def one_step(self, totals: BufferVar, left: Expr, right: Expr, k: Expr) -> Stmt:
        g = self.g

        def multiply(i: Expr, j: Expr) -> Stmt:
            at = i * g.each_n + j
            value = nodes.load(totals, [at]) + nodes.load(left, [i]) * nodes.load(right, [j])
            return nodes.store(totals, value, [at])

        def row_of_a(i: Expr) -> Stmt:
            return nodes.store(left, self.element(self.p.a, self.p.turned_a, self.row_of(i), k, 0), [i])

        return nodes.seq([
            unrolled("i", g.each_m, row_of_a),
            self.columns_of_b(right, k),
            unrolled("i", g.each_m, lambda i: unrolled("j", g.each_n, lambda j: multiply(i, j))),
        ])  # fmt: skip

    def columns_of_b(self, right: Expr, k: Expr) -> Stmt:
        """Return the statement that reads the thread's columns of a row of B."""
        g, p = self.g, self.p
        size = g.vector * DTYPES[p.b.dtype].bits // 8
        if g.vector > 1 and size in (4, 8, 16) and self.in_runs():

            def vector(c: Expr) -> Stmt:
                at = matrix(p.b, False, k, tirx.min(self.column_of(c), p.n - g.vector))
                return move(right, [c * g.vector], p.b.buffer, at, size)

            return unrolled("c", g.runs_n, vector)

        def one(c: Expr, e: Expr) -> Stmt:
            value = self.element(p.b, not p.turned_b, self.column_of(c) + e, k, 1)
            return nodes.store(right, value, [c * g.vector + e])

        return unrolled("c", g.runs_n, lambda c: unrolled("e", g.vector, lambda e: one(c, e)))

    def in_runs(self) -> bool:
        """Whether the thread's runs of columns of B are contiguous in memory."""
        p = self.p
        if p.turned_b or p.b.dtype != self.kind or p.n % self.g.vector or contiguity.conditions(p.b, self.call.ranges):
            return False
        layout = self.call.placement.layouts.get(p.b.buffer)
        return contiguity.has_runs(layout, p.b, p.b.matrix_dims()[1], self.g.vector, self.call.ranges)

    def element(self, view: View, turned: bool, line: Expr, k: Expr, role: int) -> Expr:
        """Return an element of a row or column ``line``; an arbitrary one in the padding."""
        g, p = self.g, self.p
        lines, most = ((p.m, g.rows * g.each_m), (p.n, g.columns * g.each_n))[role]
        if most > lines:
            line = tirx.min(line, nodes.int_const(lines - 1))
        at = matrix(view, turned, line, k)
        return convert(choose(contiguity.inside(view, at, self.call.ranges), nodes.load(view.buffer, at)), self.kind)
