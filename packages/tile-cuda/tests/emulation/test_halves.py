"""Concurrent stores to halves of one byte: words are exchanged, neighbors unchanged."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T


def halves(count: int, blocks: int, threads: int):
    @T.prim_func
    def main(A: T.Tensor((count,), "int32"), B: T.Tensor((count,), "uint4")):
        with T.Kernel(blocks, threads=threads) as bx:
            tx = T.get_thread_binding()
            at = bx * threads + tx
            if at < count:
                B[at] = T.cast(A[at], "uint4")

    return main


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("count", "blocks", "threads"), [(64, 1, 64), (9, 3, 3), (10, 10, 1), (33, 2, 31)])
def test_halves_of_a_byte(count: int, blocks: int, threads: int) -> None:
    kernel = tile.compile(halves(count, blocks, threads), target="cuda:sm_80", runtime="emulator")
    assert "atomic_global_low_u8" in kernel.source
    values = np.random.default_rng(count).integers(0, 16, count, dtype=np.int32)
    for offset in (0, 1):  # the array need not begin at a word
        memory = np.full(count // 2 + 4, 0xA5, np.uint8)
        packed = memory[offset : offset + (count + 1) // 2]
        kernel(values, packed)
        found = np.stack([packed & 15, packed >> 4], 1).reshape(-1)
        np.testing.assert_array_equal(found[:count], values)
        assert count % 2 == 0 or found[count] == 0xA
        outside = np.delete(memory, np.arange(offset, offset + len(packed)))
        assert (outside == 0xA5).all()


def test_one_thread_alone_stores_bytes() -> None:
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "uint4")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i] = T.cast(A[i], "uint4")

    assert "atomic_" not in tile.compile(main, target="cuda:sm_80", runtime="emulator").source
