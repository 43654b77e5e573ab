"""Results that compilers leave undefined for constants are refused; constant zero divisors follow the rule."""

from __future__ import annotations

from typing import Any

import pytest

from tile_core.compat.tvm import tirx
from tile_core.errors import InternalError
from tile_core.passes.divisions import total_divisions
from tile_core.passes.scalars import require_defined

X = tirx.Var("x", "int32")


def number(value: float, dtype: str = "int32") -> Any:
    return tirx.FloatImm(dtype, value) if dtype.startswith("float") else tirx.IntImm(dtype, value)


UNDEFINED = (
    tirx.FloorDiv(X, number(0)), tirx.FloorMod(X, number(0)), tirx.Div(X, number(0)), tirx.Mod(X, number(0)),
    tirx.Div(tirx.Broadcast(X, 4), tirx.Broadcast(number(0), 4)), tirx.Div(number(0, "uint64"), number(0, "uint64")),
    tirx.LShift(X, number(32)), tirx.RShift(X, number(-1)), tirx.LShift(tirx.Cast("int8", X), number(8, "int8")),
    tirx.Cast("int32", number(2.0**31, "float32")), tirx.Cast("uint8", number(-1.0, "float64")),
    tirx.Cast("int64", number(float("nan"), "float32")), tirx.Cast("int16", number(float("inf"), "float32")),
)  # fmt: skip
DEFINED = (
    tirx.FloorDiv(X, number(-1)), tirx.Div(X, X), tirx.shift_left(X, number(31)), tirx.shift_left(X, X),
    tirx.Cast("int32", number(2147483520.0, "float32")), tirx.Cast("uint8", number(-0.5, "float64")),
    tirx.Div(number(1.0, "float32"), number(0.0, "float32")), tirx.Cast("float32", number(1e30, "float64")),
)  # fmt: skip


@pytest.mark.parametrize("e", UNDEFINED, ids=lambda e: type(e).__name__)
def test_an_undefined_result_is_refused(e: Any) -> None:
    with pytest.raises(InternalError, match=r"I000.*has no result"):
        require_defined(e)


@pytest.mark.parametrize("e", DEFINED, ids=lambda e: type(e).__name__)
def test_a_defined_result_passes(e: Any) -> None:
    require_defined(e)


@pytest.mark.parametrize("node", [tirx.FloorDiv, tirx.FloorMod, tirx.Div, tirx.Mod])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "uint64"])
def test_a_constant_divisor_of_zero_gives_zero(node: Any, dtype: str) -> None:
    made = total_divisions(tirx.Evaluate(node(tirx.Var("x", dtype), number(0, dtype)))).value
    assert isinstance(made, tirx.IntImm)
    assert int(made.value) == 0
    assert str(made.ty) == dtype
