"""Prints tirx expressions in C syntax, with required and clarifying parentheses.

An expression prints as one string. ``Let`` and conditionals whose sides need statements write those first: a
temporary for each bound value, and a branch where only the taken side may be evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from tile_core.analysis.analyzer import Analyzer
from tile_core.compat.structural import identity, type_text
from tile_core.compat.tvm import tirx
from tile_core.compat.types import BufferVar, Call, Expr, Var
from tile_core.emit import offsets
from tile_core.emit.text import ATOM, CHOICE, LOGIC, UNARY, Text, infix, wrapped
from tile_core.emit.writer import Writer
from tile_core.errors.lowering import NotExpressible
from tile_core.ir import nodes
from tile_core.ir.visit import collect, substitute
from tile_core.numerics.levels import FAST, STANDARD, STRICT
from tile_core.numerics.regions import region_of
from tile_core.passes import float_rules, wrapping
from tile_core.passes.scalars import PARTIAL, require_defined

_INFIX = {
    "Add": "+", "Sub": "-", "Mul": "*", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=",
    "EQ": "==", "NE": "!=", "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^", "LShift": "<<", "RShift": ">>",
}  # fmt: skip
_BITWISE = {
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "shift_left": "<<", "shift_right": ">>",
}  # fmt: skip
_HIDDEN = {
    **{f"{float_rules.PREFIX}{name}": sign for name, sign in (
        ("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/"), ("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="),
        ("gt", ">"), ("ge", ">="),
    )},
}  # fmt: skip
WRAPPING = {f"{wrapping.PREFIX}add": "+", f"{wrapping.PREFIX}sub": "-", f"{wrapping.PREFIX}mul": "*"}
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_ROUNDED = {"add": "+", "sub": "-", "mul": "*", "fdiv": "/"}
_PARTIAL = frozenset(PARTIAL)
#: Types that C computes with as ``int``: results are converted back.
_NARROW = ("int8", "uint8", "int16", "uint16")


class ExpressionPrinter:
    """Prints expressions; a dialect overrides the class attributes and the methods whose text differs.

    Attributes
    ----------
    dialect
        Name of the language, for messages.
    types
        Element type name to the dialect's.
    suffixes
        What follows an integer constant and gives it its type.
    calls
        Operator name (without ``tirx.``) to a function of the dialect; ``round`` of the IR rounds ties to even.
    numerics
        Level of numerics of the text, see ``tile_core.numerics.levels``.
    approximate
        Whether functions outside of regions are approximate.
    """

    dialect: ClassVar[str] = "C"
    types: ClassVar[dict[str, str]] = {
        "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short", "uint16": "unsigned short",
        "int32": "int", "uint32": "unsigned int", "int64": "long long", "uint64": "unsigned long long",
        "float32": "float", "float64": "double", "handle": "void*",
    }  # fmt: skip
    suffixes: ClassVar[dict[str, str]] = {"int64": "LL", "uint64": "ULL", "uint32": "u"}
    calls: ClassVar[dict[str, str]] = {
        "sqrt": "sqrt", "exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "sin": "sin", "cos": "cos",
        "tan": "tan", "tanh": "tanh", "erf": "erf", "pow": "pow", "floor": "floor", "ceil": "ceil", "trunc": "trunc",
        "round": "rint", "nearbyint": "rint", "fabs": "fabs", "fma": "fma", "popcount": "__builtin_popcountll",
        "log10": "log10", "log1p": "log1p", "exp10": "exp10", "rsqrt": "rsqrt", "isnan": "isnan", "isinf": "isinf",
    }  # fmt: skip
    numerics: str = STANDARD
    approximate: bool = False

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.analyzer = Analyzer()
        self._declared: set[Any] = set()
        #: By the number of a buffer and ``wide_symbols``, see ``widths``; the buffers live as long.
        self._widths: dict[tuple[int, bool], tuple[int, bool]] = {}
        self._measured: list[BufferVar] = []

    def type(self, dtype: str) -> str:
        """Return the dialect's name of an element type.

        Raises
        ------
        NotExpressible
            If the dialect has none.
        """
        found = self.types.get(dtype)
        if found is None:
            raise NotExpressible(what=f"the type {dtype}", dialect=self.dialect)
        return found

    def expr(self, e: Expr) -> str:
        """Return the text of an expression for any position: parenthesized unless a name or call."""
        return self.at(e, ATOM)

    def at(self, e: Expr, level: int, sign: str = "") -> str:
        """Return the text of an operand: in parentheses if it binds less than ``level``."""
        return wrapped(self.bare(e), level, sign)

    def bare(self, e: Expr) -> str:
        """Return the text of an expression that needs no parentheses: an argument, a right-hand side."""
        if type(e) in _PARTIAL:
            require_defined(e)  # indices were simplified since the last pass
        kind = type(e).__name__
        if kind in _INFIX:
            return self.operation(_INFIX[kind], e.a, e.b)
        method: Callable[[Any], str] | None = getattr(self, f"print_{kind}", None)
        if method is None:
            raise NotExpressible(what=f"a {kind}", dialect=self.dialect)
        return method(e)

    def assigned(self, e: Expr) -> str:
        """Return the text of a value assigned to a variable or element of its type."""
        text = self.bare(e)
        return text.inner if isinstance(text, Text) and text.inner is not None else text

    def operation(self, sign: str, a: Expr, b: Expr) -> str:
        """Print an operation of two operands of one type."""
        kind = nodes.dtype_of(a)
        if (sign == "<<" and kind.startswith("int")) or (sign == "*" and kind == "uint16"):
            return self.wraps(sign, a, b)
        text = infix(sign, self.bare(a), self.bare(b))
        return text if sign in _COMPARISONS or kind not in _NARROW else self.narrowed(text, kind)

    def narrowed(self, text: str, kind: str) -> str:
        """Print the conversion of an ``int`` to a narrower type; an assignment converts implicitly."""
        return Text(f"({self.type(kind)}){wrapped(text, UNARY)}", UNARY, inner=text)

    def wraps(self, sign: str, a: Expr, b: Expr) -> str:
        """Print an integer operation whose result wraps: C guarantees that only for unsigned operands."""
        kind = nodes.dtype_of(a)
        if kind in _NARROW:
            left, right = self.bare(a), self.bare(b)
            # A left shift of a negative int, and the product of two large shorts, are undefined.
            text = infix(sign, f"({self.type('uint32')}){wrapped(left, UNARY)}", right)
            return self.narrowed(text, kind)
        right = self.unsigned(b) if sign != "<<" else self.bare(b)
        text = infix(sign, self.unsigned(a), right)
        return text if kind.startswith("u") else self.narrowed(text, kind)

    def unsigned(self, e: Expr) -> str:
        """Print an integer as the unsigned type of its width."""
        kind = nodes.dtype_of(e)
        if kind.startswith("u"):
            return self.bare(e)
        if isinstance(e, tirx.IntImm) and int(e.value) >= 0:
            return self.bare(tirx.IntImm(f"u{kind}", int(e.value)))
        text = self.bare(e)
        if nodes.operator_name(e) in WRAPPING and isinstance(text, Text) and text.inner is not None:
            return text.inner
        return Text(f"({self.type('u' + kind)}){wrapped(text, UNARY)}", UNARY)

    def print_And(self, e: Expr) -> str:
        """Print a conjunction."""
        return self.logic("&&", e.a, e.b)

    def print_Or(self, e: Expr) -> str:
        """Print a disjunction."""
        return self.logic("||", e.a, e.b)

    def logic(self, sign: str, a: Expr, b: Expr) -> str:
        """Print ``&&`` or ``||`` with short-circuit evaluation: by a branch if necessary."""
        left = self.bare(a)
        right, lines = self.apart(b)
        if not lines:
            return infix(sign, left, right)
        result = self.writer.fresh("holds")
        self.writer.line(f"{self.type('bool')} {result} = {left};")
        with self.writer.block(f"if ({result if sign == '&&' else '!' + result})"):
            self.writer.line(f"{result} = {self.bare(b)};")
        return result

    def apart(self, e: Expr) -> tuple[str, bool]:
        """Return the text of an expression, and whether it needs statements, which are not written."""
        mark = len(self.writer.lines)
        text = self.bare(e)
        needs = len(self.writer.lines) > mark
        if needs:
            del self.writer.lines[mark:], self.writer.origins[mark:]
        return text, needs

    def print_Var(self, e: Var) -> str:
        """Print a variable."""
        return self.writer.name(e)

    def print_IntImm(self, e: Expr) -> str:
        """Print an integer constant with a suffix that gives it its type."""
        dtype, value = type_text(e.ty), int(e.value)
        if dtype == "bool":
            return "true" if value else "false"
        if dtype == "int32":
            # The lowest number is not a constant in C.
            if value >= 0:
                return str(value)
            return _number(str(value)) if value > -(2**31) else "(-2147483647 - 1)"
        if dtype in self.suffixes:
            suffix = self.suffixes[dtype]
            value = value % 2**64 if dtype == "uint64" else value
            return _number(f"{value}{suffix}") if value > -(2**63) else f"(-9223372036854775807{suffix} - 1)"
        return self.narrowed(_number(str(value)), dtype)

    def print_FloatImm(self, e: Expr) -> str:
        """Print a float constant exactly, in as few digits as possible."""
        dtype, value = nodes.dtype_of(e), float(e.value)
        if dtype == "float32":
            with np.errstate(over="ignore"):
                value = float(np.float32(value))
        if math.isnan(value) or math.isinf(value):
            return self.special(dtype, value)
        if dtype == "float32":
            return _number(f"{np.float32(value)!s}f")
        return _number(repr(value)) if dtype == "float64" else Text(f"({self.type(dtype)}){value!r}", UNARY)

    def special(self, dtype: str, value: float) -> str:
        """Print NaN or an infinity."""
        name = "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
        return f"(({self.type(dtype)}){name})"

    def print_Not(self, e: Expr) -> str:
        """Print a negation."""
        return Text(f"!{self.at(e.a, UNARY)}", UNARY)

    def print_Min(self, e: Expr) -> str:
        """Print the smaller of two integers (for floats these are selects by now)."""
        return self.extreme(e, "<")

    def print_Max(self, e: Expr) -> str:
        """Print the larger of two integers."""
        return self.extreme(e, ">")

    def extreme(self, e: Expr, sign: str) -> str:
        """Print a select between two values that are named once."""
        a, b = self.named(e.a), self.named(e.b)
        return Text(f"{a} {sign} {b} ? {a} : {b}", CHOICE)

    def print_FloorDiv(self, e: Expr) -> str:
        """Print a division rounded down; as C's own only where neither side is negative."""
        power = _power_of_two(e)
        if power is not None:
            return self.operation(">>", e.a, nodes.int_const(power)) if power else self.bare(e.a)
        if self.never_negative(e.a, e.b):
            return self.natural("/", e.a, e.b)
        a, b = self.named(e.a), self.named(e.b)
        return f"({a} / {b} - ({a} % {b} != 0 && ({a} < 0) != ({b} < 0)))"

    def print_FloorMod(self, e: Expr) -> str:
        """Print a remainder with the sign of the divisor; see ``print_FloorDiv``."""
        power = _power_of_two(e)
        if power is not None:
            return self.operation("&", e.a, nodes.const(2**power - 1, nodes.dtype_of(e)))
        if self.never_negative(e.a, e.b):
            return self.natural("%", e.a, e.b)
        a, b = self.named(e.a), self.named(e.b)
        return f"({a} % {b} + ({a} % {b} != 0 && ({a} < 0) != ({b} < 0) ? {b} : 0))"

    def print_Div(self, e: Expr) -> str:
        """Print a quotient; of integers one rounded to zero."""
        natural = nodes.dtype_of(e).startswith("int") and self.never_negative(e.a, e.b)
        return self.print_FloorDiv(e) if natural else self.operation("/", e.a, e.b)

    def print_Mod(self, e: Expr) -> str:
        """Print a remainder with the sign of the dividend."""
        natural = nodes.dtype_of(e).startswith("int") and self.never_negative(e.a, e.b)
        return self.print_FloorMod(e) if natural else self.operation("%", e.a, e.b)

    def natural(self, sign: str, a: Expr, b: Expr) -> str:
        """Print a quotient or remainder of numbers that are not negative.

        Machines divide unsigned numbers in fewer instructions than signed ones, and 32 bits in fewer than 64. The
        result is signed again, because a compiler may take it that indices of signed numbers do not wrap.
        """
        kind = nodes.dtype_of(a)
        if kind not in ("int32", "int64"):
            return self.operation(sign, a, b)
        small = kind == "int64" and all(self.analyzer.const_int_bound(x).max_value < 2**32 for x in (a, b))
        left, right = (self.in_32_bits(x) if small else self.unsigned(x) for x in (a, b))
        return self.narrowed(infix(sign, left, right), kind)

    def in_32_bits(self, e: Expr) -> str:
        """Print a number that fits as an unsigned one of 32 bits."""
        if isinstance(e, tirx.IntImm):
            return self.bare(tirx.IntImm("uint32", int(e.value)))
        return Text(f"({self.type('uint32')}){wrapped(self.bare(e), UNARY)}", UNARY)

    def never_negative(self, *sides: Expr) -> bool:
        """Whether all operands are known not to be negative."""
        return all(
            nodes.dtype_of(s).startswith("uint") or self.analyzer.const_int_bound(s).min_value >= 0 for s in sides
        )

    def print_Select(self, e: Expr) -> str:
        """Print a select between two values that may both be evaluated."""
        return self.choice(self.bare(e.condition), self.bare(e.true_value), self.bare(e.false_value))

    def choice(self, condition: str, yes: str, no: str) -> str:
        """Print ``condition ? yes : no``; a conditional on the right needs no parentheses."""
        return Text(f"{wrapped(condition, LOGIC)} ? {wrapped(yes, LOGIC)} : {no}", CHOICE)

    def print_Cast(self, e: Expr) -> str:
        """Print a conversion."""
        source, target = nodes.dtype_of(e.value), nodes.dtype_of(e)
        if isinstance(e.value, tirx.IntImm) and target in ("int64", "uint64", "uint32") and int(e.value.value) >= 0:
            return self.bare(tirx.IntImm(target, int(e.value.value) % 2 ** int(target.lstrip("uint"))))
        return self.bare(e.value) if source == target else self.convert(self.bare(e.value), source, target)

    def convert(self, text: str, source: str, target: str) -> str:
        """Print the conversion of a value between element types."""
        if target == "bool":
            return infix("!=", text, "0")
        return Text(f"({self.type(target)}){wrapped(text, UNARY)}", UNARY)

    def print_Let(self, e: Expr) -> str:
        """Write the bound value to a variable, and print the body.

        An expression may occur twice in a statement, and so may its bindings: each time under a fresh name.
        """
        value, var, body = self.assigned(e.value), e.var, e.body
        if var in self._declared:
            var = tirx.Var(str(e.var.name), e.var.ty)
            body = substitute(body, {e.var: var})
        self._declared.add(var)
        self.writer.line(f"const {self.type(nodes.dtype_of(var))} {self.writer.name(var)} = {value};")
        return self.bare(body)

    def print_TensorLoad(self, e: Expr) -> str:
        """Print a load of one element."""
        return self.element(e.source, e.indices)

    def element(self, buffer: BufferVar, indices: Any) -> str:
        """Print an element of a buffer."""
        base, offset = self.based(buffer, indices)
        return f"{base}[{self.subscript(buffer, offset)}]"

    def subscript(self, buffer: BufferVar, offset: Expr) -> str:
        """Print the offset of an element of a buffer."""
        return self.bare(offset)

    def based(self, buffer: BufferVar, indices: Any) -> tuple[str, Expr]:
        """Return a pointer, and the offset of an element from it in elements; see ``emit/offsets.py``."""
        name, (leading, _) = self.writer.name(buffer), self.widths(buffer)
        if not leading:
            return name, self.offset(buffer, indices)
        start = self.offset(buffer, indices, range(leading))
        return f"({infix('+', name, self.bare(start))})", self.offset(
            buffer, indices, range(leading, len(buffer.shape))
        )

    def widths(self, buffer: BufferVar) -> tuple[int, bool]:
        """Return the leading dimensions whose offset needs 64 bits, and whether the whole one does."""
        key = identity(buffer), self.wide_symbols(buffer)
        if key not in self._widths:
            self._widths[key] = offsets.leading_dimensions(buffer, key[1]), offsets.is_wide(buffer, key[1])
            self._measured.append(buffer)
        return self._widths[key]

    def wide_symbols(self, buffer: BufferVar) -> bool:
        """Whether products of 32-bit symbols in the shape of a buffer may exceed 32 bits."""
        return False

    def offset(self, buffer: BufferVar, indices: Any, dims: range | None = None) -> Expr:
        """Return the offset of an element in its buffer, or along some dimensions."""
        if dims is None:
            _, wide = self.widths(buffer)
            return offsets.offset(buffer, indices, range(len(buffer.shape)), wide, self.simplified)
        return offsets.offset(buffer, indices, dims, dims.start == 0, self.simplified)

    def simplified(self, index: Expr) -> Expr:
        """Return an index in its simplest form; unchanged if floats occur in it.

        The simplifier's rules do not hold for floats.
        """
        floats = [c for c in collect(index, tirx.Cast) if nodes.dtype_of(c.value).startswith(("float", "bfloat"))]
        return index if floats else self.analyzer.simplify(index)

    def print_Call(self, e: Call) -> str:
        """Print a call of an operator."""
        name = nodes.operator_name(e)
        if name in _BITWISE:
            return self.operation(_BITWISE[name], *e.args)
        if name in _HIDDEN:
            return infix(_HIDDEN[name], self.bare(e.args[0]), self.bare(e.args[1]))
        if name in WRAPPING:
            return self.wraps(WRAPPING[name], *e.args)
        method: Callable[[Any], str] | None = getattr(self, "call_" + name.replace(".", "_"), None)
        if method is not None:
            return method(e)
        if name.startswith("ieee_"):
            return self.rounded(name, e)
        if name not in self.calls:
            raise NotExpressible(what=f"the operator {name}", dialect=self.dialect)
        return f"{self.calls[name]}({', '.join(self.bare(a) for a in e.args)})"

    @property
    def is_fast(self) -> bool:
        """Whether the compiler may approximate."""
        return self.numerics == FAST

    def approximates(self, e: Expr) -> bool:
        """Whether a function is approximate, by its region or else by the option."""
        region = region_of(e)
        return self.approximate if region is None else region == FAST

    def is_strict(self, e: Expr) -> bool:
        """Whether a function is strict, by its region or else by the option."""
        region = region_of(e)
        return (self.numerics if region is None else region) == STRICT

    def call_div(self, e: Expr) -> str:
        """Print a quotient of a region."""
        return self.operation("/", *e.args)

    def rounded(self, name: str, e: Expr) -> str:
        """Print an operation with a named rounding: C's own round to nearest, unless contracted."""
        args = [self.bare(a) for a in e.args]
        _, op, mode, dtype = name.split("_")
        if mode == "rn" and op in _ROUNDED:
            return infix(_ROUNDED[op], *args)
        if mode == "rn" and op == "frcp":
            return infix("/", self.bare(nodes.const(1.0, dtype)), args[0])
        function = {"fma": "fma", "fsqrt": "sqrt", "frsqrt": "rsqrt"}.get(op, "")
        if mode != "rn" or function not in self.calls:
            raise NotExpressible(what=f"the operator {name}", dialect=self.dialect)
        return f"{self.calls[function]}({', '.join(args)})"

    def call_tile_float_div(self, e: Expr) -> str:
        """Print a quotient."""
        return self.operation("/", *e.args)

    def call_bitwise_not(self, e: Expr) -> str:
        """Print a complement."""
        return self.complement(e.args[0])

    def print_BitwiseNot(self, e: Expr) -> str:
        """Print a complement."""
        return self.complement(e.a)

    def complement(self, e: Expr) -> str:
        """Print a bitwise complement."""
        text, kind = Text(f"~{self.at(e, UNARY)}", UNARY), nodes.dtype_of(e)
        return self.narrowed(text, kind) if kind in _NARROW else text

    def call_if_then_else(self, e: Call) -> str:
        """Print a conditional where only the taken side is evaluated."""
        condition = self.bare(e.args[0])
        (yes, before), (no, then) = self.apart(e.args[1]), self.apart(e.args[2])
        if not before and not then:
            return self.choice(condition, yes, no)
        result = self.writer.fresh("choice")
        self.writer.line(f"{self.type(nodes.dtype_of(e))} {result};")
        for head, side in ((f"if ({condition})", e.args[1]), ("else", e.args[2])):
            with self.writer.block(head):
                self.writer.line(f"{result} = {self.assigned(side)};")
        return result

    def named(self, e: Expr) -> str:
        """Print an expression that is used twice: through a variable unless trivial."""
        if isinstance(e, (tirx.Var, tirx.IntImm, tirx.FloatImm)):
            return self.expr(e)
        value = self.assigned(e)
        name = self.writer.fresh("t")
        self.writer.line(f"const {self.type(nodes.dtype_of(e))} {name} = {value};")
        return name


def _number(text: str) -> str:
    return Text(text, UNARY) if text.startswith("-") else text


def _power_of_two(division: Expr) -> int | None:
    """Return the exponent of a constant divisor that is a power of two, else ``None``.

    A shift rounds down, and a mask is not negative, for all dividends.
    """
    kind, divisor = nodes.dtype_of(division), nodes.as_int(division.b)
    if kind not in ("int32", "uint32", "int64", "uint64") or not isinstance(divisor, int):
        return None
    return divisor.bit_length() - 1 if divisor > 0 and divisor & (divisor - 1) == 0 else None
