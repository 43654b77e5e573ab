"""Floor divisions in terms of machine operations: shifts, masks, and divisions that round towards zero.

TVM's own pass for this proves signs with its simplifier, which takes seconds over symbolic sizes. Interval
arithmetic is as precise here.
"""

from __future__ import annotations

from tile_core.analysis.ranges import RangedRewriter, sizes_of, whole
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Mutator, Stmt
from tile_core.ir.visit import collect
from tile_core.numerics.build import cast, constant, equal, select, type_name

__all__ = ["lower_floors"]

_FLOORS = (tirx.FloorDiv, tirx.FloorMod)
#: Dividends of more nodes than this are not duplicated.
_SHORT = 64


def lower_floors(func: Expr) -> Expr:
    """Return the function without ``FloorDiv`` and ``FloorMod``.

    Parameters
    ----------
    func
        A function whose divisors are not zero, unless the result is not used.
    """
    return (
        func.with_body(_LowerDivisions(sizes_of(func.params)).stmt(func.body)) if collect(func.body, _FLOORS) else func
    )


class _LowerDivisions(RangedRewriter):
    def expr(self, e: Expr) -> Expr:
        if isinstance(e, (tirx.IntImm, tirx.FloatImm, tirx.Var)):
            return e
        return structural.mutated(e, [(_FLOORS, self.floor), (tirx.Let, self.let)])

    def visit_AssertStmt(self, s: Stmt) -> Stmt:
        """Lower the extents that arguments are compared with, such as ``m // 2`` bytes."""
        return structural.mutated(s, [(_FLOORS, self.floor), (tirx.Let, self.let)])

    def let(self, x: Expr, mutator: Mutator) -> Expr:
        if type_name(x.value).startswith(("int", "uint")):
            self.ranges.set(x.var, self.ranges.of(x.value))
        return mutator.default_mutate(x)

    def floor(self, x: Expr, mutator: Mutator) -> Expr:
        a, b = mutator.mutate(x.a), mutator.mutate(x.b)
        quotient = isinstance(x, tirx.FloorDiv)
        truncating = tirx.Div if quotient else tirx.Mod
        kind = type_name(x)
        (low, high), (least, _) = self.ranges.of(x.a), self.ranges.of(x.b)
        c = _constant(b)
        if kind.startswith("u") or (low >= 0 and least >= 0):
            return truncating(a, b) if c is None or c <= 0 or c & (c - 1) else _by_power(a, c, quotient)
        if c is None:
            return _any_signs(a, b, quotient, positive=least >= 0)
        if c <= 0:
            return _any_signs(a, b, quotient, positive=False)
        if c & (c - 1) == 0:
            return _by_power(a, c, quotient)
        multiples = -(low // c)  # adding this multiple of the divisor makes the dividend positive
        if max(high, 0) + multiples * c <= whole(kind)[1]:
            moved = truncating(a + constant(multiples * c, kind, a), b)
            return moved - constant(multiples, kind, a) if quotient else moved
        if kind == "int32" and len(collect(a, ir.Expr)) > _SHORT:
            wide = self.floor_wide(a, c, quotient)
            return cast(kind, wide)
        return _by_positive(a, b, quotient)

    def floor_wide(self, a: Expr, c: int, quotient: bool) -> Expr:
        """Divide a 32-bit number in 64 bits, where it can be made positive."""
        multiples = -(-(2**31) // c)
        moved = cast("int64", a) + constant(multiples * c, "int64", a)
        divisor = constant(c, "int64", a)
        if not quotient:
            return tirx.Mod(moved, divisor)
        return tirx.Div(moved, divisor) - constant(multiples, "int64", a)


def _constant(b: Expr) -> int | None:
    value = b.value if isinstance(b, tirx.Broadcast) else b
    return int(value.value) if isinstance(value, tirx.IntImm) else None


def _by_power(a: Expr, c: int, quotient: bool) -> Expr:
    """Divide by a power of two: the shift rounds down; the mask is the remainder."""
    kind = type_name(a)
    if c == 1:
        return a if quotient else constant(0, kind, a)
    if quotient:
        return tirx.shift_right(a, constant(c.bit_length() - 1, kind, a))
    return tirx.bitwise_and(a, constant(c - 1, kind, a))


def _by_positive(a: Expr, b: Expr, quotient: bool) -> Expr:
    """A negative remainder is one divisor too low."""
    kind = type_name(a)
    remainder = tirx.Mod(a, b)
    sign = tirx.shift_right(remainder, constant(int(kind.removeprefix("int")) - 1, kind, a))
    return tirx.Div(a, b) + sign if quotient else remainder + tirx.bitwise_and(sign, b)


def _any_signs(a: Expr, b: Expr, quotient: bool, *, positive: bool) -> Expr:
    """A remainder whose sign is not the divisor's is one divisor away."""
    if positive:
        return _by_positive(a, b, quotient)
    kind = type_name(a)
    zero, remainder = constant(0, kind, a), tirx.Mod(a, b)
    away = tirx.And(tirx.Not(equal(remainder, zero)), tirx.LT(tirx.bitwise_xor(remainder, b), zero))
    if quotient:
        return tirx.Div(a, b) - select(away, constant(1, kind, a), zero)
    return remainder + select(away, b, zero)
