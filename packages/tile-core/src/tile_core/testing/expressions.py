"""Random integer expressions as kernels write them in indices, with an evaluator.

An expression is text over loop variables, block indices, scalar parameters and sizes. ``value`` computes it from the
text with ``plain.numbers``: Python integers that wrap as the language defines, independent of the compiler.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, Protocol

from tile_core.records import dataclass
from tile_core.testing.plain.numbers import Number
from tile_core.testing.plain.vocabulary import Language

_LANGUAGE = Language({})


class Chooser(Protocol):
    """Source of random choices: Hypothesis, or a pseudo-random generator where thousands are needed."""

    def pick(self, items: Sequence[Any]) -> Any:
        """Return one of the items."""

    def integer(self, low: int, high: int) -> int:
        """Return an integer of a closed range."""


@dataclass(frozen=True)
class Expression:
    """A tree: a form with places ``{0}``, ``{1}``, ... for the parts."""

    form: str
    parts: tuple[Expression, ...] = ()

    def __str__(self) -> str:
        return self.form.format(*self.parts)

    def smaller(self) -> Iterator[Expression]:
        """Yield simpler expressions: operands, constants nearer to 0, and the expression with a simpler operand."""
        yield from self.parts
        if not self.parts and self.form.lstrip("-").isdigit() and self.form not in ("0", "1"):
            number = int(self.form)
            nearer = dict.fromkeys((0, 1, number // 2, number - 1))
            yield from (Expression(str(n)) for n in nearer if abs(n) < abs(number))
        for n, part in enumerate(self.parts):
            for simpler in part.smaller():
                yield Expression(self.form, (*self.parts[:n], simpler, *self.parts[n + 1 :]))

    def names(self) -> set[str]:
        """Return the variables in it."""
        return set(_compiled(str(self)).co_names) & set(VARIABLES)


#: Variables: loops and blocks, sizes, scalar parameters of several types.
VARIABLES = ("i", "j", "bx", "m", "v", "w", "u")
_CONSTANTS = (0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, 63, 127, -1, -2, -3, -8)
_LIMITS = (2**31 - 1, -(2**31), 2**31 - 8, 2**30, -(2**30) - 1, 65535)
_DIVISORS = (2, 3, 4, 5, 7, 8, 16, 24, -2, -3, -4, -7, -8)


def expression(choose: Chooser, names: Sequence[str], depth: int = 2, limits: bool = False) -> Expression:
    """Draw an expression.

    Parameters
    ----------
    choose
        What draws.
    names
        Variables that it may use.
    depth
        Nesting.
    limits
        Whether constants near the limits of 32 bits appear, so that arithmetic wraps.
    """
    if depth <= 0:
        return _leaf(choose, names, limits)
    form, more = choose.pick(_FORMS)
    count = form.count("{") - len(more)
    below = depth - choose.integer(1, 2)
    parts = [expression(choose, names, below, limits) for _ in range(count)]
    made: list[Expression] = []
    for kind in more:
        if kind == "divisor":
            made.append(_divisor(choose, names))
        elif kind == "type":
            made.append(Expression(choose.pick(_TYPES)))
        else:
            made.append(Expression(str(choose.pick({"count": range(6), "mask": _MASKS, "constant": _CONSTANTS}[kind]))))
    return Expression(form, (*parts, *made) if not form.startswith("({1} -") else (*parts, _constant(choose, limits)))


#: Forms of expressions, and what their last places are.
_FORMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("({0} // {1})", ("divisor",)), ("({0} // {1})", ("divisor",)), ("T.floordiv({0}, {1})", ("divisor",)),
    ("T.truncdiv({0}, {1})", ("divisor",)), ("T.ceildiv({0}, {1})", ("divisor",)),
    ("({0} % {1})", ("divisor",)), ("({0} % {1})", ("divisor",)), ("({0} % {1})", ("divisor",)),
    ("T.floormod({0}, {1})", ("divisor",)), ("T.truncmod({0}, {1})", ("divisor",)),
    ("({0} + {1})", ()), ("({0} - {1})", ()), ("({0} + {1})", ()), ("({0} * {1})", ("constant",)),
    ("({1} - {0})", ("constant",)), ("({1} - {0})", ("constant",)), ("T.max({0}, {1})", ()), ("T.min({0}, {1})", ()),
    ("T.if_then_else({0} < {1}, {2}, {3})", ()), ("T.Select({0} >= {1}, {2}, {3})", ()),
    ("T.if_then_else({0} == {1}, {2}, {3})", ()), ("T.cast({0}, {1})", ("type",)), ("({0} << {1})", ("count",)),
    ("({0} >> {1})", ("count",)), ("({0} & {1})", ("mask",)), ("({0} | {1})", ("mask",)), ("({0} ^ {1})", ("mask",)),
    ("T.abs({0})", ()), ("(-{0})", ()), ("(~{0})", ()), ("T.clamp({0}, 0, 23)", ()), ("T.clamp({0}, -3, 9)", ()),
    ("T.shift_left({0}, {1})", ("count",)), ("T.shift_right({0}, {1})", ("count",)),
    ("T.bitwise_and({0}, {1})", ("mask",)), ("T.bitwise_or({0}, {1})", ("mask",)),
    ("T.bitwise_xor({0}, {1})", ("mask",)), ("T.bitwise_not({0})", ()), ("T.popcount({0})", ()),
)  # fmt: skip
_TYPES = ('"int64"', '"int32"', '"int16"', '"int8"', '"uint8"', '"uint16"', "T.int", "T.long")
_MASKS = (1, 3, 7, 15, 5, 12)


def _leaf(choose: Chooser, names: Sequence[str], limits: bool) -> Expression:
    if choose.integer(0, 3) == 0:
        return _constant(choose, limits)
    return Expression(choose.pick(tuple(names)))


def _constant(choose: Chooser, limits: bool) -> Expression:
    if limits and choose.integer(0, 3) == 0:
        return Expression(str(choose.pick(_LIMITS)))
    return Expression(str(choose.pick(_CONSTANTS)))


def _divisor(choose: Chooser, names: Sequence[str]) -> Expression:
    """Return divisors: constants of both signs, sizes, runtime values and expressions that may be 0."""
    forms = [str(choose.pick(_DIVISORS))] * 4
    forms += ["m", "(m - m)"] * ("m" in names) + ["(v * 2 + 1)", "T.max(v, 1)", "T.max(v, 0)", "v"] * ("v" in names)
    return Expression(choose.pick(tuple(forms)))


def value(text: str, names: Mapping[str, Number]) -> Number | int:
    """Return the value of an expression at a point.

    ``names`` are ``Number`` values or Python integers.
    """
    found: Number | int = eval(_compiled(text), {"T": _LANGUAGE, "__builtins__": {}}, dict(names))
    return found


@functools.lru_cache(maxsize=4096)
def _compiled(text: str) -> CodeType:
    return compile(text, "<expression>", "eval")
