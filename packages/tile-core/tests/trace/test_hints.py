"""Test loop hints: ignored ones are refused if kernels rely on them, others are checked."""

from __future__ import annotations

from typing import Any

import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.language import BadArgument

LAYOUT = T.Fragment((8, 32), forward_fn=lambda i, j: (j, i))


def parallel(**hints: Any) -> Any:
    @T.prim_func
    def k(A: T.Tensor((8, 32)), B: T.Tensor((8, 32))):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(8, 32, **hints):
                B[i, j] = A[i, j]

    return k


def copied(**hints: Any) -> Any:
    @T.prim_func
    def k(A: T.Tensor((8, 32)), B: T.Tensor((8, 32))):
        with T.Kernel(1, threads=32):
            T.copy(A, B, **hints)

    return k


def pipelined(**hints: Any) -> Any:
    @T.prim_func
    def k(A: T.Tensor((8, 32)), B: T.Tensor((8, 32))):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((32,), "float32")
            for i in T.Pipelined(8, num_stages=2, **hints):
                T.copy(A[i, 0:32], s)
                T.copy(s, B[i, 0:32])

    return k


@pytest.mark.parametrize("make", [parallel, copied])
def test_a_layout_of_a_loop_is_refused(make: Any) -> None:
    with pytest.raises(BadArgument, match="loops have no layout") as caught:
        make(loop_layout=LAYOUT)
    assert "T.annotate_layout" in caught.value.help
    assert caught.value.where is not None


@pytest.mark.parametrize(
    ("make", "hints"),
    [
        (pipelined, {"sync": 3}),
        (pipelined, {"sync": [[0, 1.5]]}),
        (pipelined, {"group": "01"}),
        (pipelined, {"group": [[0], None]}),
        (parallel, {"prefer_async": "yes"}),
        (parallel, {"prefer_async": 3}),
    ],
)
def test_hints_that_are_none_are_refused(make: Any, hints: dict[str, Any]) -> None:
    with pytest.raises(BadArgument) as caught:
        make(**hints)
    assert caught.value.facts["name"] in hints


@pytest.mark.parametrize(
    ("make", "hints"),
    [
        (pipelined, {"sync": [[0, 1]], "group": [[0], [1]], "order": [0, 1], "stage": [0, 1]}),
        (pipelined, {"group": [0, 1], "sync": None}),
        (parallel, {"prefer_async": True, "loop_layout": None}),
        (copied, {"loop_layout": None, "disable_tma": True}),
    ],
)
def test_hints_are_accepted(make: Any, hints: dict[str, Any]) -> None:
    assert tile.compile(make(**hints), target="cpu") is not None
