"""TVM's analyzer for targets with threads: only sound queries, and usable after a failure.

A failure inside an expression leaves the enclosing conditions in the analyzer as facts. Later answers rely on them: an
unrelated comparison is then "known", or TVM aborts when it finds them. So expressions that may fail under conditions
are not queried, and an analyzer that failed is replaced by a new one with the same facts.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tile_core.analysis.ranges import Ranges, whole
from tile_core.compat.structural import identity, scalar_text, scalar_texts
from tile_core.compat.tvm import ir, tirx, tvm
from tile_core.compat.types import Expr, TvmAnalyzer, Var
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.numerics.build import type_name

__all__ = ["Analyzer", "ConstantBound", "Modulus"]

_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul)
_DIVISIONS = (tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod)
_SHIFTS = (tirx.LShift, tirx.RShift)
_NARROW = ("int8", "int16")
_SURVEYED = (tirx.Cast, tirx.IntImm, *_ARITHMETIC, tirx.Min, tirx.Max, tirx.Select, ir.Call)
_CHOICES, _EXTREMES = frozenset((tirx.Select, ir.Call)), frozenset((tirx.Min, tirx.Max))
_FAILURES = (tvm.error.InternalError, TypeError, ValueError)
_ATOMS = frozenset((tirx.Var, tirx.IntImm, bool, int))
#: Constants from which TVM derives others that may not fit into 32 bits.
_LARGE = 2**20


class ConstantBound(NamedTuple):
    """Least and greatest value, both inclusive."""

    min_value: int
    max_value: int


class Modulus(NamedTuple):
    """A modular set: ``coeff`` times an integer, plus ``base``."""

    coeff: int
    base: int


class Analyzer:
    """Facts about variables at one point of a program.

    Where TVM is unsound, only the type of an expression is known: if it has a conversion or narrow arithmetic that may
    wrap, unsigned arithmetic or constants, or selects among large constants.
    """

    def __init__(self) -> None:
        #: Made by the first fact or query: many analyzers get none.
        self.tvm: TvmAnalyzer | None = None
        self._recorded: list[Callable[[TvmAnalyzer], None]] = []
        self._conditions: list[list[Expr]] = []
        #: What surveys found where it depends on no fact, by the number of the expression, which lives as long.
        self._surveyed: dict[int, tuple[tuple[bool, bool], Expr]] = {}
        #: Whether a variable is known to be far from 0, or its negative may not fit.
        self._far = False

    def bind(self, var: Var, value: Expr, allow_override: bool = False) -> None:
        """Record the range of a variable, or its value."""
        values = (value.min, value.extent) if isinstance(value, ir.Range) else (value,)
        if not any(map(self.wraps, values)):
            self._record(lambda a: a.bind(var, value, allow_override))
            self._far = self._far or self._is_far(var)

    def bounded(self, var: Var, value: Expr) -> None:
        """Record the range and divisors of a variable's value, but not the value itself."""
        low, high = self.const_int_bound(value)
        least, most = whole(type_name(var))
        if least < low or high < most:
            bound = tvm.sym.ConstIntBound(low, high)
            self._record(lambda a: a.update(var, bound, True))
            self._far = self._far or self._is_far(var)
        coeff, base = self.modular_set(value)
        if coeff != 1:
            modulus = tvm.sym.ModularSet(coeff, base)
            self._record(lambda a: a.update(var, modulus, True))

    @contextmanager
    def constraint_scope(self, condition: Expr) -> Iterator[None]:
        """Assume a condition in a scope; one that TVM handles unsoundly is ignored."""
        entry: list[Expr] = [condition, None]
        if not self.wraps(condition) and self._attempt(lambda a: self._enter(a, entry)):
            self._conditions.append(entry)
        try:
            yield
        finally:
            if self._conditions and self._conditions[-1] is entry:
                self._conditions.pop()
                entry[1].__exit__(None, None, None)

    def simplify(self, e: Expr) -> Expr:
        """Return a simplified form, or the expression where that is unsound or may overflow."""
        if type(e) is tirx.IntImm:
            return e
        wraps, moves = self._survey(e)
        if wraps or (moves and _is_guarded(e)):
            return e
        simple = self._query("simplify", e, e)
        return e if (moves or self._far) and self._overflows_more(simple, e) else simple

    def can_prove(self, condition: Expr) -> bool:
        """Whether a condition is proven."""
        return not self.wraps(condition) and bool(self._query("can_prove", condition, False))

    def const_int_bound(self, e: Expr) -> ConstantBound:
        """Return the least and the greatest value of an integer expression."""
        found = None if self._survey(e)[0] else self._query("const_int_bound", e, None)
        return (
            ConstantBound(*whole(type_name(e)))
            if found is None
            else ConstantBound(int(found.min_value), int(found.max_value))
        )

    def modular_set(self, e: Expr) -> Modulus:
        """Return the modular set of an integer expression."""
        found = None if self._survey(e)[0] else self._query("modular_set", e, None)
        return Modulus(1, 0) if found is None else Modulus(int(found.coeff), int(found.base))

    def wraps(self, e: Expr) -> bool:
        """Whether TVM must not see an expression: it may wrap, or TVM may fail."""
        return self._survey(e)[0]

    def _survey(self, e: Expr) -> tuple[bool, bool]:
        """Return whether TVM must not see an expression, and whether moved terms may overflow.

        It may where terms are moved into or past a choice or a large number.
        """
        if type(e) in _ATOMS:
            return False, False
        found = self._surveyed.get(identity(e))
        if found is not None:
            return found[0]
        large = moves = chooses = asks = False
        for x in collect(e, _SURVEYED):
            sort = type(x)
            if sort in _CHOICES:
                chooses = chooses or sort is tirx.Select or nodes.operator_name(x) == "if_then_else"
                continue
            if sort in _EXTREMES:
                moves = True
                continue
            of = x.ty
            known = scalar_texts.get(identity(of))
            kind = scalar_text(of) if known is None else known[0]
            if sort is tirx.Cast:
                asks = asks or _integer(kind)
                if _integer(kind) and self._converted(x, kind):
                    return True, False
            elif kind.startswith("uint"):
                return True, False
            elif sort is tirx.IntImm:
                large = large or abs(int(x.value)) >= _LARGE
            elif kind in _NARROW:
                asks = True
                if not self._fits(x, kind):
                    return True, False
        # A failure inside a select aborts the process: TVM finds its conditions still in force while it unwinds.
        answer = large and chooses, large or moves or chooses
        if not asks:
            self._surveyed[identity(e)] = answer, e
        return answer

    def _is_far(self, var: Var) -> bool:
        low, high = self.const_int_bound(var)
        least, most = whole(type_name(var))
        return (low, high) != (least, most) and (low >= _LARGE or high <= -_LARGE or low == least)

    def _overflows_more(self, simple: Expr, e: Expr) -> bool:
        """Whether an intermediate value may overflow that an equal expression may not have.

        TVM moves terms as if integers had no limits: ``0 - max(0, i)`` becomes ``min(0, 0 - i)``, which overflows at
        the least ``i``. If a sum of terms that may be 0 does not overflow in one order, it does in none. An expression
        whose own overflow only a condition around it excludes keeps its form: the condition covers no other one.
        """
        if simple.same_as(e):
            return False
        known = Ranges()
        for var in collect(simple, tirx.Var):
            bound = self.const_int_bound(var)
            known.set(var, (bound.min_value, bound.max_value))
        for term in _terms(e):
            # It was left plain because its range is known to some pass or to the analyzer, and is small.
            if known.of(term) == whole(type_name(term)):
                known.set(term, (1, 1))
        return known.overflows(simple)

    def _converted(self, cast: Expr, kind: str) -> bool:
        source = type_name(cast.value)
        if not _integer(source):
            return source != "bool"
        (low, high), (least, most) = whole(source), whole(kind)
        return not (least <= low and high <= most) and not self._fits(cast.value, kind)

    def _fits(self, e: Expr, kind: str) -> bool:
        least, most = whole(kind)
        bound = self._query("const_int_bound", e, None)
        return bound is not None and least <= int(bound.min_value) and int(bound.max_value) <= most

    def _record(self, fact: Callable[[TvmAnalyzer], None]) -> None:
        if self._attempt(fact):
            self._recorded.append(fact)

    def _attempt(self, fact: Callable[[TvmAnalyzer], None]) -> bool:
        """Give TVM a fact; if it fails, the analyzer is rebuilt without it."""
        try:
            fact(self.tvm or self._rebuild())
            return True
        except _FAILURES:
            self._rebuild()
            return False

    def _query(self, question: str, e: Expr, otherwise: Any) -> Any:
        """Return TVM's answer; if it fails, a default value, and the analyzer is rebuilt."""
        try:
            return getattr(self.tvm or self._rebuild(), question)(e)
        except _FAILURES:
            self._rebuild()
            return otherwise

    def _rebuild(self) -> TvmAnalyzer:
        self.tvm = tvm.sym.Analyzer()
        for fact in self._recorded:
            fact(self.tvm)
        for entry in self._conditions:
            # TVM ends the process if a scope is left, or freed, whose analyzer failed halfway: it lives for ever.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(entry[1]))
            self._enter(self.tvm, entry)
        return self.tvm

    @staticmethod
    def _enter(analyzer: TvmAnalyzer, entry: list[Expr]) -> None:
        scope = analyzer.constraint_scope(entry[0])
        scope.__enter__()
        entry[1] = scope


def _is_guarded(e: Expr) -> bool:
    """Whether an expression chooses a divisor or counts bits at run time.

    TVM drops a choice that an outer one implies. Code generators evaluate parts of a side before they choose: there
    the divisor may be 0, and the count too large.
    """
    divides = any(type(x.b) is tirx.Select for x in collect(e, _DIVISIONS))
    return divides or any(
        nodes.operator_name(x) in _SHIFTS and type(x.args[1]) is not tirx.IntImm for x in collect(e, ir.Call)
    )


def _terms(e: Expr) -> Iterator[Expr]:
    """Yield the operands of additions and multiplications: variables, calls and elements of memory."""
    for x in collect(e, _ARITHMETIC):
        yield from (side for side in (x.a, x.b) if isinstance(side, (tirx.Var, ir.Call, ir.TensorLoad)))


def _integer(kind: str) -> bool:
    return kind.startswith(("int", "uint"))
