"""Test that tensors that require gradients are refused while gradients are recorded."""

from __future__ import annotations

import dataclasses
import sys
import types

import numpy as np
import pytest
from expected_errors import raises_error

import tile_core as tile
import tile_core.language as T
from tile_core.errors.launch import GradientLost
from tile_runtime.calls import checks


@pytest.fixture
def recording(monkeypatch):
    """Stand in for torch: every array of 4 elements requires gradients; returns the switch of the recording."""
    import tile_core.compat.tvm  # noqa: F401 - looks at torch when it is imported

    state = types.SimpleNamespace(on=True)
    torch = types.ModuleType("torch")
    torch.is_grad_enabled = lambda: state.on
    torch.Tensor, torch.nn = type("Tensor", (), {}), types.SimpleNamespace(Parameter=type("Parameter", (), {}))
    monkeypatch.setitem(sys.modules, "torch", torch)
    real = checks.facts_of

    def facts_of(value):
        facts = real(value)
        return dataclasses.replace(facts, requires_grad=facts.shape == (4,))

    monkeypatch.setattr(checks, "facts_of", facts_of)
    return state


def test_refused_where_gradients_are_recorded(recording):
    @T.prim_func
    def double(X: T.Tensor((4,), "float32"), Y: T.Tensor((4, 1), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                Y[i, 0] = X[i] * 2.0

    kernel = tile.compile(double, target="cpu")
    x, y = np.arange(4, dtype=np.float32), np.zeros((4, 1), np.float32)
    for _ in range(3):
        recording.on = True
        with raises_error(GradientLost, kernel="double", name="X") as caught:
            kernel(x, y)
        assert "X.detach()" in caught.value.help
        assert "torch.no_grad()" in caught.value.help
        assert not y.any()
        recording.on = False
        kernel(x, y)
        assert (y[:, 0] == x * 2).all()
        y[:] = 0


@T.prim_func
def doubled(X: T.Tensor((4,), "float32"), Y: T.Tensor((4,), "float32")):
    with T.Kernel(1, threads=32):
        for i in T.Parallel(4):
            Y[i] = X[i] * 2.0


@pytest.mark.parametrize("graded_first", [False, True])
def test_calls_without_recording_are_checked_once(monkeypatch, graded_first):
    torch = pytest.importorskip("torch")
    kernel = tile.compile(doubled, target="cpu", out_idx=-1)
    plain, graded = torch.arange(4.0), torch.arange(4.0, requires_grad=True)
    weight = torch.nn.Parameter(torch.arange(4.0))
    reads = []
    real = checks.facts_of
    monkeypatch.setattr(checks, "facts_of", lambda value: reads.append(value) or real(value))
    order = (graded, weight, plain) if graded_first else (plain, graded, weight)
    with torch.no_grad():
        for value in order * 6:
            assert kernel(value).tolist() == [0, 2, 4, 6]
    assert len(reads) <= 2 * len(order)  # the first call of a form, and the one that makes its function
    for value in (graded, weight, graded, weight):  # torch records again: forms that were seen do not serve
        with raises_error(GradientLost, kernel="doubled", name="X"):
            kernel(value)
    before = len(reads)
    assert kernel(plain).tolist() == [0, 2, 4, 6]
    assert len(reads) == before
    with torch.no_grad():
        assert not kernel(graded).requires_grad
    assert len(reads) == before
