"""Evaluates lowered programs in plain Python integers, without TVM's arithmetic.

``run`` executes statements over integers of scalars and vectors; ``Expressions`` makes random index expressions whose
values are exact (no operation overflows its type), with an oracle for each.
"""

from __future__ import annotations

import random
from typing import Any

from tile_core.compat.tvm import tirx
from tile_core.ir import nodes
from tile_core.numerics.build import lanes_of, type_name


class Overflow(Exception):
    """A value left its type: the program has no meaning as one of indices."""


def run(s: Any, memory: dict[Any, dict[int, Any]], names: dict[Any, Any]) -> None:
    """Execute a statement; ``memory`` holds each buffer by offset (of one dimension) or coordinates."""
    _STATEMENTS[type(s).__name__](s, memory, names)


def value(e: Any, memory: dict[Any, dict[int, Any]], names: dict[Any, Any]) -> Any:
    """Return the value of an expression: an int, or a list for a vector."""
    kind = type(e).__name__
    if kind == "IntImm":
        return int(e.value)
    if kind == "Var":
        return names[e]
    result = _EXPRESSIONS[kind](e, memory, names)
    return _checked(result, type_name(e))


def quotient(a: int, b: int) -> int:
    """Return the quotient rounded towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _checked(result: Any, kind: str) -> Any:
    if isinstance(result, list):
        return [_checked(x, kind) for x in result]
    if kind == "bool":
        return bool(result)
    bits, unsigned = int(kind.lstrip("uint")), kind.startswith("u")
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not low <= result <= high:
        raise Overflow
    return result


def _lanes(f: Any, *values: Any) -> Any:
    count = max((len(v) for v in values if isinstance(v, list)), default=0)
    if not count:
        return f(*values)
    wide = [v if isinstance(v, list) else [v] * count for v in values]
    return [f(*lane) for lane in zip(*wide, strict=True)]


def _binary(f: Any) -> Any:
    return lambda e, m, n: _lanes(f, value(e.a, m, n), value(e.b, m, n))


def _cast(e: Any, m: Any, n: Any) -> Any:
    """A conversion keeps the bits that the type has."""
    kind = type_name(e)
    bits = int(kind.lstrip("uint"))

    def wrapped(x: int) -> int:
        low = int(x) & ((1 << bits) - 1)
        return low - (1 << bits) if not kind.startswith("u") and low >> (bits - 1) else low

    return _lanes(wrapped, value(e.value, m, n))


def _select(e: Any, m: Any, n: Any) -> Any:
    """Evaluate both sides, as processors do; the side not taken may overflow."""

    def side(x: Any) -> Any:
        try:
            return value(x, m, n)
        except Overflow:
            return 0

    c = value(e.condition, m, n)
    return _lanes(lambda t, a, b: a if t else b, c, side(e.true_value), side(e.false_value))


def _let(e: Any, m: Any, n: Any) -> Any:
    n[e.var] = value(e.value, m, n)
    return value(e.body, m, n)


def _load(e: Any, m: Any, n: Any) -> Any:
    return _lanes(lambda *at: m[e.source][at], *(value(i, m, n) for i in e.indices))


def _call(e: Any, m: Any, n: Any) -> Any:
    name = nodes.operator_name(e)
    args = list(e.args)
    if name == "likely":
        return value(args[0], m, n)
    if name == "if_then_else":
        return value(args[1] if value(args[0], m, n) else args[2], m, n)
    raise KeyError(name)


def _ramp(e: Any, m: Any, n: Any) -> Any:
    base, stride = value(e.base, m, n), value(e.stride, m, n)
    return [base + k * stride for k in range(lanes_of(e))]


_EXPRESSIONS = {
    "Add": _binary(lambda a, b: a + b), "Sub": _binary(lambda a, b: a - b), "Mul": _binary(lambda a, b: a * b),
    "FloorDiv": _binary(lambda a, b: a // b if b else 0), "FloorMod": _binary(lambda a, b: a % b if b else 0),
    "Div": _binary(lambda a, b: quotient(a, b) if b else 0),
    "Mod": _binary(lambda a, b: a - quotient(a, b) * b if b else 0),
    "Min": _binary(min), "Max": _binary(max),
    "EQ": _binary(lambda a, b: a == b), "NE": _binary(lambda a, b: a != b), "LT": _binary(lambda a, b: a < b),
    "LE": _binary(lambda a, b: a <= b), "GT": _binary(lambda a, b: a > b), "GE": _binary(lambda a, b: a >= b),
    "And": _binary(lambda a, b: a and b), "Or": _binary(lambda a, b: a or b),
    "BitwiseAnd": _binary(lambda a, b: a & b), "BitwiseOr": _binary(lambda a, b: a | b),
    "BitwiseXor": _binary(lambda a, b: a ^ b), "LShift": _binary(lambda a, b: a << b),
    "RShift": _binary(lambda a, b: a >> b),
    "Not": lambda e, m, n: _lanes(lambda a: not a, value(e.a, m, n)),
    "Cast": _cast, "Select": _select, "Let": _let, "TensorLoad": _load, "Call": _call, "Ramp": _ramp,
    "Broadcast": lambda e, m, n: [value(e.value, m, n)] * lanes_of(e),
}  # fmt: skip


def _for(s: Any, m: Any, n: Any) -> None:
    start = value(s.min, m, n)
    for k in range(start, start + value(s.extent, m, n)):
        n[s.loop_var] = k
        run(s.body, m, n)


def _store(s: Any, m: Any, n: Any) -> None:
    stored, at = value(s.value, m, n), [value(i, m, n) for i in s.indices]
    memory = m.setdefault(s.buffer, {})

    def put(v: Any, *position: int) -> None:
        memory[position] = v

    _lanes(put, stored, *at)


def _branch(s: Any, m: Any, n: Any) -> None:
    if value(s.condition, m, n):
        run(s.then_case, m, n)
    elif s.else_case is not None:
        run(s.else_case, m, n)


def _view(s: Any, m: Any, n: Any) -> None:
    base = next(v for v in nodes_of(s.data))
    m[s.buffer] = m.setdefault(base, {})


def nodes_of(e: Any) -> list[Any]:
    """Return the buffers that an expression names."""
    from tile_core.ir.visit import collect

    return [v for v in collect(e, tirx.Var) if tirx.is_buffer_var(v)]


def _sequence(s: Any, m: Any, n: Any) -> None:
    for x in s.seq:
        run(x, m, n)


_STATEMENTS = {
    "For": _for, "BufferStore": _store, "IfThenElse": _branch, "SeqStmt": _sequence, "DeclBuffer": _view,
    "AllocBuffer": lambda s, m, n: m.setdefault(s.buffer, {}),
    "Bind": lambda s, m, n: n.__setitem__(s.var, value(s.value, m, n)),
    "AttrStmt": lambda s, m, n: run(s.body, m, n),
    "Evaluate": lambda s, m, n: None,
}  # fmt: skip


class Expressions:
    """Random index expressions over given variables.

    Parameters
    ----------
    rng
        The source of randomness.
    leaves
        Variables and constants to build on.
    divisors
        What to divide by, besides constants of both signs: symbolic sizes.
    """

    def __init__(self, rng: random.Random, leaves: list[Any], divisors: list[Any]) -> None:
        self.rng, self.leaves, self.divisors = rng, leaves, divisors

    def index(self, depth: int) -> Any:
        """Return an expression of at most this depth."""
        rng = self.rng
        if rng.random() < 0.2:
            return self.affine()
        if depth == 0 or rng.random() < 0.12:
            leaf = rng.choice([*self.leaves, None])
            return leaf if leaf is not None else _constant(rng.choice([-130, -7, -1, 0, 1, 2, 3, 63, 127]), self.kind)
        a = self.index(depth - 1)
        if self.conversions and rng.random() < 0.2:
            narrow = rng.choice(["uint8", "int8", "uint16", "int16", "uint32"])
            return tirx.Cast(self.kind, tirx.Cast(narrow, a))
        op = rng.choice(["+", "-", "*", "//", "//", "%", "%", "t/", "t%", "min", "max", ">>", "&", "sel", "ite"])
        if op in ("//", "%", "t/", "t%"):
            b = rng.choice([*self.divisors, *(_constant(d, self.kind) for d in (1, 2, 3, 4, 5, 7, 8, 16, -2, -3, -4))])
            node = {"//": tirx.FloorDiv, "%": tirx.FloorMod, "t/": tirx.Div, "t%": tirx.Mod}[op]
            return node(a, b)
        if op == "*":
            return tirx.Mul(a, _constant(rng.choice([-8, -3, -1, 0, 1, 2, 4, 5, 12]), self.kind))
        if op == ">>":
            return tirx.shift_right(a, _constant(rng.choice([0, 1, 3]), self.kind))
        if op == "&":
            return tirx.bitwise_and(a, _constant(rng.choice([1, 3, 7, 12]), self.kind))
        b = self.index(depth - 1)
        if op in ("sel", "ite"):
            c = rng.choice([tirx.LT, tirx.GE, tirx.EQ])(self.index(depth - 1), self.index(depth - 1))
            # A condition that lanes disagree about needs the form that evaluates both sides.
            return tirx.Select(c, a, b) if op == "sel" or self.lanewise else tirx.if_then_else(c, a, b)
        return {"+": tirx.Add, "-": tirx.Sub, "min": tirx.Min, "max": tirx.Max}[op](a, b)

    def affine(self) -> Any:
        """Return a quotient or a remainder of a linear expression in one variable."""
        rng = self.rng
        scaled = tirx.Mul(rng.choice(self.leaves), _constant(rng.choice([1, 1, 2, 3, 6]), self.kind))
        start = _constant(rng.choice([0, 5, 63, 127, 128]), self.kind)
        dividend = rng.choice([tirx.Sub, tirx.Add])(start, scaled)
        divisor = rng.choice([*self.divisors, *(_constant(d, self.kind) for d in (2, 3, 4, 6, 8, -3))])
        return rng.choice([tirx.FloorDiv, tirx.FloorMod])(dividend, divisor)

    @property
    def kind(self) -> str:
        """The type of all its expressions."""
        return nodes.dtype_of(self.leaves[0])

    #: Whether lanes of a vector evaluate the expressions, and whether these go through narrow types.
    lanewise, conversions = False, False


def _constant(number: int, kind: str) -> Any:
    return nodes.int_const(number, kind)
