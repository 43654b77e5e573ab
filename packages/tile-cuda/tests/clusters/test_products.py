"""Multicast products: right for every trip count and order; unbalanced barriers are refused."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
import tile_emulator
from tile_core.compiler import lower
from tile_core.errors.ops import BadBarrier, UnbalancedBarrier
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_cuda.emulation import dialect_of
from tile_cuda.emulation.opcodes import Arch

from .programs import DEPTH, TARGET, Shape, operands, product

ONE = Shape()
MANY, FOUR = replace(ONE, trips=6), Shape(blocks=4, stages=3, trips=5)
ORDERS = (
    {"completion": "early"}, {"completion": "late"}, {"completion": "early", "order": "random", "seed": 5},
    {"completion": "late", "order": "reverse"},
)  # fmt: skip


def run(s: Shape, **how: str) -> None:
    kernel = tile.compile(product(s), TARGET, runtime="emulator", **how)
    for trips in range(s.trips + 1) if s.dynamic else [s.trips]:
        a, b, c = operands(s, trips)
        kernel(a, b, c, trips)
        k = DEPTH * trips
        np.testing.assert_array_equal(c, a[:, :k].astype("float32") @ b[:k].astype("float32"))


@pytest.mark.sweep(4)
@pytest.mark.parametrize(
    "s",
    [
        ONE, Shape(stages=1, trips=1), Shape(stages=1, trips=3), Shape(stages=3, trips=1), Shape(stages=3, trips=5),
        Shape(dynamic=True, trips=5), Shape(stages=3, dynamic=True, trips=7), Shape(blocks=4, trips=3),
        Shape(blocks=8, trips=2), Shape(blocks=4, mask=0b1111, stages=4), Shape(announce=4096 * 2),
    ],
)  # fmt: skip
def test_they_are_right(s):
    run(s)


@pytest.mark.parametrize(
    ("s", "says"),
    [
        (replace(ONE, to="up"), "an arrival for phase 1 may come before phase 0 has ended"),
        (replace(ONE, to="own"), "is still in use|may come before phase"),
        (replace(ONE, to="first"), "a wait for parity 0 does not pass: phase 0 gets 0 of 256 arrivals"),
        (replace(ONE, free=""), "may write Bs while it is still in use|may come before phase|gets .* arrivals"),
        (replace(ONE, done=127), "gets 256 arrivals of 254"),
        (replace(ONE, done=129), "gets 256 of 258 arrivals"),
        (replace(ONE, ready=127), "gets 128 arrivals of 127"),
        (replace(ONE, ready=129), "gets 128 of 129 arrivals"),
        (replace(ONE, announce=4096), "expects 4096 bytes and gets 8192"),
        (replace(ONE, announce=12288), "expects 12288 bytes and gets 8192"),
        (replace(ONE, stages=3, trips=1, done=1), "gets 128 arrivals of 2"),
        (replace(ONE, dynamic=True, to="up"), "an arrival for phase 1 may come before phase 0 has ended"),
        (replace(ONE, blocks=4, to="up"), "an arrival for phase 1 may come before phase 0 has ended"),
    ],
)
def test_unbalanced_barriers_are_refused(s, says):
    with pytest.raises(UnbalancedBarrier, match=says):
        tile.compile(product(s), TARGET, runtime="emulator")


def handed(body, arrivals=64, trips=2, blocks=2):
    """Blocks that wait for each other by a barrier, with statements of ``body``."""
    inside = T.macro(body)

    @T.prim_func
    def main(A: T.Tensor((16, 64), "float16"), C: T.Tensor((2 * blocks, 16, 64), "float16")):
        with T.ClusterKernel(2 * blocks, cluster_dims=blocks, threads=64) as bx:
            S = T.alloc_shared((16, 64), "float16")
            full, free = T.alloc_barrier(64), T.alloc_cluster_barrier(arrivals)
            rank = T.block_rank_in_cluster()
            for k in range(trips):
                inside(A, S, full, free, rank, k, bx)
                T.copy(S, C[bx, :, :])

    return main


def _taken(A, S, full, k):
    T.tma_copy(A, S, barrier=full, cluster_mask=3)
    T.barrier_arrive(full)
    T.barrier_wait(full, k % 2)


def _met(A, S, full, free, rank, k, bx):
    T.cluster_sync()
    _taken(A, S, full, k)
    T.barrier_arrive(free)
    T.barrier_wait(free, k % 2)


def _unmet(A, S, full, free, rank, k, bx):
    _taken(A, S, full, k)
    T.barrier_arrive(free)
    T.barrier_wait(free, k % 2)


def _both(A, S, full, free, rank, k, bx):
    T.barrier_arrive(free, cta_id=rank)
    T.barrier_arrive(free, cta_id=1 - rank)
    T.barrier_wait(free, k % 2)
    _taken(A, S, full, k)


def _crossed(A, S, full, free, rank, k, bx):
    T.barrier_arrive(free, cta_id=1 - rank)
    T.barrier_arrive(free, cta_id=rank)
    T.barrier_wait(free, k % 2)
    _taken(A, S, full, k)


def _other(A, S, full, free, rank, k, bx):
    T.barrier_arrive(free, cta_id=1 - rank)
    T.barrier_wait(free, k % 2)
    _taken(A, S, full, k)


def _self(A, S, full, free, rank, k, bx):
    T.barrier_arrive(free, cta_id=rank)
    T.barrier_wait(free, k % 2)
    _taken(A, S, full, k)


def _outside(A, S, full, free, rank, k, bx):
    T.barrier_arrive(free, cta_id=rank + 1)
    T.barrier_wait(free, k % 2)
    _taken(A, S, full, k)


def _cluster(A, S, full, free, rank, k, bx):
    T.barrier_arrive(free, cta_id=bx)
    T.barrier_wait(free, k % 2)
    _taken(A, S, full, k)


def _one(A, S, full, free, rank, k, bx):
    T.barrier_arrive(free)
    T.barrier_wait(free, k % 2)
    if rank == 0:
        _taken(A, S, full, k)


def _local(A, S, full, free, rank, k, bx):
    T.barrier_arrive(full, cta_id=0)


@pytest.mark.parametrize(("body", "arrivals"), [(_met, 64), (_both, 128)])
def test_blocks_know_that_a_tile_is_free(body, arrivals):
    kernel = tile.compile(handed(body, arrivals), TARGET, runtime="emulator")
    a, c = np.random.default_rng().standard_normal((16, 64)).astype("float16"), np.zeros((4, 16, 64), "float16")
    kernel(a, c)
    assert (c == a).all()


@pytest.mark.parametrize(
    ("body", "arrivals", "error", "says"),
    [
        (_other, 64, UnbalancedBarrier, "phase 1 may end while a thread still waits for phase 0"),
        (_crossed, 128, UnbalancedBarrier, "an arrival for phase 1 may come before phase 0 has ended"),
        (_unmet, 64, UnbalancedBarrier, "may write S while it is still in use|may come before phase"),
        (_self, 64, UnbalancedBarrier, "may write S while it is still in use|may come before phase"),
        (_outside, 64, BadBarrier, "rank 2 is outside of the cluster's 2 blocks"),
        (_cluster, 64, BadBarrier, "is not an expression of constants and loop variables"),
        (_one, 64, UnbalancedBarrier, "may write S while it is still in use"),
        (_local, 64, BadBarrier, "full takes arrivals of its own block only"),
    ],
)
def test_missing_synchronization_between_blocks_is_refused(body, arrivals, error, says):
    with pytest.raises(error, match=says):
        tile.compile(handed(body, arrivals), TARGET, runtime="emulator")


#: Changes to the text of a product, and the kinds of faults that may be reported.
MISTAKES = {
    "objects are used before the blocks have met": (
        "  barrier_cluster_arrive_release();\n  barrier_cluster_wait_acquire();\n  fence", "  fence"),
    "a block ends while others arrive there": (
        "  barrier_cluster_arrive_release();\n  barrier_cluster_wait_acquire();\n  if (tid == 0) {"
        "\n    mbarrier_inval", "  if (tid == 0) {\n    mbarrier_inval"),
    "one block more is copied to": (", 3);", ", 7);"),
    "one block is left out": (", 3);", ", 1);"),
    "the other block is copied to": (", 3);", ", 2);"),
    "each block copies to all": ("if ((bx & 1) == 0) {", "if (true) {"),
    "no block copies": ("if ((bx & 1) == 0) {", "if (false) {"),
    "consumers arrive in one block": ("&done[k & 1], 1);", "&done[k & 1], 0);"),
    "consumers do not arrive elsewhere": ("      mbarrier_arrive_shared_cluster_b64(&done[k & 1], 1);\n", ""),
    "an arrival is for no block": ("&done[k & 1], 1);", "&done[k & 1], 2);"),
    "the slot is not waited for": ("      mbarrier_wait_parity(&done[k & 1], ((k >> 1) + 1) & 1);\n", ""),
    "the parity of the slot is wrong": ("((k >> 1) + 1) & 1", "(k >> 1) & 1"),
    "the tile is not waited for": ("      mbarrier_wait_parity(&ready[k & 1], (k >> 1) & 1);\n", ""),
    "too few bytes are announced": ("mbarrier_expect_tx_relaxed_cta_shared_cta_b64(&ready[k & 1], 4096)",
                                    "mbarrier_expect_tx_relaxed_cta_shared_cta_b64(&ready[k & 1], 4080)"),
    "phases end after one block's arrivals": ("mbarrier_init_shared_cta_b64(&done[0], 256)",
                                              "mbarrier_init_shared_cta_b64(&done[0], 128)"),
    "blocks arrive twice at their barrier": ("  barrier_cluster_wait_acquire();\n  fence", "  fence"),
    "the place in the other block is another one": ("multicast_cluster(&Bs[(k & 1) * 2048]",
                                                    "multicast_cluster(&Bs[(k & 1) * 2048 + 64]"),
    "objects are not visible to other blocks' copies": ("    fence_mbarrier_init_release_cluster();\n", ""),
}  # fmt: skip


@pytest.fixture(scope="module")
def text():
    return text_of(MANY)


@pytest.mark.sweep(9)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_the_text_are_found(mistake, text):
    old, new = MISTAKES[mistake]
    assert old in text.text, text.text
    wrong = dataclasses.replace(text, text=text.text.replace(old, new), general=None)
    assert not all(is_right(MANY, wrong, **how) for how in ORDERS)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("how", ORDERS)
def test_nothing_is_found_in_the_right_text(how, text):
    assert is_right(MANY, text, **how)
    assert is_right(FOUR, text_of(FOUR), **how)


def text_of(s: Shape):
    """Return the text of a product, and its facts."""
    return lower(product(s), make_context(TARGET, {}), installed()).lowered


def is_right(s: Shape, text, **how) -> bool:
    """Whether the emulator finds nothing, and the result is right."""
    a, b, c = operands(s, 5)
    values = {"A": a, "B": b, "C": c, **{p.name: s.trips for p in text.facts.given if p.kind == "scalar"}}
    result = tile_emulator.run(text.text, text.facts, values, dialect_of(Arch.of(TARGET.removeprefix("cuda:"))), **how)
    right = np.array_equal(result.outputs["C"].reshape(c.shape), a.astype("float32") @ b.astype("float32"))
    return bool(not result.reports and right)
