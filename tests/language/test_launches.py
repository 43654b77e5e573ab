"""Several launches in a program: right everywhere, verified, exported and cached as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError

from .targets import TARGETS, compiled

pytestmark = pytest.mark.sweep(2)


def column_totals(cols: int = 40) -> Any:
    """Return a program of column reductions in two launches with a workspace.

    A third launch needs neither.
    """
    m = T.dynamic("m")

    @T.prim_func
    def totals(
        A: T.Tensor((m, cols), "float32"), n: T.int32, B: T.Tensor((cols,), "float32"), C: T.Tensor((m,), "float32")
    ):
        parts = T.alloc_global((T.ceildiv(m, 16), cols), "float32")
        with T.Kernel(T.ceildiv(m, 16), threads=64) as (bx,):
            x = T.alloc_fragment((16, cols), "float32")
            p = T.alloc_fragment((cols,), "float32")
            T.copy(A[bx * 16, 0], x)
            T.reduce_sum(x, p, dim=0)
            T.copy(p, parts[bx, 0])
        with T.Kernel(threads=32):
            total = T.alloc_fragment((cols,), "float32")
            T.clear(total)
            for i in range(T.ceildiv(m, 16)):
                total += parts[i, :] * n
            T.copy(total, B)
        with T.Kernel(T.ceildiv(m, 32), threads=32) as bx:
            C[bx * 32 : bx * 32 + 32] = A[bx * 32 : bx * 32 + 32, 1] * 2

    return totals


def agrees(kernel: Any, rows: int, seed: int) -> None:
    a = np.random.default_rng(seed).integers(-4, 5, (rows, 40)).astype("float32")
    b, c = kernel(a, 3)
    np.testing.assert_array_equal(b, a.sum(0) * 3)
    np.testing.assert_array_equal(c, a[:, 1] * 2)


@pytest.mark.parametrize("target", [*TARGETS, "rocm:gfx942"])
def test_a_call_is_all_launches(target):
    kernel = compiled(column_totals(), target, out_idx=[2, 3])
    for n, rows in enumerate((5, 37, 37, 37, 37, 64, 1)):  # the same form often: by the functions of forms
        agrees(kernel, rows, n)
    report = kernel.verify(np.ones((21, 40), "float32"), 2)
    assert "equal" in str(report)
    assert kernel.signature.usage == "B, C = totals(A, n)"
    assert kernel.source.count("totals_") >= 3 or target == "cpu"


@pytest.mark.parametrize("target", ["cuda:sm_80", "metal"])
def test_an_exported_kernel_launches_all(target, tmp_path):
    kernel = compiled(column_totals(), target, out_idx=[2, 3])
    file = kernel.export(tmp_path / "totals.tile")
    loaded = tile.load(file, runtime="emulator")
    agrees(loaded, 50, 1)
    assert loaded.source == kernel.source
    assert loaded.signature == kernel.signature or loaded.signature.where != kernel.signature.where
    again = loaded.export(tmp_path / "again.tile")
    assert again.read_bytes() == file.read_bytes()
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    file.write_bytes(damaged)
    with pytest.raises(TileError, match=r"S60\d"):
        tile.load(file, runtime="emulator")


@pytest.mark.sweep(2)
def test_a_launch_is_kept_on_disk_by_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path))
    agrees(compiled(column_totals(), "metal", out_idx=[2, 3]), 33, 1)
    agrees(compiled(column_totals(), "metal", out_idx=[2, 3]), 33, 2)


def test_eager_kernels_launch_several_times():
    @tile.jit(target="cpu")
    def twice(A, factor: int = 2):
        n = T.const("n")
        A: T.Tensor[(n,), "float32"]
        B = T.empty((n,), "float32")
        W = T.alloc_global((n,), "float32")
        with T.Kernel(threads=32):
            W[...] = A * factor
        with T.Kernel(n, threads=1) as (i,):
            B[i] = W[n - 1 - i] + W[0]
        return B

    a = np.arange(9, dtype="float32") + 1
    np.testing.assert_array_equal(twice(a), a[::-1] * 2 + 2)
    np.testing.assert_array_equal(twice(a, factor=3), a[::-1] * 3 + 3)


def test_explain_has_a_part_for_each_launch():
    text = tile.explain(column_totals(), "cuda:sm_80")
    assert all(f"totals_{n}" in text for n in (1, 2, 3))


def test_outputs_of_one_launch_that_another_reads_are_not_allocated():
    @T.prim_func
    def bad(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(threads=32):
            B[0:4] = A[0:4]
        with T.Kernel(threads=32):
            A[...] = B * 1

    with pytest.raises(TileError, match="read too"):
        tile.compile(bad, "cpu", out_idx=1)
