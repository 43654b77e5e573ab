"""Imports of tile_torch without torch, or with one that is too old, are refused by an error of the catalogue."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROBE = """
import sys, types
{make}
try:
    import tile_torch
except ImportError as error:
    print(error.code, error)
"""


@pytest.mark.parametrize(
    ("make", "found"),
    [
        ("sys.modules['torch'] = None", "found no torch"),
        ("sys.modules['torch'] = types.ModuleType('torch'); sys.modules['torch'].__version__ = '2.7.1+cpu'", "2.7.1"),
    ],
)
def test_without_a_torch_that_serves(make: str, found: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROBE.format(make=make)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("S661 [S661] tile_torch needs torch >=2.13, found")
    assert found in done.stdout
    assert "pip install 'torch>=2.13'" in done.stdout
