"""Proofs about indices by TVM's analyzer, restricted to expressions that it handles soundly and fast.

Its bounds assume that a conversion never wraps: ``uint8(-1)`` is 0 to it. It fails on unsigned constants, takes
minutes over quotients by symbols, and keeps facts about an element of memory after the element is overwritten.
Expressions that it must not see become opaque variables here, with ranges from interval arithmetic
(``analysis/ranges.py``).
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from tile_core.analysis.analyzer import Analyzer
from tile_core.analysis.ranges import Interval, Ranges, whole
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.grammar import SYMBOL_HEADROOM
from tile_core.ir.visit import collect
from tile_core.numerics.build import type_name

__all__ = ["Proofs"]

_LINEAR = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Min, tirx.Max)
_DIVISIONS = (tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod)
_BINARY = frozenset((*_LINEAR, tirx.And, tirx.Or))
_COMPARISONS = (tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)


class Proofs:
    """Facts at one point of a program.

    Parameters
    ----------
    aliased
        Whether buffers of the program may alias.
    """

    def __init__(self, aliased: bool = False) -> None:
        self.aliased = aliased
        self.analyzer = Analyzer()
        self.ranges = Ranges()
        self.hidden: dict[int, list[tuple[Expr, Var]]] = {}
        self.shown: dict[Expr, Expr] = {}

    def size(self, var: Var) -> None:
        """Record a variable that is not negative."""
        kind = type_name(var)
        # Launches leave headroom above symbolic sizes, so that kernels can round them up (K422).
        self.ranges.set(var, (0, whole(kind)[1] - SYMBOL_HEADROOM))
        self.analyzer.bind(var, ir.Range.from_min_extent(nodes.int_const(0, kind), tirx.max_value(kind)))

    def loop(self, s: Stmt) -> None:
        """Record the range of a loop's variable."""
        self.ranges.loop(s)
        self.analyzer.bind(s.loop_var, ir.Range.from_min_extent(self.show(s.min), self.show(s.extent)), True)

    def value(self, s: Stmt) -> None:
        """Record a binding."""
        kind = type_name(s.var)
        if _integer(kind):
            self.ranges.set(s.var, self.ranges.of(s.value))
        if kind.startswith("int") and not collect(s.value, (ir.TensorLoad, ir.Call)):
            self.analyzer.bind(s.var, self.show(s.value), True)

    def under(self, condition: Expr, body: Stmt | None) -> AbstractContextManager[object]:
        """Return the scope of a branch, where its condition holds unless the branch changes it.

        Parameters
        ----------
        condition
            The condition.
        body
            The statement of the branch; ``None`` for an expression.
        """
        read = {x.source for x in collect(condition, ir.TensorLoad)}
        if read and body is not None:
            written = {x.buffer for x in collect(body, tirx.BufferStore)}
            written |= {v for c in collect(body, ir.Call) if nodes.is_tile_call(c) for v in collect(c, tirx.Var)}
            if read & written or (self.aliased and written):
                return nullcontext()
        return self.analyzer.constraint_scope(self.show(condition))

    def holds(self, condition: Expr) -> bool:
        """Whether a condition is proven."""
        return self.analyzer.can_prove(self.show(condition))

    def bound(self, e: Expr) -> Interval:
        """Return the least and the greatest value of an integer expression."""
        low, high = self.ranges.of(e)
        found = self.analyzer.const_int_bound(self.show(e))
        return max(low, found.min_value), min(high, found.max_value)

    def wraps(self, e: Expr) -> bool:
        """Whether computing an index may overflow its type."""
        kind = type_name(e)
        return kind.startswith("int") and self.ranges.of(e) == whole(kind) and bool(collect(e, _LINEAR[:3]))

    def simplify(self, e: Expr) -> Expr:
        """Return a simplified condition or index, or itself where TVM must not see it."""
        if not tvm_ffi.structural_equal(self.show(e), e):
            return e
        found = self.analyzer.simplify(e)
        # TVM may have put a variable's value into the result, which hides parts of it.
        own = {var for bucket in self.hidden.values() for _, var in bucket}
        return e if own and own & set(collect(found, tirx.Var)) else found

    def show(self, e: Expr) -> Expr:
        """Return the form of an expression that TVM may see; the same object if unrestricted."""
        if type(e) is tirx.IntImm:
            # Constants of equal value are equal as keys, whatever their types.
            if not type_name(e).startswith("u"):
                return e
            return nodes.int_const(int(e.value), "int64") if int(e.value) < 2**63 else self.hide(e)
        found = self.shown.get(e)
        if found is None:
            found = self.shown[e] = self._show(e)
        return found

    def _show(self, e: Expr) -> Expr:
        kind = type_name(e)
        if kind != "bool" and not kind.startswith("int"):
            return self.hide(e)
        if type(e) is tirx.Var:
            return e
        if kind in ("int8", "int16") and isinstance(e, _LINEAR[:3]) and self.ranges.of(e) == whole(kind):
            return self.hide(e)
        if type(e) in _BINARY:
            return self._rebuilt(e, e.a, e.b)
        if type(e) in _DIVISIONS:
            divisor = nodes.as_int(e.b)
            return self._rebuilt(e, e.a, e.b) if isinstance(divisor, int) and divisor > 0 else self.hide(e)
        if type(e) in _COMPARISONS:
            return self._rebuilt(e, e.a, e.b) if _integer(type_name(e.a)) else self.hide(e)
        if type(e) is tirx.Not:
            a = self.show(e.a)
            return e if a.same_as(e.a) else tirx.Not(a)
        if type(e) is tirx.Cast:
            return self._cast(e, kind)
        if type(e) is tirx.Select:
            return self._choice(e.condition, e.true_value, e.false_value)
        if nodes.operator_name(e) == "if_then_else":
            return self._choice(*e.args)
        return self.hide(e)

    def _choice(self, condition: Expr, yes: Expr, no: Expr) -> Expr:
        x, y = self.show(yes), self.show(no)
        if type_name(x) != type_name(y):
            x, y = nodes.cast(x, "int64"), nodes.cast(y, "int64")
        return tirx.Select(self.show(condition), x, y)

    def _rebuilt(self, e: Expr, a: Expr, b: Expr) -> Expr:
        x, y = self.show(a), self.show(b)
        if x.same_as(a) and y.same_as(b):
            return e
        if type_name(x) != type_name(y):
            x, y = (nodes.cast(side, "int64") for side in (x, y))
        return type(e)(x, y)

    def _cast(self, e: Expr, kind: str) -> Expr:
        source = type_name(e.value)
        if not _integer(source):
            return self.hide(e)
        (low, high), (least, most) = self.ranges.of(e.value), whole(kind)
        if low < least or high > most:
            return self.hide(e)
        value = self.show(e.value)
        return e if value.same_as(e.value) else nodes.cast(value, kind)

    def hide(self, e: Expr) -> Var:
        """Return a variable for an expression, the same one for the same expression."""
        bucket = self.hidden.setdefault(tvm_ffi.structural_hash(e), [])
        for known, var in bucket:
            if tvm_ffi.structural_equal(known, e):
                return var
        kind = type_name(e)
        if kind != "bool" and not kind.startswith("int"):
            kind = "int64"
        var = tirx.Var("hidden", kind)
        bucket.append((e, var))
        if kind != "bool":
            low, high = self.ranges.of(e)
            least, most = whole(kind)
            if least < low and high < most and high - low < most:
                bounds = nodes.int_const(low, kind), nodes.int_const(high - low + 1, kind)
                self.analyzer.bind(var, ir.Range.from_min_extent(*bounds))
            self.ranges.set(var, (max(low, least), min(high, most)) if low <= most else (low, high))
        return var


def _integer(kind: str) -> bool:
    return kind.startswith(("int", "uint"))
