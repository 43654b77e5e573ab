"""Reductions of tiles in memory: vector access by rows, results everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed

pytestmark = pytest.mark.sweep(2)


def reduced(M: int, N: int, dtype: str, dim: int, shared: bool) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((N if dim == 0 else M,), "float32")):
        with T.Kernel(1, threads=64):
            if shared:
                a = T.alloc_shared((M, N), dtype)
                T.copy(A, a)
                T.reduce_sum(a, B, dim=dim)
            else:
                T.reduce_sum(A, B, dim=dim)

    return main


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("M", "N", "dtype", "dim", "vector"),
    [(4, 256, "float32", 1, "uint4"), (8, 128, "float16", 1, "uint4"), (4, 64, "float16", 1, "uint2"),
     (3, 127, "float32", 1, ""), (5, 31, "float16", 1, ""), (16, 64, "float32", 0, ""), (1, 1, "float32", 1, "")],
)  # fmt: skip
def test_reductions_by_addition(M: int, N: int, dtype: str, dim: int, vector: str, shared: bool) -> None:
    program = reduced(M, N, dtype, dim, shared)
    text = str(lower(program, make_context("cuda:sm_80"), installed()).lowered.text)
    name = "a" if shared else "A"
    assert (f"*({vector}*)&{name}_v[0] = " if vector else "__global__") in text
    a = np.random.default_rng(M * N).standard_normal((M, N)).astype(dtype)
    found = np.full(N if dim == 0 else M, np.nan, np.float32)
    tile.compile(program, target="cuda:sm_80", runtime="emulator")(a, found)
    size = np.abs(a.astype(np.float64)).sum(dim)
    assert (np.abs(found - a.astype(np.float64).sum(dim)) <= 2.0**-20 * size).all()


def test_lanes_exchange_in_one_statement_and_constants_are_constants() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            a = T.alloc_fragment((4, 64), "float32")
            b = T.alloc_fragment((4,), "float32")
            T.fill(b, -T.infinity("float32"))
            T.copy(A, a)
            T.reduce_max(a, b, dim=1, clear=False)
            T.copy(b, B)

    text = str(lower(main, make_context("cuda:sm_80"), installed()).lowered.text)
    body = text.split("__global__", 1)[1]
    assert "-0.0f -" not in body
    assert "const float other = __uint_as_float(shfl_sync_bfly_u32(" in body
    assert "theirs" not in body


@pytest.mark.parametrize("threads", [128, 256, 384, 512, 1024])
def test_parts_of_many_warps_are_exchanged_by_lanes(threads: int) -> None:
    """Exchange parts of eight or more warps by shuffles, for powers of two."""

    @T.prim_func
    def main(A: T.Tensor((2, 8 * threads), "float32"), B: T.Tensor((2,), "float32"), C: T.Tensor((2,), "int32")):
        with T.Kernel(1, threads=threads):
            a = T.alloc_fragment((2, 8 * threads), "float32")
            b = T.alloc_fragment((2,), "float32")
            c = T.alloc_fragment((2,), "int32")
            T.copy(A, a)
            T.reduce_sum(a, b, dim=1)
            T.argmax(a, c, dim=1)
            T.copy(b, B)
            T.copy(c, C)

    text = str(lower(main, make_context("cuda:sm_80"), installed()).lowered.text)
    assert (f"& {threads // 32 - 1})" in text) == (threads in (256, 512, 1024))
    a = np.random.default_rng().standard_normal((2, 8 * threads)).astype("float32")
    b, c = np.full(2, np.nan, "float32"), np.full(2, -1, "int32")
    tile.compile(main, target="cuda:sm_80", runtime="emulator")(a, b, c)
    assert (np.abs(b - a.sum(1, dtype="float64")) <= 2.0**-20 * np.abs(a).sum(1)).all()
    assert (c == a.argmax(1)).all()
