"""Tensors at addresses from tables: asynchronous copies under assumed alignment, without tensor maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.lowering import VariantRefused

K, N = 64, 128


def grouped(groups: int, *, asked: bool = False) -> Any:
    """Return a grouped product, with bulk copies by option."""

    @T.prim_func
    def kernel(
        Xs: T.Tensor((groups,), T.ptr("float16")),
        Ws: T.Tensor((groups,), T.ptr("float16")),
        Ys: T.Tensor((groups,), T.ptr("float32")),
        rows: T.Tensor((groups,), "int32"),
        most: T.int32,
    ):
        with T.Kernel(T.ceildiv(N, 128), T.ceildiv(most, 128), groups, threads=128) as (bx, by, g):
            X = T.make_tensor(Xs[g], (rows[g], K), align=16)
            W = T.make_tensor(Ws[g], (K, N), align=16)
            Y = T.make_tensor(Ys[g], (rows[g], N), align=16)
            A, B = T.alloc_shared((128, 32), "float16"), T.alloc_shared((32, 128), "float16")
            C = T.alloc_fragment((128, 128), "float32")
            T.clear(C)
            for k in T.Pipelined(K // 32, num_stages=2):
                T.copy(X[by * 128, k * 32], A)
                if asked:
                    T.tma_copy(W[k * 32, bx * 128], B)
                else:
                    T.copy(W[k * 32, bx * 128], B)
                T.gemm(A, B, C)
            T.copy(C, Y[by * 128, bx * 128])

    return kernel


def aligned(shape: tuple[int, ...], dtype: str) -> Any:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.__array_interface__["data"][0] % 64
    return raw[start : start + size].view(dtype).reshape(shape)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("options", [{}, {"tma": "always"}])
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_copies_are_prefetched(target: str, options: dict[str, str]) -> None:
    kernel = tile.compile(grouped(3), target, options=options, runtime="emulator")
    assert "cp_async_cg" in kernel.source
    assert "cp_async_bulk" not in kernel.source
    rng, rows = np.random.default_rng(), [5, 1, 130]
    xs, ws, ys = ([aligned(s, d) for s in shapes] for shapes, d in (
        ([(m, K) for m in rows], "float16"), ([(K, N)] * 3, "float16"), ([(m, N) for m in rows], "float32")
    ))  # fmt: skip
    for x in (*xs, *ws):
        x[...] = rng.standard_normal(x.shape)
    kernel(tile.pointers(xs), tile.pointers(ws), tile.pointers(ys), np.array(rows, "int32"), max(rows))
    for x, w, y in zip(xs, ws, ys, strict=True):
        np.testing.assert_allclose(y, x.astype("float64") @ w.astype("float64"), rtol=1e-4, atol=1e-3)


def test_no_tensor_map_describes_them() -> None:
    with pytest.raises(VariantRefused, match="W is not a parameter"):
        tile.compile(grouped(3, asked=True), "cuda:sm_90a")
