"""Undefined arithmetic of C++ is a fault, whether or not the compiler folds it."""

import numpy as np
import pytest

from .dialects.mini import kinds, run

TEXT = """__global__ void undefined(int* out, const int* a, const float* f) {{
  int zero = a[0], many = a[1];
  float large = f[0];
  out[threadIdx.x] = {};
}}"""
FAULTS = (
    "0u - 0u / 0u", "7 / 0", "a[2] / 0", "a[2] % 0", "7 % zero", "a[2] / zero", "zero / zero", "(int)(0ull / 0ull)",
    "1 << 40", "a[2] >> -1", "a[2] << many", "(int)(1ull << 64)", "(int)3e9f", "(int)large", "(unsigned)-1.5f",
    "(unsigned char)300.0f", "zero == 0 ? 7 / zero : 1", "(int)(0.0f / 0.0f)",
)  # fmt: skip
DEFINED = (
    "zero == 0 ? 0 : 7 / zero",
    "7 / (zero == 0 ? 1 : zero)",
    "a[2] << (many & 31)",
    "(int)-1.5f",
    "-(-2147483647 - 1)",
)


def arguments():
    return [np.zeros(32, np.int32), np.array([0, 40, 5], np.int32), np.array([3e9], np.float32)]


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("value", FAULTS)
def test_is_a_fault(value, check):
    result = run(TEXT.format(value), arguments(), **({} if check else {"checks": ()}))
    assert "arithmetic" in kinds(result), result.reports
    assert "= " in result.reports[0].location.text


@pytest.mark.parametrize("value", DEFINED)
def test_has_a_result(value):
    assert run(TEXT.format(value), arguments()).ok
