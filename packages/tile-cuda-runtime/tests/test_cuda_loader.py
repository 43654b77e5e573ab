"""The loader of exported kernels, which imports no compiler."""

import subprocess
import sys

import pytest

from tile_cuda_runtime.loading import make
from tile_runtime.loaders import loader


def test_tile_runtime_finds_it_without_the_compiler():
    code = (
        "import sys; from tile_runtime.loaders import loader; adapter = loader('cuda', 'cuda:sm_90a')\n"
        "assert not {'tvm', 'tvm_ffi', 'tile_core', 'tile_cuda'} & set(sys.modules), sorted(sys.modules)\n"
        "print(type(adapter).__module__, adapter.target.text)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("tile_cuda_runtime."), done.stderr
    assert done.stdout.endswith(" cuda:sm_90a\n")


def test_it_is_made_once():
    assert loader("cuda", "cuda:sm_90a") is loader("cuda", "cuda:sm_90a")


def test_targets_of_other_backends():
    with pytest.raises(ValueError, match="no target of the kind cuda"):
        make("cpu:x86-64")
