"""What texts assume of sizes: what aligns the rows of all tensors, then of fewer, and nothing that holds anyway."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compiler import lower
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed
from tile_core.simt.memory.launch_assumptions import assume, levels

n, k, h = T.dynamic("n"), T.dynamic("k"), T.dynamic("h")


def copies(*tensors):
    """Return a kernel that copies 16 bytes of a row of each tensor, which are ``(shape, dtype)``."""
    (one, a), (two, b) = (*tensors, tensors[-1])[:2]

    @T.prim_func
    def main(A: T.Tensor(one, a), B: T.Tensor(two, b), O: T.Tensor((2, 8), "float16")):  # noqa: E741
        with T.Kernel(1, threads=32):
            for i in T.vectorized(8):
                O[0, i] = T.cast(A[1, i], "float16")
            for i in T.vectorized(8):
                O[1, i] = T.cast(B[1, i], "float16")

    return main


def divisors(*tensors):
    found = levels(copies(*tensors).func.params)
    return [{str(v.name): by for v, by in level.divisors.items()} for level in found]


F16, I16 = "float16", "int16"
#: Tensors, and the divisors that each text assumes.
LEVELS = {
    "a size": ([((4, n), F16)], [{"n": 8}]),
    "bytes": ([((4, n), "uint8")], [{"n": 16}]),
    "two types": ([((4, n), F16), ((4, n), "uint8")], [{"n": 16}, {"n": 8}]),
    "a quotient": ([((4, k // 16), I16)], [{"k": 128}]),
    "a quotient and a size": ([((4, k // 16), I16), ((4, k), F16)], [{"k": 128}, {"k": 8}]),
    "a multiple": ([((4, n * 64), F16)], [{}]),
    "a multiple of less": ([((4, n * 4), F16)], [{"n": 2}]),
    "a quotient of a multiple": ([((4, n * 128 // 16), I16)], [{}]),
    "two sizes": ([((4, n, h), F16)], [{"n": 8, "h": 8}]),
    "a quotient that no power of two divides": ([((4, k // 3), F16)], [{"k": 8}]),
    "rounded up": ([((4, (k + 15) // 16), F16)], [{"k": 8}]),
    "a divisor of millions": ([((4, k // 2**20), F16)], [{"k": 8}]),
    "rows": ([((n, 8), F16)], [{}]),
}


@pytest.mark.parametrize("name", LEVELS)
def test_divisors(name):
    tensors, expected = LEVELS[name]
    if len(tensors[0][0]) == 3:
        (shape, dtype), *_ = tensors

        @T.prim_func
        def main(A: T.Tensor(shape, dtype)):
            with T.Kernel(1, threads=32):
                A[0, 0, 0] = 0

        found = [{str(v.name): by for v, by in level.divisors.items()} for level in levels(main.func.params)]
    else:
        found = divisors(*tensors)
    assert found == expected


@T.prim_func
def whole_rows(
    A: T.Tensor((4, k // 16), I16), B: T.Tensor((4, k), F16), C: T.Tensor((4, k // 16), I16), D: T.Tensor((4, k), F16)
):
    with T.Kernel(1, threads=32):
        small, large = T.alloc_shared((4, 64), I16), T.alloc_shared((4, 64), F16)
        for t in range(T.ceildiv(k, 1024)):
            T.copy(A[0:4, t * 64 : t * 64 + 64], small)
            T.copy(small, C[0:4, t * 64 : t * 64 + 64])
        for t in range(T.ceildiv(k, 64)):
            T.copy(B[0:4, t * 64 : t * 64 + 64], large)
            T.copy(large, D[0:4, t * 64 : t * 64 + 64])


def test_each_text_assumes_less_than_the_one_before():
    assert assume(whole_rows.func.params) == levels(whole_rows.func.params)[0]
    texts = []
    text = lower(whole_rows, make_context("cuda:sm_80"), installed()).lowered
    while text is not None:
        texts.append(text)
        text = text.general() if text.general is not None else None
    assert [dict(t.facts.divides) for t in texts] == [{"k": 128}, {"k": 8}, {}]
    assert ["(const uint4*)&A" in t.text for t in texts] == [True, False, False]
    assert ["(const uint4*)&B" in t.text for t in texts] == [True, True, False]


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("size", [0, 8, 100, 128, 129, 136, 144, 1024, 1040, 1152])
def test_every_size_is_served(size):
    kernel = tile.compile(whole_rows, "cuda:sm_80", runtime="emulator")
    rng = np.random.default_rng()
    a = rng.integers(-999, 999, (4, size // 16)).astype("int16")
    b = rng.integers(-999, 999, (4, size)).astype("float16")
    c, d = np.zeros_like(a), np.zeros_like(b)
    kernel(a, b, c, d)
    assert (c == a).all()
    assert (d == b).all()
