"""Floats to integers by the language's rule (``numerics/truncation.py``), on targets whose own conversions differ.

A conversion whose operand provably fits stays the target's own. Others become a call of ``tile.float_truncate`` where
the target's text has the rule, and are expanded elsewhere.
"""

from __future__ import annotations

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Mutator, Stmt
from tile_core.dtypes import DTYPES
from tile_core.ir import nodes
from tile_core.ir.visit import collect
from tile_core.numerics.build import as_type, cast, constant, type_name
from tile_core.numerics.intervals import Intervals
from tile_core.numerics.truncation import limits_of, truncate_call, truncate_expr, truncated

__all__ = ["total_conversions"]


def total_conversions(body: Stmt, own: frozenset[tuple[str, str]] = frozenset()) -> Stmt:
    """Return the statement with float-to-integer conversions that give the language's result for all numbers.

    Parameters
    ----------
    body
        A statement of scalar operations.
    own
        Pairs (float32 or float64, integer type) for which the target's text prints ``tile.float_truncate``.
    """
    if not any(_truncates(c) for c in collect(body, tirx.Cast)):
        return body
    intervals = Intervals(_analyzer(body), {b.var: b.value for b in collect(body, (tirx.Bind, tirx.Let))})

    def convert(e: Expr, mutator: Mutator) -> Expr:
        if not _truncates(e):
            return mutator.default_mutate(e)
        target = type_name(e)
        fits = intervals.of(e.value).fits(target)
        value = mutator.mutate(e.value)
        if isinstance(value, tirx.FloatImm):
            return tirx.IntImm(target, truncated(float(value.value), target))
        if fits:
            return e if value.same_as(e.value) else tirx.Cast(e.ty, value, e.span)
        return _total(cast("float64" if type_name(value) == "float64" else "float32", value), target, own)

    return structural.mutated(body, [(tirx.Cast, convert)])


def _total(value: Expr, target: str, own: frozenset[tuple[str, str]]) -> Expr:
    source = type_name(value)
    if (source, target) in own:
        return truncate_call(value, target)
    if DTYPES[target].bits < 32 and (source, "int32") in own:
        low, high = (constant(x, "int32", value) for x in limits_of(target))
        wide = tirx.Min(tirx.Max(truncate_call(value, "int32"), low), high)
        return tirx.Cast(as_type(target, value), wide)
    return cast(target, truncate_expr(value, target))


def _truncates(e: Expr) -> bool:
    source, target = type_name(e.value), type_name(e)
    return target in DTYPES and source in DTYPES and DTYPES[source].is_float and DTYPES[target].is_integer


def _analyzer(body: Stmt) -> Analyzer:
    analyzer = Analyzer()
    for loop in collect(body, tirx.For):
        start, extent = nodes.as_int(loop.min), nodes.as_int(loop.extent)
        if isinstance(start, int) and isinstance(extent, int) and extent > 0:
            analyzer.bind(loop.loop_var, ir.Range.from_min_extent(start, extent), True)
    return analyzer
