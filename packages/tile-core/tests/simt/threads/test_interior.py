"""Loops over a thread's elements without conditions where all elements meet them, against the loops with them."""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.compat.tvm import ir, tirx
from tile_core.ir import attributes, nodes
from tile_core.ir.visit import collect
from tile_core.simt.threads.interior import split_interior

from ..executed import executed

X, Y = (tirx.decl_buffer([64], "float32", name, scope="global", layout=None) for name in "XY")
L = tirx.decl_buffer([1], "int32", "L", scope="global", layout=None)
n, i, j = (nodes.fresh(name) for name in "nij")


def nest(body, extents=(4, 8)):
    """Loops over both indices around a statement."""
    for var, extent in zip((j, i), reversed(extents), strict=True):
        body = nodes.for_loop(var, extent, body, "unroll")
    return body


def store(value, at):
    return nodes.store(Y, value, [at])


def tripled(at):
    return nodes.load(X, [at]) * nodes.const(3.0, "float32")


at_ij = i * 8 + j
LIMIT = nodes.load(L, [nodes.int_const(0)])
ZERO = nodes.const(0.0, "float32")
#: A body, and the values of ``n`` at which no element needs its condition.
BODIES = {
    "branch": (tirx.IfThenElse(at_ij < n, store(tripled(at_ij), at_ij), None), lambda n: n >= 32),
    "choice": (store(tirx.if_then_else(at_ij < n, tripled(at_ij), ZERO), at_ij), lambda n: n >= 32),
    "rest": (store(tirx.if_then_else(at_ij >= n, ZERO, tripled(at_ij)), at_ij), lambda n: n >= 32),
    "triangle": (store(tirx.if_then_else(j + n >= i * 4, tripled(at_ij), ZERO), at_ij), lambda n: n >= 12),
    "window": (
        tirx.IfThenElse(tirx.And(at_ij < n, at_ij + 40 > n), store(tripled(at_ij), at_ij), None), lambda n: 32 <= n < 40
    ),
    "length": (tirx.IfThenElse(at_ij < LIMIT, store(tripled(at_ij), at_ij), None), lambda n: n >= 32),
    "falling": (tirx.IfThenElse(31 - at_ij < n, store(tripled(at_ij), at_ij), None), lambda n: n >= 32),
    "two": (
        tirx.IfThenElse(at_ij < n, store(tirx.if_then_else(at_ij + n > 9, tripled(at_ij), ZERO), at_ij), None),
        lambda n: n >= 32,
    ),
}  # fmt: skip


def run(body, number):
    arrays = {X: np.arange(64, dtype=np.float32), Y: np.full(64, -1, np.float32), L: np.array([number], np.int32)}
    return executed(body, arrays, {n: number})[Y]


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("name", BODIES)
def test_results_are_those_of_the_loops(name):
    body, decided = BODIES[name]
    new = split_interior(nest(body))
    assert isinstance(new, tirx.IfThenElse)
    assert not collect(new.then_case, tirx.IfThenElse)
    assert not any(nodes.operator_name(c) == "if_then_else" for c in collect(new.then_case, ir.Call))
    for number in range(-3, 70):
        assert run(new, number).tobytes() == run(nest(body), number).tobytes(), number
        # The loops without conditions are those that run.
        assert (run(new.then_case, number).tobytes() == run(nest(body), number).tobytes()) or not decided(number)


@pytest.mark.parametrize("body", [
    tirx.IfThenElse(at_ij % 3 < n, store(tripled(at_ij), at_ij), None),  # not monotone
    tirx.IfThenElse(tirx.EQ(at_ij, n), store(tripled(at_ij), at_ij), None),
    tirx.IfThenElse(n < 3, store(tripled(at_ij), at_ij), None),  # of no loop
    tirx.IfThenElse(at_ij < n, store(ZERO, at_ij), None),  # without work
    store(tirx.if_then_else(at_ij < n, tripled(at_ij), nodes.load(X, [at_ij])), at_ij),  # both sides compute
    tirx.IfThenElse(at_ij < nodes.load(Y, [nodes.int_const(0)]).astype("int32"), store(tripled(at_ij), at_ij), None),
])  # fmt: skip
def test_other_loops_stay(body):
    loops = nest(body)
    assert split_interior(loops).same_as(loops)


def test_few_iterations_stay():
    loops = nest(tirx.IfThenElse(at_ij < n, store(tripled(at_ij), at_ij), None), (1, 3))
    assert split_interior(loops).same_as(loops)


def test_conditions_on_what_the_loops_write_by_another_name_stay():
    view = tirx.decl_buffer([64], "int32", "V", data=tirx.buffer_data(Y), layout=None)
    length = nodes.load(view, [nodes.int_const(0)])
    loops = nest(tirx.IfThenElse(at_ij < length, store(tripled(at_ij), at_ij), None))
    body = nodes.seq([tirx.DeclBuffer(view, data=tirx.buffer_data(Y)), loops])
    assert not any(type(s) is tirx.IfThenElse for s in split_interior(body).seq)


@pytest.mark.parametrize("wrapped", [False, True])
def test_loops_over_the_grid_stay(wrapped):
    body = tirx.IfThenElse(at_ij < n, store(tripled(at_ij), at_ij), None)
    for axis, (var, extent) in enumerate(((i, 4), (j, 8))):
        body = nodes.for_loop(var, extent, body, "grid", annotations={attributes.AXIS: axis})
    loops = nest(body, (1, 1)) if wrapped else body
    assert split_interior(loops).same_as(loops)
