"""TVM's analyzer under targets with threads: only sound queries, and no traces of a failure."""

from __future__ import annotations

import pytest

from tile_core.analysis.analyzer import Analyzer
from tile_core.analysis.proofs import Proofs
from tile_core.compat.tvm import ir, tirx
from tile_core.ir import nodes

u8, i8, i = nodes.fresh("u", "uint8"), nodes.fresh("b", "int8"), nodes.fresh("i")
CLAMPED = tirx.Select(tirx.LT(u8, nodes.int_const(0, "uint8")), nodes.int_const(0, "uint8"), u8)
LARGE = (i + nodes.int_const(2**29)) * 5


def known() -> Analyzer:
    analyzer = Analyzer()
    analyzer.bind(i, ir.Range.from_min_extent(nodes.int_const(0), nodes.int_const(16)))
    return analyzer


@pytest.mark.parametrize(
    "e",
    [
        tirx.Cast("int32", tirx.Cast("uint8", nodes.int_const(0) - i)),
        tirx.Cast("int32", tirx.Sub(u8, nodes.int_const(1, "uint8"))),
        tirx.Cast("int32", tirx.Sub(i8, nodes.int_const(1, "int8"))),
        tirx.Cast("int32", tirx.FloatImm("float32", 2.5)),
        tirx.Select(tirx.LT(i, nodes.int_const(7)), tirx.Cast("int32", CLAMPED), i),
        tirx.Select(tirx.LT(i, nodes.int_const(7)), tirx.Select(tirx.LT(i, nodes.int_const(3)), LARGE, i), i),
    ],
)
def test_what_wraps_is_known_by_its_type(e) -> None:
    analyzer = known()
    assert analyzer.wraps(e)
    assert analyzer.simplify(e).same_as(e)
    assert analyzer.const_int_bound(e) == (-(2**31), 2**31 - 1)
    assert not analyzer.can_prove(tirx.LT(e, nodes.int_const(127)))
    with analyzer.constraint_scope(tirx.LT(e, i)):
        assert analyzer.const_int_bound(i) == (0, 15)


def test_what_does_not_wrap_is_known() -> None:
    analyzer = known()
    for e in (tirx.Cast("uint8", i), tirx.Cast("int64", i), tirx.Cast("int32", u8), tirx.Cast("int8", i) + i8 * 0):
        assert not analyzer.wraps(e)
    assert analyzer.const_int_bound(tirx.Cast("uint8", i + 3)) == (3, 18)
    assert analyzer.can_prove(tirx.LT(tirx.Cast("int32", u8), nodes.int_const(256)))


def test_nothing_is_left_of_a_failure() -> None:
    """Conditions around a failure must not hold afterwards; those of the program must."""
    analyzer = known()
    analyzer.bounded(j := nodes.fresh("j"), i * 4)
    small, fails = tirx.LT(i, nodes.int_const(3)), 0
    with analyzer.constraint_scope(tirx.GE(i, nodes.int_const(2))):
        for e in (CLAMPED, tirx.EQ(i * 7 + 3, nodes.int_const(-(2**31))), tirx.Select(small, LARGE, i), LARGE):
            before = analyzer.tvm
            analyzer.simplify(e)
            fails += analyzer.tvm is not before
            assert not analyzer.can_prove(small)
            assert not analyzer.can_prove(tirx.Not(small))
            assert analyzer.can_prove(tirx.GE(i, nodes.int_const(2)))
            assert analyzer.const_int_bound(i) == (2, 15)
        assert analyzer.modular_set(j).coeff == 4
    assert fails
    assert analyzer.const_int_bound(i) == (0, 15)
    assert not analyzer.can_prove(tirx.GE(i, nodes.int_const(2)))


def test_proofs_hide_narrow_arithmetic_that_may_wrap() -> None:
    proofs = Proofs()
    assert proofs.bound(tirx.Cast("int32", tirx.Sub(i8, nodes.int_const(1, "int8")))) == (-128, 127)
    assert not proofs.holds(tirx.LT(tirx.Sub(i8, nodes.int_const(1, "int8")), nodes.int_const(127, "int8")))


def test_numbers_of_python() -> None:
    """Conditions on constants are Python's bools, and sizes are its ints."""
    analyzer = known()
    assert analyzer.can_prove(True)
    assert not analyzer.can_prove(False)
    assert analyzer.const_int_bound(5) == (5, 5)
    assert analyzer.modular_set(6).base == 6
    assert int(analyzer.simplify(7)) == 7


def test_terms_are_not_moved_into_a_comparison_where_they_overflow() -> None:
    """A guard of the whole index covers the index as it stands alone."""
    v = nodes.fresh("v")
    e = nodes.int_const(29) + tirx.Select(tirx.LT(v, nodes.int_const(12) - i), v, i)
    assert known().simplify(e).same_as(e)
