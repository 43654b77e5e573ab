"""Indices in the order in which loops change their terms: equal, without overflow."""

import random

import pytest

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.tvm import ir, tirx
from tile_core.emit.index_order import IndexOrder
from tile_core.ir import nodes
from tile_core.ir.visit import collect


class Nest:
    """Return a serial loop k around an unrolled loop r.

    tid and row are bound outside, near inside of both.
    """

    def __init__(self):
        self.tid, self.k, self.r = (tirx.Var(n, "int32") for n in ("tid", "k", "r"))
        self.row, self.near = tirx.Var("row", "int32"), tirx.Var("near", "int32")
        self.analyzer = Analyzer()
        self.order = IndexOrder(self.analyzer)
        self.extents = {self.tid: 64, self.k: 10, self.r: 4}
        for var, extent in self.extents.items():
            self.analyzer.bind(var, ir.Range.from_min_extent(0, extent))
        self.bind(self.row, self.tid * 3 + 1)
        for var, kind in ((self.k, tirx.ForKind.SERIAL), (self.r, tirx.ForKind.UNROLLED)):
            self.order.enter(tirx.For(var, 0, self.extents[var], kind, tirx.Evaluate(0)))
        self.bind(self.near, self.k + self.tid)

    def bind(self, var, value):
        self.order.bind(tirx.Bind(var, value))
        self.analyzer.bounded(var, value)

    @property
    def variables(self):
        return [self.tid, self.row, self.k, self.near, self.r]

    def values(self, rng):
        at = {v: rng.randrange(n) for v, n in self.extents.items()}
        return {**at, self.row: at[self.tid] * 3 + 1, self.near: at[self.k] + at[self.tid]}


def value(e, at):
    """The value of an index, and the largest sum on the way to it."""
    if isinstance(e, tirx.IntImm):
        return int(e.value), 0
    if isinstance(e, tirx.Var):
        return at[e], 0
    (a, most_a), (b, most_b) = value(e.a, at), value(e.b, at)
    found = {tirx.Add: a + b, tirx.Sub: a - b, tirx.Mul: a * b, tirx.FloorDiv: a // (b or 1)}[type(e)]
    return found, max(abs(found), most_a, most_b)


def drawn(rng, variables, depth, signed):
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(variables) if rng.random() < 0.8 else nodes.int_const(rng.randrange(1, 40))
    kind = rng.choice([tirx.Add] * 4 + [tirx.Mul] * 2 + [tirx.FloorDiv] + [tirx.Sub] * signed)
    left = drawn(rng, variables, depth - 1, signed)
    constant = nodes.int_const(rng.randrange(1, 9))
    return kind(left, constant if kind in (tirx.Mul, tirx.FloorDiv) else drawn(rng, variables, depth - 1, signed))


@pytest.mark.parametrize("signed", [0, 2])
def test_random_indices(signed):
    rng = random.Random()
    ordered = 0
    for _ in range(200):
        nest = Nest()
        index = drawn(rng, nest.variables, 4, signed)
        found = nest.order.sorted(index)
        ordered += not found.same_as(index)
        for _ in range(5):
            at = nest.values(rng)
            (before, _), (after, most) = value(index, at), value(found, at)
            assert before == after, (index, found)
            assert most <= max(abs(after), value(index, at)[1]), (index, found)
    assert ordered >= 3


def test_the_order():
    nest = Nest()
    index = (nest.r + nest.tid) * 64 + (nest.k * 8 + nest.row) + 5
    assert str(nest.order.sorted(index)) == "tid * 64 + row + k * 8 + r * 64 + 5"


def test_what_loads_and_calls_give_changes_with_the_innermost_loop():
    nest = Nest()
    table = tirx.decl_buffer([64], "int32", "table")
    looked_up = tirx.Min(tirx.Max(nodes.load(table, [nest.tid]), nodes.int_const(0)), nodes.int_const(63))
    found = nest.order.sorted(looked_up * 8 + nest.k + nest.tid)
    assert [bool(collect(e, ir.TensorLoad)) for e in (found.a, found.b)] == [False, True], found


def test_a_term_that_may_be_negative_keeps_its_position():
    """A term whose sum with all others, but not with some, is in range."""
    nest = Nest()
    index = (nest.r + nest.tid) * 64 + (nest.row - 100) * 8
    assert nest.order.sorted(index).same_as(index)
    shifted = index + 800
    assert nest.order.sorted(shifted).same_as(shifted)


def test_one_rank_stays():
    nest = Nest()
    index = (nest.tid + nest.row) * 4 + nest.tid
    assert nest.order.sorted(index).same_as(index)


def test_a_call_of_no_variable_is_bound():
    """``T.ballot(True)``: its place is the loop that it stands in."""
    order, lanes = IndexOrder(Analyzer()), tirx.Var("lanes", "uint64")
    order.bind(tirx.Bind(lanes, nodes.tile_call("ballot", [tirx.const(True, "bool")], ret="uint64")))
    tid = tirx.Var("tid", "int32")
    index = tirx.Cast("int32", lanes) + tid
    assert {v.name for v in collect(order.sorted(index), tirx.Var)} == {"lanes", "tid"}
