"""Registers of fragments that are live at a time, before they are distributed to threads."""

from __future__ import annotations

from typing import Any

import pytest

import tile_core.language as T
from tile_core.simt.memory.register_pressure import register_pressure


@T.prim_func
def chained(X: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        x = T.alloc_shared((64, 64), "float16")
        s, c = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64, 64), "float32")
        p = T.alloc_fragment((64, 64), "float16")
        T.copy(X, x)
        T.clear(c)
        for _ in T.serial(3):
            T.gemm(x, x, s, clear_accum=True)
            T.copy(s, p)
            T.gemm(p, x, c)
        T.copy(c, B)


@T.prim_func
def kept(X: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        x = T.alloc_shared((64, 64), "float16")
        s, c = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64, 64), "float32")
        d = T.alloc_fragment((64, 64), "float32")
        T.copy(X, x)
        T.clear(s)
        T.clear(d)
        for _ in T.serial(3):
            T.gemm(x, x, s)  # adds to the iteration before: live throughout
            T.gemm(x, x, c, clear_accum=True)
            for i, j in T.Parallel(64, 64):
                d[i, j] = c[i, j] + s[i, j]
            T.fill(c[0:32, 0:64], 0)
        T.copy(d, B)


@T.prim_func
def apart(X: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        x = T.alloc_shared((64, 64), "float16")
        s, c = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64, 64), "float32")
        T.copy(X, x)
        T.gemm(x, x, s, clear_accum=True)
        T.copy(s, B)
        T.gemm(x, x, c, clear_accum=True)
        T.copy(c, B)


#: A program, and the names of the fragments that are live at a time.
CASES: dict[str, tuple[Any, str]] = {
    "a result, and an operand of a chained product": (chained, "csp"), "kept between iterations": (kept, "cds"),
    "one after the other": (apart, "c"),
}  # fmt: skip
_REGISTERS = {"s": 4096, "c": 4096, "d": 4096, "p": 2048}


@pytest.mark.parametrize("name", CASES)
def test_fragments_that_are_live_at_a_time(name: str) -> None:
    program, live = CASES[name]
    found = register_pressure(program.func.body, ("local.fragment",))
    assert found.registers == sum(_REGISTERS[x] for x in live)
    assert len(found.arrays) == len(live)
