"""T.c2d_im2col: what is refused; windows are in testing/tables/views.py."""

from __future__ import annotations

import pytest

import tile_core.language as T
from tile_core.errors.ops import BadAttribute

pytestmark = pytest.mark.sweep(5)


def program(shape, out, rows, cols, parameters, dtype):
    @T.prim_func
    def main(I: T.Tensor(shape, dtype), O: T.Tensor(out, dtype)):  # noqa: E741
        with T.Kernel(T.ceildiv(out[1], cols), T.ceildiv(out[0], rows), threads=128) as (bx, by):
            s = T.alloc_shared((rows, cols), dtype)
            T.c2d_im2col(I, s, by, bx, *parameters)
            T.copy(s, O[by * rows, bx * cols])

    return main


@pytest.mark.parametrize("parameters", [(0, 1, 1, 0), (3, 0, 1, 0), (3, 1, 0, 0), (3, 1, 1, -1), (2.0, 1, 1, 0)])
def test_refusals(parameters):
    with pytest.raises(BadAttribute) as caught:
        program((1, 8, 8, 4), (64, 36), 8, 8, parameters, "float32")
    assert caught.value.code == "K212"
    assert "T.c2d_im2col(I, s, by, bx, *parameters)" in str(caught.value)
