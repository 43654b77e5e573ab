"""Integer division defined for every operand: by zero, and of the least number by -1.

Processors trap on ``x / 0`` and ``INT_MIN / -1``. In the language a quotient and a remainder by zero are
0, and the quotient of the least number by -1 is the least number, by wrapping. The pass replaces divisors that are
not constant so that both hold; a division costs more than the two comparisons. Divisors that became constant since
tracing, which refuses a constant zero, follow the same rule.
"""

from __future__ import annotations

from collections.abc import Iterable

from tile_core.analysis.ranges import RangedRewriter, whole
from tile_core.compat import structural
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BinaryNode, Expr, Mutator, Stmt, Var
from tile_core.ir.visit import collect
from tile_core.numerics.build import bind, constant, equal, select, type_name

__all__ = ["total_divisions"]

_QUOTIENTS = (tirx.FloorDiv, tirx.Div)
_REMAINDERS = (tirx.FloorMod, tirx.Mod)


def total_divisions(body: Stmt, sizes: Iterable[Var] = (), copies: bool = False) -> Stmt:
    """Return the statement with divisions defined for all operands.

    Parameters
    ----------
    body
        Any statement.
    sizes
        Variables that are not negative: those of symbolic extents.
    copies
        Whether a later pass copies the dividends of floor divisions: those that divide several times get a name.
    """
    return _Total(sizes, copies).stmt(body) if collect(body, _QUOTIENTS + _REMAINDERS) else body


class _Total(RangedRewriter):
    def __init__(self, sizes: Iterable[Var], copies: bool) -> None:
        super().__init__(sizes)
        self.copies = copies

    def expr(self, e: Expr) -> Expr:
        if type(e) in structural.ATOMS or not collect(e, _QUOTIENTS + _REMAINDERS):
            return e
        return structural.mutated(e, [(_QUOTIENTS + _REMAINDERS, self.divide)])

    def divide(self, e: Expr, mutator: Mutator) -> Expr:
        new = mutator.default_mutate(e)
        kind = type_name(new)
        if not kind.startswith(("int", "uint")):
            return new
        (low, _), (least, most) = self.ranges.of(e.a), self.ranges.of(e.b)
        many = self.copies and min(low, least) < 0 and len(collect(new.a, _QUOTIENTS + _REMAINDERS)) > 1
        if isinstance(new.b, (tirx.IntImm, tirx.Broadcast)):
            return (
                _by_constant(new) if not many else bind(new.a, lambda a: _by_constant(type(new)(a, new.b)), "dividend")
            )
        by_zero = least <= 0 <= most
        overflows = kind.startswith("int") and least <= -1 <= most and low == whole(kind)[0]
        if not by_zero and not overflows:
            return new if not many else bind(new.a, lambda a: type(new)(a, new.b), "dividend")
        made = _Division(type(new), by_zero, overflows)
        # A dividend that occurs once needs no name.
        dividend = bind if overflows or many else lambda value, body, _hint: body(value)
        return dividend(new.a, lambda a: bind(new.b, lambda b: made.total(a, b), "divisor"), "dividend")


class _Division:
    """A kind of division, and which operands need care."""

    def __init__(self, node: BinaryNode, by_zero: bool, overflows: bool) -> None:
        self.node, self.by_zero, self.overflows = node, by_zero, overflows

    def total(self, a: Var, b: Var) -> Expr:
        name = type_name(b)
        zero = equal(b, constant(0, name, b))
        unsafe = zero if self.by_zero else None
        if self.overflows:
            least = constant(whole(name)[0], name, b)
            beyond = tirx.And(equal(b, constant(-1, name, b)), equal(a, least))
            unsafe = beyond if unsafe is None else tirx.Or(unsafe, beyond)
        result = self.node(a, select(unsafe, constant(1, name, b), b))
        # By 1 the remainder is 0, and the quotient of the least number is itself.
        return select(zero, constant(0, name, b), result) if self.by_zero and self.node in _QUOTIENTS else result


def _by_constant(e: Expr) -> Expr:
    """Divide by -1: the negated number, which wraps, as code generators assume no overflow."""
    divisor = e.b.value if isinstance(e.b, tirx.Broadcast) else e.b
    if not isinstance(divisor, tirx.IntImm) or int(divisor.value) not in (0, -1):
        return e
    zero = constant(0, type_name(e), e)
    return tirx.Sub(zero, e.a) if isinstance(e, _QUOTIENTS) and int(divisor.value) else zero
