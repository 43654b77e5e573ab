"""Slow and plain restatements that the tests of the 2:4 format compare with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def oracles() -> SimpleNamespace:
    functions = (tutorial_compressor, pack, mask_matrix, ordered_layout, layout_index)
    return SimpleNamespace(**{f.__name__: f for f in functions})


def tutorial_compressor(row: list[float]) -> tuple[list[float], list[int]]:
    """The compressor kernel of the tutorial, statement by statement, on the groups of one row; returns nibbles."""
    values, codes = [0.0] * (len(row) // 2), []
    for start in range(0, len(row), 4):
        count, index = 0, [0, 0]
        slot = start // 2
        for i in range(4):
            if row[start + i] != 0.0:
                index[count] = i
                values[slot + count] = row[start + i]
                count += 1
        if count == 1 and index[0] == 3:
            index = [0, 3]
            values[slot + 1], values[slot] = values[slot], 0.0
        elif count == 1:
            values[slot + 1] = 0.0
            index[1] = 3
        codes.append(index[0] | index[1] << 2)
    return values, codes


def pack(codes: list[int], meta_dtype: str) -> Any:
    """Nibbles, little end first, as metadata elements."""
    stream = np.array([low | high << 4 for low, high in zip(codes[0::2], codes[1::2], strict=True)], np.uint8)
    return stream.view(meta_dtype)


def mask_matrix(operand: Any, group: int, rng: Any) -> Any:
    """Bits of a matrix whose rows hold every pair of legal masks side by side, in one row."""
    masks = [m for m in range(1 << group) if bin(m).count("1") <= group // 2]
    pairs = [m for a in masks for b in masks for m in (a, b)]
    flags = np.array([[m >> i & 1 for i in range(group)] for m in pairs]).reshape(-1)
    one = rng.integers(1, 1 << min(operand.bits - 1, 30), flags.size).astype(f"uint{operand.bits}")
    return one * flags.astype(one.dtype)


def ordered_layout(shape: list[list[int]], order: list[list[int]]) -> tuple[list[list[int]], list[list[int]]]:
    """Strides of a compact layout whose modes are passed in the order that ``order`` ranks them."""
    flat = sorted((rank, i, j) for i, ranks in enumerate(order) for j, rank in enumerate(ranks))
    strides = [[0] * len(mode) for mode in shape]
    step = 1
    for _, i, j in flat:
        strides[i][j] = step
        step *= shape[i][j]
    return shape, strides


def layout_index(layout: tuple[list[list[int]], list[list[int]]], *coordinates: int) -> int:
    """Index of a coordinate per mode, whose first sub-mode varies fastest."""
    total = 0
    for extents, strides, value in zip(*layout, coordinates, strict=True):
        for extent, stride in zip(extents, strides, strict=True):
            total += value % extent * stride
            value //= extent
        assert value == 0
    return total
