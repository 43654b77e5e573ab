"""Functions of floats: calls of the device's own functions, and inline expansions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tile_core.compat.structural import identity
from tile_core.compat.types import Call, Expr
from tile_core.emit.expressions import ExpressionPrinter
from tile_core.emit.text import UNARY, Text, infix, wrapped
from tile_core.errors.lowering import NotExpressible
from tile_core.ir import nodes
from tile_cuda.emit.exact_factors import half_of, inverse_of
from tile_cuda.emit.functions import EXTREMES, FUNCTIONS, rounded
from tile_cuda.ptx import TABLE

#: Functions of float32 at level ``"standard"``: fewer instructions than the device's own, within the table of bounds.
_CHEAP = {"exp2": "exp2_of_half_f32", "sqrt": "sqrt_approx_f32"}
_INSTRUCTIONS = {"int32": "int", "uint32": "uint", "int64": "ll", "uint64": "ull"}


class MathCalls(ExpressionPrinter):
    """Prints functions of floats.

    Attributes
    ----------
    integral
        Identities of the quotients that become integers.
    """

    integral: frozenset[int] = frozenset()

    if TYPE_CHECKING:

        def helper(self, name: str) -> str:
            """Return the name of a function of the table."""

    def print_Call(self, e: Call) -> str:
        """Print a call of an operator."""
        name = nodes.operator_name(e)
        function = FUNCTIONS.get(name)
        if function is None:
            return super().print_Call(e)
        dtype = nodes.dtype_of(e)
        if dtype not in ("float32", "float64"):
            raise NotExpressible(what=f"{name} of {dtype}", dialect=self.dialect)
        if name in _CHEAP and dtype == "float32" and self.is_standard(e):
            return f"{self.helper(_CHEAP[name])}({self.bare(half_of(e.args[0]) if name == 'exp2' else e.args[0])})"
        args = [self.bare(a) for a in e.args]
        if function.wide and dtype == "float32" and not (self.approximates(e) and function.fast):
            return Text(f"(float){function.double}({', '.join(f'(double){wrapped(a, UNARY)}' for a in args)})", UNARY)
        return f"{function.name(dtype, self.approximates(e))}({', '.join(args)})"

    def rounded(self, name: str, e: Any) -> str:
        """Print an operation that names its rounding: each has an intrinsic."""
        return f"{rounded(name)}({', '.join(self.bare(a) for a in e.args)})"

    def is_standard(self, e: Expr) -> bool:
        """Whether a function belongs to level ``"standard"``."""
        return not (self.is_strict(e) or self.approximates(e))

    def print_Div(self, e: Expr) -> str:
        """Print a quotient."""
        return super().print_Div(e) if nodes.dtype_of(e) != "float32" else self.quotient(e, e.a, e.b)

    def call_div(self, e: Call) -> str:
        """Print a quotient of a region."""
        exact = nodes.dtype_of(e) != "float32"
        return self.operation("/", *e.args) if exact else self.quotient(e, *e.args)

    def quotient(self, e: Expr, a: Expr, b: Expr) -> str:
        """Print a quotient of float32."""
        if self.approximates(e):
            return f"__fdividef({self.bare(a)}, {self.bare(b)})"
        if self.is_strict(e) or identity(e) in self.integral:
            return self.operation("/", a, b)
        inverse = inverse_of(b)
        if inverse is not None:
            return self.operation("*", a, inverse)
        return f"{self.helper('div_full_f32')}({self.bare(a)}, {self.bare(b)})"

    def extreme(self, e: Expr, sign: str) -> str:
        """Print the minimum or maximum of two values; a NaN yields the other value."""
        dtype = nodes.dtype_of(e)
        name = "min" if sign == "<" else "max"
        args = f"{self.bare(e.a)}, {self.bare(e.b)}"
        if dtype in ("float32", "float64"):
            return f"f{name}{'f' if dtype == 'float32' else ''}({args})"
        if dtype in ("int8", "uint8", "int16", "uint16"):
            # Arithmetic on narrow integers gives ints in C, and the function has no form for an int and a narrow one.
            args = ", ".join(Text(f"(int){wrapped(self.bare(x), UNARY)}", UNARY) for x in (e.a, e.b))
        return f"{name}({args})"

    def call_tile_float_max(self, e: Call) -> str:
        """Print the maximum of two floats: NaN is ignored, +0 is above -0."""
        return self._float_extreme("max", e)

    def call_tile_float_min(self, e: Any) -> str:
        """Print the minimum of two floats: NaN is ignored, -0 is below +0."""
        return self._float_extreme("min", e)

    def call_tile_float_max_nan(self, e: Any) -> str:
        """Print the larger of two floats; NaN, if one is."""
        return self._float_extreme("max_nan", e)

    def call_tile_float_min_nan(self, e: Any) -> str:
        """Print the smaller of two floats; NaN, if one is."""
        return self._float_extreme("min_nan", e)

    def _float_extreme(self, kind: str, e: Call) -> str:
        name = EXTREMES.get((nodes.dtype_of(e), kind))
        if name is None:
            raise NotExpressible(what=f"{kind} of {nodes.dtype_of(e)}", dialect=self.dialect)
        a, b = (self.bare(x) for x in e.args)
        return f"{self.helper(name) if name in TABLE else name}({a}, {b})"

    def call_tile_float_truncate(self, e: Any) -> str:
        """Print the conversion of a float to an integer: instructions saturate, unlike C.

        NaN becomes 0, except for 64-bit sources or results (PTX ISA, "cvt").
        """
        source, target = nodes.dtype_of(e.args[0]), nodes.dtype_of(e)
        name = f"__{'float' if source == 'float32' else 'double'}2{_INSTRUCTIONS[target]}_rz"
        if "64" not in source + target:
            return f"{name}({self.bare(e.args[0])})"
        x = self.named(e.args[0])
        return self.choice(infix("==", x, x), f"{name}({x})", "0")

    def call_sigmoid(self, e: Any) -> str:
        """Print the logistic function."""
        dtype, x = nodes.dtype_of(e), e.args[0]
        if dtype == "float32" and self.approximates(e):
            return f"__fdividef(1.0f, 1.0f + __expf(-{self.expr(x)}))"
        return f"{self.helper(f'sigmoid_f{dtype[5:]}')}({self.bare(x)})"

    def call_isnan(self, e: Any) -> str:
        """Print a test for NaN, the only value that differs from itself."""
        x = self.named(e.args[0])
        return infix("!=", x, x)

    def call_isinf(self, e: Any) -> str:
        """Print whether a value is infinite."""
        return self._against_infinity("==", e.args[0])

    def call_isfinite(self, e: Any) -> str:
        """Print whether a value is a number."""
        return self._against_infinity("<", e.args[0])

    def _against_infinity(self, sign: str, x: Any) -> str:
        dtype = nodes.dtype_of(x)
        size = f"fabs{'f' if dtype == 'float32' else ''}({self.bare(x)})"
        return infix(sign, size, self.special(dtype, math.inf))
