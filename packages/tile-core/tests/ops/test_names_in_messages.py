"""Test that messages of the passes show the user's names."""

from __future__ import annotations

from typing import Any

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors import TileError


def race() -> Any:
    @T.prim_func
    def k(A: T.Tensor((16,)), C: T.Tensor((16,))):
        with T.Kernel(1):
            for i in T.Parallel(16):
                C[i] = A[i]
            for i in T.Parallel(16):
                C[i] = A[i]
            for i in T.Parallel(16):
                C[i // 2] = A[i]

    return k


def left_out() -> Any:
    @T.prim_func
    def k(A: T.Tensor((16,)), I: T.Tensor((16,), "int32"), C: T.Tensor((16,))):  # noqa: E741
        with T.Kernel(1):
            for i, j in T.Parallel(4, 4):
                C[i * 4 + j] = A[i]
            for i, j in T.Parallel(4, 4):
                C[i] = A[I[j]]

    return k


def past_the_end() -> Any:
    @T.prim_func
    def k(A: T.Tensor((16,)), C: T.Tensor((16,))):
        with T.Kernel(1):
            for _ in T.static_range(2):
                row = T.alloc_shared((8,), "float32")
                for j in T.serial(8):
                    row[j] = A[j]
            for j in T.Parallel(8):
                C[j] = row[j + 1]

    return k


def never_written() -> Any:
    @T.prim_func
    def k(C: T.Tensor((16,))):
        with T.Kernel(1):
            for n in T.static_range(2):
                row = T.alloc_shared((8,), "float32")
                if n == 0:
                    T.clear(row)
                T.copy(row, C[0:8])

    return k


def own_number() -> Any:
    @T.prim_func
    def k(A: T.Tensor((16,)), C: T.Tensor((16,))):
        with T.Kernel(1):
            for at_1 in T.Parallel(16):
                C[at_1 // 2] = A[at_1]

    return k


@pytest.mark.parametrize(
    ("make", "code", "text"),
    [
        (race, "K214", "iterations i=0 and i=1 of T.Parallel both write C[0]"),
        (left_out, "K214", "iterations (i=0, j=0) and (i=0, j=1)"),
        (past_the_end, "K226", "iteration j=7 reads row[8]: dimension 0 of row has extent 8"),
        (never_written, "K225", "T.copy reads row, which"),
        (own_number, "K214", "iterations at_1=0 and at_1=1"),
    ],
)
def test_names_are_the_users(make: Any, code: str, text: str) -> None:
    with pytest.raises(TileError) as caught:
        tile.compile(make(), target="cpu")
    assert caught.value.code == code
    assert text in str(caught.value)
