"""Memory after a compilation: programs in reference cycles remain until Python collects them."""

from __future__ import annotations

import gc

import pytest

import tile_core.language as T
from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed

TARGETS = ("cpu", "cuda:sm_80", "cuda:sm_90a", "metal", "rocm:gfx942")


@T.prim_func
def product(A: T.Tensor((128, 100), "float16"), B: T.Tensor((100, 128), "float16"), C: T.Tensor((128, 128), "float32")):
    with T.Kernel(2, 2, threads=128) as (bx, by):
        a, b = T.alloc_shared((64, 32), "float16"), T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(4, num_stages=2):
            T.copy(A[by * 64, k * 32], a)
            T.copy(B[k * 32, bx * 64], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * 64, bx * 64])


@pytest.mark.sweep(1)
@pytest.mark.parametrize("target", TARGETS)
def test_statements_of_passes_are_freed_with_their_last_use(target):
    """Two dozen passes make some thousand statements."""
    plugins = installed()
    ctx = make_context(target, None, plugins=plugins)
    lower(product, ctx, plugins)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        lower(product, ctx, plugins)
        gc.collect()
        left = [type(x).__name__ for x in gc.garbage if type(x).__module__ == "tvm.tirx.stmt"]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert len(left) < 50, left
