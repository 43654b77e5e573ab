"""Index arithmetic and conditions that may overflow their type, as wrapping operations.

Code generators, analyzers and guards assume that plain integer arithmetic does not overflow. So it stays plain only
where the ranges of its operands prove this; elsewhere it becomes an opaque operation that wraps
(``passes/wrapping.py``). Arithmetic of stored values is left to that module's ``hide``: passes between
recognise reductions by them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tile_core.analysis.ranges import RangedRewriter, sizes_of, whole
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Expr, Mutator, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.grammar import MOST_THREADS, SYMBOL_HEADROOM
from tile_core.ir.visit import collect, role
from tile_core.numerics.build import type_name
from tile_core.passes import wrapping

__all__ = ["wrap_unproven"]

_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul)
_COMPARISONS = (tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)
_WIDE = ("int32", "int64", "uint32", "uint64")


def wrap_unproven(body: Stmt, params: Iterable[Var] = ()) -> Stmt:
    """Return the statement with calls for arithmetic that may overflow its type.

    Parameters
    ----------
    body
        A statement before its accesses are guarded.
    params
        The parameters of the function; the extents of tensors leave headroom for rounding them up (K422).
    """
    params = list(params)
    wrap = _Wrap(sizes_of(params), {p for p in params if not tirx.is_buffer_var(p)})
    wrap.written_once = _written_once(body)
    return wrap.stmt(body)


class _Wrap(RangedRewriter):
    def __init__(self, sizes: Iterable[Var], data: set[Var]) -> None:
        super().__init__(sizes)
        for var in sizes:
            self.ranges.set(var, (0, whole(type_name(var))[1] - SYMBOL_HEADROOM))
        for name in ("thread_index", "lane_index", "warp_index"):
            self.ranges.calls[f"tile.{name}"] = (0, MOST_THREADS - 1)
        self.data = data
        self.written_once: set[BufferVar] = set()
        #: Whether an expression is stored as it is, and decides no address and no branch.
        self.stored = False

    def visit_For(self, s: Stmt) -> Stmt:
        if role(s) == "grid":
            _, other = self.ranges.calls.get("tile.block_index", (0, 0))
            self.ranges.calls["tile.block_index"] = (0, max(other, self.ranges.of(s.extent)[1] - 1))
        return super().visit_For(s)

    def visit_Bind(self, s: Stmt) -> Stmt:
        if self.is_data(s.value):
            self.data.add(s.var)
        return super().visit_Bind(s)

    def visit_BufferStore(self, s: Stmt) -> Stmt:
        """Rewrite a store; a variable that is written once has the range of that value."""
        indices = [self.expr(i) for i in s.indices]
        self.stored = True
        value = self.expr(s.value)
        self.stored = False
        if s.buffer in self.written_once:
            self.ranges.elements[s.buffer] = self.ranges.of(s.value)
        same = value.same_as(s.value) and all(a.same_as(b) for a, b in zip(indices, s.indices, strict=True))
        return s if same else tirx.BufferStore(s.buffer, value, indices, s.span)

    def expr(self, e: Expr) -> Expr:
        if isinstance(e, (tirx.IntImm, tirx.FloatImm, tirx.Var)) or not collect(e, _ARITHMETIC):
            return e
        return structural.mutated(e, [(_ARITHMETIC, self.operation), ((*_COMPARISONS, ir.TensorLoad), self.decisive)])

    def decisive(self, e: Expr, mutator: Mutator) -> Expr:
        """Rewrite a comparison, or a load with its indices."""
        outer, self.stored = self.stored, False
        new = mutator.default_mutate(e)
        self.stored = outer
        return new

    def operation(self, e: Expr, mutator: Mutator) -> Expr:
        a, b = mutator.mutate(e.a), mutator.mutate(e.b)
        kind = type_name(e)
        if kind in _WIDE and self.ranges.of(e) == whole(kind) and not (self.stored and self.is_data(e)):
            return wrapping.operation(e, a, b)
        return e if a.same_as(e.a) and b.same_as(e.b) else type(e)(a, b, e.span)

    def is_data(self, e: Expr) -> bool:
        """Whether a value comes from memory or from a scalar parameter."""
        return bool(collect(e, ir.TensorLoad)) or any(v in self.data for v in collect(e, tirx.Var))


def _written_once(body: Stmt) -> set[Any]:
    """Return the scratch buffers with one store and no other possible write."""
    stores = Counter(s.buffer for s in collect(body, tirx.BufferStore))
    exposed = {v for c in collect(body, ir.Call) if not _is_scalar(c) for v in collect(c, tirx.Var)}
    exposed |= {v for s in collect(body, tirx.DeclBuffer) for v in collect(s.data, tirx.Var)}
    scratch = {s.buffer for s in collect(body, tirx.AllocBuffer)}
    return {b for b in scratch - exposed if stores[b] == 1}


def _is_scalar(call: Any) -> bool:
    return not nodes.is_tile_call(call) and nodes.operator_name(call) not in ("buffer_data", "address_of")
