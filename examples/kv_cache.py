"""A paged cache of keys and values: rows gathered through a sequence's page table."""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, for_numpy, run

import tile_core as tile
import tile_core.language as T


def gather_pages(slots: int, width: int, length: int, dtype: str = "float16", block: int = 8) -> Any:
    @T.prim_func
    def main(
        cache: T.Tensor((slots, width), dtype),
        table: T.Tensor((length,), "int32"),
        out: T.Tensor((length, width), dtype),
    ) -> None:
        with T.Kernel(T.ceildiv(length, block), threads=128) as bx:
            rows = T.alloc_shared((block,), "int32")
            staged = T.alloc_shared((block, width), dtype)
            T.copy(table[bx * block], rows)
            T.gather(cache, rows, staged)
            T.copy(staged, out[bx * block, 0])

    return main


def append_rows(slots: int, width: int, count: int, dtype: str = "float16") -> Any:
    @T.prim_func
    def main(
        new: T.Tensor((count, width), dtype),
        table: T.Tensor((count,), "int32"),
        cache: T.Tensor((slots, width), dtype),
    ) -> None:
        with T.Kernel(1, threads=128):
            staged = T.alloc_shared((count, width), dtype)
            T.copy(new, staged)
            T.scatter(staged, cache, table)

    return main


def one(slots: int, width: int, length: int, target: str) -> list[bool]:
    rng = np.random.default_rng(slots)
    cache = rng.standard_normal((slots, width)).astype("float16")
    table = rng.permutation(slots)[:length].astype("int32")
    table[length // 2] = -1  # a page that is not there reads as zeros
    out = for_numpy(tile.compile(gather_pages(slots, width, length), target=target, out_idx=-1))(cache, table)
    expected = np.where((table >= 0)[:, None], cache[table], 0)
    passed = [check(f"gather {length} of {slots} rows of {width}", out, expected, 0.0)]
    new = rng.standard_normal((length, width)).astype("float16")
    after = cache.copy()
    for_numpy(tile.compile(append_rows(slots, width, length), target=target))(new, table, after)
    wanted = cache.copy()
    wanted[table[table >= 0]] = new[table >= 0]
    return [*passed, check(f"scatter {length} of {slots} rows of {width}", after, wanted, 0.0)]


def main(target: str = "auto") -> list[bool]:
    """Run all checks; return whether each passed."""
    return [*one(128, 64, 48, target), *one(61, 40, 33, target)]


if __name__ == "__main__":
    run(main, __doc__)
