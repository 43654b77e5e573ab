"""Buffers of a kernel that the system has no memory for."""

import subprocess
import sys

import pytest

from tile_core.errors.launch import BadSetting
from tile_core.errors.setup import OutOfMemory
from tile_runtime.calls.arguments import only_catalogue

PROGRAM = """
import resource
import numpy as np
import tile_core as tile, tile_core.language as T


@T.prim_func
def big(A: T.Tensor((4,), "float32")):
    with T.Kernel(1):
        s = T.alloc_shared((1 << 30,), "float32")
        for i in T.serial(4):
            s[i * 1000000] = A[i]
        for i in T.serial(4):
            A[i] = s[i * 1000000] + T.float32(1)


kernel = tile.compile(big, "cpu")
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
try:
    kernel(np.ones(4, "float32"))
except tile.TileError as error:
    print(error.code)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_shared_memory_beyond_the_limit_of_a_process(tmp_path):
    script = tmp_path / "big.py"
    script.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=200)
    assert done.stdout == "S204\n", done.stderr


def test_errors_of_memory_are_no_defects():
    with pytest.raises(OutOfMemory), only_catalogue("launch", None):
        raise MemoryError
    with pytest.raises(OutOfMemory), only_catalogue("launch", None):
        raise RuntimeError("InternalError: std::bad_alloc")
    with pytest.raises(BadSetting), only_catalogue("launch", None):
        raise BadSetting(function="f", name="n", found=1, expected="2", instead="3")
