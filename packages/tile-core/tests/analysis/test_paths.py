"""Paths of an execution: by hand, and against executions of random programs."""

from __future__ import annotations

import itertools
import random

import pytest

from tile_core.analysis.flow import Flow
from tile_core.analysis.paths import Paths
from tile_core.compat.tvm import tirx
from tile_core.ir import nodes

BUFFER, ALLOCATE = nodes.alloc([4], "int32", "S", "local")
COUNT = nodes.fresh("n")


def put(number):
    return nodes.store(BUFFER, nodes.int_const(number), [0])


def loop(extent, *body, role="serial"):
    return nodes.for_loop(nodes.fresh("k"), extent, nodes.seq(body), role)


def when(then, other=None):
    return tirx.IfThenElse(COUNT > 3, then, other)


def numbers(body, start, stops=(), skips=False):
    """Return the numbers that are stored on paths behind the statement that stores a number."""
    flow = Flow(body)
    paths = Paths(flow, skips)
    points = {int(p.stmt.value.value): p for p in flow.points if isinstance(p.stmt, tirx.BufferStore)}
    found = paths.reached(paths.follow(points[start]), {points[n] for n in stops})
    return {n for n, p in points.items() if p in found}


@pytest.mark.parametrize(
    ("parts", "start", "stops", "skips", "want"),
    [
        ([put(1), put(2), put(3)], 1, (), False, {2, 3}),
        ([put(1), put(2), put(3)], 1, (2,), False, {2}),
        ([put(1), when(put(2), put(3)), put(4)], 1, (2, 3), False, {2, 3}),
        ([put(1), when(put(2)), put(4)], 1, (2,), False, {2, 4}),
        ([put(1), loop(3, put(2), put(3)), put(4)], 3, (), False, {2, 3, 4}),
        ([put(1), loop(3, put(2), put(3)), put(4)], 1, (2,), False, {2}),
        ([put(1), loop(COUNT, put(2)), put(4)], 1, (2,), True, {2, 4}),
        ([put(1), loop(3, put(2)), put(4)], 1, (2,), True, {2}),
        ([put(1), loop(3, put(2), role="grid"), put(4)], 2, (), False, {4}),
        ([loop(3, put(1), when(tirx.Break()), put(2)), put(4)], 1, (2,), False, {2, 4}),
        ([loop(3, put(1), when(tirx.Continue()), put(2)), put(4)], 1, (2,), False, {1, 2, 4}),
        ([tirx.While(COUNT > 0, nodes.seq([put(1), put(2)])), put(4)], 2, (1,), False, {1, 4}),
    ],
)
def test_by_hand(parts, start, stops, skips, want):
    assert numbers(nodes.seq([ALLOCATE, *parts]), start, stops, skips) == want


@pytest.mark.parametrize("seed", range(60))
def test_every_execution_is_a_path(seed):
    """Executed points are reached, with random branches and trip counts."""
    rng = random.Random(seed)
    made = iter(range(1000))

    def block(depth):
        return [statement(depth) for _ in range(rng.randint(1, 3))]

    def statement(depth):
        kind = rng.randrange(5) if depth else 0
        if kind in (0, 1):
            return put(next(made))
        if kind == 2:
            return when(nodes.seq(block(depth - 1)), nodes.seq(block(depth - 1)) if rng.random() < 0.5 else None)
        return loop(rng.choice([COUNT, 2]), *block(depth - 1))

    body = nodes.seq([ALLOCATE, *block(3)])
    flow = Flow(body)
    paths = Paths(flow, skips=True)
    for _ in range(20):
        trace = []
        run(flow.top, trace, rng)
        for before, after in itertools.pairwise(trace):
            between = {p for p in flow.points if isinstance(p.stmt, tirx.BufferStore)} - {after}
            assert after in paths.reached(paths.follow(before), between)


def run(points, trace, rng):
    for p in points:
        if isinstance(p.stmt, tirx.BufferStore):
            trace.append(p)
        elif p.kind == "if":
            side = rng.randrange(2)
            if side < len(p.parts):
                run(p.parts[side], trace, rng)
        elif p.kind == "for":
            extent = nodes.as_int(p.stmt.extent)
            for _ in range(extent if isinstance(extent, int) else rng.randrange(3)):
                run(p.parts[0], trace, rng)
