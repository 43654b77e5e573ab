"""Calls from so deep a recursion that Python has few frames left."""

import sys

import numpy as np
import pytest

import tile_core as tile
import tile_core.language as T
from tile_core.errors.base import InternalError, StackExhausted, TileError
from tile_core.errors.plugins import HookFailed
from tile_core.errors.setup import RuntimeBroken


def make(n):
    @T.prim_func
    def add(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(2, threads=32):
            for i in T.Parallel(n):
                B[i] = T.exp(A[i]) + 1

    return add


def depth():
    frame, count = sys._getframe(), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1
    return count


def with_frames(left, run):
    """Run with a number of frames left."""

    def down(more):
        return run() if more <= 0 else down(more - 1)

    return down(sys.getrecursionlimit() - depth() - left)


ADD = make(64)
A, B = np.zeros(64, "float32"), np.zeros(64, "float32")
KERNEL = tile.compile(ADD, "cpu")
ACTIONS = {
    "trace": lambda: make(65), "compile": lambda: tile.compile(ADD, "cpu"),
    "compile for threads": lambda: tile.compile(ADD, "cuda:sm_80", runtime="emulator"),
    "call": lambda: KERNEL(A, B), "verify": lambda: KERNEL.verify(A, B), "explain": KERNEL.explain,
    "target": lambda: tile.compile(ADD, "metal:nothing"),
}  # fmt: skip


def outcome(left, run):
    """Return the class of the error, if any."""
    try:
        with_frames(left, run)
    except (RecursionError, TileError) as error:
        return type(error)
    return None


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("action", ACTIONS)
def test_few_frames_are_no_defect(action):
    run = ACTIONS[action]
    found = {left: outcome(left, run) for left in (*range(8, 60, 3), *range(60, 400, 17))}
    assert not {InternalError, HookFailed, RuntimeBroken} & set(found.values())
    assert RecursionError not in {kind for left, kind in found.items() if left > 30}  # not even an error can be made
    if action not in ("call", "target"):
        assert found[60] is StackExhausted
    if action != "target":
        assert found[383] is None


def test_errors_of_a_defect_are_what_they_were_elsewhere():
    with pytest.raises(InternalError):
        raise InternalError(stage="s", detail="d")
    made = []
    try:
        raise RecursionError("maximum recursion depth exceeded")
    except RecursionError:
        made += [InternalError(stage="s", detail="d"), HookFailed(backend="b", hook="h", reason="r")]
    assert [type(error) for error in made] == [StackExhausted, StackExhausted]
