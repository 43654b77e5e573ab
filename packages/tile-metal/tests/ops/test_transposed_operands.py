"""Products by tensor operations of A and B as they are stored: rows of an operand or of its transpose."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from zoo import launch
from zoo.case import Case, poisoned

import tile_core.language as T
import tile_emulator
from tile_metal.emulation import dialect

from .kit import context, numbers, right

pytestmark = pytest.mark.sweep(2)

TURNED = list(itertools.product((False, True), repeat=2))
SIZES = [(64, 64, 64), (67, 75, 53), (1, 33, 15), (16, 31, 17)]
TYPES = ("float16", "bfloat16", "float32", "float8_e4m3fn", "int8")


def total_of(dtype):
    return "int32" if dtype == "int8" else "float32"


def product(m, n, k, turned, dtype="float16", tile=(32, 64, 32)):
    (turned_a, turned_b), (tile_m, tile_n, tile_k) = turned, tile
    total = total_of(dtype)

    @T.prim_func
    def product(
        A: T.Tensor((k, m) if turned_a else (m, k), dtype),
        B: T.Tensor((n, k) if turned_b else (k, n), dtype),
        C: T.Tensor((m, n), total),
    ):
        with T.Kernel(T.ceildiv(n, tile_n), T.ceildiv(m, tile_m), threads=128) as (bx, by):
            a = T.alloc_shared((tile_k, tile_m) if turned_a else (tile_m, tile_k), dtype)
            b = T.alloc_shared((tile_n, tile_k) if turned_b else (tile_k, tile_n), dtype)
            c = T.alloc_fragment((tile_m, tile_n), total)
            T.clear(c)
            for i in T.Pipelined(T.ceildiv(k, tile_k), num_stages=2):
                T.copy(A[i * tile_k, by * tile_m] if turned_a else A[by * tile_m, i * tile_k], a)
                T.copy(B[bx * tile_n, i * tile_k] if turned_b else B[i * tile_k, bx * tile_n], b)
                T.gemm(a, b, c, transpose_A=turned_a, transpose_B=turned_b)
            T.copy(c, C[by * tile_m, bx * tile_n])

    return product


@pytest.mark.parametrize("turned", TURNED)
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("dtype", TYPES)
def test_products_are_right_and_read_device_memory(dtype, sizes, turned):
    m, n, k = sizes
    numpy = T.dtype(dtype).numpy()
    a, b = numbers((k, m) if turned[0] else (m, k), numpy), numbers((n, k) if turned[1] else (k, n), numpy, 2)
    program = product(m, n, k, turned, dtype)
    found, out = right(program, a, b, poisoned((m, n), total_of(dtype)), target="metal:metal4")
    a64, b64 = (x.astype("float64").T if t else x.astype("float64") for x, t in zip((a, b), turned, strict=True))
    np.testing.assert_array_equal(out["C"], a64 @ b64)
    # Codes of 8 bits become float16 on their way to threadgroup memory.
    assert ("threadgroup_barrier" in found.text) == (dtype == "float8_e4m3fn")
    assert "matmul2d_16x32x16_i32_i8" in found.text or dtype != "int8"


@pytest.mark.parametrize("turned", TURNED)
def test_descriptors_have_the_operands_transposes(turned):
    program = product(64, 64, 64, turned)
    a, b = numbers((64, 64), "float16"), numbers((64, 64), "float16", 2)
    found, _ = right(program, a, b, poisoned((64, 64), "float32"), target="metal:metal4")
    suffix = f"{'_ta' if turned[0] else ''}{'_tb' if turned[1] else ''}"
    assert f"matmul2d_16x32x16_f32_f16{suffix}(&" in found.text
    # Accumulators are poisoned behind the loop over K.
    assert found.text.count(f"matmul2d_16x32x16_f32_f16{suffix}_poison(known") == 1
    # Neighbours of a stored row are read at once.
    assert "uint2*)&A_v[0] = *(device const uint2*)&A[" in found.text
    assert "uint2*)&B_v[0] = *(device const uint2*)&B[" in found.text


@pytest.mark.parametrize("others", [1, 2, 3])
@pytest.mark.parametrize("turned", TURNED)
@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_where_lanes_hold_other_elements_a_product_gives_no_numbers(dtype, turned, others):
    numpy, known = T.dtype(dtype).numpy(), dialect(context("metal:metal4").target)
    other = dataclasses.replace(known, flags=(*known.flags, f"-DMETAL_OTHER_LANES={others}"))
    a, b = numbers((32, 32), numpy), numbers((64, 32) if turned[1] else (32, 64), numpy, 2)
    case = Case(product(32, 64, 32, turned, dtype), (a, b, np.zeros((32, 64), total_of(dtype))), ())
    text = launch.text_for(case, context("metal:metal4"))
    result = tile_emulator.run(text.text, text.facts, launch.values_of(case, text), other)
    assert not result.reports
    found = result.outputs["C"]
    assert np.isnan(found).all() if dtype == "float16" else (found == np.iinfo("int32").min).all()
