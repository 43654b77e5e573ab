"""Translate expressions of emitted kernels to Python texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import lcm
from typing import Any, NamedTuple

from tile_core.compat import structural
from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Expr, Node
from tile_core.ir import attributes, nodes
from tile_core.simt.barrier_proof.instructions import AsyncInstructions

_NONE: frozenset[str] = frozenset()
_BINARY = {
    "Add": "({} + {})", "Sub": "({} - {})", "Mul": "({} * {})", "FloorDiv": "({} // {})", "FloorMod": "({} % {})",
    "Min": "min({}, {})", "Max": "max({}, {})", "LT": "({} < {})", "LE": "({} <= {})", "GT": "({} > {})",
    "GE": "({} >= {})", "EQ": "({} == {})", "NE": "({} != {})", "And": "({} and {})", "Or": "({} or {})",
    "BitwiseAnd": "({} & {})", "BitwiseOr": "({} | {})", "BitwiseXor": "({} ^ {})", "LShift": "({} << {})",
    "RShift": "({} >> {})",
}  # fmt: skip
_CALLS = {
    "bitwise_and": "({} & {})", "bitwise_or": "({} | {})", "bitwise_xor": "({} ^ {})", "shift_left": "({} << {})",
    "shift_right": "({} >> {})", "if_then_else": "({1} if {0} else {2})", "tile.wrapping_add": "({} + {})",
    "tile.wrapping_sub": "({} - {})", "tile.wrapping_mul": "({} * {})",
}  # fmt: skip


class Untranslated(Exception):
    """A part of a kernel that the proof cannot follow, with the reason."""


class EmittedValue(NamedTuple):
    """An expression.

    Attributes
    ----------
    text
        Of the expression.
    uses
        Variables that it needs.
    of_thread
        Whether it depends on the thread's number and nothing else.
    atoms
        Its largest parts that depend on the thread's number and nothing else.
    divisor, period
        Least common multiples of constants that it divides by, and of the periods of its remainders.
    """

    text: str
    uses: frozenset[str] = _NONE
    of_thread: bool = False
    atoms: frozenset[str] = _NONE
    divisor: int = 1
    period: int = 1


THREAD = EmittedValue("tid", of_thread=True, atoms=frozenset({"tid"}))


@lru_cache(maxsize=1024)
def in_threads(text: str, threads: int) -> tuple[Any, ...]:
    """Return the value of an expression in each thread."""
    return tuple(eval(f"[{text} for tid in range({threads})]"))


class Expressions:
    """Translates expressions.

    Parameters
    ----------
    instructions
        Of the target.
    symbol
        Gives a variable without a binding a name.
    """

    def __init__(self, instructions: AsyncInstructions, symbol: Callable[[Node], str]) -> None:
        self.instructions, self.symbol = instructions, symbol
        #: Values of variables by identity; a string is the reason why a value is not known.
        self.values: dict[int, EmittedValue | str] = {}

    def value(self, e: Expr) -> EmittedValue:
        """Translate an expression.

        Raises
        ------
        Untranslated
            If its value is not known.
        """
        kind = type(e)
        if kind is tirx.IntImm:
            return EmittedValue(str(int(e.value)))
        if kind is tirx.Var:
            return self.variable(e)
        name = kind.__name__
        if name in _BINARY:
            return self.binary(name, self.value(e.a), self.value(e.b))
        if kind is tirx.Cast:
            inner, to = self.value(e.value), nodes.dtype_of(e)
            if to.startswith("float"):
                raise Untranslated("a float")
            return inner if not to.startswith("uint") else _made(f"({{}} & {2 ** int(to[4:]) - 1})", [inner])
        if kind is tirx.Not:
            return _made("(not {})", [self.value(e.a)])
        if kind is tirx.Select:
            parts = [self.value(x) for x in (e.condition, e.true_value, e.false_value)]
            return _made("({1} if {0} else {2})", parts)
        if kind is ir.Call:
            return self.call(e)
        if kind is tirx.Let:
            self.values[structural.identity(e.var)] = self.value(e.value)
            return self.value(e.body)
        if kind is ir.TensorLoad:
            return self.load(e)
        raise Untranslated(f"an expression {name}")

    def variable(self, e: Expr) -> EmittedValue:
        """Translate a variable."""
        found = self.values.get(structural.identity(e))
        if isinstance(found, str):
            raise Untranslated(found)
        if found is None:
            name = self.symbol(e)
            found = self.values[structural.identity(e)] = EmittedValue(name, frozenset({name}))
        return found

    def binary(self, name: str, a: EmittedValue, b: EmittedValue) -> EmittedValue:
        """Combine two operands."""
        made = _made(_BINARY[name], [a, b])
        if made.of_thread or name not in ("FloorDiv", "FloorMod") or not b.text.isdigit():
            return made
        by = int(b.text)
        if name == "FloorDiv":
            return made._replace(divisor=made.divisor * by)
        return made._replace(period=lcm(made.period, by * a.divisor))

    def call(self, e: Expr) -> EmittedValue:
        """Translate a call."""
        name, args = nodes.operator_name(e), structural.items(e.args)
        if name in _CALLS:
            return _made(_CALLS[name], [self.value(x) for x in args])
        if name == "tile.thread_index":
            return THREAD if nodes.as_int(args[0]) == 0 else EmittedValue("0")
        if name == "tile.block_index":
            axis = f"block{nodes.as_int(args[0])}"
            return EmittedValue(axis, frozenset({axis}))
        if name == "tile.instruction":
            function = str(e.attrs[attributes.NAME])
            if function in self.instructions.elects:
                text = "(tid % 32 == 0)"
                return EmittedValue(text, of_thread=True, atoms=frozenset({text}))
            if function in self.instructions.uniform:
                inner = self.value(args[0])
                if inner.of_thread:
                    text = re.sub(r"\btid\b", "(tid & -32)", inner.text)
                    return EmittedValue(text, of_thread=True, atoms=frozenset({text}))
                return inner
            raise Untranslated(f"the value of {function}")
        raise Untranslated(f"the value of {name}")

    def load(self, e: Expr) -> EmittedValue:
        """Translate a read of a thread's variable, or of global memory."""
        buffer = e.source
        found = self.values.get(structural.identity(buffer))
        if isinstance(found, str):
            raise Untranslated(found)
        if found is not None:
            return found
        scope = nodes.scope_of(buffer)
        if scope != "global":
            raise Untranslated(f"a value in {scope} memory: {buffer.name}")
        indices = [self.value(x) for x in structural.items(e.indices)]
        return _made(f"data({str(buffer.name)!r}, {', '.join(['{}'] * len(indices))})", indices)


def sum_of(values: Sequence[EmittedValue]) -> EmittedValue:
    """Add values."""
    if len(values) < 2:
        return values[0] if values else EmittedValue("0")
    return _made(_BINARY["Add"], [values[0], sum_of(values[1:])])


def _made(template: str, parts: list[EmittedValue]) -> EmittedValue:
    if not parts:
        return EmittedValue(template)
    texts, all_uses, _, all_atoms, divisors, periods = zip(*parts, strict=True)
    text = template.format(*texts)
    uses, atoms = _NONE.union(*all_uses), _NONE.union(*all_atoms)
    if not uses and not atoms:
        return EmittedValue(text)
    divisor, period = lcm(*divisors), lcm(*periods)
    of_thread = bool(atoms) and not uses and "data(" not in text
    if of_thread:
        return EmittedValue(text, uses, True, frozenset({text}))
    return EmittedValue(text, uses, of_thread, atoms, divisor, period)
