"""Several MLX launches in a call: one's workspace is another one's input value."""

import numpy as np

import tile_core as tile
import tile_core.language as T
from tile_core import compiler

from .fake_mlx import Mlx
from .texts import adapter


def test_a_workspace_goes_from_launch_to_launch(monkeypatch):
    m = T.dynamic("m")

    @T.prim_func
    def add(A: T.Tensor((m, 24), "float32"), B: T.Tensor((24,), "float32")):
        parts = T.alloc_global((T.ceildiv(m, 16), 24), "float32")
        with T.Kernel(T.ceildiv(m, 16), threads=32) as (bx,):
            rows = T.alloc_shared((16, 24), "float32")
            part = T.alloc_fragment((24,), "float32")
            T.copy(A[bx * 16, 0], rows)
            T.reduce_sum(rows, part, dim=0)
            T.copy(part, parts[bx, 0])
        with T.Kernel(threads=32):
            total = T.alloc_fragment((24,), "float32")
            T.clear(total)
            for k in T.serial(T.ceildiv(m, 16)):
                total += parts[k, :]
            T.copy(total, B)

    mx = Mlx()
    monkeypatch.setattr(compiler, "find_runtime", lambda *_: adapter(mx))
    kernel = tile.compile(add, "metal", out_idx=1)
    for rows in (5, 40, 40, 40):
        a = np.random.default_rng(rows).integers(-4, 5, (rows, 24)).astype(np.float32)
        np.testing.assert_array_equal(np.array(kernel(mx.array(a))), a.sum(0))
