"""Proved properties of expressions of a loop variable, checked on its values."""

from __future__ import annotations

import random

import pytest

from tile_core.analysis.index_evaluation import evaluate
from tile_core.analysis.periodicity import advance_of, common
from tile_core.compat.tvm import tirx

K = tirx.Var("k", "int32")
N = tirx.Var("n", "int32")


def divided(a, b):
    return tirx.floordiv(a, b)


def left_over(a, b):
    return tirx.floormod(a, b)


def drawn(rng, depth):
    """Return an expression of ``k``, and of ``n`` that does not change."""
    if depth == 0:
        return rng.choice([K, K, N, tirx.IntImm("int32", rng.randint(-5, 9))])
    a, b = drawn(rng, depth - 1), drawn(rng, depth - 1)
    c = tirx.IntImm("int32", rng.randint(1, 6))
    condition = rng.choice([a < b, a >= b, tirx.EQ(a, b), tirx.NE(a, c)])
    return rng.choice(
        [a + b, a - b, a * c, divided(a, c), left_over(a, c), left_over(divided(a, c), 2), tirx.bitwise_and(a, c),
         tirx.bitwise_xor(left_over(a, 2), 1), tirx.Select(condition, a, b), a * b]
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(300))
def test_drawn_expressions_advance_as_is_said(seed):
    rng = random.Random(seed)
    e = drawn(rng, rng.randint(0, 3))
    found = advance_of(e, K)
    if found is None:
        return
    for n in (0, 3, 17):
        values = [int(evaluate(e, {K: k, N: n})) for k in range(found.since, found.since + 4 * found.period + 40)]
        shifted = [v + found.step for v in values[: -found.period]]
        assert values[found.period :] == shifted, (e, found)


@pytest.mark.parametrize(
    ("e", "period", "since"),
    [
        (left_over(K, 2), 2, 0), (left_over(divided(K, 3), 2), 6, 0), (left_over(divided(K, 3) + 1, 2), 6, 0),
        (tirx.bitwise_and(divided(K, 2), 1), 4, 0), (K < 5, 1, 6), (K >= 5, 1, 6), (tirx.EQ(K, 3), 1, 4),
        (left_over(K * 2 + N, 6), 3, 0), (N + 1, 1, 0), (divided(K, 4) < 2, 1, 12),
        (tirx.bitwise_xor(left_over(K, 2), 1), 2, 0), (K - divided(K, 3) * 3 < N, 3, 0),
    ],
)  # fmt: skip
def test_periods_of_phases(e, period, since):
    found = advance_of(e, K)
    assert found is not None
    assert found.repeats
    assert (found.period, found.since) == (period, since)


@pytest.mark.parametrize("e", [K * K, K < N, tirx.EQ(K, 1000), K < 1000, left_over(K, 1000), left_over(K, N)])
def test_nothing_is_said_where_nothing_is_known(e):
    assert advance_of(e, K) is None


def test_a_common_period():
    found = common([advance_of(left_over(K, 4), K), advance_of(left_over(K, 6), K), advance_of(K < 9, K)])
    assert (found.period, found.step, found.since) == (12, 0, 10)
