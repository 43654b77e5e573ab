"""Arithmetic of two adjacent 16-bit floats in machine code, and their subnormal numbers."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

import tile_core as tile
import tile_core.language as T

from .clang import assembly


def elementwise(dtype: str) -> Any:
    @T.prim_func
    def main(X: T.Tensor((4096,), dtype), Y: T.Tensor((4096,), dtype), Z: T.Tensor((4096,), dtype)):
        with T.Kernel(4, threads=128) as bx:
            for v in T.Parallel(1024):
                i = bx * 1024 + v
                Z[i] = (X[i] + Y[i]) * Y[i] - X[i]

    return main


def compiled(dtype: str, level: str) -> str:
    return assembly(tile.compile(elementwise(dtype), "rocm:gfx942", options={"numerics": level}).source)


def instructions(text: str) -> Counter[str]:
    return Counter(re.findall(r"^\s+(v_\w+)", text, re.MULTILINE))


@pytest.mark.parametrize(("level", "fused"), [("strict", 0), ("standard", 4)])
def test_float16_has_packed_instructions(level: str, fused: int) -> None:
    found = instructions(compiled("float16", level))
    assert found["v_pk_fma_f16"] == fused
    assert found["v_pk_add_f16"] + found["v_pk_mul_f16"] + 2 * fused == 12  # three operations of four pairs
    assert not any("f32" in name for name in found)


def test_bfloat16_is_computed_in_packed_float32() -> None:
    found = instructions(compiled("bfloat16", "strict"))
    assert found["v_pk_mul_f32"] == 4
    assert found["v_bfe_u32"] == 24  # a rounding has one


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_subnormal_numbers_are_kept(dtype: str) -> None:
    modes = re.findall(r"float_denorm_mode_(\d+(?:_\d+)?) (\d)", compiled(dtype, "standard"))
    assert dict(modes) == {"32": "3", "16_64": "3"}
