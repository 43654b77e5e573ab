"""Vectors times quantized matrices: vector access, no barrier, one reduction per row."""

from __future__ import annotations

import re

import pytest
from zoo.case import example
from zoo.launch import lowered

from tile_core.plugins.contexts import make_context
from tile_core.testing.run import load
from tile_core.testing.strategies import STRATEGIES
from tile_core.testing.tables import blocks

from .test_simdgroup_reductions import drawn

#: Bytes that a lane reads of a row at a time: 16 elements.
WIDE = {"int4": "uint2", "uint4": "uint2", "float4_e2m1fn": "uint2", "int8": "uint4", "float8_e4m3fn": "uint4"}


def text(program) -> str:
    return lowered(program, make_context("metal:metal3")).text


@pytest.mark.parametrize("dtype", WIDE)
def test_no_barrier_and_one_sum_per_row(dtype):
    found = text(example("vector_matrix").vector_matrix(64, 1024, dtype))
    assert "threadgroup_barrier" not in found
    assert "smem" not in found
    assert "shuffle" not in found
    assert found.count("simd_sum(") == 1
    assert f"= *(device const {WIDE[dtype]}*)&W[" in found
    assert not re.search(r"[^&]W\[", found.split("{\n", 2)[-1])
    loads = re.findall(r"scale\[(.*)\];", found)
    assert len(loads) == 1
    assert "+ v" not in loads[0]


@pytest.mark.sweep(4)
def test_the_kit_and_the_fuzzer_have_rows_of_groups():
    """A sum per row of a simdgroup, and nothing in threadgroup memory."""

    def by_rows(found: str) -> bool:
        return "simd_sum(" in found and "smem" not in found

    kit = [text(load(unit.text())) for unit in blocks.units() if unit.name.startswith("vector-")]
    assert sum(map(by_rows, kit)) >= 6
    assert any(by_rows(t) for t in drawn(STRATEGIES["reducers"][0], 100))
