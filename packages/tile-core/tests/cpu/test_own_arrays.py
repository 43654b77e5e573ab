"""Tile ops on a thread's own arrays, executed by each thread with its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T

THREADS, N = 33, 132


def _through(move: Callable[..., Any]) -> Any:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=THREADS):
            tx = T.get_thread_binding()
            own, other = T.alloc_local((4,), "float32"), T.alloc_local((4,), "float32")
            move(A, B, own, other, tx)

    return main


def _copied(A: Any, B: Any, own: Any, other: Any, tx: Any) -> None:
    T.copy(A[tx * 4 : tx * 4 + 4], own)
    T.copy(own, other)
    T.sync_threads()
    T.copy(other, B[tx * 4 : tx * 4 + 4])


def _filled(A: Any, B: Any, own: Any, other: Any, tx: Any) -> None:
    T.fill(own, A[tx * 4])
    T.sync_threads()
    T.copy(own, other)
    T.copy(other, B[tx * 4 : tx * 4 + 4])


def _same_then_own(A: Any, B: Any, own: Any, other: Any, tx: Any) -> None:
    T.clear(own)
    own[1] = A[tx * 4 + 1]
    T.sync_threads()
    T.copy(own, other)
    T.copy(other, B[tx * 4 : tx * 4 + 4])


MOVES: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "copied": (_copied, lambda a: a),
    "filled": (_filled, lambda a: np.repeat(a[::4], 4)),
    "some of its own": (_same_then_own, lambda a: np.where(np.arange(N) % 4 == 1, a, 0)),
}


@pytest.mark.parametrize("name", MOVES)
def test_values_of_a_thread_stay_its_own(name: str) -> None:
    move, expected = MOVES[name]
    a = np.random.default_rng(0).standard_normal(N, "float32")
    b = np.full(N, np.nan, "float32")
    tile.compile(_through(move), target="cpu")(a, b)
    np.testing.assert_array_equal(b, expected(a))


def test_ops_stand_where_threads_differ() -> None:
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=THREADS):
            tx = T.get_thread_binding()
            s = T.alloc_shared((N,), "float32")
            own, other = T.alloc_local((4,), "float32"), T.alloc_local((4,), "float32")
            T.copy(A, s)
            T.sync_threads()
            if tx % 2 == 0:
                T.copy(s[tx * 4 : tx * 4 + 4], own)
            else:
                T.fill(own, 1.0)
            T.sync_threads()
            T.copy(own, other)
            T.sync_threads()
            T.copy(other, B[tx * 4 : tx * 4 + 4])

    a = np.random.default_rng(1).standard_normal(N, "float32")
    b = np.full(N, np.nan, "float32")
    tile.compile(main, target="cpu")(a, b)
    np.testing.assert_array_equal(b, np.where(np.arange(N) // 4 % 2 == 0, a, 1))


def test_reductions_gathers_and_variables_of_a_thread() -> None:
    @T.prim_func
    def main(A: T.Tensor((N, 1), "float32"), B: T.Tensor((THREADS,), "float32"), C: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=THREADS):
            tx = T.get_thread_binding()
            own, total = T.alloc_local((4,), "float32"), T.alloc_local((1,), "float32")
            rows, found = T.alloc_local((4,), "int32"), T.alloc_local((4, 1), "float32")
            kept = T.alloc_var("float32")
            for i in T.serial(4):
                own[i] = A[tx * 4 + i, 0]
                rows[i] = tx * 4 + 3 - i
            T.reduce_sum(own, total, dim=0)
            T.gather(A, rows, found)
            kept = total[0]
            T.sync_threads()
            B[tx] = kept
            for i in T.serial(4):
                C[tx * 4 + i] = found[i, 0]

    a = np.random.default_rng(2).integers(-9, 9, (N, 1)).astype("float32")
    b, c = np.full(THREADS, np.nan, "float32"), np.full(N, np.nan, "float32")
    tile.compile(main, target="cpu")(a, b, c)
    np.testing.assert_array_equal(b, a.reshape(-1, 4).sum(1))
    np.testing.assert_array_equal(c, a.reshape(-1, 4)[:, ::-1].ravel())


def test_tiles_of_the_block_into_arrays_of_threads() -> None:
    @T.prim_func
    def main(A: T.Tensor((THREADS, 4), "float32"), B: T.Tensor((THREADS, 4), "float32")):
        with T.Kernel(1, threads=THREADS):
            tx = T.get_thread_binding()
            tile_of_all, own = T.alloc_fragment((THREADS, 4), "float32"), T.alloc_local((4,), "float32")
            T.copy(A, tile_of_all)
            T.copy(tile_of_all[tx, :], own)
            for i in T.serial(4):
                B[tx, i] = own[i] + 1.0

    a = np.random.default_rng(3).standard_normal((THREADS, 4), "float32")
    b = np.full_like(a, np.nan)
    tile.compile(main, target="cpu")(a, b)
    np.testing.assert_array_equal(b, a + 1)
