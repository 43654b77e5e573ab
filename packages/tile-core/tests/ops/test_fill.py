"""T.fill and T.clear: every element type, slices, runtime values, extreme constants."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.dtypes import DTYPES
from tile_core.errors import KernelError
from tile_core.testing import oracles

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


CONSTANTS = {
    "bool": [True, False],
    "int4": [-8, 7],
    "uint4": [0, 15],
    "int8": [-7, -128],
    "uint8": [255],
    "int16": [-32768, 1],
    "uint16": [65535],
    "int32": [-(2**31), 2**31 - 1],
    "uint32": [2**32 - 1],
    "int64": [-(2**63), 2**63 - 1],
    "uint64": [2**64 - 1, 2**63],
    "tfloat32": [1.5, float("nan")],
    "float16": [65504.0, float("-inf")],
    "bfloat16": [-1.0, float("nan")],
    "float32": [0.1, -0.0, float("inf"), 1e-45],
    "float64": [0.1, 5e-324, float("nan")],
    "float8_e4m3fn": [448.0, -0.0],
    "float8_e4m3fnuz": [240.0, -2.0],
    "float8_e5m2": [57344.0, float("inf")],
    "float8_e5m2fnuz": [-57344.0],
    "float8_e8m0fnu": [2.0, 2.0**-127],
    "float4_e2m1fn": [6.0, -0.5],
}


@pytest.mark.parametrize("dtype", kit.ALL_TYPES)
def test_constants(dtype):
    """#2427, #2997: fills of 8- and 4-bit integers, and every other type, with its extremes."""
    for n, value in enumerate(CONSTANTS[dtype]):
        shape = ((7, 34), (129,), (1, 2))[n % 3] if not DTYPES[dtype].is_packed else (7, 34)
        a, b, c = kit.launch(
            program(dtype, value, shape, ("shared", "fragment", "local")[n % 3]),
            [],
            [kit.guarded(shape, dtype) for _ in "abc"],
        )
        for out in (a, c):
            found = kit.values(out, dtype, shape)
            kit.same(
                found,
                np.full(shape, value, found.dtype if found.dtype.kind != "f" else np.float64).astype(found.dtype)
                if dtype not in ("float16", "float32", "tfloat32")
                else np.full(shape, np.dtype("float16" if dtype == "float16" else "float32").type(value)),
            )
        zero = kit.values(b, dtype, shape)
        if dtype != "float8_e8m0fnu":
            kit.same(zero, np.zeros(shape, zero.dtype))


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


def test_runtime_values_slices_and_elements():
    @T.prim_func
    def main(
        v: T.float32,
        n: T.int32,
        A: T.Tensor((9, 33), "float32"),
        B: T.Tensor((9, 33), "int8"),
        C: T.Tensor((9, 33), "float8_e4m3fn"),
    ):
        with T.Kernel(1, threads=31):
            T.fill(A, 0.5)
            T.fill(A[2:7, 5:20], v)
            T.fill(A[n, 0:9], v + 1.0)
            T.fill(A[8, 32], -v)
            T.clear(A[n + 1, 1:3])
            T.fill(B, n)
            T.fill(C, v)

    kernel = tile.compile(main, target="cpu")
    for v, n in ((1.25, 0), (-3.5, 8), (7.0, -1), (2.0, 100)):
        outs = [kit.guarded((9, 33), d) for d in ("float32", "int8", "float8_e4m3fn")]
        kernel(v, n, *outs)
        assert all(kit.unharmed(x) for x in outs)
        a = np.full((9, 33), 0.5, np.float32)
        a[2:7, 5:20] = v
        a = oracles.write_region(a, (n, 0), np.full((1, 9), v + 1, np.float32))
        a[8, 32] = -v
        a = oracles.write_region(a, (n + 1, 1), np.zeros((1, 2), np.float32))
        kit.same(outs[0], a)
        kit.same(outs[1], np.full((9, 33), n, np.int8))
        kit.same(outs[2], np.full((9, 33), v))


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
