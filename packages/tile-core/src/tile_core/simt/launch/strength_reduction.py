"""Strength reduction of ``k % n``: wrapping counters compute pipeline slots without divisions.

In a sequential loop, ``k % n`` starts at 0 and each iteration increments it or wraps it to 0::

    ring = min % n
    for k:
        here = ring
        slot, ahead = here, here + c < n ? here + c : here + c - n      # k % n, (k + c) % n
        ...
        ring = here + 1 < n ? here + 1 : 0

Only bindings of an iteration are rewritten, in loops whose op requests it (``calls.part``). The pass runs late, because
a remainder proves that an access is in bounds.
"""

from __future__ import annotations

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import StmtRewriter, annotation, collect, map_expr, replace_for, statements


def reduce_strength(body: Stmt) -> Stmt:
    """Return the body with the remainders in the bindings of marked loops rewritten."""
    return _Rings().stmt(body)


class _Rings(StmtRewriter):
    def visit_For(self, s: Stmt) -> Stmt:
        new = super().visit_For(s)
        start, step = nodes.as_int(s.min), 1 if s.step is None else nodes.as_int(s.step)
        if not annotation(s, attributes.RING) or not isinstance(start, int) or start < 0 or step != 1:
            return new
        periods = {int(e.b.value) for e in _remainders(new)}
        return _Ring(new, start, periods.pop()).loop() if len(periods) == 1 else new


class _Ring:
    """One loop with remainders by one modulus."""

    def __init__(self, loop: Stmt, start: int, period: int) -> None:
        self.old, self.start, self.period = loop, start, period
        self.here = nodes.fresh("ring_here")

    def loop(self) -> Stmt:
        """Return the loop and the variable in front of it."""
        cell, new = nodes.alloc([1], "int32", "ring", "local.var")
        body = [self.bind(s) if isinstance(s, tirx.Bind) else s for s in statements(self.old.body)]
        follow = nodes.store(cell, self.wrapped(1), [0])
        whole = nodes.seq([tirx.Bind(self.here, nodes.load(cell, [0])), *body, follow])
        start = nodes.store(cell, nodes.int_const(self.start % self.period), [0])
        return nodes.seq([new, start, replace_for(self.old, whole)])

    def bind(self, s: Stmt) -> Stmt:
        """Return a binding without remainders."""
        return tirx.Bind(s.var, map_expr(s.value, self.remainder, tirx.FloorMod), s.span)

    def remainder(self, e: Expr) -> Expr:
        """Return a remainder by the variable, if it is one of the loop's."""
        away = _away(e, self.old.loop_var)
        return e if away is None else nodes.cast(self.wrapped(away), nodes.dtype_of(e))

    def wrapped(self, away: int) -> Expr:
        """Return ``(k + away) % n``."""
        away %= self.period
        if not away:
            return self.here
        last = nodes.int_const(self.period - away)
        return tirx.Select(self.here < last, self.here + nodes.int_const(away), self.here - last)


def _remainders(loop: Stmt) -> list[Expr]:
    """Return the remainders of the induction variable by constants in the bindings of an iteration."""
    binds = [s.value for s in statements(loop.body) if isinstance(s, tirx.Bind)]
    return [e for value in binds for e in collect(value, tirx.FloorMod) if _away(e, loop.loop_var) is not None]


def _away(e: Expr, var: Var) -> int | None:
    """Return c of ``(var + c) % n`` for constants c and n; otherwise ``None``."""
    period = nodes.as_int(e.b)
    if not isinstance(period, int) or period < 2 or nodes.dtype_of(e.a) != nodes.dtype_of(var):
        return None
    away = nodes.as_int(Analyzer().simplify(e.a - var))
    return away if isinstance(away, int) else None
