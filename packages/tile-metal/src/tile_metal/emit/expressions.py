"""Expressions of MSL: what differs from plain C."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tile_core.compat.types import Call, Expr
from tile_core.emit.expressions import ExpressionPrinter
from tile_core.emit.text import UNARY, Text, infix, wrapped
from tile_core.errors.lowering import NotExpressible
from tile_core.ir import nodes
from tile_core.numerics.levels import STANDARD, STRICT
from tile_core.numerics.regions import region_of
from tile_metal.emit.names import FUNCTIONS, HALVES, TYPES

ALONE: Mapping[str, str] = {"add": "+", "sub": "-", "mul": "*"}
"""Operations with a named rounding that a compiler may fuse with another one."""


class MslExpressions(ExpressionPrinter):
    """Prints expressions of scalars.

    Attributes
    ----------
    helpers
        Names of the helper functions that the text calls, see ``emit/helpers.py``.
    """

    dialect: ClassVar[str] = "MSL"
    calls: ClassVar[dict[str, str]] = {
        **ExpressionPrinter.calls, "fma": "fma", "sqrt": "precise::sqrt", "rsqrt": "precise::rsqrt",
    }  # fmt: skip
    types: ClassVar[dict[str, str]] = {**TYPES, "handle": "device void*"}
    helpers: set[str]

    def type(self, dtype: str) -> str:
        """Return the name of an element type."""
        if dtype == "float64":
            raise NotExpressible(what=f"float64, a type that Metal does not have{_WIDE}", dialect=self.dialect)
        return super().type(dtype)

    def helper(self, name: str) -> str:
        """Return the name of a helper function, which the text then has."""
        self.helpers.add(name)
        return name

    def named_as(self, dtype: str, text: str) -> Text:
        """Print a conversion; to 16-bit floats explicitly, since MSL rejects implicit ones for bfloat."""
        inner = None if dtype in HALVES else text
        return Text(f"({self.type(dtype)}){wrapped(text, UNARY)}", UNARY, inner=inner)

    # Constants

    def print_IntImm(self, e: Expr) -> str:
        """Print an integer constant; ``long`` has 64 bits."""
        dtype, value = nodes.dtype_of(e), int(e.value)
        if dtype == "uint64":
            return f"{value % 2**64}UL"
        if dtype == "int64":
            number = f"{value}L" if value > -(2**63) else "(-9223372036854775807L - 1)"
            return Text(number, UNARY) if number.startswith("-") else number
        return super().print_IntImm(e)

    def print_FloatImm(self, e: Expr) -> str:
        """Print a float constant; one of 16 bits as a conversion."""
        dtype, value = nodes.dtype_of(e), float(e.value)
        if dtype in HALVES and math.isfinite(value):
            return self.named_as(dtype, f"{np.float32(value)!s}f")
        return super().print_FloatImm(e)

    def special(self, dtype: str, value: float) -> str:
        """Print NaN or infinity by its bits, which finite-math compilers preserve."""
        code = 0x7FC00000 if math.isnan(value) else 0x7F800000 if value > 0 else 0xFF800000
        text = f"as_type<float>(0x{code:08x}u)"
        return text if dtype == "float32" else self.named_as(dtype, text)

    # Calls

    def print_Call(self, e: Call) -> str:
        """Print a call of an operator."""
        name = nodes.operator_name(e)
        function = FUNCTIONS.get(name)
        if function is None:
            return super().print_Call(e)
        if nodes.dtype_of(e) != "float32":
            wide = _WIDE if nodes.dtype_of(e) == "float64" else ""
            raise NotExpressible(what=f"{name} of {nodes.dtype_of(e)}{wide}", dialect=self.dialect)
        return f"{function.text(self.approximates(e))}({', '.join(self.bare(a) for a in e.args)})"

    def rounded(self, name: str, e: Any) -> str:
        """Print an operation rounded to nearest: precise, and never contracted with another one."""
        op, mode = name.split("_")[1:3]
        if self.is_fast:
            raise NotExpressible(what=f"T.ieee_{op} with fast math, which rounds as it likes", dialect=self.dialect)
        if self.numerics == STANDARD and mode == "rn" and op in ALONE:
            return self.own(f"ieee_{op}", e)
        return super().rounded(name, e)

    def own(self, name: str, e: Call) -> str:
        """Print a call of a helper function of float32."""
        if nodes.dtype_of(e) != "float32":
            wide = _WIDE if nodes.dtype_of(e) == "float64" else ""
            raise NotExpressible(what=f"{name} of {nodes.dtype_of(e)}{wide}", dialect=self.dialect)
        return f"{self.helper(f'{name}_f32')}({', '.join(self.bare(a) for a in e.args)})"

    def own_at_level(self, name: str, e: Call) -> str:
        """Print a call of a helper function that has another form at level ``"strict"``."""
        level = region_of(e) or self.numerics
        return self.own(f"strict_{name}" if level == STRICT else name, e)

    def call_erf(self, e: Call) -> str:
        """Print the error function."""
        return self.own_at_level("erf", e)

    def call_tanh(self, e: Any) -> str:
        """Print the hyperbolic tangent."""
        return f"fast::tanh({self.bare(e.args[0])})" if self.approximates(e) else self.own_at_level("tanh", e)

    def call_log1p(self, e: Any) -> str:
        """Print the logarithm of one more."""
        return self.own("log1p", e)

    def call_expm1(self, e: Any) -> str:
        """Print the exponential minus one."""
        return self.own("expm1", e)

    def call_cbrt(self, e: Any) -> str:
        """Print the cube root."""
        return self.own("cbrt", e)

    def call_hypot(self, e: Any) -> str:
        """Print the length of a vector."""
        return self.own("hypot", e)

    def call_sigmoid(self, e: Call) -> str:
        """Print the logistic function."""
        return self.own_at_level("sigmoid", e)

    def call_tile_float_truncate(self, e: Any) -> str:
        """Print the conversion of any float to an integer."""
        return f"{self.helper(f'{nodes.dtype_of(e)}_of_f32')}({self.bare(e.args[0])})"

    def call_tile_float_max(self, e: Call) -> str:
        """Print the larger of two floats.

        A number beats NaN, and +0 is larger than -0.
        """
        return self.float_extreme("max", e)

    def call_tile_float_min(self, e: Any) -> str:
        """Print the smaller of two floats.

        A number beats NaN, and -0 is smaller than +0.
        """
        return self.float_extreme("min", e)

    def call_tile_float_max_nan(self, e: Any) -> str:
        """Print the larger of two floats; NaN, if one is."""
        return self.own("max_nan", e)

    def call_tile_float_min_nan(self, e: Any) -> str:
        """Print the smaller of two floats; NaN, if one is."""
        return self.own("min_nan", e)

    def call_tile_float_max_loose(self, e: Call) -> str:
        """Print the library's maximum of floats: a number beats NaN, zeros are unordered."""
        return f"fmax({', '.join(self.bare(a) for a in e.args)})"

    def call_tile_float_min_loose(self, e: Call) -> str:
        """Print the library's smaller of two floats."""
        return f"fmin({', '.join(self.bare(a) for a in e.args)})"

    def float_extreme(self, kind: str, e: Call) -> str:
        """Print an extreme; with fast math the library's own, which takes all floats for numbers."""
        if nodes.dtype_of(e) == "float32" and self.is_fast:
            return f"f{kind}({', '.join(self.bare(a) for a in e.args)})"
        return self.own(kind, e)

    def extreme(self, e: Expr, sign: str) -> str:
        """Print the smaller or larger of two integers."""
        if nodes.dtype_of(e) in ("int32", "uint32", "int64", "uint64"):
            return f"{'min' if sign == '<' else 'max'}({self.bare(e.a)}, {self.bare(e.b)})"
        return super().extreme(e, sign)

    def call_isnan(self, e: Any) -> str:
        """Print whether a value is NaN, by its bits."""
        return infix(">", self.magnitude(e.args[0]), "0x7f800000u")

    def call_isinf(self, e: Any) -> str:
        """Print whether a value is infinite."""
        return infix("==", self.magnitude(e.args[0]), "0x7f800000u")

    def call_isfinite(self, e: Any) -> str:
        """Print whether a value is a number."""
        return infix("<", self.magnitude(e.args[0]), "0x7f800000u")

    def magnitude(self, x: Any) -> str:
        """Print the bits of a float without its sign."""
        value = self.bare(x)
        if nodes.dtype_of(x) != "float32":
            value = self.convert(value, nodes.dtype_of(x), "float32")
        return infix("&", f"as_type<uint>({value})", "0x7fffffffu")

    def call_popcount(self, e: Any) -> str:
        """Print the number of bits that are set."""
        source, target = nodes.dtype_of(e.args[0]), nodes.dtype_of(e)
        text = f"popcount({self.bare(e.args[0])})"
        return text if source == target else self.named_as(target, text)

    def call_reinterpret(self, e: Call) -> str:
        """Print the bits of a value as another type."""
        source, target = nodes.dtype_of(e.args[0]), nodes.dtype_of(e)
        text = self.bare(e.args[0])
        if source == target:
            return text
        # An operation of narrow integers has the type int in C.
        if _bits(source) < 32 and isinstance(text, Text):
            text = self.named_as(source, text)
        return f"as_type<{self.type(target)}>({text})"

    def convert(self, text: str, source: str, target: str) -> str:
        """Print the conversion of a value between element types."""
        if target == "bool":
            zero = "0.0f" if source.startswith(_FLOATS) else "0"
            return infix("!=", self.named_as("float32", text) if source in HALVES else text, zero)
        if target == "bfloat16" and source in ("int32", "uint32", "int64", "uint64"):
            # Two roundings, to float32 and to bfloat16, would not be one.
            return f"{self.helper(f'bfloat_of_{source}')}({text})"
        if {source, target} & HALVES and "float32" not in (source, target):
            text = self.named_as("float32", text)
        if source.startswith(_FLOATS) and not target.startswith(_FLOATS):
            # Written out where an assignment would do it too: it loses digits.
            return Text(f"({self.type(target)}){wrapped(text, UNARY)}", UNARY)
        return self.named_as(target, text)


_FLOATS = ("float", "bfloat")

#: The origin of an implicit float64.
_WIDE = " (quotients and functions of 64-bit integers are float64: T.cast them to float32 before)"


def _bits(dtype: str) -> int:
    return 8 if dtype == "bool" else int(re.findall(r"\d+", dtype)[0])
