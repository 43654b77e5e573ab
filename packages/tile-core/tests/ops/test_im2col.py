"""T.c2d_im2col against a NumPy convolution: every combination of kernel, stride, dilation and padding (#2426)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tile_core.language as T
from tile_core.errors.ops import BadAttribute

from . import kit

pytestmark = pytest.mark.sweep(5)


def windows(img, kernel, stride, dilation, pad):
    """The whole matrix of windows: (n oh ow, kh kw c)."""
    n, h, w, c = img.shape
    padded = np.zeros((n, h + 2 * pad, w + 2 * pad, c), img.dtype)
    padded[:, pad : pad + h, pad : pad + w] = img
    reach = dilation * (kernel - 1) + 1
    oh, ow = (h + 2 * pad - reach) // stride + 1, (w + 2 * pad - reach) // stride + 1
    rows = [
        padded[b, y * stride : y * stride + reach : dilation, x * stride : x * stride + reach : dilation].reshape(-1)
        for b, y, x in itertools.product(range(n), range(oh), range(ow))
    ]
    return np.array(rows)


def program(shape, out, rows, cols, parameters, dtype):
    @T.prim_func
    def main(I: T.Tensor(shape, dtype), O: T.Tensor(out, dtype)):  # noqa: E741
        with T.Kernel(T.ceildiv(out[1], cols), T.ceildiv(out[0], rows), threads=128) as (bx, by):
            s = T.alloc_shared((rows, cols), dtype)
            T.c2d_im2col(I, s, by, bx, *parameters)
            T.copy(s, O[by * rows, bx * cols])

    return main


CASES = [
    ((kernel, stride, dilation, pad), shape)
    for kernel, stride, dilation, pad in itertools.product((1, 2, 3), (1, 2), (1, 2), (0, 1, 3))
    for shape in ((2, 7, 9, 3), (1, 8, 5, 4))
]


@pytest.mark.sweep(24)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_windows(case, dtype):
    parameters, shape = case
    img = kit.anything(np.random.default_rng(kit.seed(case)), shape, dtype)
    expected = windows(img, *parameters)
    rows, cols = ((16, 8), (7, 17), (1, 48), (24, 17))[kit.seed(case, dtype) % 4]
    out = kit.launch(
        program(shape, expected.shape, rows, cols, parameters, dtype), [img], [kit.guarded(expected.shape, dtype)]
    )
    kit.same(out, expected)


@pytest.mark.parametrize("parameters", [(0, 1, 1, 0), (3, 0, 1, 0), (3, 1, 0, 0), (3, 1, 1, -1), (2.0, 1, 1, 0)])
def test_refusals(parameters):
    with pytest.raises(BadAttribute) as caught:
        program((1, 8, 8, 4), (64, 36), 8, 8, parameters, "float32")
    assert caught.value.code == "K212"
    assert "T.c2d_im2col(I, s, by, bx, *parameters)" in str(caught.value)
