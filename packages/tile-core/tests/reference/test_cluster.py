"""Test programs whose blocks copy to each other within a cluster."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core import reference
from tile_core.errors.execution import NoReferenceMeaning
from tile_core.errors.lowering import ClusterUnsupported
from tile_core.ir import nodes
from tile_core.language.launch import KernelLaunch
from tile_core.ops import copy_to_block, operands
from tile_core.values.value import as_value


class Blocks(KernelLaunch):
    """A launch of clusters along the first axes, as a package that has them makes it."""

    def __init__(self, *grid, cluster, threads=32):
        super().__init__(*grid, threads=threads)
        self.cluster = cluster


def hand(src, dst, rank):
    source, to = operands.as_region("hand", "src", src), operands.as_region("hand", "dst", dst)
    operands.emit(copy_to_block.NAME, [source, to, nodes.cast(as_value(rank).expr, "int32")], [to])


def shifted(cluster, grid, by, steps=1, skip=False):
    """Each block adds what it gets from the block ``by`` ranks before it, along x."""

    @T.prim_func
    def main(A: T.Tensor((*grid[::-1], 3), "int32"), B: T.Tensor((*grid[::-1], 3), "int32")):
        with Blocks(*grid, cluster=cluster) as (bx, by_):
            S, R = T.alloc_shared((3,), "int32"), T.alloc_shared((3,), "int32")
            T.copy(A[by_, bx, :], S)
            T.clear(R)
            rank = bx % cluster[0] + by_ % cluster[1] * cluster[0]
            for _ in range(steps):
                if skip:
                    if rank != 0:
                        hand(S, R, 0)
                else:
                    hand(S, R, (rank + by) % (cluster[0] * cluster[1]))
                for i in T.Parallel(3):
                    S[i] = S[i] + R[i]
            T.copy(S, B[by_, bx, :])

    return main


def expected(a, cluster, by, steps):
    s = a.astype("int64")
    for _ in range(steps):
        r = np.zeros_like(s)
        for y, x in np.ndindex(*a.shape[:2]):
            rank = x % cluster[0] + y % cluster[1] * cluster[0]
            to = (rank + by) % (cluster[0] * cluster[1])
            at = y - y % cluster[1] + to // cluster[0], x - x % cluster[0] + to % cluster[0]
            r[at] = s[y, x]
        s = s + r
    return s


@pytest.mark.parametrize(
    ("cluster", "grid"), [((2, 1, 1), (4, 3)), ((1, 2, 1), (3, 4)), ((2, 2, 1), (2, 2)), ((1, 1, 1), (2, 1))]
)
@pytest.mark.parametrize("by", [0, 1, 3])
@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("check", [False, True])
def test_all_read_before_any_writes(cluster, grid, by, steps, check):
    a = np.random.default_rng().integers(-9, 9, (*grid[::-1], 3)).astype("int32")
    b = np.zeros_like(a)
    reference.execute(shifted(cluster, grid, by, steps), [a, b], check=check)
    assert (b == expected(a, cluster, by, steps)).all()


def test_blocks_part_at_a_branch():
    a = np.arange(12, dtype="int32").reshape(1, 4, 3)
    b = np.zeros_like(a)
    reference.execute(shifted((2, 1, 1), (4, 1), 0, skip=True), [a, b])
    assert (b[0] == np.array([a[0, 0] + a[0, 1], a[0, 1], a[0, 2] + a[0, 3], a[0, 3]])).all()


def test_a_block_that_does_not_exist_is_refused():
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with Blocks(4, cluster=(2, 1, 1)) as bx:
            S, R = T.alloc_shared((1,), "int32"), T.alloc_shared((1,), "int32")
            S[0] = bx
            hand(S, R, 2)
            A[bx] = R[0]

    with pytest.raises(NoReferenceMeaning, match="a copy to block 2 of a cluster of 2"):
        reference.execute(main, [np.zeros(4, "int32")])


def test_targets_without_clusters_refuse_it():
    with pytest.raises(ClusterUnsupported, match=r"launches clusters of 2 blocks; cpu.* has no clusters"):
        tile.compile(shifted((2, 1, 1), (4, 3), 1), "cpu")
