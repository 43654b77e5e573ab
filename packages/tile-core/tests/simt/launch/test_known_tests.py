"""Tests that always have the same outcome are dropped, and no others: against their values at every point."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core.language as T
from tile_core.analysis.index_evaluation import evaluate
from tile_core.compat.tvm import ir, tirx
from tile_core.ir import calls, nodes
from tile_core.ir.visit import collect
from tile_core.simt.launch.known_tests import drop_known_tests

from ..whole import planned

THREADS, BLOCKS, TRIPS = 6, 3, 4
VARS = [tirx.Var(name, "int32") for name in ("tid", "bx", "k")]
COMPARISONS = (tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE)


def number(rng: Any, depth: int) -> Any:
    """Return a random index."""
    if depth == 0:
        return VARS[rng.integers(3)] if rng.random() < 0.7 else nodes.int_const(int(rng.integers(-3, 9)))
    a, b = number(rng, depth - 1), number(rng, depth - 1)
    kinds = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Min, tirx.Max)
    divisor = nodes.int_const(int(rng.integers(1, 7)))
    made = [*(kind(a, b) for kind in kinds), tirx.FloorDiv(a, divisor), tirx.FloorMod(a, divisor)]
    return made[rng.integers(len(made))]


def condition(rng: Any, depth: int) -> Any:
    """Return a random condition on indices."""
    if depth == 0:
        return COMPARISONS[rng.integers(6)](number(rng, int(rng.integers(3))), number(rng, int(rng.integers(2))))
    a, b = condition(rng, depth - 1), condition(rng, depth - 1)
    return (tirx.And(a, b), tirx.Or(a, b), tirx.Not(a), tirx.Select(a, b, tirx.Not(b)))[rng.integers(4)]


def program(test: Any, out: Any) -> Any:
    """Return the program of a thread that stores 1 + the test, and again in branches."""
    tid, bx, k = VARS
    one, two = nodes.int_const(1), nodes.int_const(2)
    chosen = nodes.store(out, tirx.Select(test, two, one), [nodes.int_const(0)])
    branch = tirx.IfThenElse(test, nodes.store(out, two, [nodes.int_const(1)]), nodes.store(out, one, [one]), None)
    loop = nodes.for_loop(k, TRIPS, nodes.seq([chosen, branch]))
    return nodes.seq([tirx.Bind(tid, calls.thread_index(0)), tirx.Bind(bx, calls.block_index(0)), loop])


@pytest.mark.parametrize("seed", range(150))
def test_outcomes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    test, (out, _) = condition(rng, int(rng.integers(3))), nodes.alloc([2], "int32", "out", "local")
    new = drop_known_tests(program(test, out), (THREADS, 1, 1), (BLOCKS, 1, 1))
    stores = list(collect(new, tirx.BufferStore))
    ranges = [np.arange(n) for n in (THREADS, BLOCKS, TRIPS)]
    env = dict(zip(VARS, (g.ravel() for g in np.meshgrid(*ranges)), strict=True))
    want = np.where(np.broadcast_to(evaluate(test, env), THREADS * BLOCKS * TRIPS), 2, 1)
    np.testing.assert_array_equal(np.broadcast_to(evaluate(stores[0].value, env), want.shape), want)
    (branches,) = (collect(new, tirx.IfThenElse) or [None],)
    if branches[0] is None:
        assert (want == int(stores[1].value.value)).all()
    else:
        held = np.broadcast_to(evaluate(branches[0].condition, env), want.shape)
        np.testing.assert_array_equal(np.where(held, 2, 1), want)


@pytest.mark.parametrize("node", COMPARISONS)
@pytest.mark.parametrize("other", range(-2, THREADS + 2))
def test_a_single_comparison_is_dropped_exactly_if_its_outcome_is_known(node: Any, other: int) -> None:
    test = node(VARS[0], nodes.int_const(other))
    out, _ = nodes.alloc([2], "int32", "out", "local")
    new = drop_known_tests(program(test, out), (THREADS, 1, 1), (BLOCKS, 1, 1))
    known = len(set(np.atleast_1d(evaluate(test, {VARS[0]: np.arange(THREADS)})).tolist())) == 1
    assert bool(collect(new, COMPARISONS)) != known


def test_a_grid_of_unknown_extent_says_nothing_about_blocks() -> None:
    test = VARS[1] < nodes.int_const(BLOCKS)
    out, _ = nodes.alloc([2], "int32", "out", "local")
    assert collect(drop_known_tests(program(test, out), (THREADS, 1, 1), ("n", 1, 1)), tirx.LT)
    assert not collect(drop_known_tests(program(test, out), (THREADS, 1, 1), (BLOCKS, 1, 1)), tirx.LT)


@pytest.mark.parametrize("keys", [128, 133])
def test_a_tail_is_tested_where_there_is_one(keys: int) -> None:
    @T.prim_func
    def masked(A: T.Tensor((keys,), "float32"), B: T.Tensor((keys,), "float32")):
        with T.Kernel(1, threads=32) as _:
            x = T.alloc_fragment((64,), "float32")
            for n in T.Pipelined(T.ceildiv(keys, 64), num_stages=2):
                T.copy(A[n * 64], x)
                for j in T.Parallel(64):
                    x[j] = T.if_then_else(n * 64 + j < keys, x[j] * 2.0, -1.0)
                T.copy(x, B[n * 64])

    body = planned(masked, last="launch").body
    tests = [c for c in collect(body, ir.Call) if nodes.operator_name(c) == "if_then_else"]
    assert bool(tests or collect(body, (tirx.Select, tirx.IfThenElse))) != (keys == 128)
