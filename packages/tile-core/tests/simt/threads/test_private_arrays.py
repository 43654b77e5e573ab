"""Arrays of each thread that loops of T.vectorized fill, in programs that name their threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

TARGETS = ["cpu", "cuda:sm_80", "cuda:sm_90a", "metal", "rocm:gfx942"]


def compiled(program: Any, target: str) -> Any:
    """Return the kernel that the CPU or an emulator runs."""
    return tile.compile(program, target, runtime="host" if target == "cpu" else "emulator")


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stages", [0, 2, 3])
def test_an_operand_that_threads_decode(stages: int, target: str) -> None:
    """The arrays were tiles in shared memory, which all threads wrote."""

    @T.prim_func
    def main(A: T.Tensor((64, 128), "float16"), B: T.Tensor((64, 128), "uint8"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "uint8")
            decoded, c = T.alloc_shared((64, 64), "float16"), T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(2, num_stages=stages):
                T.copy(A[0, k * 64], a)
                T.copy(B[0, k * 64], b)
                tx = T.get_thread_binding()
                packed, found = T.alloc_local((4,), "uint8"), T.alloc_local((4,), "float16")
                for i in T.serial(8):
                    for v in T.vectorized(4):
                        packed[v] = b[(i * 512 + tx * 4 + v) // 64, (i * 512 + tx * 4 + v) % 64]
                    for v in T.serial(4):
                        found[v] = T.cast(T.cast(packed[v], "int32") - 100, "float16")
                    for v in T.vectorized(4):
                        decoded[(i * 512 + tx * 4 + v) // 64, (i * 512 + tx * 4 + v) % 64] = found[v]
                T.gemm(a, decoded, c, transpose_B=True)
            T.copy(c, C)

    rng = np.random.default_rng()
    a, b = rng.integers(-3, 4, (64, 128)).astype("float16"), rng.integers(97, 104, (64, 128)).astype("uint8")
    c = np.full((64, 64), np.nan, "float32")
    compiled(main, target)(a, b, c)
    np.testing.assert_array_equal(c, a.astype("float64") @ (b.astype("float64") - 100).T)


@pytest.mark.sweep(0.5)
@pytest.mark.parametrize("target", TARGETS)
def test_each_thread_has_equal_values(target: str) -> None:
    @T.prim_func
    def main(B: T.Tensor((64,), "int32"), C: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx, total = T.get_thread_binding(), T.alloc_var("int32", init=0)
            found = T.alloc_local((4,), "int32")
            for v in T.vectorized(4):
                found[v] = B[v] * 2
            for v in T.serial(4):
                total += found[v] * (v + 1)
            C[tx] = total + tx

    b, c = np.random.default_rng().integers(-99, 99, 64).astype("int32"), np.full(64, -1, "int32")
    compiled(main, target)(b, c)
    np.testing.assert_array_equal(c, (b[:4] * 2 * np.arange(1, 5)).sum() + np.arange(64))


@pytest.mark.sweep(0.5)
@pytest.mark.parametrize("target", TARGETS)
def test_some_threads_fill_theirs(target: str) -> None:
    @T.prim_func
    def main(B: T.Tensor((64,), "int32"), C: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx, found = T.get_thread_binding(), T.alloc_local((4,), "int32")
            for v in T.serial(4):
                found[v] = 7
            if tx % 3 == 1:
                for v in T.vectorized(4):
                    found[v] = B[(tx + v) % 64]
            C[tx] = found[0] * 3 + found[3]

    b, c = np.random.default_rng().integers(-99, 99, 64).astype("int32"), np.full(64, -1, "int32")
    compiled(main, target)(b, c)
    np.testing.assert_array_equal(c, np.where(np.arange(64) % 3 == 1, b * 3 + np.roll(b, -3), 28))
