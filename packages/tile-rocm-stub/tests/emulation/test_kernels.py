"""Kernels beyond the zoo: atomics of every order, half bytes, 64-lane shuffles and votes."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_rocm_stub.emit.atomics import ORDERS
from tile_rocm_stub.target import ATOMIC

from ..clang import assembly

pytestmark = pytest.mark.sweep(3)

COUNT = 200


def kernel_of(body, **space):
    """Make a kernel of text: element types and orders are constants of it."""
    text = "import tile_core.language as T\n" + body
    file = f"<kernel {abs(hash((text, tuple(space.items()))))}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), space)
    return space["kernel"]


UPDATES = """
@T.prim_func
def kernel(X: T.Tensor((200,), DTYPE), Y: T.Tensor((3,), DTYPE)):
    with T.Kernel(2, threads=128) as bx:
        for i in T.Parallel(128):
            if bx * 128 + i < 200:
                T.atomic_add(Y[0], X[bx * 128 + i], memory_order=ORDER)
                T.atomic_max(Y[1], X[bx * 128 + i], memory_order=ORDER)
                T.atomic_min(Y[2], X[bx * 128 + i], memory_order=ORDER)
"""


@pytest.mark.parametrize("dtype", ATOMIC)
@pytest.mark.parametrize("order", ["relaxed", "acq_rel"])
def test_updates(dtype, order):
    kernel = tile.compile(kernel_of(UPDATES, DTYPE=dtype, ORDER=order), "rocm", runtime="emulator")
    numpy_type = T.dtype(dtype).numpy()
    x = np.random.default_rng(1).integers(0, 2 if "8" in dtype else 9, COUNT).astype(numpy_type)
    x[7] = 1 if "int" in dtype else np.nan
    expected = x.astype("float64")
    y = np.zeros(3, numpy_type)
    y[2] = 5
    total = np.nansum(expected)
    if "int" not in dtype:  # a NaN is left out of a maximum, and of a sum it is the result
        x[7], total = np.nan, np.nan
    kernel(x, y)
    assert np.array_equal(y.astype("float64"), [total, np.nanmax(expected), np.nanmin(expected)], equal_nan=True)


@pytest.mark.parametrize("order", ORDERS)
def test_orders_compile(order):
    source = tile.compile(kernel_of(UPDATES, DTYPE="float16", ORDER=order), "rocm").source
    assert f"__ATOMIC_{order.upper()}, __ATOMIC_RELAXED" in source
    assert "cmpswap" in assembly(source)


def test_loads_and_stores():
    @T.prim_func
    def kernel(X: T.Tensor((64,), "bfloat16"), Y: T.Tensor((64,), "bfloat16")):
        with T.Kernel(1, threads=64):
            tid = T.get_thread_binding(0)
            T.atomic_store(Y[tid], T.atomic_load(X[tid], memory_order="acquire") + 1, memory_order="release")

    compiled = tile.compile(kernel, "rocm", runtime="emulator", out_idx=-1)
    x = np.arange(64).astype(T.dtype("bfloat16").numpy())
    assert np.array_equal(compiled(x).astype("float32"), np.arange(64) + 1)
    assert "global_store" in assembly(compiled.source)


def test_two_lanes_and_one_byte():
    @T.prim_func
    def kernel(X: T.Tensor((65,), "int8"), Y: T.Tensor((66,), "int4")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(65):
                Y[i] = T.cast(X[i], "int4")

    compiled = tile.compile(kernel, "rocm", runtime="emulator")
    x = np.random.default_rng(0).integers(-8, 8, 65).astype("int8")
    packed = np.zeros(33, "uint8")
    compiled(x, packed)
    nibbles = np.stack([packed & 15, packed >> 4], 1).ravel()[:65].astype("int8")
    assert np.array_equal(np.where(nibbles > 7, nibbles - 16, nibbles), x)


def test_shuffles_and_votes_of_64_lanes():
    @T.prim_func
    def kernel(X: T.Tensor((128,), "float64"), Y: T.Tensor((4, 128), "float64"), V: T.Tensor((128,), "uint64")):
        with T.Kernel(1, threads=128):
            tid = T.get_thread_binding(0)
            x = X[tid]
            Y[0, tid] = T.shfl_xor(x, 33)
            Y[1, tid] = T.shfl_up(x, 5)
            Y[2, tid] = T.shfl_down(x, 40)
            Y[3, tid] = T.shfl_sync(x, 63)
            V[tid] = T.ballot(x > 64)

    compiled = tile.compile(kernel, "rocm", runtime="emulator")
    x, y, v = np.arange(128.0), np.zeros((4, 128)), np.zeros(128, "uint64")
    compiled(x, y, v)
    lane, wave = np.arange(128) % 64, np.arange(128) // 64 * 64
    sources = lane ^ 33, np.where(lane < 5, lane, lane - 5), np.where(lane + 40 > 63, lane, lane + 40), 63 + 0 * lane
    assert np.array_equal(y, np.stack([wave + s for s in sources]))
    assert np.array_equal(v, np.repeat(np.array([0, 2**64 - 2], "uint64"), 64))
    assert "ds_bpermute_b32" in assembly(compiled.source)


NAMED = """
@T.prim_func
def kernel(A: T.Tensor((8,), "float32"), NAME: T.int32):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(8):
            A[i] = T.float32(NAME) + T.float32(i)
"""


@pytest.mark.parametrize(
    "name",
    ["smem", "before", "f32x4", "simt", "rocm", "lane_id", "blockIdx", "atomic_add_int32_relaxed", "NAN"],
)
def test_names_of_the_language(name):
    kernel = tile.compile(kernel_of(NAMED.replace("NAME", name)), "rocm", runtime="emulator")
    a = np.zeros(8, "float32")
    kernel(a, 3)
    assert np.array_equal(a, 3 + np.arange(8))
    assert f"int {name}_1" in kernel.source
    assembly(kernel.source)
