"""Indices as additions in the order in which loops change their terms.

``(row + r) * 64 + k * 8`` becomes ``row * 64 + k * 8 + r * 64``. Compilers widen an index before they scale it, so that
only a sum in this order has a part that they compute once outside of a loop, and constants, after unrolling, that
become offsets in the instructions. Each access of an unrolled loop otherwise has an address in registers of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Stmt, Var
from tile_core.ir import nodes
from tile_core.ir.visit import collect

__all__ = ["IndexOrder"]

#: Later than what any loop changes: variables of unrolled loops are constants.
_LAST = 1 << 20


class IndexOrder:
    """How often variables change, for a printer that goes through a program.

    Parameters
    ----------
    analyzer
        Supplies ranges of variables: only terms that are not negative are reordered, whose parts overflow only if the
        whole does.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self._ranks: dict[Var, int] = {}
        self._depth = 0

    def enter(self, loop: Stmt) -> None:
        """Go into a loop."""
        self._depth += 1
        unrolled = loop.kind in (tirx.ForKind.UNROLLED, tirx.ForKind.VECTORIZED)
        self._ranks[loop.loop_var] = _LAST if unrolled else self._depth

    def leave(self) -> None:
        """Go out of a loop."""
        self._depth -= 1

    def bind(self, bind: Stmt) -> None:
        """Record a variable that is bound."""
        self._ranks[bind.var] = self._rank(bind.value)

    def sorted(self, index: Expr) -> Expr:
        """Return an index with the least changing terms first; unchanged if terms may be negative."""
        terms = list(self._terms(index))
        if len({rank for rank, _ in terms}) < 2 or any(self._may_be_negative(e) for _, e in terms):
            return index
        terms.sort(key=lambda term: term[0])
        total: Expr = terms[0][1]
        for _, e in terms[1:]:
            total = tirx.Add(total, e)
        return total

    def _terms(self, e: Expr) -> Iterator[tuple[int, Expr]]:
        """Yield the terms of an addition with their ranks; a multiple per rank."""
        if type(e) is tirx.Add:
            yield from self._terms(e.a)
            yield from self._terms(e.b)
        elif type(e) is tirx.Mul and type(e.b) is tirx.IntImm:
            parts: dict[int, Expr] = {}
            for rank, part in self._terms(e.a):
                parts[rank] = tirx.Add(parts[rank], part) if rank in parts else part
            for rank, part in parts.items():
                product = tirx.Mul(part, e.b)
                # A difference that is multiplied out has intermediate values that are larger than it.
                as_it_is = type(part) is tirx.Add or collect(part, tirx.Sub)
                yield rank, product if as_it_is else self.analyzer.simplify(product)
        else:
            yield self._rank(e), e

    def _rank(self, e: Expr) -> int:
        if type(e) is tirx.IntImm:
            return _LAST + 1
        if collect(e, (ir.TensorLoad, ir.Call)):
            return max([self._depth, *map(self._of, collect(e, tirx.Var))])
        return max(map(self._of, collect(e, tirx.Var)), default=_LAST + 1)

    def _of(self, var: Var) -> int:
        return self._ranks.get(var, 0)

    def _may_be_negative(self, e: Expr) -> bool:
        return not nodes.dtype_of(e).startswith("uint") and self.analyzer.const_int_bound(e).min_value < 0
