"""Tensors of more than 2**31 elements: reached where their shape is constant, refused at compile time where not."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.launch import TooManyElements

ROWS, COLUMNS = 2**16, 2**15 + 8


@pytest.mark.parametrize("dtype", ["uint8", "uint4"])
def test_the_end_of_a_large_tensor_is_read_and_written(dtype: str) -> None:
    columns = COLUMNS if dtype == "uint8" else COLUMNS * 2

    @T.prim_func
    def main(A: T.Tensor((ROWS, columns), dtype), B: T.Tensor((64,), "uint8")):
        with T.Kernel(ROWS // 64, threads=32) as bx:
            if bx == ROWS // 64 - 1:
                for i in T.Parallel(64):
                    B[i] = T.cast(A[bx * 64 + 63 - i, columns - 1], "uint8")
                T.copy(A[bx * 64, columns - 4 : columns - 2], A[bx * 64 + 1, columns - 4 : columns - 2])

    a = np.zeros((ROWS, COLUMNS), "uint8")  # what is not touched takes no memory
    a[-64:, -1] = np.arange(64) * 2 + 100
    a[-64, -4:-1] = [18, 52, 86]
    b = np.zeros(64, "uint8")
    tile.compile(main, target="cpu")(a, b)
    last = a[-64:, -1]
    np.testing.assert_array_equal(b, (last if dtype == "uint8" else last >> 4)[::-1])
    moved = slice(-4, -2) if dtype == "uint8" else slice(-2, -1)
    np.testing.assert_array_equal(a[-63, moved], a[-64, moved])


@pytest.mark.parametrize("case", ["an extent", "a flat index", "strides"])
def test_what_32_bit_numbers_do_not_reach_is_refused_at_compile_time(case: str) -> None:
    if case == "an extent":
        size = 2**31 + 128

        @T.prim_func
        def main(A: T.Tensor((size,), "uint8")):
            with T.Kernel(size // 128, threads=32) as bx:
                A[bx] = 1

    elif case == "a flat index":

        @T.prim_func
        def main(A: T.Tensor((ROWS, COLUMNS), "uint8")):
            with T.Kernel(ROWS * COLUMNS // 128, threads=32) as bx:
                for i in T.Parallel(128):
                    A[(bx * 128 + i) // COLUMNS, (bx * 128 + i) % COLUMNS] = 1

    else:

        @T.prim_func
        def main(A: T.StridedTensor((2, 4), (2**31 + 8, 1), "uint8")):
            with T.Kernel(2, threads=32) as bx:
                A[bx, 0] = 1

    with pytest.raises(TooManyElements, match=r"at most 2147483647 fit 32-bit indices") as error:
        tile.compile(main, target="cpu")
    assert "def main" in str(error.value)


def test_targets_that_count_elements_with_32_bits_refuse_at_compile_time() -> None:
    @T.prim_func
    def main(A: T.Tensor((ROWS, COLUMNS), "uint8")):
        with T.Kernel(1, threads=32):
            A[0, 0] = 1

    from tile_core.passes.check_reach import check_reach

    check_reach(main, 64)
    with pytest.raises(TooManyElements, match="argument 'A' spans"):
        check_reach(main, 32)
