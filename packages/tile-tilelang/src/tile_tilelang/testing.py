"""Names of ``tilelang.testing`` that scripts use: a seed, a comparison, a test runner."""

from __future__ import annotations

import random
import sys
from typing import Any

from tile_tilelang.errors import Differs
from tile_tilelang.supply import host

__all__ = ["main", "set_random_seed", "torch_assert_close"]


def set_random_seed(seed: int = 42) -> None:
    """Seed Python's and NumPy's generators, and torch's if the program uses it."""
    import numpy as np

    random.seed(seed)
    np.random.seed(seed)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def torch_assert_close(
    found: Any, expected: Any, rtol: float = 1e-2, atol: float = 1e-2, max_mismatched_ratio: float = 0.01
) -> None:
    """Compare arrays of any library.

    Raises
    ------
    Differs
        If more elements differ than allowed.
    """
    import numpy as np

    a, b = host(found), host(expected)
    if a.shape != b.shape:
        raise Differs(kernel="torch_assert_close", index=0, found=f"shape {a.shape}, not {b.shape}")
    wrong = int((~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)).sum())
    if wrong > max_mismatched_ratio * a.size:
        raise Differs(kernel="torch_assert_close", index=0, found=f"{wrong} of {a.size} elements")


def main() -> None:
    """Run the script's tests by pytest, which must be installed, and exit with its status."""
    import pytest

    sys.exit(pytest.main([sys.argv[0], *sys.argv[1:]]))
