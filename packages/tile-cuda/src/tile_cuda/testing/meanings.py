"""Reference semantics of the names that this package adds to ``T``.

In program order every wait passes and every copy and product is complete where it stands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tile_core.testing.plain.rare import gemm_scaled
from tile_core.testing.plain.tiles import OPS, as_region, copy, gemm, gemm_sp

_SIZES = {"float16": 2, "bfloat16": 2, "float32": 4, "int32": 4, "int64": 8, "uint8": 1, "int8": 1}


def _nothing(*args: Any, **words: Any) -> None:
    """Do nothing: an order of threads that all have the order of the program."""


def _tma_copy(src: Any, dst: Any, **hints: Any) -> None:
    copy(src, dst)


def _tma_gather4(src: Any, dst: Any, col: Any, rows: Any, barrier: Any = None, **hints: Any) -> None:
    to, first = as_region(dst), int(col)
    made = np.empty(to.extents, object)
    for at in np.ndindex(*to.extents):
        made[at] = src.read((_numbers(rows)[at[-2]], first + at[-1]))
    to.write(made)


def _tma_scatter4(src: Any, dst: Any, col: Any, rows: Any, **hints: Any) -> None:
    tile, first = as_region(src).read(), int(col)
    for i, j in np.ndindex(*tile.shape[-2:]):
        dst[_numbers(rows)[i], first + j] = tile.reshape(tile.shape[-2:])[i, j]


def _tma_gather4_bytes(columns: int, element: Any) -> int:
    return 4 * columns * _SIZES[str(element)]


def _numbers(rows: Any) -> list[int]:
    return [int(r) for r in (rows if isinstance(rows, (list, tuple)) else as_region(rows).read().reshape(-1))]


#: Name -> function, or another name of ``T``.
MEANINGS: dict[str, Any] = {
    "alloc_cluster_barrier": "alloc_barrier",
    "alloc_tmem": "alloc_fragment",
    "mbarrier_arrive": _nothing,
    "mbarrier_expect_tx": _nothing,
    "mbarrier_wait_parity": _nothing,
    "tcgen05_gemm": gemm,
    "tcgen05_gemm_scaled": gemm_scaled,
    "tcgen05_gemm_sp": gemm_sp,
    "tma_copy": _tma_copy,
    "tma_gather4": _tma_gather4,
    "tma_gather4_bytes": _tma_gather4_bytes,
    "tma_scatter4": _tma_scatter4,
}
assert not set(MEANINGS) & set(OPS)
