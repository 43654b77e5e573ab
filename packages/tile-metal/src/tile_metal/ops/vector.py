"""``metal.simd.vector`` and ``metal.simd.columns``: the product of one row with a matrix, without matrix instructions.

Seven of eight rows of a matrix instruction would be padding. Where B is stored by columns (as (N, K)), the lanes of a
simdgroup share each of them and add up what they find; where it is stored by rows, each thread has columns of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Expr, Stmt, Var
from tile_core.dtypes import DTYPES
from tile_core.ir import calls, nodes
from tile_core.ir.attributes import VECTOR
from tile_core.ir.calls import step
from tile_core.layout import LayoutMap
from tile_core.layout.digits import Digit
from tile_core.layout.fragment import FragmentLayout
from tile_core.lowering.legality import Asked, Atom, Extent, Legality
from tile_core.lowering.variant import Accept, Reject
from tile_core.ops.base import View
from tile_core.ops.copy import convert
from tile_core.ops.gemm import matrix
from tile_core.simt.memory import contiguity
from tile_core.simt.ops.gemm import GemmByThreads
from tile_core.simt.ops.gemm_problem import Problem, asked, placed
from tile_core.simt.register_loops import choose, unrolled, when
from tile_core.simt.variant import SimtCall, SimtVariant
from tile_metal.ops.atoms import ACCUMULATORS, OPERANDS
from tile_metal.target import SIMD

if TYPE_CHECKING:
    from tile_core.context import Context

_SEEN = ("shared", "global")
_TOTAL = "float32"
_ONE_ROW = Atom({"M": Extent(1, high=1), "N": 1, "K": 1})
#: Iterations along K that are unrolled.
_UNROLLED = 4


class VectorByLanes(SimtVariant):
    """One row times a column-major matrix, reduced over the lanes of a simdgroup."""

    name = "metal.simd.vector"
    op = "gemm"
    priority = 40
    legality = Legality(
        operands=("A", "B", "C"),
        dtypes=frozenset(product(OPERANDS, OPERANDS, ACCUMULATORS)),
        atoms=(_ONE_ROW,),
        scopes={"A": _SEEN, "B": _SEEN, "C": ("shared", "fragment")},
    )

    def asked(self, call: SimtCall, ctx: Context) -> Asked:
        """Return the requests, see ``Variant.asked``."""
        return asked(call, False)

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept one row of floats, for whole simdgroups."""
        p = Problem.of(call)
        if call.divergent:
            return Reject("one thread executes it for itself")
        if p.m != 1:
            return Reject(f"A has {p.m} rows instead of one")
        if not p.turned_b:
            return Reject("B is stored as (K, N) instead of (N, K)")
        if p.types[0] not in OPERANDS or p.types[1] not in OPERANDS or p.types[2] not in ACCUMULATORS:
            return Reject(f"it adds up floats, not {' and '.join(p.types)}")
        if call.block.count % SIMD:
            return Reject(f"threads={call.block.count} is not a multiple of {SIMD}")
        answer = super().accepts(call, ctx)
        if isinstance(answer, Reject):
            return answer
        width = vector(p)
        return Accept(
            note=f"{call.block.count // SIMD} simdgroups, {width} element{'s' * (width > 1)} of a lane at a time"
        )

    def layouts(self, call: SimtCall, ctx: Context) -> Mapping[int, LayoutMap]:
        """Return the layout of C: each of its columns in all lanes of a simdgroup."""
        p = Problem.of(call)
        if p.c.scope != "local.fragment" or p.c.extents != tuple(nodes.shape_of(p.c.buffer)):
            return {}
        return {2: placed(columns(p.n, call.block.count), p.c.extents, *p.c.matrix_dims(), False)}

    def lower(self, call: SimtCall, ctx: Context) -> Stmt:
        """Return the product for one thread."""
        return _VectorByLanes(call).statement()


class VectorByThreads(GemmByThreads):
    """One row times a matrix that is stored by rows: a thread per column."""

    priority = 39
    fallback = False
    legality = replace(GemmByThreads.legality, atoms=(_ONE_ROW,))

    def __init__(self) -> None:
        super().__init__("metal")
        self.name = "metal.simd.columns"

    def accepts(self, call: SimtCall, ctx: Context) -> Accept | Reject:
        """Accept one row of floats."""
        p = Problem.of(call)
        if p.m != 1 or p.turned_b or p.types[2] not in ACCUMULATORS:
            return Reject(f"it is for one row of floats and a B stored as (K, N), not for {p.m} rows")
        return super().accepts(call, ctx)


def columns(n: int, threads: int) -> FragmentLayout:
    """Return the layout of C: adjacent columns in registers, replicated over lanes."""
    groups = threads // SIMD
    digits = (Digit(groups, SIMD, "thread"), Digit(-(-n // groups), 1, "register"))
    return FragmentLayout((1, n), ((Digit(1, 1, "register"),), digits), threads, (Digit(SIMD, 1, "thread"),))


def vector(p: Problem) -> int:
    """Return the vector width along K: up to 16 bytes of the wider operand."""
    most = 128 // max(8, *(DTYPES[v.dtype].bits for v in (p.a, p.b)))
    width = 1
    while width * 2 <= most and p.k % (width * 2) == 0 and p.k >= SIMD * width * 2:
        width *= 2
    return width


class _VectorByLanes:
    def __init__(self, call: SimtCall) -> None:
        self.call, self.p = call, Problem.of(call)
        self.width = vector(self.p)
        self.groups = call.block.count // SIMD
        self.each = -(-self.p.n // self.groups)
        self.lane, self.first = nodes.fresh("lane"), nodes.fresh("simd_column")

    def statement(self) -> Stmt:
        """Return the product: per-lane partial accumulators of all columns, then a simdgroup reduction."""
        p, thread, chunk = self.p, self.call.block.thread, nodes.fresh("k_turn")
        head = [
            tirx.Bind(self.lane, tirx.floormod(thread, SIMD)),
            tirx.Bind(self.first, tirx.floordiv(thread, SIMD) * self.each),
        ]
        self.left, new_left = nodes.alloc([self.width], _TOTAL, "left", "local")
        self.right, new_right = nodes.alloc([self.width], _TOTAL, "right", "local")
        self.parts, new_parts = nodes.alloc([self.each], _TOTAL, "parts", "local")
        k = (chunk * SIMD + self.lane) * self.width
        body = nodes.seq([
            self.read(self.left, p.a, p.turned_a, 0, k, 0), unrolled("column", self.each, lambda r: self.column(r, k)),
        ])  # fmt: skip
        iterations = -(-p.k // (SIMD * self.width))
        limits = [] if p.k % (SIMD * self.width) == 0 else [k < p.k]
        loop = nodes.for_loop(chunk, iterations, when(limits, body), "unroll" if iterations <= _UNROLLED else "serial")
        start = unrolled("column", self.each, lambda r: nodes.store(self.parts, nodes.zero(_TOTAL), [r]))
        end = unrolled("column", self.each, self.finish)
        return step(nodes.seq([*head, new_left, new_right, new_parts, start, loop, end]), self.call.span)

    def column(self, r: Var, k: Expr) -> Stmt:
        """Return the statement that adds a lane's part of one column."""
        line = self.first + r
        if self.groups * self.each != self.p.n:
            line = tirx.min(line, nodes.int_const(self.p.n - 1))

        def one(e: Expr) -> Stmt:
            return nodes.store(self.parts, self.parts[r] + self.left[e] * self.right[e], [r])

        return nodes.seq([self.read(self.right, self.p.b, True, line, k, 1), unrolled("e", self.width, one)])

    def read(self, to: BufferVar, view: View, turned: bool, line: Expr, k: Expr, role: int) -> Stmt:
        """Return the loop that reads neighbours along K as float32."""
        e = nodes.fresh("e")
        at = matrix(view, turned, line, k + e) if role == 0 else matrix(view, turned, k + e, line)
        inside = contiguity.inside(view, at, self.call.ranges)
        value = convert(choose(inside, nodes.load(view.buffer, at)), _TOTAL)
        store = nodes.store(to, value, [e])
        return nodes.for_loop(e, self.width, store, "unroll", annotations={VECTOR: nodes.int_const(self.width)})

    def finish(self, r: Var) -> Stmt:
        """Return the statement that adds the sum of a column to C."""
        j, total = self.first + r, calls.instruction("simd_sum", [self.parts[r]], _TOTAL)
        c, clear = self.p.c, self.p.clear
        array = self.call.placement.arrays.get(c.buffer)
        at = matrix(c, False, 0, j)
        held = nodes.load(array, [r]) if array is not None else nodes.load(c.buffer, at)
        before = convert(held, _TOTAL)
        sum_ = nodes.fresh("sum", _TOTAL)
        if clear is True:
            new: Expr = sum_
        else:
            new = before + sum_ if clear is False else tirx.if_then_else(clear, sum_, before + sum_)
        new = convert(new, c.dtype)
        bind = tirx.Bind(sum_, total)
        if array is not None:
            return nodes.seq([bind, nodes.store(array, new, [r])])
        limits = [] if self.groups * self.each == self.p.n else [j < self.p.n]
        limits = [tirx.EQ(self.lane, nodes.int_const(0)), *limits, *contiguity.inside(c, at, self.call.ranges)]
        return nodes.seq([bind, when(limits, nodes.store(c.buffer, new, at, self.call.span))])
