"""Bools as values: compared, reused, selected, counted, in tiles and variables."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tile_core.dtypes import DTYPES
from tile_core.testing.case import Unit, output, scalar, tensor
from tile_core.testing.data import COMPUTED, Array
from tile_core.testing.data import TYPES as ALL_TYPES
from tile_core.testing.strategies.draws import Draw
from tile_core.testing.strategies.themes import Drawn, randoms, spelled, themed

#: Forms of a bool: places {b} are bools, {n} are numbers.
_BOOLS = (
    "({b} == {b})", "({b} == {b})", "({b} != {b})", "({b} != {b})", "T.if_then_else({b}, {b}, {b})",
    "T.if_then_else({b}, {b}, {b})", "T.Select({b}, {b}, {b})", "({b} and {b})", "({b} or {b})", "(not {b})",
    "({b} & {b})", "({b} | {b})", "({b} ^ {b})", "(~{b})", "({b} < {b})", "({b} <= {b})", "({b} > {b})",
    "({b} >= {b})", "T.any_of({b}, {b}, {b})", "T.all_of({b}, {b})", "T.max({b}, {b})", "T.min({b}, {b}, {b})",
    "T.clamp({b}, False, {b})", "T.clamp({b}, {b})", "T.clamp({b}, {b}, {b})", "T.clamp({b}, True, {b})",
    "T.abs({b})", "({b} == True)", "(False != {b})", "({b} < True)",
    "({b} >= False)", "({b} & True)", "({b} ^ True)", "T.if_then_else({b}, True, {b})", "T.Select({b}, {b}, False)",
    "T.max({b}, False)", "T.cast({b}, 'bool')", "T.cast({n}, 'bool')", "({n} < {n})", "({n} == {n})", "({b} == {n})",
    "({n} != {b})", "(0 <= {n} < 3)",
)  # fmt: skip
#: Forms of a number.
_NUMBERS = (
    "T.cast({b}, 'int32')", "({b} + {b})", "({b} - {b})", "({b} * {b})", "(-{b})", "({n} + {b})", "({b} * {n})",
    "T.if_then_else({b}, {n}, {n})", "T.Select({b}, {n}, {n})", "T.max({n}, {b})", "({b} << 2)", "T.popcount({b})",
    "({b} // ({b} + 1))",
)  # fmt: skip


#: Forms that leave a loop without vectors: the side that is not chosen is not computed.
_LAZY = "T.if_then_else({b}"


@st.composite
def bools(draw: Draw) -> Unit:
    """Draw a loop of named bools derived from each other, and integers from them.

    Results have any type.
    """
    n = draw(st.sampled_from((1, 2, 7, 16, 40, 67)))
    loop = draw(st.sampled_from(("T.Parallel", "T.Parallel", "T.serial", "T.vectorized", "T.unroll")))
    loop = loop if n < 20 or loop != "T.unroll" else "T.Parallel"
    # Bools in memory, branches and variables leave a loop without vectors.
    vectors = draw(st.booleans())
    kept = "uint8" if vectors else "bool"
    to = draw(st.sampled_from([t for t in ALL_TYPES if t != "bool" and (not vectors or DTYPES[t].bits >= 8)]))
    dtype, scope = draw(st.sampled_from(COMPUTED)), draw(st.sampled_from((None, "shared", "fragment")))
    names = _Names(Drawn(draw), vectors)
    before = [f"m = T.alloc_{scope}(({n},), {spelled(draw, kept)})", "T.copy(M, m)"] if scope else []
    names.add(("m[i]" if scope else "M[i]") + (" > 0" if vectors else ""))
    lines = ["a = A[i]", *(f"{name} = {value}" for name, value in names.made.items())]
    for _ in range(draw(st.integers(1, 5))):
        lines += names.statement()
    lines += [f"B[i] = T.cast({names.bool(1)}, {spelled(draw, kept)})", f"N[i] = T.cast({names.number(1)}, 'int32')"]
    lines.append(f"C[i] = T.cast({names.bool(2)}, {spelled(draw, to)})")
    if not vectors and draw(st.booleans()):
        lines += [f"if {names.bool(1)}:", f"    B[i] = {names.bool(1)}"]
    after = _whole(draw, n, scope is not None and not vectors)
    over = 0 if scope else draw(st.sampled_from((0, 0, 3)))  # reads and writes outside of tensors
    body = [*before, f"for i in {loop}({n + over}):", *("    " + line for line in lines), *after]
    size = n + n % 2  # elements of four bits share bytes
    params = [tensor("A", dtype, n), tensor("M", kept, n), scalar("v"), scalar("w", "bool")]
    params += [output("B", kept, n), output("N", "int32", n), output("C", to, size), output("R", "bool", 2)]
    data = {"A": _numbers(draw, n, dtype), "M": randoms(draw, (n,), kept, 0, 1), "R": randoms(draw, (2,), "bool")}
    data |= {"C": randoms(draw, (size,), to, 0, 1), "v": draw(st.integers(-2, 3)), "w": draw(st.booleans())}
    return themed("bools", draw, params, "\n".join(body), {"": data}, threads=draw(st.sampled_from((1, 32, 64))))


class _Names:
    """The names that a loop has by now, and expressions of them."""

    def __init__(self, choose: Drawn, vectors: bool) -> None:
        self.choose, self.vectors = choose, vectors
        self.forms = [[f for f in forms if not (vectors and _LAZY in f)] for forms in (_BOOLS, _NUMBERS)]
        self.made: dict[str, str] = {}
        self.numbers = ["a", "a", "v", "i", "2", "0"]
        for value in ("a > 1", "a <= v"):
            self.add(value)

    def add(self, value: str) -> str:
        """Name a bool."""
        name = f"x{len(self.made)}"
        self.made[name] = value
        return name

    def bool(self, depth: int) -> str:
        """Draw a bool."""
        if depth == 0:
            # What reads memory gets a name of its own in every statement.
            return str(self.choose.pick([*self.made, *self.made, "w", "(A[i] > 1)", "(A[i] == a)"]))
        return self.filled(self.choose.pick(self.forms[0]), depth)

    def number(self, depth: int) -> str:
        """Draw a number."""
        return self.filled(self.choose.pick(self.forms[1]), depth) if depth else str(self.choose.pick(self.numbers))

    def filled(self, form: str, depth: int) -> str:
        """Draw the parts of a form."""
        while "{" in form:
            below = depth - self.choose.integer(1, 2)
            part = form[form.index("{") + 1]
            made = self.bool(max(below, 0)) if part == "b" else self.number(max(below, 0))
            form = form.replace("{" + part + "}", made, 1)
        return form

    def statement(self) -> list[str]:
        """Draw a statement that makes a name."""
        kind = self.choose.pick(("bool", "bool", "bool", "number", "chain", "chain" if self.vectors else "variable"))
        if kind == "number":
            text, name = self.number(2), f"n{len(self.numbers)}"
            self.numbers.append(name)
            return [f"{name} = {text}"]
        if kind == "bool":
            text = self.bool(2)
            return [f"{self.add(text)} = {text}"]
        text = self.bool(0)
        name = self.add(text)
        forms = ("{b}", "({x} == {b}) != (A[i] > 1)", "T.Select({x}, A[i] > 1, {b} == {x})")
        step = f"{name} = " + self.choose.pick(forms).format(x=name, b=self.bool(2))
        if kind == "chain":
            count = self.choose.pick((1, 3, 24))
            return [f"{name} = {text}", f"for _ in T.static_range({count}):", f"    {step}"]
        return [f"{name} = T.alloc_var('bool', init={text})", "for k in T.serial(3):", f"    {step}"]


def _whole(draw: Draw, n: int, tiles: bool) -> list[str]:
    """Draw the block's use of the results: comparisons of tiles, any and all."""
    if not tiles or draw(st.booleans()):
        return [f"R[0] = {draw(st.sampled_from(('w == (v > 1)', 'w != w', 'not w', 'w')))}"]
    form = draw(st.sampled_from(("m[i] == B[i]", "m[i] != (B[i] == m[i])", "T.if_then_else(m[i], B[i], not B[i])")))
    kind = draw(st.sampled_from(("any", "all", "max", "min", "bitxor", "bitand")))
    return [
        f"for i in T.Parallel({n}):", f"    m[i] = {form}", 'r = T.alloc_fragment((1,), "bool")',
        f"T.reduce_{kind}(m, r)", "T.copy(r, R[0:1])",
    ]  # fmt: skip


def _numbers(draw: Draw, n: int, dtype: str) -> Array:
    made = randoms(draw, (n,), dtype)
    if DTYPES[dtype].is_float and draw(st.booleans()):
        made[:: draw(st.integers(2, 5))] = np.nan
    return made
