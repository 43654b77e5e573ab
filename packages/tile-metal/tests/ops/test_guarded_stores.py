"""Guarded stores: computation in inactive lanes, and reads of their own indices."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.lowering import PointerUnsupported


@T.prim_func
def add(A: T.Tensor((100,), "float32"), B: T.Tensor((100,), "float32")):
    with T.Kernel(4, threads=32) as bx:
        t = T.get_thread_binding(0)
        B[bx * 32 + t] = T.warp_reduce_sum(A[bx * 32 + t])


@T.prim_func
def exchanged(A: T.Tensor((100,), "int32"), B: T.Tensor((100,), "int32")):
    with T.Kernel(4, threads=32) as bx:
        t = T.get_thread_binding(0)
        B[T.shfl_xor(bx * 32 + t, 1)] = T.shfl_xor(A[bx * 32 + t], 1)


@T.prim_func
def scattered(rows: T.Tensor((31,), "int32"), B: T.Tensor((100,), "int32")):
    with T.Kernel(1, threads=32):
        t = T.get_thread_binding(0)
        B[rows[t]] = t + 1


@T.prim_func
def addressed(p: T.ptr, B: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=32):
        T.copy(T.make_tensor(p, (4,), "float32"), B)


@T.prim_func
def k(k_args: T.Tensor((4,), "float32"), s: T.float32):
    with T.Kernel(1, threads=32):
        T.fill(k_args, s)


EVERYWHERE = pytest.mark.parametrize(("target", "runtime"), [("metal", "emulator"), ("cpu", None)])


@EVERYWHERE
def test_the_last_group_of_lanes_is_whole(target: str, runtime: str | None) -> None:
    a = np.random.default_rng().random(100, dtype=np.float32)
    b = np.full(100, np.nan, np.float32)
    tile.compile(add, target=target, runtime=runtime)(a, b)
    want = np.concatenate([np.full(len(part), part.sum(dtype=np.float64)) for part in np.split(a, [32, 64, 96])])
    np.testing.assert_allclose(b, want, rtol=1e-5)


@EVERYWHERE
def test_lanes_exchange_the_index_and_the_value(target: str, runtime: str | None) -> None:
    a = np.random.default_rng().integers(0, 2**31 - 1, 100, dtype=np.int32)
    b = np.full(100, -1, np.int32)
    tile.compile(exchanged, target=target, runtime=runtime)(a, b)
    np.testing.assert_array_equal(b, a)


@EVERYWHERE
def test_an_index_outside_of_its_own_tensor_is_zero(target: str, runtime: str | None) -> None:
    rows = (np.random.default_rng().permutation(99)[:31] + 1).astype(np.int32)
    b = np.full(100, -1, np.int32)
    tile.compile(scattered, target=target, runtime=runtime)(rows, b)
    want = np.full(100, -1)
    want[rows], want[0] = np.arange(31) + 1, 32
    np.testing.assert_array_equal(b, want)


def test_an_address_is_refused() -> None:
    with pytest.raises(PointerUnsupported):
        tile.compile(addressed, target="metal", runtime="emulator")


def test_no_parameter_hides_the_structure_of_scalars() -> None:
    b = np.full(4, np.nan, np.float32)
    tile.compile(k, target="metal", runtime="emulator")(b, 2.5)
    np.testing.assert_array_equal(b, np.full(4, 2.5))
