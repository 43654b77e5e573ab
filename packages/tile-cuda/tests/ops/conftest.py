"""Products are swept over so many sizes that a third of them runs by default; all run with ``-m slow`` besides."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

SWEEPS = ("test_gemm_mma.py", "test_gemm_sp_mma.py", "test_copy_async.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark two of three cases of the sweeps as slow, by their names: the same ones in every run."""
    for item in items:
        swept = Path(item.path).parent == Path(__file__).parent and Path(item.path).name in SWEEPS
        if swept and zlib.crc32(item.name.encode()) % 3:
            item.add_marker(pytest.mark.slow)
