"""``max`` and ``min`` of floats as operators: expansions, and preservation by passes."""

from __future__ import annotations

import pytest

from tile_core.compat.tvm import tirx, tvm, tvm_ffi
from tile_core.ir import nodes
from tile_core.numerics.extremes import expand_extremes, extreme, extreme_of, float_extreme
from tile_core.numerics.minmax import max_expr, min_expr
from tile_core.passes.float_rules import hide, reveal


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("nan_propagate", [False, True])
def test_they_are_written_out_as_comparisons(dtype: str, nan_propagate: bool) -> None:
    a, b = tirx.Var("a", dtype), tirx.Var("b", dtype)
    for kind, written in (("max", max_expr), ("min", min_expr)):
        call = float_extreme(kind, a, b, nan_propagate)
        assert extreme_of(call) == (kind, nan_propagate)
        assert str(call.ty) == dtype
        found = expand_extremes(tirx.Evaluate(call)).value
        assert tvm_ffi.structural_equal(found, written(a, b, nan_propagate), map_free_vars=False)


def test_integers_have_nodes() -> None:
    a, b = tirx.Var("a", "int32"), tirx.Var("b", "int32")
    assert isinstance(extreme("max", a, b), tirx.Max)
    assert isinstance(extreme("min", a, b), tirx.Min)
    assert extreme_of(extreme("min", a, b)) is None


def test_a_constant_saves_comparisons_only_where_it_decides() -> None:
    x = tirx.Var("x", "float32")
    zero, minus = tirx.FloatImm("float32", 0.0), tirx.FloatImm("float32", -0.0)
    short = {str(e) for e in (max_expr(x, zero), max_expr(zero, x))}
    assert len(short) == 1
    assert len(str(max_expr(x, minus))) > len(short.pop())
    assert len(str(max_expr(x, tirx.FloatImm("float32", float("nan"))))) > len(str(max_expr(x, zero)))
    assert len(str(max_expr(x, zero, True))) > len(str(max_expr(x, zero)))


def test_they_are_arithmetic_that_the_simplifier_leaves_alone() -> None:
    nan = tirx.FloatImm("float32", float("nan"))
    call = float_extreme("max", nan, tirx.FloatImm("float32", 1.0))
    assert not nodes.is_tile_call(call)
    assert nodes.is_tile_call(call, "float_max")
    assert extreme_of(tvm.sym.Analyzer().simplify(call)) == ("max", False)
    s = tirx.Evaluate(call)
    assert extreme_of(reveal(hide(s)).value) == ("max", False)
