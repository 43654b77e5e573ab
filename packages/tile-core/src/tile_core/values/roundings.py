"""Conversions whose rounding and overflow are named: ``T.cast(x, dtype, round="rz", sat=True)``."""

from __future__ import annotations

import math
from collections.abc import Callable

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Expr, Var
from tile_core.dtypes import DTYPES, DType, integer_range, largest
from tile_core.errors.language import BadArgument
from tile_core.ir import nodes
from tile_core.numerics.build import bind
from tile_core.numerics.directed import DIRECTIONS, clamp_expr, round_expr
from tile_core.numerics.truncation import truncated
from tile_core.values import scalar
from tile_core.values.checks import argument, python_int, shown
from tile_core.values.constants import constant
from tile_core.values.scalar import Scalar, Value, as_value, derive, is_python
from tile_runtime.numerics.literals import round_number

MODES = ("rn", *DIRECTIONS)
_WIDE = ("float32", "float64")
_WHOLE: dict[str, Callable[[float], int]] = {"rn": round, "ru": math.ceil, "rd": math.floor}


def cast_as_named(value: Scalar, to: DType, mode: str | None, saturate: bool | None, rbits: Scalar | None) -> Value:
    """Return ``value`` as ``to``; see ``T.cast``, whose arguments these are.

    Raises
    ------
    BadArgument
        For modes that do not exist, or have no meaning between these types.
    """
    _check(mode, saturate, rbits)
    word = None if rbits is None else _word(rbits)
    if is_python(value) and not isinstance(value, bool):
        return _constant(value, to, mode, saturate is True)
    source = as_value(value)
    if to == "bool" or source.dtype == "bool":
        return _untouched(source, to, mode)
    if not to.is_float:
        return _to_integer(source, to, mode, saturate, word)
    if not source.dtype.is_float and source.dtype.bits > 16 and mode not in (None, "rn"):
        expected = "'rn' of integers of more than 16 bits"
        raise _refused("round", f"{mode!r} of {source.dtype}", expected, "cast it to float64 first")
    return _to_float(source, to, mode, saturate is True, word)


def _check(mode: str | None, saturate: bool | None, rbits: Scalar | None) -> None:
    if mode is not None and (not isinstance(mode, str) or mode not in MODES):
        hints = {"rm": "'rd' rounds down", "rp": "'ru' rounds up", "rna": "T.round rounds ties away from zero"}
        raise _refused("round", shown(mode), " or ".join(map(repr, MODES)), hints.get(str(mode), "leave it out"))
    if saturate is not None and not isinstance(saturate, bool):
        raise _refused("sat", shown(saturate), "True or False", "leave it out")
    if mode == "rs" and rbits is None:
        raise _refused("rbits", "None with round='rs'", "a random word", "pass rbits=T.philox(seed, i)[0]")
    if mode != "rs" and rbits is not None:
        raise _refused("rbits", f"a word with round={mode!r}", "round='rs', which uses it", "leave rbits out")


def _to_float(value: Value, to: DType, mode: str | None, saturate: bool, word: Value | None) -> Value:
    if not value.dtype.is_float and value.dtype.bits > 16:
        top = largest(to)
        return scalar.cast(_limited(value, -int(top), int(top)) if saturate else value, to)
    wide = value if value.dtype in _WIDE else scalar.cast(value, DTYPES["float32"])
    fits = to in _WIDE and to.bits >= wide.dtype.bits
    if mode in DIRECTIONS and not fits:
        wide = _rounded(wide, to, mode, word)
    wide = scalar.cast(wide, to) if fits else wide
    if saturate:
        wide = derive(clamp_expr(wide.expr, str(to)), wide.dtype, wide)
    return scalar.cast(wide, to)


def _rounded(wide: Value, to: DType, mode: str, word: Value | None) -> Value:
    if word is None:
        return derive(round_expr(wide.expr, str(to), mode), wide.dtype, wide)
    expr = bind(word.expr, lambda w: round_expr(wide.expr, str(to), mode, w), "word")
    return derive(expr, wide.dtype, wide, word)


def _to_integer(value: Value, to: DType, mode: str | None, saturate: bool | None, word: Value | None) -> Value:
    if not value.dtype.is_float:
        if mode is not None:
            raise _between_integers(mode)
        return _clamped(value, to) if saturate else scalar.cast(value, to)
    if saturate is False:
        instead = "leave it out: floats that an integer type cannot hold become its nearest limit"
        raise _refused("sat", "False from a float to an integer", "True or None", instead)
    wide = value if value.dtype in _WIDE else scalar.cast(value, DTYPES["float32"])
    nodes_of = {"rn": tirx.nearbyint, "ru": tirx.ceil, "rd": tirx.floor}
    if mode in nodes_of:
        wide = derive(nodes_of[mode](wide.expr), wide.dtype, wide)
    elif word is not None:
        wide = _up_or_down(wide, word)
    return scalar.cast(wide, to)


def _up_or_down(x: Value, word: Value) -> Value:
    """Return a float rounded stochastically: away from zero if fraction and word carry."""
    dtype, name = x.dtype, str(x.dtype)

    def chosen(v: Var, whole: Var) -> Expr:
        part = tirx.abs(v - whole) * tirx.const(2.0**32, name)
        fraction = scalar.cast(Value(part, dtype), DTYPES["uint32"]).expr
        up = fraction > (word.expr ^ tirx.const(0xFFFFFFFF, "uint32"))
        one = tirx.Select(v < tirx.const(0.0, name), tirx.const(-1.0, name), tirx.const(1.0, name))
        return whole + tirx.Select(up, one, tirx.const(0.0, name))

    expr = bind(x.expr, lambda v: bind(tirx.trunc(v), lambda whole: chosen(v, whole), "whole"), "x")
    return derive(expr, dtype, x, word)


def _clamped(value: Value, to: DType) -> Value:
    """Return an integer limited to what another integer type holds."""
    return scalar.cast(_limited(value, *integer_range(to)), to)


def _limited(value: Value, low: int, high: int) -> Value:
    least, most = integer_range(value.dtype)
    if low > least:
        value = derive(tirx.Max(value.expr, nodes.const(low, str(value.dtype))), value.dtype, value)
    if high < most:
        value = derive(tirx.Min(value.expr, nodes.const(high, str(value.dtype))), value.dtype, value)
    return value


def _constant(number: float, to: DType, mode: str | None, saturate: bool) -> Value:
    """Return a Python number converted."""
    if mode == "rs":
        raise _refused(
            "round", "'rs' of a constant", "a value that the kernel computes", "round the constant in Python"
        )
    if to.is_integer:
        if isinstance(number, int) and mode is not None:
            raise _between_integers(mode)
        if isinstance(number, float) and math.isfinite(number):
            number = _WHOLE.get(str(mode), math.trunc)(number)
        return as_value(truncated(number, to) if saturate or isinstance(number, float) else number, to)
    if to == "bool":
        return _untouched(as_value(number), to, mode)
    if mode in DIRECTIONS:
        number = round_number(number, str(to), mode)
    if saturate and number == number:
        number = max(-largest(to), min(number, largest(to)))
    return constant(number, to)


def _untouched(value: Value, to: DType, mode: str | None) -> Value:
    """Return a conversion from or to ``bool``, which rounds nothing."""
    if mode is not None and to == "bool":
        raise _refused("round", shown(mode), "None to a bool: it is whether x != 0", "leave it out")
    return scalar.cast(value, to)


def _between_integers(mode: str) -> BadArgument:
    return _refused("round", shown(mode), "None between integers: nothing is rounded", "leave it out")


def _word(rbits: Scalar) -> Value:
    """Return a random word as ``uint32``."""
    number = python_int(rbits) if not isinstance(rbits, Value) else None
    if number is not None:
        return as_value(number % 2**32, DTYPES["uint32"])
    value = as_value(rbits)
    if not value.dtype.is_integer or value.dtype.bits != 32:
        expected, instead = "a word of 32 bits", "pass one of T.philox(seed, i), or T.rng_rand()"
        raise _refused("rbits", f"a {value.dtype} value", expected, instead)
    return scalar.cast(value, DTYPES["uint32"])


def _refused(name: str, found: str, expected: str, instead: str) -> BadArgument:
    return argument("cast", name, found, expected, instead)
