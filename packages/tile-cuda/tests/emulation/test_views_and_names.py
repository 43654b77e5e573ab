"""Alignment assumed for views, names bound twice in an expression, and single-thread reducers."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError


def test_a_view_of_wider_elements_assumes_their_alignment() -> None:
    @T.prim_func
    def main(A: T.Tensor((1, 8), "int8"), B: T.Tensor((4,), "int16")):
        with T.Kernel(1, threads=32):
            T.copy(T.view(A, shape=(4,), dtype="int16"), B)

    kernel = tile.compile(main, target="cuda:sm_80", runtime="emulator")
    memory, found = np.arange(16, dtype=np.int8), np.zeros(4, np.int16)
    kernel(memory[2:10].reshape(1, 8), found)
    np.testing.assert_array_equal(found, memory[2:10].view(np.int16))
    with pytest.raises(TileError, match="a multiple of 2 bytes only"):
        kernel(memory[1:9].reshape(1, 8), found)


def test_an_index_that_is_used_twice_is_named_twice() -> None:
    @T.prim_func
    def main(P: T.Tensor((24,), "uint4"), B: T.Tensor((24,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(24):
                B[i] = T.cast(P[T.clamp(i // 2, 0, 23)], "int32")

    packed, found = np.arange(0x10, 0x1C, dtype=np.uint8), np.zeros(24, np.int32)
    tile.compile(main, target="cuda:sm_80", runtime="emulator")(packed, found)
    elements = np.stack([packed & 15, packed >> 4], 1).reshape(-1)
    np.testing.assert_array_equal(found, elements[np.arange(24) // 2])


@pytest.mark.parametrize(("count", "threads"), [(1, 1), (3, 1), (100, 32)])
def test_a_reducer_of_one_copy_is_complete_already(count: int, threads: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((count, 5), "float32"), B: T.Tensor((count,), "float32")):
        with T.Kernel(1, threads=threads):
            total = T.alloc_reducer((count,), "float32", op="sum")
            for i, j in T.Parallel(count, 5):
                total[i] += A[i, j]
            T.finalize_reducer(total)
            T.copy(total, B)

    values, found = np.ones((count, 5), np.float32), np.zeros(count, np.float32)
    tile.compile(main, target="cuda:sm_80", runtime="emulator")(values, found)
    np.testing.assert_array_equal(found, np.full(count, 5))
