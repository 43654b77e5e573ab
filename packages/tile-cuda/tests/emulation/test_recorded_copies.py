"""Agreement of the models of bulk copies with a device."""

from pathlib import Path

import numpy as np
import pytest

from ..vectors.record_copies import FILE, cases
from .launches import kinds, report_text, run_copy

RECORDED = Path(__file__).parent.parent / "vectors" / "recorded" / FILE
ALL = [pytest.param(name, copy, id=name) for name, copy in cases()]
CASES = [case for case in ALL if not case.id.startswith("fault")]
FAULTS = [case for case in ALL if case.id.startswith("fault")]


@pytest.mark.sweep(16)
@pytest.mark.parametrize(("name", "copy"), CASES)
def test_agrees_with_a_device(name, copy):
    with np.load(RECORDED) as kept:
        expected = kept[name]
    result = run_copy(copy, completion="late")
    assert result.ok, report_text(result)
    found = result.outputs["out"]
    floats = copy.descriptor.dtype if name.startswith("reduce") else ""
    assert np.array_equal(codes(found, floats), codes(expected, floats)), name


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("name", "copy"), FAULTS)
def test_a_trap_is_a_fault(name, copy):
    with np.load(RECORDED) as kept:
        assert bool(kept[name]) == (kinds(run_copy(copy)) == {"async"})


def test_every_case_was_recorded():
    with np.load(RECORDED) as kept:
        assert {param.values[0] for param in (*CASES, *FAULTS)} <= set(kept.files)


def codes(array, dtype):
    """Bits of elements, all NaN alike."""
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    exponent = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000}.get(dtype)
    if exponent is None:
        return bits
    top = exponent | (exponent & -exponent) - 1
    return np.where((bits & top) > exponent, top, bits)
