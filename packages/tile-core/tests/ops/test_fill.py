"""T.fill beyond testing/tables/fills.py: constants that do not fit, variables and views."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core.language as T
from tile_core.errors import KernelError

from . import kit

pytestmark = pytest.mark.sweep(5)


def program(dtype, value, shape, scope):
    alloc = {"shared": T.alloc_shared, "fragment": T.alloc_fragment, "local": T.alloc_local}[scope]

    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype), C: T.Tensor(shape, dtype)):
        with T.Kernel(1, threads=96):
            s = alloc(shape, dtype)
            T.fill(s, value)
            T.copy(s, A)
            T.clear(s)
            T.copy(s, B)
            T.fill(C, value)

    return main


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int8", 128),
        ("int8", -129),
        ("uint8", -1),
        ("int4", 8),
        ("uint4", 16),
        ("int32", 2**31),
        ("int32", 0.5),
        ("uint64", 2**64),
        ("float16", 1e6),
        ("float8_e4m3fn", 500.0),
        ("int16", float("nan")),
        ("float4_e2m1fn", 9.0),
    ],
)
def test_constants_that_do_not_fit(dtype, value):
    with pytest.raises(KernelError) as caught:
        program(dtype, value, (8, 8), "shared")
    assert "T.fill(s, value)" in caught.value.where.source


def test_a_variable_and_a_view():
    @T.prim_func
    def main(A: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            x = T.alloc_var("float32", 3.0)
            T.fill(x, 4.5)
            s = T.alloc_shared((8,), "float32")
            T.fill(s, x)
            T.clear(x)
            T.fill(T.view(s, (2, 4))[1, :], x)
            T.copy(s, A)

    kit.same(kit.launch(main, [], [kit.guarded((8,), "float32")]), np.array([4.5] * 4 + [0] * 4, np.float32))
