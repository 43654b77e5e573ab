"""Printing tirx expressions in C syntax.

An expression prints as one string. ``Let`` and choices whose sides need statements of their own write those first: a
temporary for each bound value, and a branch where only the taken side may be evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from tile_core.compat.tvm import tirx, tvm
from tile_core.emit.writer import Writer
from tile_core.errors.lowering import NotExpressible
from tile_core.ir import nodes

_INFIX = {
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=",
    "EQ": "==", "NE": "!=", "And": "&&", "Or": "||", "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^",
    "LShift": "<<", "RShift": ">>",
}  # fmt: skip
_BITWISE = {
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "shift_left": "<<", "shift_right": ">>",
}  # fmt: skip


class ExpressionPrinter:
    """Prints expressions; a dialect overrides the class attributes and the methods whose text differs.

    Attributes
    ----------
    types
        Element type name to the dialect's.
    calls
        Operator name (without ``tirx.``) to a function of the dialect.
    """

    types: ClassVar[dict[str, str]] = {
        "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short",
        "int32": "int", "uint32": "unsigned int", "int64": "long long", "uint64": "unsigned long long",
        "float32": "float", "float64": "double", "handle": "void*",
    }  # fmt: skip
    calls: ClassVar[dict[str, str]] = {
        "sqrt": "sqrt", "exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "sin": "sin", "cos": "cos",
        "tan": "tan", "tanh": "tanh", "erf": "erf", "pow": "pow", "floor": "floor", "ceil": "ceil", "trunc": "trunc",
        "round": "round", "nearbyint": "rint", "fabs": "fabs", "fma": "fma", "popcount": "__builtin_popcountll",
        "log10": "log10", "log1p": "log1p", "exp10": "exp10", "rsqrt": "rsqrt", "isnan": "isnan", "isinf": "isinf",
    }  # fmt: skip

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.analyzer = tvm.sym.Analyzer()

    def type(self, dtype: str) -> str:
        """Return the dialect's name of an element type.

        Raises
        ------
        NotExpressible
            If the dialect has none.
        """
        found = self.types.get(dtype)
        if found is None:
            raise NotExpressible(what=f"the type {dtype}", dialect=type(self).__name__)
        return found

    def expr(self, e: Any) -> str:
        """Return the text of an expression."""
        kind = type(e).__name__
        if kind in _INFIX:
            return f"({self.expr(e.a)} {_INFIX[kind]} {self.expr(e.b)})"
        method: Callable[[Any], str] | None = getattr(self, f"print_{kind}", None)
        if method is None:
            raise NotExpressible(what=f"a {kind}", dialect=type(self).__name__)
        return method(e)

    def print_Var(self, e: Any) -> str:
        """Print a variable."""
        return self.writer.name(e)

    def print_IntImm(self, e: Any) -> str:
        """Print an integer constant with a suffix that gives it its type."""
        dtype, value = nodes.dtype_of(e), int(e.value)
        if dtype == "bool":
            return "true" if value else "false"
        if dtype == "int32":
            # The lowest number is no constant of its own in C.
            return str(value) if value > -(2**31) else "(-2147483647 - 1)"
        if dtype in ("int64", "uint64", "uint32"):
            suffix = {"int64": "LL", "uint64": "ULL", "uint32": "u"}[dtype]
            value = value % 2**64 if dtype == "uint64" else value
            return f"{value}{suffix}" if value > -(2**63) else "(-9223372036854775807LL - 1)"
        return f"({self.type(dtype)}){value}"

    def print_FloatImm(self, e: Any) -> str:
        """Print a float constant exactly."""
        dtype, value = nodes.dtype_of(e), float(e.value)
        if math.isnan(value) or math.isinf(value):
            return self.special(dtype, value)
        text = f"{value!r}f" if dtype == "float32" else repr(value)
        return text if dtype in ("float32", "float64") else f"({self.type(dtype)}){value!r}f"

    def special(self, dtype: str, value: float) -> str:
        """Print NaN or an infinity."""
        name = "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
        return f"(({self.type(dtype)}){name})"

    def print_Not(self, e: Any) -> str:
        """Print a negation."""
        return f"(!{self.expr(e.a)})"

    def print_Min(self, e: Any) -> str:
        """Print the smaller of two integers (those of floats are selections by now)."""
        return self.extreme(e, "<")

    def print_Max(self, e: Any) -> str:
        """Print the larger of two integers."""
        return self.extreme(e, ">")

    def extreme(self, e: Any, sign: str) -> str:
        """Print a choice between two values that are named once."""
        a, b = self.named(e.a), self.named(e.b)
        return f"({a} {sign} {b} ? {a} : {b})"

    def print_FloorDiv(self, e: Any) -> str:
        """Print a division rounded down; C's own where neither side is negative."""
        if self.never_negative(e.a, e.b):
            return f"({self.expr(e.a)} / {self.expr(e.b)})"
        a, b = self.named(e.a), self.named(e.b)
        return f"({a} / {b} - ({a} % {b} != 0 && ({a} < 0) != ({b} < 0)))"

    def print_FloorMod(self, e: Any) -> str:
        """Print a remainder with the sign of the divisor; C's own where neither side is negative."""
        if self.never_negative(e.a, e.b):
            return f"({self.expr(e.a)} % {self.expr(e.b)})"
        a, b = self.named(e.a), self.named(e.b)
        return f"({a} % {b} + ({a} % {b} != 0 && ({a} < 0) != ({b} < 0) ? {b} : 0))"

    def never_negative(self, *sides: Any) -> bool:
        """Whether all sides are known not to be negative."""
        return all(
            nodes.dtype_of(s).startswith("uint") or self.analyzer.const_int_bound(s).min_value >= 0 for s in sides
        )

    def print_Select(self, e: Any) -> str:
        """Print a choice between two values that may both be evaluated."""
        return f"({self.expr(e.condition)} ? {self.expr(e.true_value)} : {self.expr(e.false_value)})"

    def print_Cast(self, e: Any) -> str:
        """Print a conversion."""
        return self.convert(self.expr(e.value), nodes.dtype_of(e.value), nodes.dtype_of(e))

    def convert(self, text: str, source: str, target: str) -> str:
        """Print the conversion of a value between element types."""
        if target == "bool":
            return f"({text} != 0)"
        del source
        return f"(({self.type(target)}){text})"

    def print_Let(self, e: Any) -> str:
        """Write the bound value to a variable, and print the body."""
        value = self.expr(e.value)
        self.writer.line(f"const {self.type(nodes.dtype_of(e.var))} {self.writer.name(e.var)} = {value};")
        return self.expr(e.body)

    def print_TensorLoad(self, e: Any) -> str:
        """Print a load of one element."""
        return self.element(e.source, e.indices)

    def element(self, buffer: Any, indices: Any) -> str:
        """Print an element of a buffer."""
        return f"{self.writer.name(buffer)}[{self.expr(self.offset(buffer, indices))}]"

    def offset(self, buffer: Any, indices: Any) -> Any:
        """Return the distance of an element from the buffer's beginning, in elements."""
        strides = list(buffer.ty.strides or [])
        shape = list(buffer.shape)
        wide = _may_exceed_32_bits(shape)
        total: Any = nodes.int_const(0, "int64" if wide else "int32")
        for d, index in enumerate(indices):
            stride: Any = strides[d] if strides else math.prod([1]) if d == len(shape) - 1 else _product(shape[d + 1 :])
            term = nodes.cast(index, "int64") if wide else index
            total = total + term * (nodes.cast(nodes.int_const(0) + stride, "int64") if wide else stride)
        return self.analyzer.simplify(total)

    def print_Call(self, e: Any) -> str:
        """Print a call of an operator."""
        name = nodes.operator_name(e)
        if name in _BITWISE:
            return f"({self.expr(e.args[0])} {_BITWISE[name]} {self.expr(e.args[1])})"
        method: Callable[[Any], str] | None = getattr(self, "call_" + name.replace(".", "_"), None)
        if method is not None:
            return method(e)
        if name not in self.calls:
            raise NotExpressible(what=f"the operator {name}", dialect=type(self).__name__)
        return f"{self.calls[name]}({', '.join(self.expr(a) for a in e.args)})"

    def call_bitwise_not(self, e: Any) -> str:
        """Print a complement."""
        return f"(~{self.expr(e.args[0])})"

    def print_BitwiseNot(self, e: Any) -> str:
        """Print a complement."""
        return f"(~{self.expr(e.a)})"

    def call_if_then_else(self, e: Any) -> str:
        """Print a choice of which only the taken side is evaluated."""
        condition = self.expr(e.args[0])
        mark = len(self.writer.lines)
        yes, no = self.expr(e.args[1]), self.expr(e.args[2])
        if len(self.writer.lines) == mark:
            return f"({condition} ? {yes} : {no})"
        del self.writer.lines[mark:], self.writer.origins[mark:]
        result = self.writer.fresh("choice")
        self.writer.line(f"{self.type(nodes.dtype_of(e))} {result};")
        for head, side in ((f"if ({condition})", e.args[1]), ("else", e.args[2])):
            with self.writer.block(head):
                self.writer.line(f"{result} = {self.expr(side)};")
        return result

    def named(self, e: Any) -> str:
        """Print an expression that is used twice: through a variable, unless it is one or a constant."""
        if isinstance(e, (tirx.Var, tirx.IntImm, tirx.FloatImm)):
            return self.expr(e)
        name = self.writer.fresh("t")
        self.writer.line(f"const {self.type(nodes.dtype_of(e))} {name} = {self.expr(e)};")
        return name


def _product(extents: list[Any]) -> Any:
    total: Any = 1
    for e in extents:
        total = total * e
    return total


def _may_exceed_32_bits(shape: list[Any]) -> bool:
    sizes = [nodes.as_int(s) for s in shape]
    if any(nodes.dtype_of(s) == "int64" for s in shape if not isinstance(s, int)):
        return True
    return all(isinstance(s, int) for s in sizes) and math.prod(sizes) >= 2**31
