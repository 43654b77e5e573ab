"""Multicast products: each block copies its rows of A, one block B for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import tile_core.language as T

TARGET = "cuda:sm_90a"
DEPTH, TILE = 32, 64


@dataclass(frozen=True)
class Shape:
    """How a product is staged and written.

    Attributes
    ----------
    stages, trips
        Slots of the rings, and tiles along K.
    blocks
        Of a cluster.
    dynamic
        Whether the trip count is a parameter.
    ready, done
        Arrivals of the barriers for full and empty slots; of ``done`` those of each block.
    mask
        Of the blocks that B is multicast to; all by default.
    to
        Where consumers arrive: ``"all"``: in all blocks, last in the first one, which copies for the others; ``"up"``:
        in the other order; ``"own"``, ``"first"``.
    free
        What the producer waits for: ``"done"`` or nothing.
    announce
        Expected transaction bytes of the program's own for each slot, if any.
    """

    stages: int = 2
    trips: int = 4
    blocks: int = 2
    dynamic: bool = False
    ready: int = 128
    done: int = 128
    mask: int = 0
    to: str = "all"
    free: str = "done"
    announce: int = 0


def product(s: Shape):
    """A product of (2 * blocks * TILE) x TILE."""
    depth, blocks = DEPTH * s.trips, s.blocks
    mask = s.mask or (1 << blocks) - 1
    ranks = {"all": range(blocks)[::-1], "up": range(blocks), "first": range(1)}.get(s.to)
    done_count = s.done * (1 if ranks is None else blocks)

    @T.prim_func
    def main(
        A: T.Tensor((2 * blocks * TILE, max(depth, 1)), "float16"), B: T.Tensor((max(depth, 1), TILE), "float16"),
        C: T.Tensor((2 * blocks * TILE, TILE), "float32"), n: T.int32,
    ):  # fmt: skip
        with T.ClusterKernel(2 * blocks, cluster_dims=blocks, threads=256) as bx:
            As = T.alloc_shared((s.stages, TILE, DEPTH), "float16")
            Bs = T.alloc_shared((s.stages, DEPTH, TILE), "float16")
            F = T.alloc_fragment((TILE, TILE), "float32")
            ready = T.alloc_barrier([s.ready] * s.stages)
            done = T.alloc_cluster_barrier([done_count] * s.stages)
            with T.ws(1):
                T.clear(F)
            for k in range(n if s.dynamic else s.trips):
                slot, phase = k % s.stages, k // s.stages
                with T.ws(0):
                    if s.free == "done":
                        T.barrier_wait(done[slot], (phase + 1) % 2)
                    if s.announce:
                        T.mbarrier_expect_tx(ready[slot], s.announce)
                    T.tma_copy(A[bx * TILE, k * DEPTH], As[slot, :, :], barrier=ready[slot])
                    T.tma_copy(B[k * DEPTH, 0], Bs[slot, :, :], barrier=ready[slot], cluster_mask=mask)
                    T.barrier_arrive(ready[slot])
                with T.ws(1):
                    T.barrier_wait(ready[slot], phase % 2)
                    T.gemm(As[slot, :, :], Bs[slot, :, :], F)
                    if ranks is None:
                        T.barrier_arrive(done[slot])
                    else:
                        for r in T.static_range(len(ranks)):
                            T.barrier_arrive(done[slot], cta_id=ranks[r])
            with T.ws(1):
                T.copy(F, C[bx * TILE : (bx + 1) * TILE, :])

    return main


def operands(s: Shape, seed: int):
    """Return A, B, and a result to be written."""
    rng, depth = np.random.default_rng(seed), max(DEPTH * s.trips, 1)
    rows = 2 * s.blocks * TILE
    a = rng.integers(-3, 4, (rows, depth)).astype("float16")
    b = rng.integers(-3, 4, (depth, TILE)).astype("float16")
    return a, b, np.full((rows, TILE), 7, "float32")
