"""A third of the sweeps over sizes and types runs by default; all of them with ``-m slow`` besides.

The conformance kit, all of which runs on the CPU for every change, sweeps over the same ops.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

SWEEPS = (
    "test_copy.py", "test_gemm.py", "test_gemm_sp.py", "test_fp8_scaled_matmul.py", "test_reduce.py", "test_atomic.py",
    "test_fill.py", "test_im2col.py", "test_scan.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark two of three cases of the sweeps as slow, by their names: the same ones in every run."""
    for item in items:
        swept = Path(item.path).parent == Path(__file__).parent and Path(item.path).name in SWEEPS
        if swept and "[" in item.name and zlib.crc32(item.name.encode()) % 3:
            item.add_marker(pytest.mark.slow)
