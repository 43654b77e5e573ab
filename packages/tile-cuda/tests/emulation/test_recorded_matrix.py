"""Agreement of models with a device: box copies and block-to-block copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ..vectors.matrix import cases, digest
from ..vectors.record_matrix import FILE
from .launches import report_text, run_copy

RECORDED = Path(__file__).parent.parent / "vectors" / "recorded" / FILE
CASES = [pytest.param(case, id=case.name) for case in cases()]


@pytest.fixture(scope="module")
def recorded():
    with np.load(RECORDED) as kept:
        return dict(zip(map(str, kept["names"]), kept["digests"], strict=True))


@pytest.mark.sweep(48)
@pytest.mark.parametrize("case", CASES)
def test_agrees_with_a_device(case, recorded):
    result = run_copy(case.copy, completion="late")
    assert result.ok, report_text(result)
    out = result.outputs["out"].reshape(-1, case.held.size)
    if case.is_known:
        assert np.array_equal(out, np.broadcast_to(case.held.reshape(-1), out.shape))
    assert np.array_equal(digest(out), recorded[case.name])


def test_every_case_was_recorded(recorded):
    assert {param.values[0].name for param in CASES} <= set(recorded)
