"""Quotients and remainders whose dividends are not multiples, simplified."""

from __future__ import annotations

from math import gcd

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr
from tile_core.ir import nodes
from tile_core.ir.visit import map_expr

__all__ = ["simplified"]


def simplified(e: Expr, analyzer: Analyzer) -> Expr:
    """Return an index simplified, without parts of dividends that change no quotient.

    The part is the remainder by each common divisor of the dividend's other part and the divisor: the 1 of
    ``(2 * i + 1) // 4``.
    """

    def without_rest(x: Expr) -> Expr:
        by, (coeff, base) = nodes.as_int(x.b), analyzer.modular_set(x.a)
        rest = base % gcd(coeff, by) if isinstance(by, int) and by > 0 else 0
        if not rest:
            return x
        part = nodes.int_const(rest, nodes.dtype_of(x.a))
        new = type(x)(analyzer.simplify(x.a - part), x.b)
        return new if type(x) is tirx.FloorDiv else new + part

    return analyzer.simplify(map_expr(e, without_rest, (tirx.FloorDiv, tirx.FloorMod)))
