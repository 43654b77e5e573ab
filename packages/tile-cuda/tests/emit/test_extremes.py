"""``max`` and ``min`` of floats in the text: NaN and zeros, every type and form."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tile_core.numerics.extremes import float_extreme

from .kit import computed, elementwise

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.0, 1e-7, -6e4, 3.0]
FORMS = [(kind, nan) for kind in ("max", "min") for nan in (False, True)]


def outputs(dtype: str) -> dict[str, Any]:
    def form(kind: str, nan: bool) -> Any:
        return dtype, lambda x, y: float_extreme(kind, x, y, nan)

    return {f"{kind}{'_nan' if nan else ''}": form(kind, nan) for kind, nan in FORMS}


@pytest.mark.sweep(0.25)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_numbers(dtype: str) -> None:
    values = np.array(SPECIAL).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    a, b = (g.ravel() for g in np.meshgrid(values, values))
    found = computed(outputs(dtype), [a, b], [dtype, dtype])
    x, y = a.astype(np.float64), b.astype(np.float64)
    zeros = (x == 0) & (y == 0)
    for kind, nan in FORMS:
        got = found[f"{kind}{'_nan' if nan else ''}"].astype(np.float64)
        expected = getattr(np, f"{kind}imum" if nan else f"f{kind}")(x, y)
        np.testing.assert_array_equal(got, expected)
        signs = np.signbit(x) & np.signbit(y) if kind == "max" else np.signbit(x) | np.signbit(y)
        np.testing.assert_array_equal(np.signbit(got[zeros]), signs[zeros])


def test_each_is_one_call() -> None:
    text = elementwise(outputs("float32"), ["float32", "float32"], 32).text
    assert 'asm("max.NaN.f32 %0, %1, %2;"' in text
    for name in ("max_f32", "min_f32", "max_NaN_f32", "min_NaN_f32"):
        assert f"= {name}(" in text
