"""Copies of large arrays that are mostly untouched."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import pytest

from tile_emulator import sparse


def large(kind: str) -> Any:
    size = sparse.LARGE + 12345
    if kind == "file":
        with tempfile.TemporaryFile() as file:
            file.truncate(size)
            return np.memmap(file, np.uint8, "r+", shape=(size,))
    return np.zeros(size, np.uint8) if kind == "numpy" else np.frombuffer(sparse.zeros(size), np.uint8)


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("target", ["numpy", "file", "mapped"])
@pytest.mark.parametrize("source", ["numpy", "file", "mapped"])
@pytest.mark.parametrize("seed", range(2))
def test_assign(source: str, target: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = large(source), large(target)
    for array in (a, b):
        for at in (0, len(a) - 1, *rng.integers(0, len(a), 5)):
            array[at : at + 9] = rng.integers(1, 256)
    sparse.assign(b, a)
    assert (a == b).all()


def test_assign_to_zeros() -> None:
    a, b = large("numpy"), large("file")
    a[4096], a[-1] = 3, 4
    sparse.assign(b, a, empty=True)
    assert (a == b).all()


def test_small_and_strided_arrays() -> None:
    b = np.zeros((4, 6), "int16")
    sparse.assign(b[:, ::2], np.arange(12, dtype="int16").reshape(4, 3))
    assert (b[:, ::2].ravel() == range(12)).all()
    assert not b[:, 1::2].any()


def test_extents_of_a_file() -> None:
    with tempfile.TemporaryFile() as file:
        file.truncate(1 << 26)
        file.seek(1 << 25)
        file.write(b"x")
        file.flush()
        found = sparse.extents(file.fileno(), 1 << 24, 1 << 25)
        assert all(0 <= low < end <= 1 << 25 for low, end in found)
        assert any(low <= (1 << 25) - (1 << 24) < end for low, end in found)
        assert sparse.extents(file.fileno(), 0, 1 << 20) in ([], [(0, 1 << 20)])
