"""A kernel for checks of types, and lines that are wrong in it."""

from __future__ import annotations

#: A page with a place for a line of the kernel.
HEAD = """\
from typing import Annotated

import tile_core as tile
import tile_core.language as T


def doubled(n: int) -> T.PrimFunc:
    @T.prim_func
    def kernel(
        A: Annotated[T.Buffer, T.Tensor((n, 64), "float16")],
        C: Annotated[T.Buffer, T.Tensor((n, 64), "float32")],
        count: T.int32,
    ) -> None:
        with T.Kernel(T.ceildiv(n, 64), threads=128) as bx:
            a = T.alloc_shared((64, 64), T.float16)
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A[bx * 64, 0], a)
            T.gemm(a, a, c, clear_accum=True)
            for i, j in T.Parallel(64, 64):
                c[i, j] = T.max(c[i, j] * 2 + T.float32(count), 0.0)
            {line}
            T.copy(c, C[bx * 64, 0])

    return kernel


compiled = tile.compile(doubled(64), "cpu")
"""

#: Line -> a part of mypy's message.
WRONG = {
    "T.no_such(1)": 'has no attribute "no_such"',
    "T.gemm(1, 2)": 'Missing positional argument "C"',
    "T.gemm(1, 2, c)": 'incompatible type "int"',
    "T.gemm(a, a, c, transpose_A='yes')": 'incompatible type "str"',
    "T.alloc_shared((64, 64))": 'Missing positional argument "dtype"',
    "T.wgmma_gemm(a, a)": 'Missing positional argument "C"',
    "bx, by = T.Kernel(1)": "not iterable",
    "tile.no_such": 'has no attribute "no_such"',
    "tile.compile(kernel_of_another_kind)": "is not defined",
    "tile.compile('kernel')": 'incompatible type "str"',
    "T.float16.no_such": 'has no attribute "no_such"',
}
