"""TVM's analyzer for targets with threads: asked only about what it is right about, and usable after it failed.

A failure in the middle of an expression leaves the conditions around that place behind, and later answers believe
them: a comparison of something else is then "known", or the process ends where TVM finds them. So what may fail among
conditions is not asked, and an analyzer that failed is replaced by one that is told the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tile_core.analysis.ranges import whole
from tile_core.compat.tvm import ir, tirx, tvm
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.numerics.build import type_name

__all__ = ["Analyzer", "Bound", "Modulus"]

_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul)
_NARROW = ("int8", "int16")
#: Constants of which TVM makes others that may not fit into 32 bits.
_LARGE = 2**20


class Bound(NamedTuple):
    """Least and greatest value, both inclusive."""

    min_value: int
    max_value: int


class Modulus(NamedTuple):
    """What a number is: ``coeff`` times an integer, plus ``base``."""

    coeff: int
    base: int


class Analyzer:
    """What is known about variables at one place of a program.

    An expression that TVM is wrong about is only known by its type: one with a conversion or narrow arithmetic that may
    wrap, with unsigned arithmetic or unsigned constants, or with choices among large constants.
    """

    def __init__(self) -> None:
        self.tvm = tvm.sym.Analyzer()
        self._told: list[Callable[[Any], None]] = []
        self._conditions: list[list[Any]] = []

    def bind(self, var: Any, value: Any, allow_override: bool = False) -> None:
        """Note the range of a variable, or its value."""
        said = (value.min, value.extent) if isinstance(value, ir.Range) else (value,)
        if not any(self.wraps(e) for e in said):
            self._tell(lambda a: a.bind(var, value, allow_override))

    def bounded(self, var: Any, value: Any) -> None:
        """Note the range and the divisors of what a variable is bound to, not the value: the name stays."""
        low, high = self.const_int_bound(value)
        least, most = whole(type_name(var))
        if least < low or high < most:
            bound = tvm.sym.ConstIntBound(low, high)
            self._tell(lambda a: a.update(var, bound, True))
        coeff, base = self.modular_set(value)
        if coeff != 1:
            modulus = tvm.sym.ModularSet(coeff, base)
            self._tell(lambda a: a.update(var, modulus, True))

    @contextmanager
    def constraint_scope(self, condition: Any) -> Iterator[None]:
        """Believe a condition for a while; one that TVM is wrong about says nothing."""
        entry: list[Any] = [condition, None]
        if not self.wraps(condition) and self._ask(lambda a: self._enter(a, entry), None) is not None:
            self._conditions.append(entry)
        try:
            yield
        finally:
            if self._conditions and self._conditions[-1] is entry:
                self._conditions.pop()
                entry[1].__exit__(None, None, None)

    def simplify(self, e: Any) -> Any:
        """Return a simpler form; the same where TVM must not look into it."""
        return e if self.wraps(e) else self._ask(lambda a: a.simplify(e), e)

    def can_prove(self, condition: Any) -> bool:
        """Whether a condition is certain."""
        return not self.wraps(condition) and bool(self._ask(lambda a: a.can_prove(condition), False))

    def const_int_bound(self, e: Any) -> Bound:
        """Return the least and the greatest value of an integer expression."""
        found = None if self.wraps(e) else self._ask(lambda a: a.const_int_bound(e), None)
        return Bound(*whole(type_name(e))) if found is None else Bound(int(found.min_value), int(found.max_value))

    def modular_set(self, e: Any) -> Modulus:
        """Return what divides an integer expression."""
        found = None if self.wraps(e) else self._ask(lambda a: a.modular_set(e), None)
        return Modulus(1, 0) if found is None else Modulus(int(found.coeff), int(found.base))

    def wraps(self, e: Any) -> bool:
        """Whether TVM must not look into an expression: a part may wrap as far as it knows, or it might fail there."""
        if isinstance(e, (tirx.Var, tirx.IntImm)):
            return False
        large = False
        for x in collect(e, (tirx.Cast, tirx.IntImm, *_ARITHMETIC)):
            kind = type_name(x)
            if isinstance(x, tirx.Cast):
                if _integer(kind) and self._converted(x, kind):
                    return True
            elif kind.startswith("uint"):
                return True
            elif isinstance(x, tirx.IntImm):
                large = large or abs(int(x.value)) >= _LARGE
            elif kind in _NARROW and not self._fits(x, kind):
                return True
        # A failure inside of choices ends the process: TVM finds their conditions left behind while it unwinds.
        return large and any(not isinstance(x, ir.Call) or _chooses(x) for x in collect(e, (tirx.Select, ir.Call)))

    def _converted(self, cast: Any, kind: str) -> bool:
        source = type_name(cast.value)
        if not _integer(source):
            return source != "bool"
        (low, high), (least, most) = whole(source), whole(kind)
        return not (least <= low and high <= most) and not self._fits(cast.value, kind)

    def _fits(self, e: Any, kind: str) -> bool:
        least, most = whole(kind)
        bound = self._ask(lambda a: a.const_int_bound(e), None)
        return bound is not None and least <= int(bound.min_value) and int(bound.max_value) <= most

    def _tell(self, fact: Callable[[Any], None]) -> None:
        def told(analyzer: Any) -> bool:
            fact(analyzer)
            return True

        if self._ask(told, False):
            self._told.append(fact)

    def _ask(self, question: Callable[[Any], Any], otherwise: Any) -> Any:
        """Return an answer of TVM's; where it fails, another value, and the analyzer is made anew."""
        try:
            return question(self.tvm)
        except (tvm.error.InternalError, TypeError, ValueError):
            self.tvm = tvm.sym.Analyzer()
            for fact in self._told:
                fact(self.tvm)
            for entry in self._conditions:
                self._enter(self.tvm, entry)
            return otherwise

    @staticmethod
    def _enter(analyzer: Any, entry: list[Any]) -> bool:
        scope = analyzer.constraint_scope(entry[0])
        scope.__enter__()
        entry[1] = scope
        return True


def _chooses(call: Any) -> bool:
    return bool(nodes.operator_name(call) == "if_then_else")


def _integer(kind: str) -> bool:
    return kind.startswith(("int", "uint"))
