"""Half of the sweeps over shapes and programs runs by default; all of them with ``-m slow`` besides."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

SWEEPS = (
    "test_shuffled_reduce.py", "test_shuffled_scan.py", "test_divergence.py", "test_barriers.py",
    "test_distribution.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every other case of the sweeps as slow, by their names: the same ones in every run."""
    for item in items:
        swept = Path(item.path).parent == Path(__file__).parent and Path(item.path).name in SWEEPS
        if swept and "[" in item.name and zlib.crc32(item.name.encode()) % 2:
            item.add_marker(pytest.mark.slow)
