"""Parameters that are named like macros and types of the device's headers."""

import linecache

import numpy as np
import pytest

import tile_core as tile

TEXT = """
import tile_core.language as T

@T.prim_func
def kernel(A: T.Tensor((8,), "float32"), {name}: T.int32):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(8):
            A[i] = T.float32({name}) + T.float32(i)
"""


@pytest.mark.parametrize("name", ["NULL", "std", "INT_MAX", "M_PI", "INFINITY", "nil", "uint32_t", "FLT_EPSILON"])
@pytest.mark.parametrize("target", ["metal", "cpu"])
def test_a_scalar(name, target):
    text, file = TEXT.format(name=name), f"<reserved {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space = {}
    exec(compile(text, file, "exec"), space)
    if target == "cpu":
        a = np.zeros(8, "float32")
        tile.compile(space["kernel"], "cpu")(a, 3)
        assert a.tolist() == [3 + i for i in range(8)]
        return
    source = tile.compile(space["kernel"], target, runtime="emulator").source
    assert f" {name};" not in source
    assert f"{name}_1" in source
