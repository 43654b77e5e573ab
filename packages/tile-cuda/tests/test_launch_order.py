"""Programmatic dependent launches: text, facts, and accesses before the wait."""

from __future__ import annotations

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.compiler import lower
from tile_core.errors.ops import BadLaunchOrder
from tile_core.plugins.contexts import make_context
from tile_core.plugins.manager import installed


def _nothing(A, B, S):
    T.fill(S, 0.0)


def doubled(before=_nothing):
    """Double A; ``before`` writes statements in front of the wait."""
    first = T.macro(before)

    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(2, threads=64) as bx:
            S = T.alloc_shared((64,), "float32")
            T.clear(S)
            first(A, B, S)
            T.pdl_sync()
            for i in T.Parallel(64):
                S[i] += A[bx * 64 + i] * 2.0
            T.pdl_trigger()
            T.copy(S, B[bx * 64 : (bx + 1) * 64])

    return main


def text_of(program, target):
    return lower(program, make_context(target, {}), installed()).lowered


@pytest.mark.parametrize("target", ["cuda:sm_90", "cuda:sm_90a", "cuda:sm_100a", "cuda:sm_120"])
def test_the_launch_waits_itself(target):
    made = text_of(doubled(), target)
    body = made.text[made.text.index('extern "C"') :]
    assert body.index("griddepcontrol_wait();") < body.index("A[") < body.index("griddepcontrol_launch_dependents();")
    assert made.facts.attributes["dependent"] is True
    assert "__restrict__" not in body


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_89", "metal", "rocm:gfx942"])
def test_launches_that_do_not_overlap_wait_for_nothing(target):
    made = text_of(doubled(), target)
    assert "griddepcontrol" not in made.text
    assert "dependent" not in made.facts.attributes


@pytest.mark.parametrize(("target", "how"), [("cuda:sm_90a", {"runtime": "emulator"}), ("cpu", {})])
def test_values_match_the_program(target, how):
    a, b = np.random.default_rng().standard_normal(128).astype("float32"), np.full(128, np.nan, "float32")
    tile.compile(doubled(), target, **how)(a, b)
    assert (b == a * 2).all()


def _read(A, B, S):
    T.copy(A[0:64], S)


def _write(A, B, S):
    T.copy(S, B[T.get_block_binding(0) * 64])


def _element(A, B, S):
    S[0] = A[0]


def _branch(A, B, S):
    if T.get_block_binding(0) == 0:
        T.pdl_sync()


def _loop(A, B, S):
    for _ in range(2):
        T.pdl_sync()


@pytest.mark.sweep(5)
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (_read, "A is accessed before T.pdl_sync"), (_write, "B is accessed before T.pdl_sync"),
        (_element, "A is accessed before T.pdl_sync"), (_branch, "stands in a loop, a branch or T.ws"),
        (_loop, "stands in a loop, a branch or T.ws"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_80", "cpu"])
def test_early_accesses_are_refused(wrong, says, target):
    with pytest.raises(BadLaunchOrder, match=says):
        tile.compile(doubled(wrong), target)
