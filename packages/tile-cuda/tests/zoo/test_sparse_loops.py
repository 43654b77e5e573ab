"""Sparse products in pipelined loops, with all numbers of warp tiles along M and N."""

from __future__ import annotations

from typing import Any

import pytest
from zoo import launch, programs

from tile_core.plugins.contexts import make_context

from .launch import run

pytestmark = pytest.mark.sweep(30)

#: Rows and columns of a block: its four warps have 1 to 4 by 1 to 4 tiles.
TILES = ((16, 8), (16, 16), (64, 8), (64, 16), (32, 40), (80, 8), (48, 24), (96, 24), (128, 16), (16, 96), (128, 32))
CASES = [
    (m, n, k, way)
    for m, n in TILES
    for k in (32, 64, 96, 128)
    for way in ("float16", "int8", "turned")
    if way != "int8" or k % 64 == 0
]


def test_one_column_of_tiles() -> None:
    check(64, 8, 64, "turned")
    check(16, 32, 64, "float16")


@pytest.mark.parametrize(("m", "n", "k", "way"), CASES)
def test_tiles_of_a_warp(m: int, n: int, k: int, way: str) -> None:
    check(m, n, k, way)


def check(m: int, n: int, k: int, way: str) -> None:
    """Compare a product of a few iterations with NumPy, and check for faults."""
    sizes: tuple[Any, ...] = (m - 1 if m % 32 else m, n, 3 * k)
    if way == "turned":
        case = programs.gemm_sp_turned_case(m + 8, n, 3 * k, (m, n, k))
    else:
        case = programs.gemm_sp_case(*sizes, way, False, (m, n, k))
    text = launch.text_for(case, make_context("cuda:sm_80"))
    for how in ({"completion": "late"}, {"completion": "early", "order": "random", "seed": 3}):
        result = run(case, text, **how)
        assert not result.reports, "\n".join(map(str, result.reports))
        assert not launch.wrong(case, text, result)
