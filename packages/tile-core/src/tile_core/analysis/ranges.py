"""The least and greatest value of an integer expression, from the ranges of its variables.

Plain interval arithmetic on Python integers: linear in the size of the expression. TVM's analyses simplify the
expressions that they bound, and take minutes over ``x % m`` with symbolic ``m``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from tile_core.compat.structural import identity, items
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import BufferVar, Call, Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import StmtRewriter, collect, replace_for
from tile_core.numerics.build import type_name

__all__ = ["Interval", "Ranges", "RangedRewriter", "sizes_of", "truncated", "whole"]

#: Least and greatest value, both inclusive.
Interval = tuple[int, int]


class Ranges:
    """The known ranges of variables at one point, and of expressions over them.

    Attributes
    ----------
    elements, calls
        The ranges of the elements of buffers, and of calls by the operator's name.

    The range of an expression is that of mathematical integers clamped to its type: indices do not overflow, and an
    expression that may overflow has the whole range of its type.
    """

    def __init__(self) -> None:
        self.elements: dict[BufferVar, Interval] = {}
        self.calls: dict[str, Interval] = {}
        #: By identity of an expression; comparing nodes is slow.
        self._known: dict[int, tuple[Interval, Expr]] = {}

    def set(self, e: Expr, interval: Interval) -> None:
        """Record the range of a variable, which is bound once, or of another expression."""
        self._known[identity(e)] = interval, e

    def knows(self, var: Var) -> bool:
        """Whether the range of a variable was recorded."""
        return identity(var) in self._known

    def loop(self, loop: Stmt) -> None:
        """Record the range of a loop's variable: all its values if the loop runs."""
        low, high = self.of(loop.min)
        extent = self.of(loop.extent)[1]
        step = 1 if loop.step is None else max(1, self.of(loop.step)[1])
        self.set(loop.loop_var, _cut((low, max(low, high + (extent - 1) * step)), type_name(loop.loop_var)))

    def of(self, e: Expr) -> Interval:
        """Return the range of an integer expression, over all its lanes."""
        if type(e) is tirx.IntImm:
            return int(e.value), int(e.value)
        found = self._known.get(identity(e))
        if found is None:
            if type(e) is tirx.Var:
                return whole(type_name(e))
            rule = _RULES.get(type(e))
            kind = type_name(e)
            interval = whole(kind) if rule is None or not _integer(kind) else _cut(rule(self, e), kind)
            found = self._known[identity(e)] = interval, e
        return found[0]

    def overflows(self, e: Expr) -> bool:
        """Whether a signed sum, difference or product within an expression may overflow its type."""
        arithmetic = collect(e, (tirx.Add, tirx.Sub, tirx.Mul))
        return any((kind := type_name(x)).startswith("int") and self.of(x) == whole(kind) for x in arithmetic)

    def let(self, e: Expr) -> Interval:
        """Return the range of the body of a binding."""
        if _integer(type_name(e.var)):
            self.set(e.var, self.of(e.value))
        return self.of(e.body)

    def call(self, e: Call) -> Interval:
        """Return the range of a call: both sides of a conditional, arithmetic without wrapping."""
        name = nodes.operator_name(e)
        if name == "if_then_else":
            return _union(self.of(e.args[1]), self.of(e.args[2]))
        if name.startswith(nodes.WRAPPING_PREFIX):
            (a, b), (c, d) = map(self.of, e.args)
            table = {"add": (a + c, b + d), "sub": (a - d, b - c), "mul": _products((a, b), (c, d))}
            return table[name.removeprefix(nodes.WRAPPING_PREFIX)]
        return self.calls.get(name) or whole(type_name(e))

    def select(self, e: Expr) -> Interval:
        """Return the range of a select; ``select(b == 0, x, b)`` excludes a zero ``b``."""
        yes, no = self.of(e.true_value), self.of(e.false_value)
        c = e.condition
        if type(c) is tirx.EQ and nodes.as_int(c.b) == 0 and c.a.same_as(e.false_value):
            no = (max(no[0], 1) if no[0] >= 0 else no[0], no[1])
            if no[0] > no[1]:
                return yes
        return _union(yes, no)


class RangedRewriter(StmtRewriter):
    """A rewriter with the ranges of the variables of loops and bindings around an expression.

    Parameters
    ----------
    sizes
        Variables that are not negative: those of symbolic extents.
    """

    def __init__(self, sizes: Iterable[Var] = ()) -> None:
        self.ranges = Ranges()
        for var in sizes:
            self.ranges.set(var, (0, whole(type_name(var))[1]))

    def visit_For(self, s: Stmt) -> Stmt:
        """Rewrite a loop, with the range of its variable in the body."""
        start, extent = self.expr(s.min), self.expr(s.extent)
        self.ranges.loop(s)
        body = self.body(s.body)
        if start.same_as(s.min) and extent.same_as(s.extent) and body.same_as(s.body):
            return s
        return replace_for(s, body, start=start, extent=extent)

    def visit_Bind(self, s: Stmt) -> Stmt:
        """Rewrite a binding, with the range of its value in the code after it."""
        if type_name(s.var).startswith(("int", "uint")):
            self.ranges.set(s.var, self.ranges.of(s.value))
        return super().visit_Bind(s)


def sizes_of(params: Iterable[Var]) -> list[Var]:
    """Return the variables that are extents of parameters: no size is negative."""
    return [d for p in params if tirx.is_buffer_var(p) for d in items(p.ty.shape) if type(d) is tirx.Var]


@functools.cache
def whole(kind: str) -> Interval:
    """Return the range of an integer type; for bools that of one bit."""
    if kind == "bool":
        return 0, 1
    if not _integer(kind):
        return -(2**63), 2**63 - 1
    bits = int(kind.lstrip("uint"))
    return (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _integer(kind: str) -> bool:
    return kind.startswith(("int", "uint"))


def _cut(interval: Interval, kind: str) -> Interval:
    """Return the interval, or the type's whole range if a value would not fit."""
    low, high = whole(kind)
    return interval if low <= interval[0] and interval[1] <= high else (low, high)


def _union(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), max(a[1], b[1])


def _products(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _quotients(a: Interval, b: Interval, divide: Callable[[int, int], int]) -> Interval:
    """Return the range of quotients; those by zero are 0 in the language."""
    divisors = {d for d in (*b, -1, 1) if b[0] <= d <= b[1] and d != 0}
    corners = [divide(x, d) for x in a for d in divisors]
    if b[0] <= 0 <= b[1]:
        corners.append(0)
    return min(corners), max(corners)


def _remainders(a: Interval, b: Interval, floor: bool) -> Interval:
    """Return the range of remainders with the divisor's sign, or the dividend's if truncated."""
    most = max(abs(b[0]), abs(b[1]), 1) - 1
    if a[0] >= 0 and b[0] > a[1]:
        return a
    if floor:
        upper = min(most, a[1]) if a[0] >= 0 and b[0] >= 0 else most
        return (0 if b[0] >= 0 else -most), (0 if b[1] <= 0 else upper)
    return (0 if a[0] >= 0 else max(-most, a[0])), (0 if a[1] <= 0 else min(most, a[1]))


def truncated(a: int, b: int) -> int:
    """Return the quotient rounded towards zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _and(a: Interval, b: Interval, kind: str) -> Interval:
    if a[0] < 0 and b[0] < 0:
        return whole(kind)
    return 0, min(x[1] for x in (a, b) if x[0] >= 0)


def _or(a: Interval, b: Interval, kind: str) -> Interval:
    if a[0] < 0 or b[0] < 0:
        return whole(kind)
    return 0, 2 ** max(a[1], b[1]).bit_length() - 1


def _shift_left(a: Interval, b: Interval, kind: str) -> Interval:
    if b[0] != b[1] or not 0 <= b[0] < 64:
        return whole(kind)
    return a[0] << b[0], a[1] << b[0]


def _shift_right(a: Interval, b: Interval) -> Interval:
    if b[0] < 0 or b[1] >= 64:
        return min(a[0], 0), max(a[1], 0)
    corners = [x >> s for x in a for s in b]
    return min(corners), max(corners)


def _ramp(r: Ranges, e: Expr) -> Interval:
    base, stride = r.of(e.base), r.of(e.stride)
    last = _products(stride, (int(nodes.as_int(e.lanes)) - 1,) * 2)
    return base[0] + min(0, last[0]), base[1] + max(0, last[1])


def _converted(r: Ranges, e: Expr) -> Interval:
    source = type_name(e.value)
    return r.of(e.value) if _integer(source) or source == "bool" else whole(type_name(e))


_RULES: dict[type, Callable[[Ranges, Expr], Interval]] = {
    tirx.Add: lambda r, e: (r.of(e.a)[0] + r.of(e.b)[0], r.of(e.a)[1] + r.of(e.b)[1]),
    tirx.Sub: lambda r, e: (r.of(e.a)[0] - r.of(e.b)[1], r.of(e.a)[1] - r.of(e.b)[0]),
    tirx.Mul: lambda r, e: _products(r.of(e.a), r.of(e.b)),
    tirx.FloorDiv: lambda r, e: _quotients(r.of(e.a), r.of(e.b), lambda x, d: x // d),
    tirx.Div: lambda r, e: _quotients(r.of(e.a), r.of(e.b), truncated),
    tirx.FloorMod: lambda r, e: _remainders(r.of(e.a), r.of(e.b), True),
    tirx.Mod: lambda r, e: _remainders(r.of(e.a), r.of(e.b), False),
    tirx.Min: lambda r, e: (min(r.of(e.a)[0], r.of(e.b)[0]), min(r.of(e.a)[1], r.of(e.b)[1])),
    tirx.Max: lambda r, e: (max(r.of(e.a)[0], r.of(e.b)[0]), max(r.of(e.a)[1], r.of(e.b)[1])),
    tirx.Select: Ranges.select,
    tirx.Let: Ranges.let,
    tirx.Cast: _converted,
    tirx.Broadcast: lambda r, e: r.of(e.value),
    tirx.Ramp: _ramp,
    tirx.BitwiseAnd: lambda r, e: _and(r.of(e.a), r.of(e.b), type_name(e)),
    tirx.BitwiseOr: lambda r, e: _or(r.of(e.a), r.of(e.b), type_name(e)),
    tirx.BitwiseXor: lambda r, e: _or(r.of(e.a), r.of(e.b), type_name(e)),
    tirx.LShift: lambda r, e: _shift_left(r.of(e.a), r.of(e.b), type_name(e)),
    tirx.RShift: lambda r, e: _shift_right(r.of(e.a), r.of(e.b)),
    ir.Call: Ranges.call,
    ir.TensorLoad: lambda r, e: r.elements.get(e.source) or whole(type_name(e)),
}
