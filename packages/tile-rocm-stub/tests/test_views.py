"""Views in texts: a compiler may not assume that arrays of two types are apart."""

from __future__ import annotations

import re

import pytest

import tile_core as tile
import tile_core.language as T

from .clang import assembly


@T.prim_func
def cleared(X: T.Tensor((64,), "float32"), K: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        x = T.alloc_local((4,), "float32")
        halves = T.view(x, (8,), "uint16")
        for i in T.unroll(4):
            x[i] = X[t]
        halves[K[t]] = T.cast(0, "uint16")
        Y[t] = x[1]


def test_a_store_by_another_type_is_seen() -> None:
    """The result depends on where the half of a word is stored, which the compiler loads then."""
    found = assembly(tile.compile(cleared, "rocm:gfx942").source)
    assert len(re.findall(r"^\s+global_load_dword\b", found, re.MULTILINE)) == 2


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32", "int64", "float32", "float64", "float16"])
def test_types_of_views(dtype: str) -> None:
    bits = T.dtype(dtype).bits

    @T.prim_func
    def main(X: T.Tensor((64,), "int32"), Y: T.Tensor((64 * 32 // bits,), dtype)):
        with T.Kernel(1, threads=64):
            x = T.alloc_shared((64,), "int32")
            T.copy(X, x)
            T.copy(T.view(x, (64 * 32 // bits,), dtype), Y)

    text = tile.compile(main, "rocm:gfx942").source
    assert re.search(
        r"typedef ([a-z ]+) (\w+_view) __attribute__\(\(may_alias\)\);[\s\S]*\2\* const x_view = \(\2\*\)x;", text
    )
    assembly(text)
