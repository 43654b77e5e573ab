"""Floats as integers in the same order: what compares integers then orders floats exactly.

Machines that flush subnormal numbers to zero take two of them for equal, and IEEE 754 takes the two zeros for equal.
The bits of a float, read as a signed integer, are in order where it is positive; where it is negative they are once all
bits but the sign are turned around. So -0 is just below +0, and NaN lies beyond the infinity of its sign.
"""

from __future__ import annotations

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Call, Expr
from tile_core.numerics.build import bind, constant, is_nan, select, signed_bits_of, type_name

__all__ = ["from_ordered", "is_larger", "ordered"]


def ordered(x: Expr, nan: int | None = None) -> Expr:
    """The integer of a float32 or float64; of NaN ``nan`` if that is given."""
    key = bind(signed_bits_of(x), _turned, "bits")
    return key if nan is None else select(is_nan(x), constant(nan, type_name(key), x), key)


def from_ordered(key: Expr) -> Call:
    """The float of an integer: the inverse of ``ordered``."""
    name = type_name(key).replace("int", "float")
    return tirx.reinterpret(name, bind(key, _turned, "key"))


def is_larger(a: Expr, b: Expr) -> Expr:
    """Whether a float is larger than another, or has the same bits; neither is NaN."""

    def compared(x: Expr, y: Expr) -> Expr:
        # Of two negative numbers the larger one has the smaller bits.
        both_negative = tirx.bitwise_and(x, y) < constant(0, type_name(x), x)
        return tirx.NE(x > y, both_negative)

    return bind(signed_bits_of(a), lambda x: bind(signed_bits_of(b), lambda y: compared(x, y), "y"), "x")


def _turned(bits: Expr) -> Expr:
    name = type_name(bits)
    width = int(name.removeprefix("int"))
    sign = tirx.shift_right(bits, constant(width - 1, name, bits))
    return tirx.bitwise_xor(bits, tirx.bitwise_and(sign, constant(2 ** (width - 1) - 1, name, bits)))
