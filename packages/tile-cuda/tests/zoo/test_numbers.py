"""Every kernel of the zoo computes what NumPy computes, and no check finds a fault in it."""

from __future__ import annotations

import pytest
from zoo.launch import wrong

from .launch import case_of, run, text_of
from .table import ZOO

KERNELS = [pytest.param(e.name, marks=[pytest.mark.slow] if e.slow else [], id=e.name) for e in ZOO]


@pytest.mark.parametrize("name", KERNELS)
def test_numbers_and_no_fault(name):
    case, text = case_of(name), text_of(name)
    result = run(case, text, order="random", seed=len(name))
    assert not result.reports, "\n".join(map(str, result.reports))
    assert not wrong(case, text, result)
