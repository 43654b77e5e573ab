"""Test tables of addresses: construction, refusals, and execution by the emulator."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.language import BadArgument
from tile_core.errors.launch import MissingArgument, NoAddress, NotProvided
from tile_core.runtime.verify import random_arguments


def doubled(size: int = 8, **how: Any) -> Any:
    """Return a program: the elements at each address, doubled, go to a row of B."""

    @T.prim_func
    def kernel(P: T.Tensor((2,), T.ptr("float32")), B: T.Tensor((2, 8), "float32")):
        with T.Kernel(2, threads=32) as bx:
            x = T.make_tensor(P[bx], (size,), **how)
            for i in T.Parallel(8):
                B[bx, i] = x[i] * 2

    return kernel


def aligned(count: int, by: int = 64, off: int = 0) -> Any:
    """Return an array of float32 at an address that is a multiple of ``by``, plus ``off``."""
    raw = np.zeros(count * 4 + by + off, np.uint8)
    start = -raw.__array_interface__["data"][0] % by + off
    return raw[start : start + count * 4].view(np.float32)


def test_any_int64_array_is_a_table() -> None:
    x, y = np.arange(8, dtype="float32"), np.ones(8, "float32")
    kernel = tile.compile(doubled(), "cpu", out_idx=1)
    table = tile.pointers([x, y])
    assert table.dtype == np.int64
    assert table.tolist() == [x.ctypes.data, y.ctypes.data]
    for given in (table, np.array(table)):
        np.testing.assert_array_equal(kernel(given), [x * 2, y * 2])


def test_arrays_live_as_long_as_their_table() -> None:
    x = np.arange(8, dtype="float32")
    seen = weakref.ref(x)
    table = tile.pointers([x, x])
    del x
    gc.collect()
    assert seen() is not None
    del table
    gc.collect()
    assert seen() is None


def test_what_has_no_address() -> None:
    with pytest.raises(NoAddress, match=r"K428.*argument 1 is not an array"):
        tile.pointers([np.zeros(3), "text"])  # type: ignore[list-item]
    assert tile.pointers([]).shape == (0,)


def test_what_cannot_be_known_behind_an_address() -> None:
    kernel = tile.compile(doubled(), "cpu", out_idx=1)
    with pytest.raises(NotProvided, match=r"U401.*addresses in P"):
        kernel.verify(tile.pointers([np.zeros(8, "float32")] * 2))
    with pytest.raises(NotProvided):
        kernel.verify()
    with pytest.raises(MissingArgument):
        random_arguments(kernel.signature, 0)


def test_a_kernel_with_a_table_is_exported(tmp_path: Path) -> None:
    path = tile.compile(doubled(), "cuda:sm_80", out_idx=1, runtime="emulator").export(tmp_path / "k.tile")
    loaded = tile.load(path, runtime="emulator")
    assert [p.addresses for p in loaded.signature.params] == [True, False]
    x = np.arange(8, dtype="float32")
    np.testing.assert_array_equal(loaded(tile.pointers([x, x])), [x * 2, x * 2])


@pytest.mark.parametrize("target", ["cuda:sm_80", "metal", "rocm:gfx942"])
def test_the_emulator_sees_the_ends_of_arrays(target: str) -> None:
    from tile_emulator.errors import FaultFound

    kernel = tile.compile(doubled(), target, out_idx=1, runtime="emulator")
    with pytest.raises(FaultFound, match=r"\[K480\] kernel: .*(\n.*)*P\[1\]"):  # whatever the text's function is called
        kernel(tile.pointers([np.zeros(8, "float32"), np.zeros(7, "float32")]))


def test_a_promise_makes_accesses_wide_and_is_watched() -> None:
    from tile_emulator.errors import FaultFound

    @T.prim_func
    def copy(P: T.Tensor((1,), T.ptr("float32")), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=32):
            T.copy(T.make_tensor(P[0], (128,), align=16), B)

    kernel = tile.compile(copy, "cuda:sm_80", out_idx=1, runtime="emulator")
    assert "uint4" in kernel.source
    x = aligned(128)
    x[...] = np.arange(128)
    np.testing.assert_array_equal(kernel(tile.pointers([x])), x)
    with pytest.raises(FaultFound, match="multiple of 16"):
        kernel(tile.pointers([aligned(128, off=4)]))


@pytest.mark.parametrize("align", [3, 2, True, "16", 0])
def test_an_alignment_holds_an_element(align: Any) -> None:
    with pytest.raises(BadArgument, match=r"align.*power of two from 4"):
        doubled(align=align)


def test_a_table_is_declared() -> None:
    for declared in (T.Tensor((2,), T.ptr), T.Tensor[2, T.ptr], T.Tensor[(2,), T.ptr("int8")]):
        assert str(declared.dtype) == "int64"
        assert declared.pointee is not None
    assert str(T.StridedTensor((2,), (3,), T.ptr("float16")).pointee) == "float16"
    with pytest.raises(BadArgument, match=r"element of type int64.*T.Tensor\(shape, T.ptr\)"):

        @T.prim_func
        def kernel(P: T.Tensor((2,), "int64"), B: T.Tensor((2,), "float32")):
            with T.Kernel(1, threads=32):
                T.copy(T.make_tensor(P[0], (2,), "float32"), B)
