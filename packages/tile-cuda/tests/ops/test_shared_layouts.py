"""Layouts for products: no bank conflicts of ``ldmatrix`` or of stores of 16 bytes."""

from __future__ import annotations

from typing import Any

import pytest

from tile_core.dtypes import DTYPES
from tile_core.layout import bank_conflicts, row_major

from .kit import Case, Run

SHAPES = [
    (128, 128, 8), (128, 128, 16), (64, 64, 24), (128, 128, 32), (64, 128, 40), (64, 64, 48), (128, 256, 64),
    (64, 64, 96), (64, 64, 128),
]  # fmt: skip


def layouts(m: int, n: int, k: int, dtype: str, turned: tuple[bool, bool], stages: int) -> list[Any]:
    total = "int32" if dtype == "int8" else "float32"
    run = Run(Case(m=m, n=n, k=k, types=(dtype, dtype, total), turned=turned, stages=stages))
    views = [run.views["A"], run.views["B"]]
    return [(v, run.placement.layouts.get(v.buffer) or row_major(v.buffer.shape)) for v in views]


def whole(shape: tuple[int, int, int], dtype: str) -> bool:
    """Whether a row is a multiple of 16 bytes, as ``ldmatrix`` requires."""
    return shape[2] * DTYPES[dtype].bits % 128 == 0


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize(
    ("dtype", "shape"), [(t, s) for t in ("float16", "tfloat32", "int8") for s in SHAPES if whole(s, t)], ids=str
)
def test_rows_of_matrices_and_vector_stores_do_not_conflict(dtype: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    bits = DTYPES[dtype].bits
    vector = 128 // bits
    for turned in ((False, True), (True, False)) if bits == 16 else ((False, True),):
        for view, layout in layouts(m // 4, n // 4, k, dtype, turned, 2):
            stage, (rows, columns) = 1, view.extents[-2:]
            assert layout.shape == tuple(int(d) for d in view.buffer.shape)
            for row in range(0, rows - 7, 8):
                for column in range(0, columns, vector):
                    lanes = [(stage, row + r, column) for r in range(8)]
                    assert bank_conflicts(layout, lanes, bits, vector) == 0
            per_row = columns // vector
            for first in range(0, rows * per_row - 31, 32):
                lanes = [(stage, i // per_row, i % per_row * vector) for i in range(first, first + 32)]
                assert bank_conflicts(layout, lanes, bits, vector) == 0
