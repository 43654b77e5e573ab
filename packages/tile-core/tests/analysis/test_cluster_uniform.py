"""Values equal in all blocks of a cluster: proofs, compared with enumerated blocks."""

from __future__ import annotations

import pytest

from tile_core.analysis.cluster_uniform import InCluster
from tile_core.analysis.index_evaluation import evaluate
from tile_core.compat.tvm import tirx
from tile_core.ir import calls, nodes

X, Y, K, N = (nodes.fresh(name) for name in ("bx", "by", "k", "n"))
B = nodes.fresh("rank")


def known(cluster):
    return InCluster(cluster, {0: X, 1: Y}, {B: tirx.floormod(X, nodes.int_const(2))})


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (Y, True), (K + N, True), (tirx.floordiv(X, nodes.int_const(2)), True), (X, False), (X + Y, False), (B, False),
        (tirx.floormod(X, nodes.int_const(2)), False), (X - tirx.floormod(X, nodes.int_const(2)), True),
        (tirx.floordiv(X + 4, nodes.int_const(2)) * 64, True), (tirx.floordiv(X, nodes.int_const(4)), True),
        (X * 0, True),
        (tirx.floordiv(X, nodes.int_const(3)), False), (tirx.floordiv(X + 1, nodes.int_const(2)), False),
    ],
)  # fmt: skip
def test_two_blocks_along_the_first_axis(value, same):
    assert known((2, 1, 1)).same([value], range(2)) is same


def test_what_memory_holds_is_not_known():
    buffer, _ = nodes.alloc([4], "int32", "S", "local")
    assert not known((2, 1, 1)).same([nodes.load(buffer, [0])], range(2))


@pytest.mark.parametrize("cluster", [(2, 1, 1), (1, 2, 1), (2, 3, 1), (4, 2, 1)])
def test_ranks_are_those_of_the_coordinates(cluster):
    blocks = cluster[0] * cluster[1]
    rank = calls.rank_in_cluster([X, Y], cluster)
    found = [nodes.as_int(known(cluster).at(rank, r)) for r in range(blocks)]
    assert found == list(range(blocks))
    for x in range(2 * cluster[0]):
        for y in range(2 * cluster[1]):
            assert evaluate(rank, {X: x, Y: y}) == x % cluster[0] + cluster[0] * (y % cluster[1])
