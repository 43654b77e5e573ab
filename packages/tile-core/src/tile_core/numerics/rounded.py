"""``T.ieee_*`` with rounding to nearest, for LLVM: no operation is contracted with another."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tile_core.compat.tvm import tirx
from tile_core.compat.types import BinaryNode, Call, Expr
from tile_core.numerics.build import cast, constant, type_name

__all__ = ["ROUNDED"]


def _apart(value: Expr) -> Expr:
    """A value that no other operation is fused with."""
    return tirx.call_llvm_pure_intrin(value.ty, "llvm.arithmetic.fence", value)


def _operation(node: BinaryNode) -> BinaryNode:
    return lambda a, b: _apart(node(_apart(a), _apart(b)))


def _fma(a: Expr, b: Expr, c: Expr) -> Call:
    return tirx.call_llvm_pure_intrin(a.ty, "llvm.fma", a, b, c)


def _rsqrt(a: Expr) -> Expr:
    """In float64, whose error never moves the rounding to float32: a test tries every significand."""
    return cast("float32", constant(1.0, "float64", a) / tirx.sqrt(cast("float64", a)))


_FUNCTIONS: Mapping[str, Callable[..., Expr]] = {
    "add": _operation(tirx.Add), "sub": _operation(tirx.Sub), "mul": _operation(tirx.Mul), "fma": _fma,
    "fdiv": _operation(tirx.Div), "frcp": lambda a: _apart(tirx.Div(constant(1.0, type_name(a), a), a)),
    "fsqrt": tirx.sqrt, "frsqrt": _rsqrt,
}  # fmt: skip

ROUNDED: Mapping[str, Callable[..., Expr]] = {
    "tirx.div": tirx.Div,  # of a region, see ``numerics/regions.py``
    **{f"tirx.ieee_{name}_rn_{dtype}": build for name, build in _FUNCTIONS.items() for dtype in ("float32", "float64")},
}
"""Builders by the name of the operator."""
