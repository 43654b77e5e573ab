"""Operands that become constant only in the compiler.

Zero divisors, wide shifts, conversions out of range, zeros.

Each statement applies a rule of the language (division by zero, shifts beyond the width, floats that do not fit an
integer, signs of zeros) to a *late* constant: an expression that tracing leaves as it is, and that some later pass,
TVM's simplifier or the compiler of the text reduces to one number.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tile_core.dtypes import DTYPES, largest
from tile_core.testing.case import Unit, output, scalar, tensor
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import INTEGERS, Drawn, patterns, themed

#: Integers that are 0: reads outside of tensors, conversions, differences, known choices, loops of one iteration.
_ZEROS = (
    "T.cast(T.cast(0.5, 'float32'), {t})", "T.cast(T.cast(-0.25, 'bfloat16'), {t})", "Z[i + {n}]", "Z[i - {n}]",
    "Y[o, i - {n}]", "Y[o + 1, i]", "T.cast(F[i + {n}], {t})", "T.cast(Y[o, i + {n}] + 0.5, {t})", "(Z[i] - Z[i])",
    "(Z[i] ^ Z[i])", "T.cast(Z[i] != Z[i], {t})", "T.cast(Z[i] < Z[i], {t})",
    "T.Select(Z[i] == Z[i], T.cast(0, {t}), Z[i])", "T.if_then_else(i < {n}, T.cast(0, {t}), Z[i])",
    "T.if_then_else(i < {n}, Z[i + {n}], Z[i])", "T.if_then_else(i >= {n}, Z[i], Z[i - {n}])", "T.clamp(Z[i], 0, 0)",
    "T.min(T.max(Z[i], 0), 0)", "T.cast(i // {n}, {t})", "T.cast(i - i, {t})", "T.cast(o, {t})", "T.cast(bx, {t})",
    "T.cast(T.popcount(Z[i] ^ Z[i]), {t})", "T.cast(T.cast(65536, 'int32'), 'uint8').astype({t})", "d[i]", "c", "s",
    "T.cast(T.cast(i + 256, 'uint8') - T.cast(i, 'uint8'), {t})", "T.cast(-F[i + {n}] / 3.0, {t})",
)  # fmt: skip
#: The number of the first ones, which are constants when the rules are applied.
_SOON = 8
#: A zero made of others.
_OF_ZEROS = (
    "({z} + {z})", "({z} * Z[i])", "({z} & Z[i])", "T.cast(T.cast({z}, 'int64'), {t})", "T.max({z}, {z})",
    "T.if_then_else({z} == 0, {z}, Z[i])", "(Z[i] % ({z} + 1))", "(-{z})", "({z} << 3)", "({z} - {z})", "T.abs({z})",
    "T.Select({z} > 0, Z[i], {z})", "({z} // {z})", "T.min({z}, {z})", "({z} >> ({z} + 1))",
)  # fmt: skip
_QUOTIENTS = (
    "{a} // {d}", "{a} % {d}", "T.floordiv({a}, {d})", "T.floormod({a}, {d})", "T.truncdiv({a}, {d})",
    "T.truncmod({a}, {d})", "T.ceildiv({a}, {d})", "T.align_up({a}, {d})", "{d} // {d}", "{a} - {a} // {d} * {d}",
    "-({a} // {d})", "T.cast({a} // {d}, 'int64') + 1", "T.if_then_else({d} != 0, {a} // {d}, 5)",
)  # fmt: skip
_SHIFTS = ("{a} << {c}", "{a} >> {c}", "T.shift_left({a}, {c})", "T.shift_right({a}, {c})", "({a} << {c}) >> {c}")
_OTHERS = ("T.abs({m})", "-{m}", "{m} * {m}", "{m} - {a}", "{m} + {a}", "T.max({m}, {a})", "~{m}", "{m} - 1")
#: Integers from floats of any size.
_CONVERSIONS = (
    "T.cast({f}, {t})", "T.cast({f} * -1.0, {t})", "T.cast({f} + F[i + {n}], {t})", "T.cast(T.cast({f}, 'uint8'), {t})",
    "T.cast(T.max({f}, F[i + {n}]), {t})", "T.cast(T.cast({f}, 'int64'), {t})", "A[i] // T.cast({f}, {t})",
    "A[i] << T.cast({f}, {t})",
)  # fmt: skip
_FLOATS = (
    "T.cast({x}, 'float32')", "(F[i + {n}] + {x})", "(1.0 / F[i + {n}])", "(F[i + {n}] / F[i + {n}])",
    "(-1.0 / F[i - {n}])", "(T.cast({x}, 'float32') / F[i + {n}])", "T.cast(T.cast({x}, 'float64'), 'float32')",
    "T.sqrt(F[i + {n}] - 4.0)", "T.cast(T.infinity('float32'), 'float32')", "T.cast({x}, 'float64')",
)  # fmt: skip
_SIZES = (0.0, -0.0, 0.5, -0.5, -1.0, 127.5, 128.0, 255.0, 256.0, 65536.0, 3e9, -3e9, 2.0**31, 1e10, 1.5e19, -1e30)
#: The number of the first ones, where a divisor divides twice.
_NESTED = 4
#: Uses of 32-bit zeros and ones in indices and in bounds of loops.
_PLACED = (
    "B[{r}, i] = A[((i * 3) // {p} + 1) // {p}]", "B[{r}, i] = A[(i // {p} + 2) % {p} + i]",
    "B[{r}, i] = A[T.Select({p} != 0, (i + 1) // {p} // {p}, i)]", "B[{r}, i] = A[T.Select({p} > 0, i << {p}, i) // 3]",
    "B[{r}, i] = A[i // {z}]", "B[{r}, i] = A[i % {z}]", "B[{r}, i] = A[{z} + i]", "B[{r}, i] = A[i - i // ({z} + 1)]",
    "B[{r}, (i // {z}) * {n} + i] = A[i]", "B[{r}, i] = A[T.truncmod(i + 3, {z})]", "B[{r}, i] = Z[i + {n} // {z}]",
    "B[{r}, i] = 1\nfor q in T.serial({z}):\n    B[{r}, i] = A[q]",
    "B[{r}, i] = 1\nfor q in T.serial({n} // {z}):\n    B[{r}, i] = A[q]",
    "B[{r}, i] = 1\nfor q in T.serial({z}, {z} + 1):\n    B[{r}, i] = A[q // {z}]",
    "B[{r}, i] = 1\nif i // {z} == 0:\n    B[{r}, i] = 2",
    "B[{r}, i] = 1\nif i % {z} > 0 or {z} > 1:\n    B[{r}, i] = 2",
)  # fmt: skip
#: Floats that are zeros of either sign, and what depends on their sign.
_FLOAT_ZEROS = (
    "Z[i + {n}]", "(-Z[i + {n}])", "(Z[i - {n}] * -1.0)", "T.cast(-0.0, {t})", "T.cast(T.cast(-0.0, 'float32'), {t})",
    "T.cast(F[i + {n}], {t})", "T.cast(i - i, {t})", "T.cast(o, {t})", "s", "c", "d[i]", "(0.0 - Z[i + {n}])",
    "T.cast(T.cast(-0.75, 'float32'), 'int32').astype({t})", "T.Select(Z[i] == Z[i], Z[i + {n}], Z[i + {n}])",
)  # fmt: skip
_SIGNED = (
    "{z} + {z}", "{z} - {z}", "{z} * {z}", "A[i] * {z}", "A[i] + {z}", "A[i] - {z}", "{z} - A[i]", "-{z}", "A[i] / {z}",
    "{z} / A[i]", "{z} / {z}", "T.abs({z})", "T.max({z}, {z})", "T.min({z}, {z})", "A[i] - A[i]", "A[i] / A[i]",
    "T.Select({z} == {z}, {z}, A[i])", "T.if_then_else(A[i] != A[i], {z}, A[i])", "T.copysign(A[i], {z})",
    "T.if_then_else(not (A[i] < {z}), A[i], {z})", "T.Select(A[i] >= A[i], A[i], {z})", "1.0 / {z}", "{k} * {k}",
    "{k} + {k}", "{k} / {k}", "{k} - {k}", "A[i] * 1.0", "A[i] + 0.0", "A[i] * 0.0", "0.0 - A[i]", "T.sqrt({z})",
    "T.floor({z})", "T.trunc({k})", "T.cast(T.cast({k}, 'float64'), {t})", "(A[i] + {k}) - {k}", "T.if_then_else("
    "{k} + {z} == {k}, A[i], {z})", "T.cast({k} > {z}, {t})", "A[i] * {k} / {k}",
)  # fmt: skip
_FACTORS = (0.1, 3.0, 1 / 3, 1e-3, 2.0**-14, 2049.0, 60000.0, 1e-8, 1e30, -7.7, 16777217.0, 1e-40, 1.0000001)
_TYPES = ("float32", "float32", "float32", "float16", "bfloat16", "float64")
#: Statements of a kernel: compiling costs more than a statement.
_ROWS = (1, 8, 12, 12)


@st.composite
def folding(draw: Draw) -> Unit:
    """Draw statements that apply a scalar rule to a value constant after tracing."""
    floats = draw(st.integers(0, 3)) == 0
    dtype = draw(
        st.sampled_from(("float32", "float32", "float32", "float16", "bfloat16", "float64") if floats else INTEGERS)
    )
    n, rows = draw(st.sampled_from((1, 3, 8, 17, 32))), draw(st.sampled_from(_ROWS))
    late = _Late(Drawn(draw), dtype, n)
    made = [late.float_statement(r) if floats else late.statement(r) for r in range(rows)]
    loop = draw(st.sampled_from((
        "for o, i in T.Parallel(1, {n}):", "for i in T.serial({n}):\n    for o in T.unroll(1):",
        "for o in T.serial(1):\n    for i in T.vectorized({n}):",
        "for i in T.Parallel({n}):\n    for o in T.serial(1):",
        "for o in T.static_range(1):\n    for i in T.Parallel({n}):",
    ))).format(n=n)  # fmt: skip
    if "static" in loop:
        loop = loop.replace("o in", "once in").replace("T.Parallel(", "T.grid(1, ").replace("for i in", "for o, i in")
    inner = "    " * (loop.count("\n") + 1)
    lines = ["c = T.alloc_var({t}, init=0)", f"d = T.alloc_fragment(({n},), {{t}})", "T.clear(d)", loop]
    lines += [inner + line for text in made for line in text.splitlines()]
    params = [tensor("A", dtype, n), tensor("Z", dtype, n), tensor("Y", dtype, 1, n), tensor("F", "float32", n)]
    params += [scalar("s", dtype), output("B", dtype, rows, n)]
    data = {name: patterns(draw, (n,), kind) for name, kind in (("A", dtype), ("Z", dtype), ("F", "float32"))}
    data |= {"Y": patterns(draw, (1, n), dtype), "s": draw(st.sampled_from((0, 0, -0.0) if floats else (0, 0, 0, 3)))}
    if not floats:
        info = np.iinfo(dtype)
        data["A"][:: draw(st.integers(2, 5))] = draw(st.sampled_from((info.min, info.max, 0, 1)))
    body = "\n".join(lines).replace("{t}", repr(dtype))
    return themed("folding", draw, params, body, {"": data}, threads=draw(st.sampled_from((1, 32, 64))))


class _Late:
    """Draws late constants of an element type, and statements about them."""

    def __init__(self, choose: Drawn, dtype: str, n: int) -> None:
        self.choose, self.dtype, self.n, self.bits = choose, dtype, n, DTYPES[dtype].bits
        self.least = 0 if dtype.startswith("u") else -(2 ** (self.bits - 1))

    def statement(self, row: int) -> str:
        """Draw a statement about integers."""
        if self.dtype == "int32" and self.choose.integer(0, 1) == 0:
            forms = _PLACED if self.choose.integer(0, 1) else _PLACED[:_NESTED]
            return self.filled(self.choose.pick(forms).replace("{r}", str(row)))
        forms = self.choose.pick((_QUOTIENTS, _QUOTIENTS, _QUOTIENTS, _SHIFTS, _OTHERS, _CONVERSIONS))
        return f"B[{row}, i] = T.cast({self.filled(self.choose.pick(forms))}, {self.dtype!r})"

    def float_statement(self, row: int) -> str:
        """Draw a statement about floats."""
        return f"B[{row}, i] = {self.filled(self.choose.pick(_SIGNED))}"

    def filled(self, form: str, depth: int = 1) -> str:
        """Draw the operands of a form; equal letters stand for one expression, except zeros."""
        for letter in "dacmfkxp":
            if "{" + letter + "}" in form:
                form = form.replace("{" + letter + "}", getattr(self, letter)())
        while "{z}" in form:
            form = form.replace("{z}", self.zero(depth), 1)
        return form.replace("{n}", str(self.n)).replace("{t}", repr(self.dtype))

    def zero(self, depth: int) -> str:
        """Draw a zero."""
        if DTYPES[self.dtype].is_float:
            return str(self.choose.pick(_FLOAT_ZEROS))
        if depth and self.choose.integer(0, 3) == 0:
            return self.filled(self.choose.pick(_OF_ZEROS), depth - 1)
        return str(self.choose.pick(_ZEROS if self.choose.integer(0, 1) else _ZEROS[:_SOON]))

    def near(self, *numbers: int) -> str:
        """Draw a late constant: a zero plus a number."""
        number = self.choose.pick(numbers)
        return f"({self.zero(1)} + T.cast({number}, {self.dtype!r}))" if number else self.zero(1)

    def d(self) -> str:
        """Draw a divisor."""
        return self.near(0, 0, 0, 0, 1, 3, *((-1, -1, -3, self.least) if self.least else ()))

    def a(self) -> str:
        """Draw a dividend."""
        return str(self.choose.pick(("A[i]", "A[i]", f"T.cast(i + 7, {self.dtype!r})", self.near(0, 7, self.least))))

    def c(self) -> str:
        """Draw a count of bits."""
        return self.near(0, 1, self.bits - 1, self.bits, self.bits + 1, 100, *((-1, -self.bits) if self.least else ()))

    def m(self) -> str:
        """Draw the least number or the greatest one."""
        return self.near(self.least, self.least + 2**self.bits - 1)

    def f(self) -> str:
        """Draw a float."""
        return str(self.choose.pick(_FLOATS))

    def x(self) -> str:
        """Draw the size of a float."""
        return repr(self.choose.pick(_SIZES))

    def p(self) -> str:
        """Draw a divisor that nothing is known about."""
        return str(self.choose.pick(("s", "s", "Z[i]", "(s * 2)", "T.min(s, 2)", "T.max(s, 0)")))

    def k(self) -> str:
        """Draw a constant of a float type."""
        fitting = [x for x in _FACTORS if abs(x) <= largest(DTYPES[self.dtype])]
        return f"T.cast({self.choose.pick(fitting)!r}, {self.dtype!r})"
