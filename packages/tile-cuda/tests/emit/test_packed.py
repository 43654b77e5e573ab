"""Packed arithmetic of 16-bit floats in texts: what becomes pairs, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.testing.run import load
from tile_core.testing.tables.pairs import units

from .nvrtc import assemble


def body_of(program: Any, target: str = "cuda:sm_90a") -> str:
    text = tile.compile(program, target).source
    return text[text.index('extern "C"') :]


def steps(to: int, source: int, again: bool = False) -> Any:
    @T.prim_func
    def main(X: T.Tensor((8,), "float16"), Out: T.Tensor((8,), "float16")):
        with T.Kernel(1, threads=1):
            x = T.alloc_local((8,), "float16")
            for v in T.unroll(8):
                x[v] = X[v]
            for v in T.unroll(4):
                x[v + to] = x[v + source] + X[v]
                if again:
                    x[v + to] = x[v + to] * X[v]
            for v in T.unroll(8):
                Out[v] = x[v]

    return main


@pytest.mark.parametrize(("to", "source", "count"), [(0, 0, 1), (4, 4, 1), (1, 0, 0), (0, 1, 0), (1, 1, 1)])
def test_only_independent_iterations_become_pairs(to: int, source: int, count: int) -> None:
    assert body_of(steps(to, source)).count("add_rn_f16x2(") == count


def test_an_element_that_was_just_stored_is_read_again() -> None:
    text = body_of(steps(0, 0, again=True))
    lines = [line for line in text.splitlines() if "_rn_f16x2(" in line]
    assert len(lines) == 2
    assert "mul_rn_f16x2(x_pairs[" in lines[1]


@T.prim_func
def optional(X: T.Tensor((64,), "bfloat16"), Y: T.Tensor((64,), "bfloat16"), n: T.int32):
    with T.Kernel(1, threads=8):
        for i in T.Parallel(64):
            Y[i] = T.if_then_else(i < n, T.exp(X[i]) + X[i], X[i])


def test_functions_behind_a_condition_are_not_computed_without_it() -> None:
    text = body_of(optional)
    assert "? " in text
    assert text.index("< n") < text.index("expf(")


@pytest.mark.sweep(4)
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_the_kit_computes_pairs_that_the_compiler_accepts(arch: str) -> None:
    found = 0
    for unit in units():
        text = tile.compile(load(unit.text()), f"cuda:{arch}").source
        found += "x2(" in text[text.index('extern "C"') :]
        assert assemble(text, arch) == ""
    assert found == sum("-256-" in unit.name for unit in units())
