"""Correct kernels: right results, and not one report, in every order and with either completion."""

import numpy as np
import pytest

from .dialects.mini import run
from .kernels import ALL

ORDERS = [("forward", "early"), ("forward", "late"), ("reverse", "late"), ("random", "early"), ("random", "late")]


@pytest.mark.sweep(1)
@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
@pytest.mark.parametrize(("order", "completion"), ORDERS)
@pytest.mark.parametrize("seed", [0])
def test_kernel(make, order, completion, seed):
    text, args, how, expected = make(np.random.default_rng(seed))
    result = run(text, args, order=order, completion=completion, seed=seed, **how)
    assert not result.reports, str(result.reports[0])
    for name, value in expected.items():
        np.testing.assert_allclose(result.outputs[name], value, rtol=1e-5, atol=1e-5)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("make", ALL, ids=lambda make: make.__name__)
@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
def test_without_checks(make, order):
    text, args, how, expected = make(np.random.default_rng(1))
    result = run(text, args, checks=(), order=order, completion="late", seed=3, **how)
    assert result.ok
    for name, value in expected.items():
        np.testing.assert_allclose(result.outputs[name], value, rtol=1e-5, atol=1e-5)


def test_arguments_are_never_written():
    text, args, how, _ = ALL[0](np.random.default_rng(2))
    before = [np.copy(a) for a in args]
    run(text, args, **how)
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(a, b)
