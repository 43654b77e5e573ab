"""Imports of tile_jax without jax, or with one that is too old, are refused by an error of the catalogue."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROBE = """
import sys, types
{make}
try:
    import tile_jax
except ImportError as error:
    print(error.code, error)
"""


@pytest.mark.parametrize(
    ("make", "found"),
    [
        ("sys.modules['jax'] = None", "found no jax"),
        ("sys.modules['jax'] = types.ModuleType('jax'); sys.modules['jax'].__version__ = '0.6.2'", "0.6.2"),
    ],
)
def test_without_a_jax_that_serves(make: str, found: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROBE.format(make=make)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("S661 [S661] tile_jax needs jax >=0.8, found")
    assert found in done.stdout
    assert "pip install 'jax>=0.8' jax-tvm-ffi" in done.stdout
