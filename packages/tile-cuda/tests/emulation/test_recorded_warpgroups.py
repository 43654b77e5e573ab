"""Bitwise agreement of the models of wgmma and wgmma.sp with a device."""

from pathlib import Path

import numpy as np
import pytest

from ..vectors.record_warpgroups import FILE, cases, emulated

RECORDED = Path(__file__).parent.parent / "vectors" / "recorded" / FILE
CASES = dict(cases())


@pytest.mark.sweep(16)
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_a_device(name):
    one = CASES[name]
    with np.load(RECORDED) as kept:
        expected = one.gathered(kept[name])
    assert np.array_equal(one.gathered(emulated(one)), expected, equal_nan=True)


def test_every_case_was_recorded():
    with np.load(RECORDED) as kept:
        assert set(CASES) <= set(kept.files)
