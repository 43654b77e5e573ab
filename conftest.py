"""Sweeps over sizes, types and programs: a part of their cases runs by default, all of them with ``-m slow`` besides.

Which part depends on the commit, so that a few commits run them all. The head of the report names the turn, and
``SWEEP_TURN=<turn>`` repeats it. The conformance kit, all of which runs on the CPU for every change, sweeps over the
same ops.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from pathlib import Path

import pytest

#: One of how many cases runs by default, by file below ``packages``, or of this folder.
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
    "tests/language/test_conversions.py": 4,
    "tests/language/test_division.py": 4,
    "tests/language/test_indices.py": 3,
    "tests/language/test_integers.py": 3,
    "tests/language/test_mathematics.py": 4,
    "tests/language/test_narrow_reductions.py": 3,
    "tests/language/test_roundings.py": 3,
    "tile-core/tests/cpu/test_effort.py": 3,
    "tile-core/tests/cpu/test_forks.py": 4,
    "tile-core/tests/cpu/test_interrupts.py": 2,
    "tile-core/tests/cpu/test_micro_gemm.py": 2,
    "tile-core/tests/cpu/test_micro_gemm_sp.py": 3,
    "tile-core/tests/cpu/test_nibble_loads.py": 3,
    "tile-core/tests/cpu/test_read_through.py": 6,
    "tile-core/tests/passes/test_trusted_passes.py": 3,
    "tile-core/tests/numerics/test_legalize_floats.py": 2,
    "tile-core/tests/numerics/test_widen_floats.py": 2,
    "tile-core/tests/reference/test_kit.py": 24,
    "tile-core/tests/simt/barriers/test_barriers.py": 2,
    "tile-core/tests/layout/test_spread.py": 2,
    "tile-core/tests/simt/barriers/test_divergence.py": 2,
    "tile-core/tests/simt/ops/test_shuffled_reduce.py": 2,
    "tile-core/tests/simt/ops/test_shuffled_scan.py": 2,
    "tile-cuda/tests/emulation/test_kernels.py": 2,
    "tile-cuda/tests/emulation/test_models.py": 4,
    "tile-cuda/tests/emulation/test_order.py": 3,
    "tile-cuda/tests/ops/test_copy_async.py": 3,
    "tile-cuda/tests/ops/test_gemm_mma.py": 3,
    "tile-cuda/tests/ops/test_gemm_sp_mma.py": 6,
    "tile-cuda/tests/ops/test_reduce.py": 2,
    "tile-cuda/tests/emit/test_table.py": 2,
    "tile-cuda/tests/zoo/test_compiled.py": 4,
    "tile-cuda/tests/zoo/test_mutants.py": 6,
    "tile-cuda/tests/zoo/test_numbers.py": 4,
    "tile-cuda/tests/zoo/test_sparse_loops.py": 6,
    "tile-emulator/tests/test_seeded.py": 2,
    "tile-metal/tests/emulation/test_kernels.py": 2,
    "tile-metal/tests/ops/test_products.py": 3,
    "tile-metal/tests/runtime/test_mlx.py": 3,
    "tile-metal/tests/zoo/test_mutants.py": 6,
    "tile-metal/tests/zoo/test_numbers.py": 4,
}
_PACKAGES = Path(__file__).parent / "packages"


def pytest_configure(config: pytest.Config) -> None:
    """Choose the turn once, for all processes of a run."""
    os.environ.setdefault("SWEEP_TURN", str(_turn()))
    del config


def pytest_report_header() -> str:
    """Say which part of the sweeps runs."""
    return f"sweeps: SWEEP_TURN={os.environ['SWEEP_TURN']}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of other turns as slow, by their names."""
    turn = int(os.environ["SWEEP_TURN"])
    for item in items:
        path = Path(item.path)
        root = next((r for r in (_PACKAGES, _PACKAGES.parent) if path.is_relative_to(r)), None)
        share = 1 if root is None else SWEEPS.get(path.relative_to(root).as_posix(), 1)
        if "[" in item.name and zlib.crc32(item.name.encode()) % share != turn % share:
            item.add_marker(pytest.mark.slow)


def _turn() -> int:
    """Return a number that differs between commits; 0 without git."""
    command = ["git", "-C", str(_PACKAGES.parent), "rev-parse", "--short=8", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return 0
    return int(found.stdout, 16)
