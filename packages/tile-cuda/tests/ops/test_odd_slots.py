"""Slots of pipelined tiles that are no multiple of a line of banks."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T


@pytest.mark.parametrize(("rows", "columns", "slots", "dtype"), [(33, 32, 4, "int8"), (9, 16, 4, "int32")])
@pytest.mark.parametrize("flat", [False, True])
def test_threads_read_rows_of_odd_slots(flat, rows, columns, slots, dtype):
    shape = (rows * columns,) if flat else (rows, columns)

    @T.prim_func
    def main(X: T.Tensor((7, rows, columns), dtype), Y: T.Tensor((rows,), "float32")):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared(shape, dtype)
            y = T.alloc_fragment((rows,), "float32")
            tiles = T.view(X, (7, *shape))
            T.clear(y)
            for o in T.Pipelined(7, num_stages=slots):
                T.copy(tiles[o, 0], x) if flat else T.copy(tiles[o, 0, 0], x)
                for i in T.Parallel(rows):
                    for j in T.serial(columns):
                        y[i] += T.cast(x[i * columns + j] if flat else x[i, j], "float32")
            T.copy(y, Y)

    numbers = np.random.default_rng().integers(-8, 8, (7, rows, columns)).astype(dtype)
    y = np.full(rows, np.nan, "float32")
    tile.compile(main, "cuda:sm_80", runtime="emulator")(numbers, y)
    np.testing.assert_array_equal(y, numbers.sum((0, 2), "float32"))
