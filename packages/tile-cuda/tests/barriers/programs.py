"""Programs with explicit barriers: products between a producer role and a consumer role."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import tile_core.language as T

TARGET = "cuda:sm_90a"
DEPTH = 16


@dataclass(frozen=True)
class Shape:
    """How a product is staged: see ``product``."""

    stages: int = 1
    trips: int = 3
    dynamic: bool = False
    ready: int = 128
    done: int = 128


def product(s: Shape):
    """A product of 64 x 64 tiles; rings of ``s.stages`` slots with two barriers each."""
    depth = DEPTH * s.trips

    @T.prim_func
    def main(
        A: T.Tensor((64, max(depth, 1)), "float16"), B: T.Tensor((max(depth, 1), 64), "float16"),
        C: T.Tensor((64, 64), "float32"), n: T.int32,
    ):  # fmt: skip
        with T.Kernel(1, threads=256):
            As = T.alloc_shared((s.stages, 64, DEPTH), "float16")
            Bs = T.alloc_shared((s.stages, DEPTH, 64), "float16")
            F = T.alloc_fragment((64, 64), "float32")
            ready = T.alloc_barrier([s.ready] * s.stages)
            done = T.alloc_barrier([s.done] * s.stages)
            with T.ws(1):
                T.clear(F)
            for k in range(n if s.dynamic else s.trips):
                slot, round = k % s.stages, k // s.stages
                with T.ws(0):
                    T.barrier_wait(done[slot], (round + 1) % 2)
                    T.copy(A[0, k * DEPTH], As[slot, :, :])
                    T.copy(B[k * DEPTH, 0], Bs[slot, :, :])
                    T.barrier_arrive(ready[slot])
                with T.ws(1):
                    T.barrier_wait(ready[slot], round % 2)
                    T.gemm(As[slot, :, :], Bs[slot, :, :], F)
                    T.barrier_arrive(done[slot])
            with T.ws(1):
                T.copy(F, C)

    return main


def operands(s: Shape, seed: int):
    """Return operands of small integers, an output full of NaN, and the product."""
    rng = np.random.default_rng(seed)
    depth = DEPTH * s.trips
    a = rng.integers(-3, 4, (64, max(depth, 1))).astype("float16")
    b = rng.integers(-3, 4, (max(depth, 1), 64)).astype("float16")
    return a, b, np.full((64, 64), np.nan, "float32"), a[:, :depth].astype("float32") @ b[:depth].astype("float32")


def at(code: str) -> str:
    """Return the kernel's part of a source code, without the functions before it."""
    return code[code.index('extern "C"') :]
