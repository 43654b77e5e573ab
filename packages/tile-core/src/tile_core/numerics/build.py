"""Small builders of tirx expressions that work for one lane and for many.

Three facts about TVM shape everything that is built with them. Its LLVM code generator marks 32 and 64-bit integer
addition, subtraction and multiplication as not wrapping, signed *and* unsigned, so no expression here may wrap in a
lane whose value is used. It allows a product and a sum to be fused, so nothing may rely on the rounding of a product
that is then added. It folds constants without regard to NaN, so NaN is recognised by integer comparison of the bits.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Call, Expr, UnaryNode, Var
from tile_runtime.numerics.formats import IEEE

__all__ = [
    "absolute_bits", "as_type", "bind", "bits_of", "cast", "constant", "constants", "equal", "float_of", "horner",
    "is_nan", "lanes_of", "magnitude", "negate_if", "select", "signed_bits_of", "type_name", "with_sign_of",
]  # fmt: skip


def type_name(value: Expr) -> str:
    """The scalar type name of an expression, without lanes."""
    kind = value.ty
    known = structural.scalar_texts.get(structural.identity(kind))
    return structural.scalar_text(kind) if known is None else known[0]


def lanes_of(value: Expr) -> int:
    """The number of lanes of an expression."""
    return int((structural.type_text(value.ty).split("x", 1) + ["1"])[1])


def as_type(name: str, like: Expr) -> str:
    """``name`` with the lanes of ``like``."""
    lanes = lanes_of(like)
    return name if lanes == 1 else f"{name}x{lanes}"


def constant(value: float, name: str, like: Expr) -> Expr:
    """A constant of the scalar type ``name``, broadcast to the lanes of ``like``."""
    scalar = tirx.FloatImm(name, value) if name.startswith("float") else tirx.IntImm(name, int(value))
    return scalar if lanes_of(like) == 1 else tirx.Broadcast(scalar, lanes_of(like))


def constants(name: str, like: Expr) -> Callable[[float], Expr]:
    """A short maker of constants: ``k = constants("uint32", x)``, then ``k(1)``."""

    def make(value: float) -> Expr:
        return constant(value, name, like)

    return make


def cast(name: str, value: Expr) -> Expr:
    """``value`` converted to the scalar type ``name``; itself when it has it."""
    return value if type_name(value) == name else tirx.Cast(as_type(name, value), value)


def bind(value: Expr, body: UnaryNode, hint: str = "t") -> Expr:
    """``let t = value in body(t)``; constants and variables are passed through."""
    if isinstance(value, (ir.Var, tirx.IntImm, tirx.FloatImm)):
        return body(value)
    var = tirx.Var(hint, value.ty)
    return tirx.Let(var, value, body(var))


def select(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """``yes`` where ``condition`` holds, else ``no``; both sides are evaluated."""
    return tirx.Select(condition, yes, no)


def equal(a: Expr, b: Expr) -> Expr:
    """Elementwise equality (``==`` on expressions is not an expression in every context)."""
    return tirx.EQ(a, b)


def bits_of(value: Expr) -> Call:
    """The bits of a float expression as unsigned integers of the same width."""
    return tirx.reinterpret(as_type("uint" + type_name(value).removeprefix("float"), value), value)


def float_of(bits: Expr) -> Call:
    """Return the float with these bits of an integer type; the inverse of ``bits_of``."""
    return tirx.reinterpret(as_type("float" + type_name(bits).removeprefix("u").removeprefix("int"), bits), bits)


def signed_bits_of(value: Expr) -> Call:
    """The bits of a float expression as signed integers: exponent arithmetic may go below zero."""
    return tirx.reinterpret(as_type("int" + type_name(value).removeprefix("float"), value), value)


def is_nan(value: Expr) -> Expr:
    """Whether a float expression is NaN, tested on its bits."""
    form = IEEE[type_name(value)]
    return absolute_bits(bits_of(value)) > constant(form.infinity, f"uint{form.bits}", value)


def negate_if(condition: Expr, value: Expr) -> Call:
    """``-value`` where ``condition`` holds, else ``value``; NaN and zeros included."""
    name = type_name(value)
    width = int(name.removeprefix("float"))
    flip = select(condition, constant(1, f"uint{width}", value), constant(0, f"uint{width}", value))
    return float_of(bits_of(value) ^ (flip << constant(width - 1, f"uint{width}", value)))


def magnitude(value: Expr) -> Call:
    """The absolute value of a float expression."""
    return float_of(absolute_bits(bits_of(value)))


def with_sign_of(value: Expr, sign: Var) -> Call:
    """``value`` (positive) with the sign bit of ``sign``, a float expression of the same type."""
    return float_of(bits_of(value) | (bits_of(sign) ^ absolute_bits(bits_of(sign))))


def absolute_bits(bits: Expr) -> Expr:
    """``bits`` without the sign bit: ordered like the magnitudes, NaN above infinity."""
    name = type_name(bits)
    return bits & constant((1 << (int(name.removeprefix("uint")) - 1)) - 1, name, bits)


def horner(x: Var, coefficients: list[float]) -> Expr:
    """The polynomial with these coefficients, lowest degree first, at ``x`` (a variable)."""
    name = type_name(x)
    total = constant(coefficients[-1], name, x)
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + constant(coefficient, name, x)
    return total
