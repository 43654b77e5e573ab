"""Quotients and remainders whose dividends are not multiples, simplified."""

from __future__ import annotations

from math import gcd

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx, tvm_ffi
from tile_core.compat.types import Expr
from tile_core.ir import nodes
from tile_core.ir.visit import map_expr

__all__ = ["are_equal", "simplified", "with_simplified_indices"]


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


def with_simplified_indices(e: Expr, analyzer: Analyzer) -> Expr:
    """Return an expression whose loads have simplified indices."""

    def plain(x: Expr) -> Expr:
        return nodes.load(x.source, [simplified(i, analyzer) for i in x.indices], x.span)

    return map_expr(e, plain, ir.TensorLoad)


def are_equal(a: Expr, b: Expr, analyzer: Analyzer) -> bool:
    """Whether two expressions are the same, perhaps with other forms of indices."""
    sides = (with_simplified_indices(e, analyzer) for e in (a, b))
    return bool(tvm_ffi.structural_equal(*sides, map_free_vars=False))
