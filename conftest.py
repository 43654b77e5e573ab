"""Sweeps over sizes, types and programs: a part of their cases runs by default, all of them with ``-m slow`` besides.

The conformance kit, all of which runs on the CPU for every change, sweeps over the same ops.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

#: One of how many cases runs by default, by file below ``packages``.
SWEEPS = {
    "tile-core/tests/ops/test_atomic.py": 3,
    "tile-core/tests/ops/test_copy.py": 3,
    "tile-core/tests/ops/test_fill.py": 3,
    "tile-core/tests/ops/test_fp8_scaled_matmul.py": 3,
    "tile-core/tests/ops/test_gemm.py": 3,
    "tile-core/tests/ops/test_gemm_sp.py": 3,
    "tile-core/tests/ops/test_im2col.py": 3,
    "tile-core/tests/ops/test_reduce.py": 3,
    "tile-core/tests/ops/test_scan.py": 3,
    "tile-core/tests/cpu/test_micro_gemm.py": 2,
    "tile-core/tests/numerics/test_legalize_floats.py": 2,
    "tile-core/tests/numerics/test_widen_floats.py": 2,
    "tile-core/tests/simt/test_barriers.py": 2,
    "tile-core/tests/simt/test_distribution.py": 2,
    "tile-core/tests/simt/test_divergence.py": 2,
    "tile-core/tests/simt/test_shuffled_reduce.py": 2,
    "tile-core/tests/simt/test_shuffled_scan.py": 2,
    "tile-cuda/tests/emulation/test_kernels.py": 2,
    "tile-cuda/tests/ops/test_copy_async.py": 3,
    "tile-cuda/tests/ops/test_gemm_mma.py": 3,
    "tile-cuda/tests/ops/test_gemm_sp_mma.py": 3,
    "tile-cuda/tests/ops/test_reduce.py": 2,
    "tile-cuda/tests/zoo/test_mutants.py": 2,
    "tile-cuda/tests/zoo/test_sparse_loops.py": 6,
    "tile-emulator/tests/test_seeded.py": 2,
    "tile-metal/tests/emulation/test_kernels.py": 2,
    "tile-metal/tests/zoo/test_mutants.py": 2,
    "tile-metal/tests/zoo/test_numbers.py": 2,
}
_PACKAGES = Path(__file__).parent / "packages"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the other cases as slow, by their names: the same ones in every run."""
    for item in items:
        path = Path(item.path)
        share = SWEEPS.get(path.relative_to(_PACKAGES).as_posix(), 1) if path.is_relative_to(_PACKAGES) else 1
        if "[" in item.name and zlib.crc32(item.name.encode()) % share:
            item.add_marker(pytest.mark.slow)
