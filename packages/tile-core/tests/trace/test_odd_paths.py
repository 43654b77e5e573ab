"""Kernels in files whose names are no UTF-8, and other folders of that kind."""

import importlib.util
import os
import sys

import numpy as np
import pytest

import tile_core as tile
from tile_core.errors import TileError
from tile_core.errors.artefacts import CannotReadArtefact

TEXT = """
import tile_core.language as T

@T.prim_func
def double(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(8):
            B[i] = A[i] * T.float32(2)

def wrong():
    @T.prim_func
    def kernel(A: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            A[0] = A
"""


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / os.fsdecode(b"caf\xe9 \xff")
    try:
        made.mkdir()
    except OSError:
        pytest.skip("this file system has names in UTF-8 only")
    return made


@pytest.fixture
def module(folder):
    path = folder / os.fsdecode(b"k\xfe.py")
    path.write_text(TEXT)
    spec = importlib.util.spec_from_file_location("odd", path)
    found = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    spec.loader.exec_module(found)
    sys.dont_write_bytecode = before
    return found


def test_a_kernel(module, folder):
    kernel = tile.compile(module.double, "cpu", out_idx=-1, dump=folder / "dump")
    np.testing.assert_array_equal(kernel(np.ones(8, "float32")), np.full(8, 2, "float32"))
    assert "8" in kernel.explain()
    kernel.source.encode()


def test_an_error_can_be_printed(module, folder):
    with pytest.raises(TileError) as info:
        module.wrong()
    assert "caf\\udce9" in str(info.value)
    str(info.value).encode()
    with pytest.raises(CannotReadArtefact) as info:
        tile.load(folder / "nothing")
    str(info.value).encode()
