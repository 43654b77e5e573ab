"""Attention of few rows by tensor operations: all simdgroups multiply, and scores stay in registers."""

from __future__ import annotations

import functools
import re

import pytest
from zoo.case import Case, example, from_example
from zoo.launch import text_for, values_of, wrong

import tile_emulator
from tile_core.plugins.contexts import make_context
from tile_metal.emulation import dialect
from tile_metal.target import SIMD

METAL4 = "metal:metal4"

#: Rows, keys, columns and threads of a threadgroup, and whether simdgroups pass weights on: each has some of the keys.
TILES = {
    "halves of keys and columns": ((32, 64, 64, 128), True),
    "halves of keys, quarters of columns": ((32, 64, 128, 128), True),
    "simdgroups in pairs with the same scores": ((32, 32, 64, 128), False),
    "the same of more columns": ((32, 32, 128, 128), False),
    "halves of keys, two simdgroups with columns": ((32, 64, 32, 128), True),
    "quarters of keys": ((16, 128, 128, 128), True),
    "two simdgroups": ((16, 64, 64, 64), True),
    "rows that a simdgroup has alone": ((32, 64, 64, 64), False),
    "three simdgroups": ((32, 96, 96, 96), True),
}


@functools.cache
def case_of(rows: int, keys: int, dim: int, threads: int, sizes: tuple[int, int] = (128, 128), causal=False) -> Case:
    found = from_example("flash_attention", 1, 2, *sizes, dim, causal)()
    program = example("flash_attention").attention(1, 2, *sizes, dim, causal, "float16", rows, keys, threads)
    return Case(program, found.args, found.wanted)


@pytest.mark.parametrize("name", TILES)
def test_all_simdgroups_multiply(name):
    tiles, exchanges = TILES[name]
    text = text_for(case_of(*tiles), make_context(METAL4)).text
    body = text[text.index("[[kernel") :]
    assert "matmul2d_16x32x16" in body
    # 32 rows and columns of a result are those of two instructions.
    assert bool(re.search(r"if \(tid < \d+\)", body)) == (tiles[2] == 32)
    assert "threadgroup float* const scores" not in body
    assert ("threadgroup half* const weights" in body) == exchanges
    # For maxima, totals and weights, one each; and after Q is written.
    assert body.count("threadgroup_barrier") == (4 if exchanges else 1)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sizes", [(128, 128), (100, 150), (33, 131), (1, 64)])
@pytest.mark.parametrize("name", TILES)
def test_results(name, sizes, causal):
    case = case_of(*TILES[name][0], sizes, causal)
    text = text_for(case, make_context(METAL4))
    for order in ({}, {"order": "random", "seed": 3}):
        result = tile_emulator.run(
            text.text, text.facts, values_of(case, text), dialect(make_context(METAL4).target), **order
        )
        assert result.ok, "\n".join(map(str, result.reports))
        assert not wrong(case, text, result)


def test_each_simdgroup_has_a_part():
    """16 instructions of each simdgroup for 64 keys: 4 x 16 x 32 x 16 of both products."""
    case = case_of(32, 64, 64, 128)
    text = text_for(case, make_context(METAL4))
    result = tile_emulator.run(text.text, text.facts, values_of(case, text), dialect(make_context(METAL4).target))
    blocks, iterations = 4 * 2, 2
    assert result.stats.met["matmul2d"] == blocks * iterations * (128 // SIMD) * (4 + 4)
