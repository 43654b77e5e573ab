"""Proofs that parallel executions access different elements: an index has the digits of their numbers.

Executions are iterations of ``T.Parallel`` or blocks of a grid. An index is a sum of their variables, and of quotients
and remainders of them, with constant factors. Each term that counts further than all smaller ones reach is a digit that
the index determines, as in a number of mixed radix. Executions differ in their elements if the digits determine all
variables. The proof covers all values of all variables, and no access is computed. What is not of this form is a term
of known range, so that the answer is "not proven" and never wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tile_core.analysis.accesses import Access
from tile_core.analysis.iteration_space import overlapping_strides
from tile_core.analysis.ranges import Interval, Ranges
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx, tvm, tvm_ffi
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.numerics.build import type_name
from tile_core.records import dataclass

__all__ = ["Digits", "LinearForm", "linear_form"]

#: A variable of executions, or its quotient or remainder by a constant.
_Digit = tuple[Var, str, int]


class LinearForm(NamedTuple):
    """Variables times constant ``steps``, added to a ``rest`` without them."""

    steps: tuple[int, ...]
    rest: Expr


def linear_form(e: Expr, variables: Sequence[Var]) -> LinearForm | None:
    """Return an integer expression as a linear form of variables; ``None`` if it has none."""
    try:
        *steps, rest = structural.items(tvm.sym.detect_linear_equation(e, variables)) or [None]
    except (tvm.error.InternalError, TypeError, ValueError):  # it computes constants that do not fit
        return None
    if rest is None or not {tirx.IntImm}.issuperset(map(type, steps)):
        return None
    return LinearForm(tuple([int(x.value) for x in steps]), rest)


@dataclass
class _DigitSum:
    """An index as digits of executions, common values, and a bounded rest."""

    digits: dict[_Digit, int]
    shared: dict[Var, int]
    rest: Interval

    def plus(self, other: _DigitSum, factor: int) -> _DigitSum:
        digits, shared = dict(self.digits), dict(self.shared)
        for mine, theirs in ((digits, other.digits), (shared, other.shared)):
            for key, c in theirs.items():
                mine[key] = mine.get(key, 0) + c * factor
        ends = sorted(x * factor for x in other.rest)
        rest = self.rest[0] + ends[0], self.rest[1] + ends[1]
        return _DigitSum({k: c for k, c in digits.items() if c}, {k: c for k, c in shared.items() if c}, rest)


class Digits:
    """Indices as mixed-radix numbers whose digits are the variables of parallel executions.

    Parameters
    ----------
    nest
        The loops over the executions, of blocks or iterations.
    loops
        The loops inside, whose variables differ between accesses of an execution.
    binds
        Names with their values.
    inner
        More variables that differ between accesses: names of values that are computed inside.
    around
        Loops around the nest, whose variables have one value.
    """

    def __init__(
        self, nest: Iterable[Stmt], loops: Iterable[Stmt], binds: Mapping[Var, Expr], inner: Iterable[Var] = (),
        around: Iterable[Stmt] = (),
    ) -> None:  # fmt: skip
        sizes = [(s.loop_var, nodes.as_int(s.extent)) for s in nest]
        self.extents = {v: e if isinstance(e, int) else None for v, e in sizes}
        self.binds, self.inner = binds, {*inner, *(s.loop_var for s in loops)}
        self.ranges = Ranges()
        for s in (*around, *nest, *loops):
            self.ranges.loop(s)
        for var, value in binds.items():
            if type_name(var).startswith(("int", "uint")):
                self.ranges.set(var, self.ranges.of(value))

    def distinct(self, accesses: Sequence[Access]) -> bool:
        """Whether different executions provably never access the same element, by accesses of one buffer."""
        first = accesses[0]
        if any(a.buffer is not first.buffer and not a.buffer.same_as(first.buffer) for a in accesses):
            return False
        if overlapping_strides(first.buffer) is not None:
            return False
        found = self._pinned(accesses)
        for d in range(len(first.indices)):
            found_digits = [self._sum(a.indices[d]) for a in accesses]
            if any(s.digits != found_digits[0].digits or s.shared != found_digits[0].shared for s in found_digits):
                continue
            low, high = min(s.rest[0] for s in found_digits), max(s.rest[1] for s in found_digits)
            found |= self._separated(found_digits[0].digits, high - low + 1)
        return all(self._determined(v, found) for v, e in self.extents.items() if e != 1)

    def _pinned(self, accesses: Sequence[Access]) -> set[_Digit]:
        """Return the variables that must have one common value in all accesses."""
        first, *rest = (self._equations(a) for a in accesses)
        same = {v: e for v, e in first.items() if all(v in r and tvm_ffi.structural_equal(r[v], e) for r in rest)}
        return {(v, "", 1) for v in same}

    def _equations(self, access: Access) -> dict[Var, Expr]:
        """Return the values that variables have where an access happens."""
        found: dict[Var, Expr] = {}
        todo = [c for c, holds in access.conditions if holds]
        while todo:
            c = todo.pop()
            if type(c) is tirx.And:
                todo += [c.a, c.b]
            elif type(c) is tirx.EQ:
                for v, e in ((c.a, c.b), (c.b, c.a)):
                    if type(v) is tirx.Var and v in self.extents and self._uniform(e):
                        found[v] = e
        return found

    def _uniform(self, e: Expr) -> bool:
        """Whether an expression has one value in all executions."""
        if collect(e, (ir.TensorLoad, ir.Call)):
            return False
        names = collect(e, tirx.Var)
        return not any(v in self.extents or v in self.inner or v in self.binds for v in names)

    def _separated(self, digits: Mapping[_Digit, int], span: int) -> set[_Digit]:
        """Return the digits that an index determines: each counts further than all below it reach."""
        ordered = sorted(digits, key=lambda k: abs(digits[k]))
        spans: list[int | None] = []
        below: int | None = span
        for k in ordered:
            spans.append(below)
            extent = self._extent(k)
            below = None if below is None or extent is None else below + abs(digits[k]) * (extent - 1)
        found: set[_Digit] = set()
        for k, reach in zip(reversed(ordered), reversed(spans), strict=True):
            if reach is None or abs(digits[k]) < reach:
                break
            found.add(k)
        return found

    def _extent(self, digit: _Digit) -> int | None:
        var, kind, by = digit
        extent = self.extents[var]
        if kind == "%":
            return by
        return extent if extent is None or kind == "" else -(-extent // by)

    def _determined(self, v: Var, found: set[_Digit]) -> bool:
        if (v, "", 1) in found:
            return True
        return any((v, "//", by) in found and (v, "%", by) in found for _, _, by in found)

    def _sum(self, e: Expr) -> _DigitSum:
        kind = type(e)
        if kind is tirx.IntImm or isinstance(e, int):
            value = int(nodes.as_int(e))
            return _DigitSum({}, {}, (value, value))
        if kind is tirx.Var:
            return self._name(e)
        if kind is tirx.Add or kind is tirx.Sub:
            return self._sum(e.a).plus(self._sum(e.b), 1 if kind is tirx.Add else -1)
        if kind is tirx.Mul:
            for a, b in ((e.a, e.b), (e.b, e.a)):
                factor = nodes.as_int(b)
                if isinstance(factor, int):
                    return _DigitSum({}, {}, (0, 0)).plus(self._sum(a), factor)
        if kind is tirx.Cast and type_name(e.value).startswith("int"):
            return self._sum(e.value)
        if kind in (tirx.FloorDiv, tirx.FloorMod):
            by, of = nodes.as_int(e.b), self._sum(e.a)
            if (
                isinstance(by, int)
                and by > 0
                and of.rest == (0, 0)
                and not of.shared
                and list(of.digits.values()) == [1]
            ):
                ((var, how, _),) = of.digits
                if how == "":
                    return _DigitSum({(var, "//" if kind is tirx.FloorDiv else "%", by): 1}, {}, (0, 0))
        return _DigitSum({}, {}, self.ranges.of(e))

    def _name(self, v: Var) -> _DigitSum:
        if self.extents.get(v, 1) != 1:
            return _DigitSum({(v, "", 1): 1}, {}, (0, 0))
        value = self.binds.get(v)
        if value is not None and not collect(value, (ir.TensorLoad, ir.Call)):
            return self._sum(value)
        if value is None and v not in self.inner:
            return _DigitSum({}, {v: 1}, (0, 0))
        return _DigitSum({}, {}, self.ranges.of(v))
