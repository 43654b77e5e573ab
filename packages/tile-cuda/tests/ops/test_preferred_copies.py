"""Bulk copies by default in kernels with warpgroup products; right without legal boxes."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
from tile_cuda.options import CudaOptions

from .test_staged_epilogue import gemm, operands

TARGET = "cuda:sm_90a"


def text(program, **options):
    return tile.compile(program, TARGET, runtime="emulator", options=options).source


def test_kernels_with_products_of_warpgroups_have_them():
    made = gemm((128, 128, 128), (128, 128, 64), stages=2)
    assert CudaOptions().tma == "auto"
    assert text(made).count("cp_async_bulk_tensor_2d_shared") >= 2
    assert text(made) == text(made, tma="always")
    assert "cp_async_bulk" not in text(made, tma="never")
    assert "cp_async_bulk" not in text(made, wgmma="never")


@pytest.mark.sweep(1)
@pytest.mark.parametrize("which", ["a", "b", "c"])
@pytest.mark.parametrize("sizes", [(128, 128, 128), (130, 136, 72)], ids=str)
def test_a_base_at_an_odd_address_runs_another_text(sizes, which):
    m, n, k = sizes
    kernel = tile.compile(gemm(sizes, (128, 128, 64), stages=2), TARGET, runtime="emulator")
    assert "cp_async_bulk_tensor_2d_shared" in kernel.source
    a, b = operands(m, n, k)
    c = np.full((m, n), 85, "float16")
    given = {"a": a, "b": b, "c": c}
    base = np.empty(given[which].size + 1, "float16")
    odd = base[1:].reshape(given[which].shape)
    odd[...] = given[which]
    given[which] = odd
    kernel(*given.values())
    np.testing.assert_array_equal(given["c"].astype("float64"), a.astype("float64") @ b.astype("float64"))


@pytest.mark.sweep(1)
@pytest.mark.parametrize("sizes", [(64, 65, 64), (64, 64, 63), (70, 9, 31)], ids=str)
def test_rows_that_are_no_multiple_of_16_bytes(sizes):
    m, n, k = sizes
    kernel = tile.compile(gemm(sizes, (64, 64, 32), stages=2), TARGET, runtime="emulator", options={"wgmma": "always"})
    a, b = operands(m, n, k)
    c = np.full((m, n), 85, "float16")
    kernel(a, b, c)
    np.testing.assert_array_equal(c.astype("float64"), a.astype("float64") @ b.astype("float64"))
