"""The loader of exported kernels, which imports no compiler."""

import subprocess
import sys

import pytest

from tile_metal.loading import make
from tile_runtime.loaders import loader


def test_tile_runtime_finds_it_without_the_compiler():
    code = (
        "import sys; from tile_runtime.loaders import loader; adapter = loader('metal', 'metal')\n"
        "assert not {'tvm', 'tvm_ffi', 'tile_core.compiler'} & set(sys.modules), sorted(sys.modules)\n"
        "print(type(adapter).__module__, adapter.target.text)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("tile_metal.runtime."), done.stderr
    assert done.stdout.endswith(" metal\n")


def test_it_is_made_once():
    assert loader("metal", "metal") is loader("metal", "metal")


def test_targets_of_other_backends():
    with pytest.raises(ValueError, match="not a target of tile-metal"):
        make("cpu:x86-64")
