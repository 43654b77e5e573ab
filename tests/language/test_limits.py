"""Missing features of a target are rejected at compile time; empty extents run nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.lowering import GridNotComputable

from .targets import TARGETS, compiled

pytestmark = pytest.mark.sweep(3)


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "cuda:sm_90a", "metal"])
@pytest.mark.parametrize("threads", [2048, (1024, 2), (32, 32, 2)])
def test_more_threads_than_a_block_has(target: str, threads: Any) -> None:
    @T.prim_func
    def main(A: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=threads):
            T.clear(A)

    with pytest.raises(tile.TileError, match=r"U112.*2048 threads.*at most 1024") as caught:
        tile.compile(main, target, runtime=None if target == "cpu" else "emulator")
    assert caught.value.where is not None


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
@pytest.mark.parametrize("name", ["fill", "load", "store"])
def test_names_of_another_target(target: str, name: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 8), "float32")):
        with T.Kernel(1, threads=32):
            x = T.alloc_fragment((8, 8), "float32")
            T.clear(x)
            if name == "fill":
                T.simdgroup_fill(x, 1.0)
            elif name == "load":
                T.simdgroup_load(x, A)
            else:
                T.simdgroup_store(x, A)
            T.copy(x, A)

    with pytest.raises(tile.TileError, match=r"U103.*metal.simdgroup") as caught:
        tile.compile(main, target, runtime=None if target == "cpu" else "emulator")
    assert "T.simdgroup" in str(caught.value)
    tile.compile(main, "metal", runtime="emulator")


@pytest.mark.parametrize(
    "build",
    [
        lambda A, B, C: T.gemm(A, B, C, k_pack=3),
        lambda A, B, C: T.gemm(A, B, C, k_pack=0),
        lambda A, B, C: T.gemm(A, B, C, wg_wait=-2),
        lambda A, B, C: T.gemm(A, B, C, policy=7),
        lambda A, B, C: T.gemm(A, B, C, policy="square"),
        lambda A, B, C: T.gemm(A, B, C, annotations=3),
        lambda A, B, C: T.copy(A, B, annotations=[1]),
        lambda A, B, C: T.copy(A, B, annotations={1: 2}),
        lambda A, B, C: T.copy(A, B, coalesced_width=0),
        lambda A, B, C: T.Parallel(4, coalesced_width=0),
        lambda A, B, C: T.Parallel(4, annotations=3),
        lambda A, B, C: T.Pipelined(4, num_stages=-1),
        lambda A, B, C: T.Pipelined(4, num_stages=1.5),
        lambda A, B, C: T.Pipelined(4, annotations=3),
        lambda A, B, C: T.unroll(4, unroll_factor=0),
        lambda A, B, C: T.serial(4, annotations={1: 2}),
    ],
)
def test_hints_are_checked_where_they_change_nothing(build: Any) -> None:
    with pytest.raises(tile.TileError) as caught:

        @T.prim_func
        def main(A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 16), "float16"), C: T.Tensor((16, 16), "float32")):
            with T.Kernel(1, threads=32):
                build(A, B, C)

    assert caught.value.code.startswith(("K119", "K128", "K2"))


@pytest.mark.parametrize(
    "loop", ["serial", "Parallel", "Pipelined", "unroll", "vectorized", "grid", "range", "Persistent"]
)
def test_negative_constant_extents(loop: str) -> None:
    with pytest.raises(tile.TileError, match=r"-4, expected an int >= 0"):

        @T.prim_func
        def main(A: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=32) as b:
                if loop == "range":
                    for i in range(-4):
                        A[i] = 1.0
                elif loop == "Persistent":
                    for i in T.Persistent((-4,), 2, b):
                        A[i] = 1.0
                else:
                    for i in getattr(T, loop)(-4):
                        A[i] = 1.0


@pytest.mark.parametrize("target", TARGETS)
def test_extents_of_zero_and_less_at_run_time(target: str) -> None:
    @T.prim_func
    def main(n: T.int32, A: T.Tensor((6, 8), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.serial(n):
                A[0, i] = 1
            for i in T.Parallel(n):
                A[1, i] = 1
            for i in T.Pipelined(n, num_stages=2):
                A[2, i] = 1
            for i in range(3, n):
                A[3, i] = 1
            for i in T.serial(n, 0, -1):
                A[4, i] = 1
            for i, j in T.grid(n, n):
                A[5, i] = j

    for n in (-5, 0, 3):
        a = np.full((6, 8), -1, np.int32)
        compiled(main, target)(n, a)
        want = np.full((6, 8), -1)
        want[:3, : max(n, 0)] = 1
        if n > 0:
            want[4, 1 : n + 1] = 1
            want[5, :n] = n - 1
        np.testing.assert_array_equal(a, want)


@pytest.mark.parametrize("target", TARGETS)
def test_grids_of_zero_and_less_at_run_time(target: str) -> None:
    @T.prim_func
    def main(n: T.int32, A: T.Tensor((16, 8), "int32")):
        with T.Kernel(n, T.ceildiv(n, 2), threads=32) as (x, y):
            A[x, y] = 1

    kernel = compiled(main, target)
    for n in (-2, -1, 0, 1, 5):
        a, want = np.zeros((16, 8), np.int32), np.zeros((16, 8))
        want[: max(n, 0), : max(-(-n // 2), 0)] = 1
        kernel(n, a)
        np.testing.assert_array_equal(a, want)


@pytest.mark.parametrize("target", TARGETS)
def test_extents_of_a_grid_wrap(target: str) -> None:
    @T.prim_func
    def main(v: T.int32, w: T.int64, A: T.Tensor((4, 4), "int32")):
        with T.Kernel(v + 1, w * 2 - v, threads=1) as (x, y):
            A[x, y] = 1

    kernel = compiled(main, target)
    for v, w in ((1, 1), (3, 3), (-1, 1), (2**31 - 1, 2**30), (1, 2**63 - 1), (2, -(2**63) + 2)):
        across = (v + 1 + 2**31) % 2**32 - 2**31
        down = (w * 2 - v + 2**63) % 2**64 - 2**63
        a, want = np.zeros((4, 4), np.int32), np.zeros((4, 4))
        want[: max(across, 0), : max(down, 0)] = 1
        kernel(v, w, a)
        np.testing.assert_array_equal(a, want)


@pytest.mark.parametrize("target", TARGETS)
def test_extents_of_a_grid_that_are_converted(target: str) -> None:
    @T.prim_func
    def main(v: T.int32, u: T.uint8, A: T.Tensor((8,), "int32")):
        with T.Kernel(T.cast(v, "int8") + T.cast(u, "int32"), threads=1) as x:
            A[x] = 1

    a = np.zeros(8, np.int32)
    compiled(main, target)(255, 4, a)
    assert a.tolist() == [1] * 3 + [0] * 5


@pytest.mark.parametrize("target", TARGETS[1:])
@pytest.mark.parametrize("extent", [lambda v: v & 3, lambda v: T.if_then_else(v < 3, v, 3), lambda v: abs(v)])
def test_extents_that_the_host_cannot_compute(target: str, extent: Any) -> None:
    @T.prim_func
    def main(v: T.int32, A: T.Tensor((8,), "int32")):
        with T.Kernel(extent(v), threads=1) as x:
            A[x] = 1

    with pytest.raises(GridNotComputable) as caught:
        compiled(main, target)
    assert caught.value.where is not None
    assert caught.value.where.source.startswith("with T.Kernel")
