"""Barriers where threads part, and where loops are left; random programs."""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.compat.tvm import tirx
from tile_core.errors.ops import DivergentBarrier
from tile_core.ir import calls, nodes
from tile_core.ir.visit import collect

from ..cases import Case, N, barriers, loop, put_zero, shared, when

pytestmark = pytest.mark.sweep(2)

# Branches that only some threads take


def test_a_dependence_inside_of_a_divergent_branch_splits_it():
    """Writes and reads of other threads under ``if tx < 48``: the barrier neither vanishes nor stands inside."""
    c = Case()
    s, alloc = shared("S")
    t, y = c.tid, nodes.fresh("y")
    inside = nodes.seq([
        nodes.store(s, nodes.load(c.A, [t]), [t]), tirx.Bind(y, nodes.load(s, [47 - t])), nodes.store(c.B, y, [t]),
    ])  # fmt: skip
    new, _ = c.check(alloc, nodes.store(c.B, nodes.int_const(0), [t]), when(t < 48, inside), count=1)
    for branch in collect(new, tirx.IfThenElse):
        assert barriers(branch) == 0


@pytest.mark.parametrize("kind", ["mask", "remainder"])
def test_a_divergent_branch_in_a_loop(kind):
    """In a loop under a loaded or computed condition, the barrier is in the loop, between the parts."""
    c = Case()
    s, alloc = shared("S")
    t, k, y = c.tid, nodes.fresh("k"), nodes.fresh("y")
    condition = tirx.NE(nodes.load(c.A, [t]), 0) if kind == "mask" else tirx.EQ(tirx.floormod(t, 4), 0)
    inside = nodes.seq([
        nodes.store(s, nodes.load(c.A, [t]) * k, [t]), tirx.Bind(y, nodes.load(s, [tirx.floormod(t + 4, N)])),
        nodes.store(c.B, nodes.load(c.B, [t]) + y, [t]),
    ])  # fmt: skip
    new, _ = c.check(alloc, put_zero(s, t), put_zero(c.B, t), loop(k, 3, when(condition, inside)))
    for branch in collect(new, tirx.IfThenElse):
        assert barriers(branch) == 0
    (main,) = collect(new, tirx.For)
    assert barriers(main) == 2


def test_a_loop_inside_of_a_divergent_branch():
    c = Case()
    s, alloc = shared("S")
    t, k, y, z = c.tid, nodes.fresh("k"), nodes.fresh("y"), nodes.fresh("z")
    body = nodes.seq([
        tirx.Bind(y, nodes.load(s, [tirx.floormod(t + 1, 32)])), nodes.store(s, y + z + k, [t]),
    ])  # fmt: skip
    inside = nodes.seq([tirx.Bind(z, nodes.load(c.A, [t])), put_zero(s, t), loop(k, 3, body)])
    body = [alloc, when(t < 32, inside), put_zero(c.B, t), when(t < 32, nodes.store(c.B, nodes.load(s, [31 - t]), [t]))]
    new, _ = c.check(*body)
    for branch in collect(new, tirx.IfThenElse):
        assert barriers(branch) == 0


def test_both_sides_of_a_divergent_branch_and_one_inside_of_it():
    c = Case()
    s, alloc = shared("S")
    t, y = c.tid, nodes.fresh("y")
    inner = when(tirx.EQ(tirx.floormod(t, 2), 0), nodes.seq([
        nodes.store(s, nodes.load(s, [31 - t]) + 5, [t]), nodes.store(c.B, nodes.load(s, [30 - t]), [t]),
    ]), nodes.store(c.B, nodes.load(s, [31 - t]), [t]))  # fmt: skip
    then = nodes.seq([nodes.store(s, nodes.load(c.A, [t]), [t]), inner])
    other = nodes.seq([tirx.Bind(y, nodes.load(s, [t - 32])), nodes.store(c.B, y * 2, [t])])
    new, _ = c.check(alloc, when(t < 32, then, other))
    for branch in collect(new, tirx.IfThenElse):
        assert barriers(branch) == 0


def test_a_dependence_with_the_code_before_needs_no_split():
    c = Case()
    s, alloc = shared("S")
    t = c.tid
    put = nodes.store(s, nodes.load(c.A, [t]), [t])
    new, _ = c.check(alloc, put_zero(c.B, t), put, when(t < 9, nodes.store(c.B, nodes.load(s, [20 - t]), [t])), count=1)
    assert len(collect(new, tirx.IfThenElse)) == 1


def refused(what, *body, case=None):
    c = case or Case()
    with pytest.raises(DivergentBarrier, match=what):
        c.insert(*body)


def test_barriers_of_the_program_in_divergent_control_flow_are_refused():
    c = Case()
    k = nodes.fresh("k")
    refused(r"T\.sync_threads\(\)", when(c.tid < 3, calls.sync_threads()), case=c)
    refused("a loop whose threads meet inside", loop(k, c.tid, calls.sync_threads()), case=c)
    n, alloc = nodes.alloc([1], "int32", "n", "local.var")
    down = nodes.store(n, nodes.load(n, [0]) - 1, [0])
    spin = tirx.While(nodes.load(n, [0]) > 0, nodes.seq([calls.sync_threads(), down]))
    refused("a while loop", alloc, nodes.store(n, c.tid, [0]), spin, case=c)
    leave = nodes.seq([when(c.tid > k, tirx.Break()), calls.sync_threads()])
    refused("a loop whose threads meet inside", loop(k, 4, leave), case=c)


def test_a_needed_barrier_in_a_loop_of_differing_length_is_refused():
    c = Case()
    s, alloc = shared("S")
    t, k = c.tid, nodes.fresh("k")
    body = nodes.store(s, nodes.load(s, [tirx.floormod(t + 1, N)]) + k, [t])
    refused("a loop whose threads meet inside", alloc, put_zero(s, t), loop(k, t, body), case=c)
    only_reads = nodes.store(c.B, nodes.load(c.B, [t]) + nodes.load(s, [k]), [t])
    c.check(alloc, nodes.store(s, nodes.load(c.A, [t]), [t]), put_zero(c.B, t), loop(k, t, only_reads), count=1)


# Random programs


class Random:
    """Random thread code on two shared buffers."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.c = Case(threads=8, width=8)
        self.s, self.alloc_s = shared("S", (8,))
        self.r, self.alloc_r = shared("R", (8,))
        self.x, self.alloc_x = nodes.alloc([1], "int32", "x", "local.var")

    def index(self):
        t = self.c.tid
        shift = int(self.rng.integers(0, 8))
        return [t, 7 - t, tirx.floormod(t + shift, 8), tirx.bitwise_xor(t, nodes.int_const(shift))][
            self.rng.integers(0, 4)
        ]

    def value(self):
        b = [self.s, self.r, self.c.A][self.rng.integers(0, 3)]
        return nodes.load(b, [self.index()]) + int(self.rng.integers(0, 5))

    def condition(self):
        t = self.c.tid
        uniform = self.rng.integers(0, 3) == 0
        if uniform:
            return nodes.load(self.c.A, [int(self.rng.integers(0, 8))]) > 4
        return [t < 5, tirx.EQ(tirx.floormod(t, 2), 0), nodes.load(self.s, [self.index()]) > 4][self.rng.integers(0, 3)]

    def stmt(self, depth):
        pick = self.rng.integers(0, 8 if depth else 5)
        if pick == 0:
            return nodes.store(self.x, self.value() + nodes.load(self.x, [0]), [0])
        if pick == 1:
            var = nodes.fresh("v")
            return nodes.seq([tirx.Bind(var, self.value()), nodes.store(self.s, var + 1, [self.index()])])
        if pick in (2, 3, 4):
            return nodes.store([self.s, self.r][pick % 2], self.value(), [self.index()])
        if pick == 5:
            return nodes.for_loop(nodes.fresh("k"), int(self.rng.integers(0, 4)), self.block(depth - 1))
        other = self.block(depth - 1) if self.rng.integers(0, 2) else None
        return tirx.IfThenElse(self.condition(), self.block(depth - 1), other)

    def block(self, depth):
        return nodes.seq([self.stmt(depth) for _ in range(self.rng.integers(1, 4))])

    def program(self):
        t = self.c.tid
        fill = [nodes.store(b, nodes.load(self.c.A, [t]), [t]) for b in (self.s, self.r)]
        start = nodes.store(self.x, nodes.int_const(0), [0])
        total = nodes.load(self.x, [0]) + nodes.load(self.s, [t]) * 3 + nodes.load(self.r, [t]) * 7
        body = [self.alloc_s, self.alloc_r, self.alloc_x, *fill, start, *(self.stmt(2) for _ in range(4))]
        return [*body, nodes.store(self.c.B, total, [t])]


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_mean_the_same_in_any_order(seed):
    program = Random(seed)
    program.c.check(*program.program())


# Ways out of a loop, against NumPy


def run(c, body, seed):
    new, _ = c.insert(*body)
    data = c.data(seed)
    return new, data[c.A], c.machine(data).scatter(new, seed).memory.arrays[c.B]


@pytest.mark.parametrize("seed", range(5))
def test_what_is_pending_where_a_loop_is_left(seed):
    c = Case()
    s, alloc = shared("S")
    t, k = c.tid, nodes.fresh("k")
    put = nodes.store(s, nodes.load(c.A, [t]) + k, [t])
    get = nodes.store(c.B, nodes.load(s, [N - 1 - t]), [t])
    main = loop(k, 5, put, get, when(tirx.EQ(k, 2), tirx.Break()))
    after = [nodes.store(s, nodes.int_const(1), [t]), nodes.store(c.B, nodes.load(c.B, [t]) + nodes.load(s, [t]), [t])]
    new, a, b = run(c, [alloc, main, *after], seed)
    np.testing.assert_array_equal(b, a[::-1] + 3)
    assert barriers(new) == 3


@pytest.mark.parametrize("seed", range(5))
def test_what_is_pending_where_an_iteration_is_left(seed):
    c = Case()
    s, alloc = shared("S")
    t, k = c.tid, nodes.fresh("k")
    put = nodes.store(s, nodes.load(c.A, [t]) + k, [t])
    skip = when(tirx.EQ(tirx.floormod(k, 2), 1), tirx.Continue())
    get = nodes.store(c.B, nodes.load(c.B, [t]) + nodes.load(s, [N - 1 - t]), [t])
    _, a, b = run(c, [alloc, nodes.store(c.B, nodes.int_const(0), [t]), loop(k, 5, put, skip, get)], seed)
    np.testing.assert_array_equal(b, 3 * a[::-1] + 6)


@pytest.mark.parametrize("seed", range(5))
def test_a_while_loop_whose_iteration_is_left(seed):
    c = Case()
    s, alloc = shared("S", (2,))
    t = c.tid
    first = tirx.EQ(t, 0)
    up = when(first, nodes.store(s, nodes.load(s, [0]) + 1, [0]))
    skip = when(tirx.EQ(tirx.floormod(nodes.load(s, [0]), 2), 0), tirx.Continue())
    count = nodes.store(c.B, nodes.load(c.B, [t]) + 1, [t])
    start = [when(first, nodes.store(s, nodes.int_const(0), [0])), nodes.store(c.B, nodes.int_const(0), [t])]
    main = tirx.While(nodes.load(s, [0]) < 7, nodes.seq([up, skip, count]))
    _, _, b = run(c, [alloc, *start, main], seed)
    np.testing.assert_array_equal(b, np.full(N, 4))
