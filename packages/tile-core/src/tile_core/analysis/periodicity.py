"""Periodicity of integer expressions in a loop variable: proofs that they repeat or grow evenly.

An expression *advances* with ``(period, step, since)`` if ``e(k + period) = e(k) + step`` for every ``k >= since``. The
rules are those of arithmetic: a sum advances by both steps; a quotient by a constant, once the period is so long that
this is even, by the step divided by it, and a remainder by nothing then; a comparison with something that grows is
constant from some value on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import gcd, lcm

from tile_core.analysis.index_evaluation import Unknown, evaluate
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Var
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.records import dataclass

#: Longer periods, and longer beginnings, are not looked for.
MOST = 256


@dataclass(frozen=True)
class Advance:
    """An advance of an expression: ``e(k + period) == e(k) + step`` from ``since`` on."""

    period: int = 1
    step: int = 0
    since: int = 0

    def times(self, n: int) -> Advance:
        """Return the same for a period that is ``n`` times as long."""
        return Advance(self.period * n, self.step * n, self.since)

    @property
    def repeats(self) -> bool:
        """Whether the values repeat."""
        return self.step == 0


def advance_of(e: Expr, var: Var) -> Advance | None:
    """Return how an expression advances with a variable that counts up by one, if known.

    Other variables are constants.
    """
    if var not in set(collect(e, tirx.Var)):
        return None if collect(e, ir.TensorLoad) else Advance()
    if isinstance(e, tirx.Var):
        return Advance(1, 1)
    kind = type(e).__name__
    if isinstance(e, tirx.Cast):
        inner = advance_of(e.value, var)
        return inner if inner is not None and (inner.repeats or _widens(e)) else None
    if isinstance(e, ir.Call) and nodes.operator_name(e) in _AS_KIND:
        kind, parts = _AS_KIND[nodes.operator_name(e)], list(e.args)
    else:
        parts = [getattr(e, name) for name in ("a", "b", "condition", "true_value", "false_value") if hasattr(e, name)]
    found = [advance_of(p, var) for p in parts]
    known = [f for f in found if f is not None]
    if not known or len(known) < len(found):
        return None
    made = _combined(e, kind, parts, known, var)
    return made if made is not None and made.period <= MOST and made.since <= MOST else None


def common(advances: Iterable[Advance]) -> Advance:
    """Return the common period of all expressions, and the value from which it holds."""
    found = list(advances)
    return Advance(lcm(*(a.period for a in found)), 0, max((a.since for a in found), default=0))


def _combined(e: Expr, kind: str, parts: list[Expr], found: list[Advance], var: Var) -> Advance | None:
    if all(f.repeats for f in found):
        return common(found)
    rule = _RULES.get(kind)
    if rule is not None:
        return rule(parts, found)
    return _compared(e, found, var) if kind in _COMPARISONS else None


def _sum(sign: int) -> Callable[[list[Expr], list[Advance]], Advance]:
    def rule(parts: list[Expr], found: list[Advance]) -> Advance:
        both = common(found)
        a, b = (f.step * (both.period // f.period) for f in found)
        return Advance(both.period, a + sign * b, both.since)

    return rule


def _product(parts: list[Expr], found: list[Advance]) -> Advance | None:
    for factor, grown in ((parts[1], found[0]), (parts[0], found[1])):
        by = nodes.as_int(factor)
        if isinstance(by, int):
            return Advance(grown.period, grown.step * by, grown.since)
    return None


def _divided(remainder: bool) -> Callable[[list[Expr], list[Advance]], Advance | None]:
    def rule(parts: list[Expr], found: list[Advance]) -> Advance | None:
        by = nodes.as_int(parts[1])
        if not isinstance(by, int) or by < 1:
            return None
        grown = found[0].times(by // gcd(by, found[0].step))
        return Advance(grown.period, 0 if remainder else grown.step // by, grown.since)

    return rule


def _masked(parts: list[Expr], found: list[Advance]) -> Advance | None:
    """Bits below a power of two are those of the remainder by it."""
    for mask, other in ((parts[1], found[0]), (parts[0], found[1])):
        bits = nodes.as_int(mask)
        if isinstance(bits, int) and bits >= 0:
            return _divided(True)([mask, nodes.int_const(1 << bits.bit_length())], [other])
    return None


def _shifted(parts: list[Expr], found: list[Advance]) -> Advance | None:
    by = nodes.as_int(parts[1])
    return _divided(False)([parts[0], nodes.int_const(1 << by)], found) if isinstance(by, int) and by < 31 else None


def _compared(e: Expr, found: list[Advance], var: Var) -> Advance | None:
    """Return the value from which a comparison is constant or repeats.

    The difference of its sides grows evenly, or repeats.
    """
    both = common(found)
    a, b = (f.step * (both.period // f.period) for f in found)
    if a == b:
        return both
    try:
        apart = [int(evaluate(e.a, {var: k})) - int(evaluate(e.b, {var: k})) for k in range(2 * MOST)]
    except Unknown:
        return None
    sign = 1 if a > b else -1
    if both.period > MOST or any(d * sign <= 0 for d in apart[-both.period :]):
        return None
    return Advance(1, 0, max((k + 1 for k, d in enumerate(apart) if d * sign <= 0), default=0))


def _widens(e: Expr) -> bool:
    """Whether a conversion keeps every value of an integer."""
    source, target = nodes.dtype_of(e.value), nodes.dtype_of(e)
    return source.startswith("int") and target.startswith("int") and int(target[3:]) >= int(source[3:])


_RULES: dict[str, Callable[[list[Expr], list[Advance]], Advance | None]] = {
    "Add": _sum(1), "Sub": _sum(-1), "Mul": _product, "FloorDiv": _divided(False), "FloorMod": _divided(True),
    "BitwiseAnd": _masked, "RShift": _shifted,
}  # fmt: skip
_COMPARISONS = frozenset({"LT", "LE", "GT", "GE", "EQ", "NE"})
_AS_KIND = {
    "bitwise_and": "BitwiseAnd", "shift_right": "RShift", "bitwise_xor": "BitwiseXor", "bitwise_or": "BitwiseOr",
    "if_then_else": "Select", "shift_left": "LShift",
}  # fmt: skip
