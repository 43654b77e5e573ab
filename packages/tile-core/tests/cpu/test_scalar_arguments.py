"""Scalar arguments of every type arrive as they are."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

VALUES = {
    "uint64": (0, 7, 2**63 - 1, 2**63, 2**64 - 1), "int64": (-(2**63), 2**63 - 1),
    "bfloat16": (1.5, -3.0, 0.1, float("inf")),
    "float16": (65504.0, 0.1), "uint32": (2**32 - 1,),
}  # fmt: skip


@pytest.mark.parametrize("dtype", VALUES)
def test_scalars(dtype):
    @T.prim_func
    def main(v: getattr(T, dtype), n: T.int32, B: T.Tensor((3,), dtype)):
        with T.Kernel(1, threads=32):
            if n > 0:
                T.fill(B, v)

    kernel = tile.compile(main, target="cpu")
    kind = T.dtype(dtype).numpy()
    for value in VALUES[dtype]:
        out = np.zeros(3, kind)
        kernel(value, 1, out)
        assert (out == np.array(value).astype(kind)).all()
