"""The base of text emitters for the C family, with source locations.

A dialect is a subclass that states the differences: type names, qualifiers, declarations of parameters and of arrays in
each storage scope, the barrier, the function's head. It contains only what is special about its target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Stmt, Var
from tile_core.emit.expressions import ExpressionPrinter
from tile_core.emit.text import SUM
from tile_core.emit.writer import Writer
from tile_core.errors import Where
from tile_core.errors.lowering import NotExpressible
from tile_core.ir import nodes
from tile_core.records import dataclass

CPP_WORDS = frozenset(
    """
    alignas alignof and and_eq asm bitand bitor catch char16_t char32_t class compl const_cast consteval constexpr
    constinit co_await co_return co_yield decltype delete dynamic_cast explicit export friend inline main mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires
    static_assert static_cast template this thread_local throw try typeid typename using virtual wchar_t xor xor_eq
    """.split()
)
"""Words of C++ besides C's: reserved where a text is C++, or is executed as such by the emulator."""

_INTEGERS = [
    *(f"{sign}INT{kind}{bits}" for sign in ("", "U") for kind in ("", "_LEAST", "_FAST") for bits in (8, 16, 32, 64)),
    *"INTMAX UINTMAX INTPTR UINTPTR PTRDIFF SIG_ATOMIC SIZE WCHAR WINT".split(),
]
LIMITS = frozenset(f"{name}_{what}" for name in _INTEGERS for what in ("MAX", "MIN", "WIDTH", "C"))
"""Macros of integer types, which the emulator's headers and some devices' have."""


@dataclass(frozen=True)
class Emitted:
    """The text of one function.

    Attributes
    ----------
    text
        Complete source, with the dialect's prelude.
    origins
        The user's source location of each line, or ``None``.
    """

    text: str
    origins: tuple[Where | None, ...]

    def line_of(self, number: int) -> Where | None:
        """Return the user's source location of a 1-based line."""
        return self.origins[number - 1] if 0 < number <= len(self.origins) else None


class CFamilyEmitter(ExpressionPrinter):
    """Prints functions of scalar statements.

    Attributes
    ----------
    prelude
        Text before the function.
    reserved
        Words that may not name a variable.
    scopes
        Storage scope to the qualifier of an array declared in the function.
    """

    prelude: ClassVar[str] = ""
    reserved: ClassVar[frozenset[str]] = frozenset(
        "auto break case char const continue default do double else enum extern float for goto if inline int long "
        "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while "
        "bool true false "
        # Macros and names of the libraries that a device's own headers may define.
        "std NULL nil Nil assert errno offsetof EOF INFINITY NAN HUGE_VAL HUGE_VALF MAXFLOAT MAXHALF "
        "CHAR_BIT CHAR_MAX CHAR_MIN SCHAR_MAX SCHAR_MIN UCHAR_MAX SHRT_MAX SHRT_MIN USHRT_MAX INT_MAX INT_MIN "
        "UINT_MAX LONG_MAX LONG_MIN ULONG_MAX LLONG_MAX LLONG_MIN ULLONG_MAX SIZE_MAX "
        "FLT_DIG FLT_MANT_DIG FLT_MAX FLT_MIN FLT_EPSILON FLT_RADIX DBL_MAX DBL_MIN DBL_EPSILON "
        "HALF_DIG HALF_MAX HALF_MIN HALF_EPSILON "
        "M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2 M_SQRT1_2 "
        "M_E_F M_LOG2E_F M_LOG10E_F M_LN2_F M_LN10_F M_PI_F M_PI_2_F M_PI_4_F M_1_PI_F M_2_PI_F M_2_SQRTPI_F "
        "M_SQRT2_F M_SQRT1_2_F M_E_H M_PI_H M_PI_2_H M_PI_4_H "
        "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t intptr_t uintptr_t "
        # Of the emulator.
        "SIMT_API SIMT_MODEL SIMT_SHARED FE_DOWNWARD FE_TONEAREST FE_TOWARDZERO FE_UPWARD".split()
    ).union(LIMITS)
    scopes: ClassVar[dict[str, str]] = {"local": "", "global": ""}

    def __init__(self) -> None:
        super().__init__(Writer(self.reserved))

    def function(self, name: str, params: Sequence[Var], body: Stmt) -> Emitted:
        """Print a function.

        Parameters
        ----------
        name
            Its name.
        params
            Buffers and scalar variables in order.
        body
            Statements without tile ops.

        Raises
        ------
        NotExpressible
            If the dialect has no text for something in the body.
        """
        for text in self.prelude.splitlines():
            self.writer.line(text)
        with self.writer.block(self.head(name, params)):
            self.begin(params)
            self.stmt(body)
        return Emitted(self.writer.text(), tuple(self.writer.origins))

    def head(self, name: str, params: Sequence[Var]) -> str:
        """Print the function's head up to the opening brace."""
        return f"void {name}({', '.join(self.parameter(p) for p in params)})"

    def begin(self, params: Sequence[Var]) -> None:
        """Write the text before the body."""

    def parameter(self, p: Any) -> str:
        """Print one parameter."""
        if tirx.is_buffer_var(p):
            return f"{self.type(nodes.element_type(p))}* {self.writer.name(p)}"
        return f"{self.type(nodes.dtype_of(p))} {self.writer.name(p)}"

    def stmt(self, s: Stmt) -> None:
        """Write one statement."""
        method: Callable[[Any], None] | None = getattr(self, f"write_{type(s).__name__}", None)
        if method is None:
            raise NotExpressible(what=f"a {type(s).__name__}", dialect=self.dialect, where=nodes.where_of(s))
        where = nodes.where_of(s)
        before = self.writer.where
        self.writer.where = where or before
        try:
            method(s)
        except NotExpressible as error:
            raise error.at(where) from None
        self.writer.where = before

    def write_SeqStmt(self, s: Stmt) -> None:
        """Write statements one after the other."""
        for part in structural.items(s.seq):
            self.stmt(part)

    def write_For(self, s: Stmt) -> None:
        """Write a counted loop."""
        self.analyzer.bind(s.loop_var, ir.Range.from_min_extent(s.min, s.extent), True)
        start, stop = self.bare(s.min), self.at(self.simplified(s.min + s.extent), SUM)
        v, kind = self.writer.name(s.loop_var), self.type(nodes.dtype_of(s.loop_var))
        step = 1 if s.step is None else nodes.as_int(s.step)
        advance = f"++{v}" if step == 1 else f"{v} += {step if isinstance(step, int) else self.bare(step)}"
        if s.kind == tirx.ForKind.UNROLLED:
            self.unroll(s)
        with self.writer.block(f"for ({kind} {v} = {start}; {v} < {stop}; {advance})"):
            self.stmt(s.body)

    def unroll(self, s: Stmt) -> None:
        """Write the hint to unroll a loop."""
        self.writer.line("#pragma unroll")

    def write_While(self, s: Stmt) -> None:
        """Write a loop whose condition may need statements: they run before every test."""
        condition, lines = self.apart(s.condition)
        with self.writer.block("for (;;)" if lines else f"while ({condition})"):
            if lines:
                self.writer.line(f"if (!{self.expr(s.condition)}) break;")
            self.stmt(s.body)

    def write_IfThenElse(self, s: Stmt, head: str = "if") -> None:
        """Write a branch, and those that follow where its condition does not hold."""
        with self.writer.block(f"{head} ({self.bare(s.condition)})"):
            self.stmt(s.then_case)
        # A condition that takes statements of its own stands in the branch: none may stand between it and `else`.
        if isinstance(s.else_case, tirx.IfThenElse) and not self.apart(s.else_case.condition)[1]:
            self.write_IfThenElse(s.else_case, "else if")
        elif s.else_case is not None:
            with self.writer.block("else"):
                self.stmt(s.else_case)

    def write_Break(self, s: Stmt) -> None:
        """Write a break."""
        self.writer.line("break;")

    def write_Continue(self, s: Stmt) -> None:
        """Write a continue."""
        self.writer.line("continue;")

    def write_AttrStmt(self, s: Stmt) -> None:
        """Write the body only: attributes are for passes."""
        self.stmt(s.body)

    def write_Bind(self, s: Stmt) -> None:
        """Write a constant."""
        value = self.assigned(s.value)
        if nodes.dtype_of(s.var).startswith(("int", "uint")):
            # Its range and divisors, not its value: the name stays in the text.
            self.analyzer.bounded(s.var, s.value)
        self.writer.line(f"const {self.type(nodes.dtype_of(s.var))} {self.writer.name(s.var)} = {value};")

    def write_BufferStore(self, s: Stmt) -> None:
        """Write a store of one element."""
        value = self.assigned(s.value)
        self.writer.line(f"{self.element(s.buffer, s.indices)} = {value};")

    def write_AllocBuffer(self, s: Stmt) -> None:
        """Declare an array."""
        scope = nodes.scope_of(s.buffer)
        if scope not in self.scopes:
            raise NotExpressible(what=f"storage of scope {scope}", dialect=self.dialect)
        size = math.prod(nodes.shape_of(s.buffer))
        element = self.type(nodes.element_type(s.buffer))
        qualifier = f"{self.scopes[scope]} " if self.scopes[scope] else ""
        self.writer.line(f"{qualifier}{element} {self.writer.name(s.buffer)}[{size}];")

    def write_DeclBuffer(self, s: Stmt) -> None:
        """Declare a view: another name and element type of an array's memory."""
        base = self.expr(s.data.args[0]) if isinstance(s.data, ir.Call) else self.expr(s.data)
        element = self.type(nodes.element_type(s.buffer))
        self.writer.line(f"{element}* {self.writer.name(s.buffer)} = ({element}*){base};")

    def write_Evaluate(self, s: Stmt) -> None:
        """Write an expression for its effect."""
        if not isinstance(s.value, tirx.IntImm):
            self.writer.line(f"{self.bare(s.value)};")
