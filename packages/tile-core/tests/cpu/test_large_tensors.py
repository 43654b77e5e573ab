"""Tensors of more than 2**31 elements: they work where 32-bit indices reach all extents, and are refused elsewhere."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest
from expected_errors import raises_error

import tile_core as tile
import tile_core.language as T
from tile_core.abi.signature import Signature
from tile_core.errors.launch import NarrowIndex, TooManyElements
from tile_core.runtime.kernel import Kernel

ROWS, COLUMNS = 2**16, 2**15 + 8


@pytest.mark.parametrize("dtype", ["uint8", "uint4"])
def test_the_end_of_a_large_tensor_is_read_and_written(dtype: str) -> None:
    columns = COLUMNS if dtype == "uint8" else COLUMNS * 2

    @T.prim_func
    def main(A: T.Tensor((ROWS, columns), dtype), B: T.Tensor((64,), "uint8")):
        with T.Kernel(ROWS // 64, threads=32) as bx:
            if bx == ROWS // 64 - 1:
                for i in T.Parallel(64):
                    B[i] = T.cast(A[bx * 64 + 63 - i, columns - 1], "uint8")
                T.copy(A[bx * 64, columns - 4 : columns - 2], A[bx * 64 + 1, columns - 4 : columns - 2])

    a = np.zeros((ROWS, COLUMNS), "uint8")  # what is not touched takes no memory
    a[-64:, -1] = np.arange(64) * 2 + 100
    a[-64, -4:-1] = [18, 52, 86]
    b = np.zeros(64, "uint8")
    tile.compile(main, target="cpu")(a, b)
    last = a[-64:, -1]
    np.testing.assert_array_equal(b, (last if dtype == "uint8" else last >> 4)[::-1])
    moved = slice(-4, -2) if dtype == "uint8" else slice(-2, -1)
    np.testing.assert_array_equal(a[-63, moved], a[-64, moved])


@pytest.mark.parametrize("case", ["an extent", "a flat index", "a view", "strides"])
def test_what_32_bit_numbers_do_not_reach_is_refused_at_compile_time(case: str) -> None:
    if case == "an extent":
        size = 2**31 + 128

        @T.prim_func
        def main(A: T.Tensor((size,), "uint8")):
            with T.Kernel(size // 128, threads=32) as bx:
                A[bx] = 1

    elif case == "a flat index":

        @T.prim_func
        def main(A: T.Tensor((ROWS, COLUMNS), "uint8")):
            with T.Kernel(ROWS * COLUMNS // 128, threads=32) as bx:
                for i in T.Parallel(128):
                    A[(bx * 128 + i) // COLUMNS, (bx * 128 + i) % COLUMNS] = 1

    elif case == "a view":

        @T.prim_func
        def main(A: T.Tensor((ROWS, COLUMNS), "uint8")):
            with T.Kernel(1, threads=32):
                flat = T.reshape(A, (ROWS * COLUMNS,))
                flat[ROWS * COLUMNS - 1] = 1

    else:

        @T.prim_func
        def main(A: T.StridedTensor((2, 4), (2**31 + 8, 1), "uint8")):
            with T.Kernel(2, threads=32) as bx:
                A[bx, 0] = 1

    with raises_error(TooManyElements, expected=2147483647, bits=32) as error:
        tile.compile(main, target="cpu")
    assert "def main" in str(error.value)


@pytest.mark.parametrize("case", ["an extent", "a flat index", "a grid"])
def test_what_32_bit_numbers_do_not_reach_is_refused_at_a_launch(case: str) -> None:
    m, n = T.dynamic("m"), T.dynamic("n")
    reasons = {
        "an extent": ": a dimension of 2147483776 elements needs 64-bit sizes",
        "a flat index": ": m * n is computed in 32 bits",
        "a grid": ": its grid has 2148139008 blocks",
    }

    @T.prim_func
    def main(A: T.Tensor((m, n), "uint8"), B: T.Tensor((1,), "uint8")):
        with T.Kernel(*((n, m) if case == "a grid" else (1,)), threads=32):
            B[0] = 1
            if case == "a flat index":
                for i in T.serial(m * n // 4096):
                    B[0] = A[i % m, 0]
            if case == "an extent":
                B[0] = A[0, 0]

    kernel = tile.compile(main, target="cpu")
    b = np.zeros(1, "uint8")
    kernel(np.ones((3, 5), "uint8"), b)
    large = np.zeros((2, 2**31 + 128) if case == "an extent" else (ROWS, COLUMNS + 2), "uint8")
    with pytest.raises(TooManyElements) as error:
        kernel(large, b)
    assert f"argument 'A' spans {large.size} elements, at most" in str(error.value)
    assert reasons[case] in str(error.value)
    assert "T.dynamic(" in str(error.value)
    kernel(np.ones((3, 5), "uint8"), b)


def test_an_artefact_has_no_version_for_large_arrays() -> None:
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m, 65536), "uint8")):
        with T.Kernel(1, threads=32):
            A[m - 1, 65535] = 1

    kernel = tile.compile(main, target="cpu")
    a = np.zeros((ROWS, 65536), "uint8")
    kernel(a)
    assert a[-1, -1] == 1
    read = Signature.from_json(kernel.signature.to_json())
    with pytest.raises(TooManyElements, match="at most 2147418111 fit 32-bit indices"):
        Kernel(read, lambda *_: None)(a)


def test_targets_that_count_elements_with_32_bits_refuse_at_compile_time() -> None:
    @T.prim_func
    def main(A: T.Tensor((ROWS, COLUMNS), "uint8")):
        with T.Kernel(1, threads=32):
            A[0, 0] = 1

    from tile_core.passes.check_reach import check_reach

    check_reach(main, 64)
    with raises_error(TooManyElements, name="A"):
        check_reach(main, 32)


INDICES = {
    "scalar": ("first * 256 + i", True),
    "read": ("S[i] * 64", True),
    "converted": ('T.cast(first * 4, "int64") + i', True),
    "grid": ("bx * 4096 + i", True),
    "named": ("x + i", True),
    "variable": ("v[0]", True),
    "tile": ("first * 256 + i", True),
    "wide": ('T.cast(first, "int64") * 256 + i', False),
    "element": ("S[i]", False),
    "small": ("bx // 1024 * 256 + i", False),
}


def indexed(how: str) -> Any:
    """A tensor of a 64-bit size, by an index of 32 bits or 64."""
    m, k = T.dynamic("m", "int64"), T.dynamic("k")
    text = f"""
import tile_core.language as T
@T.prim_func
def main(A: T.Tensor((m,), "int8"), S: T.Tensor((k,), "int32"), first: T.int32, B: T.Tensor((256,), "int8")):
    with T.Kernel(2**20, threads=64) as bx:
        x = first * 4
        v = T.alloc_local((1,), "int32")
        v[0] = first * 4
        if bx == 0:
            if {how == "tile"}:
                T.copy(A[first * 256], B)
            else:
                for i in T.Parallel(256):
                    B[i] = A[{INDICES[how][0]}]
"""
    linecache.cache[f"<{how}>"] = (len(text), None, text.splitlines(keepends=True), f"<{how}>")
    scope: dict[str, Any] = {"m": m, "k": k}
    exec(compile(text, f"<{how}>", "exec"), scope)
    return scope["main"]


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("how", INDICES)
def test_extents_beyond_32_bit_index_arithmetic_are_refused_at_launches(how: str) -> None:
    kernel = tile.compile(indexed(how), target="cpu")
    small, large = np.ones(2000, "int8"), np.zeros(2**31 + 5000, "int8")  # not touched, so that it takes no memory
    rows, out = np.zeros(256, "int32"), np.zeros(256, "int8")
    kernel(small, rows, 1, out)
    assert (out == 1).all()
    if not INDICES[how][1]:
        kernel(large, rows, 1, out)
        assert (out == 0).all()
        return
    with raises_error(NarrowIndex, kernel="main", name="A", found=2147488648, extent="m") as error:
        kernel(large, rows, 1, out)
    assert "computed in 32 bits" in str(error.value)
    assert "T.cast(bx, 'int64')" in str(error.value)
    again = Signature.from_json(kernel.signature.to_json())
    assert again.params[0].narrow == kernel.signature.params[0].narrow != ()
