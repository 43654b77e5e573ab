"""Low-precision conversion as tirx expressions: straight-line integer arithmetic and selects, for any number of lanes.

No branches, no tables, no calls, so ``VectorizeLoop`` and LLVM compile them to vector code, and any target that has
32-bit integers can print them. The rules are those of ``tile_core.numerics.rules``; the tests compare every one with
``tile_core.numerics.codecs``.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Call, Expr, Var
from tile_core.numerics.build import (
    absolute_bits,
    bind,
    bits_of,
    cast,
    constant,
    constants,
    equal,
    float_of,
    negate_if,
    select,
    type_name,
)  # fmt: skip
from tile_runtime.dtype_table import Format
from tile_runtime.numerics.formats import FORMATS, WIDE

__all__ = [
    "decode_expr", "encode_expr", "int4_expr", "nibble_expr",
    "round_tfloat32_expr", "scaled_expr", "widen_expr",
]  # fmt: skip

_STEPS = {"uint32": ((24, 8),), "uint64": ((44, 20), (34, 20), (24, 10))}
"""By type, the steps that bring an integer below 2^24: the power from which bits are dropped, and their number."""


def decode_expr(code: Expr, dtype: str, to: str = "float32") -> Expr:
    """Return the value of ``code`` (uint8, or uint16 for 16-bit types) as type ``to``.

    The value is formed exactly in float32 and then converted to ``to`` (exact except where ``to`` is too small).
    """
    form = FORMATS[dtype]
    wide = bind(cast("uint32", code), lambda c: float_of(_debits(c, form)), "code")
    return cast(to, wide)


def encode_expr(value: Expr, dtype: str, saturate: bool = False) -> Expr:
    """The code of ``value``, rounded once to nearest even.

    Parameters
    ----------
    value
        Expression of type float32 or float64, any number of lanes. Other types: see ``widen_expr``.
    dtype
        One of ``FORMATS``.
    saturate
        Clamp finite overflow to the largest finite value.

    Returns
    -------
    Expr
        uint8, uint16 for float16 and bfloat16, or uint32 for tfloat32: the upper 19 bits of a float32.
    """
    form, wide = FORMATS[dtype], WIDE[type_name(value)]
    result = next(f"uint{n}" for n in (8, 16, 32) if form.bits <= n)
    if not form.signed:
        return cast(result, bind(bits_of(value), lambda u: _encode_unsigned(u, form, wide, saturate), "bits"))
    return bind(
        bits_of(value),
        lambda u: bind(absolute_bits(u), lambda a: _encode_signed(u, a, form, wide, saturate, result), "size"),
        "bits",
    )


def round_tfloat32_expr(value: Expr) -> Expr:
    """Return a number rounded once to 10 mantissa bits, nearest even, as float32.

    A NaN becomes the quiet NaN.
    """
    wide = widen_expr(value)
    if type_name(wide) == "float64":
        return float_of(encode_expr(wide, "tfloat32") << constant(13, "uint32", wide))

    def rounded(u: Var) -> Call:
        k = constants("uint32", u)
        up = u + ((u >> k(13)) & k(1)) + k(0xFFF)
        quiet = (u & k(0x80000000)) | k(0x7FC00000)
        return float_of(select(absolute_bits(u) > k(WIDE["float32"].infinity), quiet, up & k(0xFFFFE000)))

    return bind(bits_of(wide), rounded, "bits")


def widen_expr(value: Expr) -> Expr:
    """``value`` (of any type) as the float type to encode from without double rounding.

    Narrower floats and integers of up to 16 bits become float32, exactly. Wider integers keep their first 15 bits or
    more, with what is dropped collected in the lowest kept one, which is enough for one rounding to at most 13 bits to
    follow. So no target needs float64 for them.
    """
    name = type_name(value)
    if name in WIDE:
        return value
    if name in ("int32", "uint32", "int64", "uint64"):
        return bind(value, lambda v: _rounded_to_odd(v, name))
    return cast("float32", value)


def scaled_expr(value: Expr, p: Expr, q: Expr) -> Expr:
    """Return ``value * p * q`` for positive powers of two, exact in range.

    If both are at least 1, or both are less, one multiplication after the other leaves float32 only where the result
    does. Otherwise their product is between them.
    """
    one = constant(1.0, "float32", value)

    def chosen(p: Var, q: Var) -> Expr:
        alike = tirx.Or(tirx.And(p >= one, q >= one), tirx.And(p < one, q < one))
        return bind(value, lambda v: select(alike, v * p * q, v * (p * q)), "value")

    return bind(p, lambda p: bind(q, lambda q: chosen(p, q), "q"), "p")


def nibble_expr(byte: Expr, index: Expr) -> Expr:
    """Return the 4-bit code of element ``index``, by its parity, in the uint8 ``byte``."""
    k = constants("uint8", byte)
    shift = cast("uint8", (index % constant(2, type_name(index), index)) * constant(4, type_name(index), index))
    return (byte >> shift) & k(15)


def int4_expr(value: Expr, dtype: str, *, in_bytes: bool = False) -> Expr:
    """An integer expression wrapped to ``dtype`` (int4 or uint4), as int8 or uint8.

    With ``in_bytes``, the arithmetic of bytes has 8 bits: vectors hold more of them.
    """
    name = type_name(value) if in_bytes and type_name(value) in ("int8", "uint8") else "int32"
    low = cast(name, value) & constant(15, name, value)
    if dtype == "uint4":
        return cast("uint8", low)
    if name == "int32":
        return cast("int8", (low ^ constant(8, name, value)) - constant(8, name, value))
    return cast("int8", low ^ constant(8, name, value)) - constant(8, "int8", value)


def _rounded_to_odd(value: Var, name: str) -> Expr:
    """Return the float32 of a 32- or 64-bit integer: sign, and magnitude by `_shortened`."""
    unsigned = f"uint{name.removeprefix('u').removeprefix('int')}"
    size = cast(unsigned, value)
    if unsigned == name:
        return bind(size, lambda m: _shortened(m, _STEPS[unsigned]))
    negative, k = value < constant(0, name, value), constants(unsigned, value)
    # Not a difference: TVM takes one of unsigned integers to be positive.
    ones = (1 << int(unsigned.removeprefix("uint"))) - 1
    positive = (size ^ select(negative, k(ones), k(0))) + select(negative, k(1), k(0))
    return negate_if(negative, bind(positive, lambda m: _shortened(m, _STEPS[unsigned])))


def _shortened(size: Var, steps: Sequence[tuple[int, int]]) -> Expr:
    """Return the float32 of an unsigned integer, dropping bits from a power of two on."""
    if not steps:
        return cast("float32", cast("int32", size))
    (limit, shift), *rest = steps
    k = constants(type_name(size), size)
    large, kept = size >= k(1 << limit), size >> k(shift)
    sticky = select(equal(kept << k(shift), size), kept, kept | k(1))
    shorter = bind(select(large, sticky, size), lambda m: _shortened(m, rest), "size")
    return shorter * select(large, constant(2.0**shift, "float32", size), constant(1.0, "float32", size))


def _debits(c: Var, form: Format) -> Expr:
    """float32 bits of the code ``c`` (uint32)."""
    k = constants("uint32", c)
    if not form.signed:
        # The lowest number, a subnormal one, and NaN have this bit.
        return (c << k(23)) | select(((c + k(1)) & k(form.nan)) < k(2), k(0x00400000), k(0))
    sign = (c & k(form.sign)) << k(32 - form.bits)
    if form.bias == WIDE["float32"].bias:
        return c << k(32 - form.bits)
    return bind(c & k(form.sign - 1), lambda a: _decode_signed(c, a, sign, form), "size")


def _decode_signed(c: Var, a: Var, sign: Expr, form: Format) -> Expr:
    k = constants("uint32", c)
    bias = WIDE["float32"].bias
    normal = (a << k(23 - form.mantissa)) + k((bias - form.bias) << 23)
    # int32, because few instruction sets convert uint32
    unit = constant(2.0 ** (1 - form.bias - form.mantissa), "float32", c)
    subnormal = bits_of(cast("float32", cast("int32", a)) * unit)
    bits = select(a < k(1 << form.mantissa), subnormal, normal)
    if form.unsigned_zero:
        # Their only NaN has the sign's bit.
        return select(equal(c & k(form.sign * 2 - 1), k(form.nan)), k(0xFFC00000), bits | sign)
    if form.has_infinity:
        field = (255 - (bias - form.bias) - (2**form.exponent - 1)) << 23  # lifts the top exponent to float32's
        bits = select(a > k(form.largest), normal + k(field), bits)
    elif form.has_nan:
        bits = select(a > k(form.largest), k(0x7FC00000), bits)
    return bits | sign


def _encode_signed(u: Var, a: Var, form: Format, wide: Format, saturate: bool, result: str) -> Expr:
    """Code of the value with bits ``u`` and magnitude bits ``a``."""
    k = constants(f"uint{wide.bits}", u)
    shift = wide.mantissa - form.mantissa
    if form.has_infinity and form.bias == wide.bias and not saturate:
        return _encode_upper(u, a, form, wide, result)
    offset = (wide.bias - form.bias) << form.mantissa
    overflow = form.largest if saturate else form.overflow
    # Adding just under half, plus one when the last kept bit is odd, carries exactly when nearest even rounds up.
    rounded = (a + ((a >> k(shift)) & k(1)) + k((1 << (shift - 1)) - 1)) >> k(shift)
    code = bind(rounded, lambda q: select(q > k(form.largest + offset), k(overflow), q - k(offset)), "kept")
    if offset:
        code = select(a < k((wide.bias - form.bias + 1) << wide.mantissa), _encode_subnormal(a, form, wide), code)
    if overflow != form.infinity:
        code = select(a >= k(wide.infinity), k(form.infinity), code)
    if form.infinity != form.nan:
        code = select(a > k(wide.infinity), k(form.nan), code)
    sign = cast(result, (u >> k(wide.bits - form.bits)) & k(form.sign))
    zero = constant(0, result, u)
    if form.unsigned_zero:
        return bind(cast(result, code), lambda c: c | select(equal(c, zero), zero, sign), "code")
    if not form.has_nan:
        sign = sign | select(a > k(wide.infinity), constant(form.sign, result, u), zero)
    return cast(result, code) | sign


def _encode_upper(u: Var, a: Var, form: Format, wide: Format, result: str) -> Expr:
    """Return the code of a format that is the upper bits of ``wide``.

    A carry past the largest number gives infinity.
    """
    k = constants(f"uint{wide.bits}", u)
    shift = wide.mantissa - form.mantissa
    # Of a NaN the sum may wrap, and is not used.
    rounded = (u + ((u >> k(shift)) & k(1)) + k((1 << (shift - 1)) - 1)) >> k(shift)
    quiet = ((u >> k(shift)) & k(form.sign)) | k(form.nan)
    return cast(result, select(a > k(wide.infinity), quiet, rounded))


def _encode_subnormal(a: Var, form: Format, wide: Format) -> Expr:
    """Round a subnormal by adding a power of two with the format's unit."""
    exponent = wide.mantissa + 1 - form.bias - form.mantissa
    magic = constant(2.0**exponent, f"float{wide.bits}", a)
    return bits_of(float_of(a) + magic) - constant((exponent + wide.bias) << wide.mantissa, f"uint{wide.bits}", a)


def _encode_unsigned(u: Var, form: Format, wide: Format, saturate: bool) -> Expr:
    k = constants(f"uint{wide.bits}", u)
    offset = wide.bias - form.bias
    next_up = (offset + 1) << wide.mantissa  # bits of 2^-126
    lowest = offset << wide.mantissa if offset else 1 << (wide.mantissa - 1)  # bits of 2^-127
    rounded = (u + k(1 << (wide.mantissa - 1))) >> k(wide.mantissa)
    top = k(form.largest if saturate else form.nan)
    code = bind(rounded, lambda q: select(q > k(form.largest + offset), top, q - k(offset)), "kept")
    code = select(u <= k(lowest), k(0), select(u < k(next_up), k(1), code))
    invalid = tirx.Or(equal(u, k(0)), u >= k(wide.infinity))  # zero, infinity, NaN, and the sign bit
    return select(invalid, k(form.nan), code)
