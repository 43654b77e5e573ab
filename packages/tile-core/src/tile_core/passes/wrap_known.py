"""Index arithmetic that overflows its type, as wrapping operations.

Code generators and analyzers assume that indices do not overflow. Where block indices and induction variables alone
cause overflow, and in conditions where a scalar of the launch can, the operation becomes an opaque one that wraps
(``passes/wrapping.py``).
"""

from __future__ import annotations

from collections.abc import Iterable

from tile_core.analysis.ranges import RangedRewriter, whole
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Mutator, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.grammar import SYMBOL_ROOM
from tile_core.ir.visit import collect
from tile_core.numerics.build import type_name
from tile_core.passes import wrapping

__all__ = ["wrap_known"]

_ARITHMETIC = (tirx.Add, tirx.Sub, tirx.Mul)
_COMPARISONS = (tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)


def wrap_known(body: Stmt, sizes: Iterable[Var] = ()) -> Stmt:
    """Return the statement with calls for the signed arithmetic that overflows its type.

    Parameters
    ----------
    body
        A statement before its accesses are guarded.
    sizes
        Variables of symbolic extents.
    """
    return _Wrap(sizes).stmt(body)


class _Wrap(RangedRewriter):
    def __init__(self, sizes: Iterable[Var]) -> None:
        super().__init__(sizes)
        self.sizes = frozenset(sizes)
        self.compared = False

    def expr(self, e: Expr) -> Expr:
        if isinstance(e, (tirx.IntImm, tirx.FloatImm, tirx.Var)) or not collect(e, _ARITHMETIC):
            return e
        return structural.mutated(e, [(_ARITHMETIC, self.operation), (_COMPARISONS, self.comparison)])

    def comparison(self, e: Expr, mutator: Mutator) -> Expr:
        outer, self.compared = self.compared, True
        new = mutator.default_mutate(e)
        self.compared = outer
        return new

    def operation(self, e: Expr, mutator: Mutator) -> Expr:
        a, b = mutator.mutate(e.a), mutator.mutate(e.b)
        if type_name(e) in ("int32", "int64") and self.leaves(e):
            return wrapping.operation(e, a, b)
        return e if a.same_as(e.a) and b.same_as(e.b) else type(e)(a, b, e.span)

    def leaves(self, e: Expr) -> bool:
        """Whether an operation overflows its type, given the known ranges of its variables."""
        if self.ranges.of(e) != whole(type_name(e)):
            return False
        if collect(e, (ir.TensorLoad, ir.Call)):
            return False  # data, which another pass handles
        if _negates(e):
            return True  # the least number of a type: the only one for which -x and abs(x) overflow
        variables = collect(e, tirx.Var)
        if any(v in self.sizes for v in variables):
            return _far(e)
        known = all(self.ranges.of(v) != whole(type_name(v)) for v in variables)
        return known or (self.compared and not any(v in self.ranges.variables for v in variables))


def _negates(e: Expr) -> bool:
    return isinstance(e, tirx.Sub) and nodes.as_int(e.a) == 0


def _far(e: Expr) -> bool:
    """Whether a sum with a size exceeds the headroom above sizes, which is there for rounding them up (K422)."""
    return any(isinstance(x, tirx.IntImm) and abs(int(x.value)) > SYMBOL_ROOM for x in (e.a, e.b))
