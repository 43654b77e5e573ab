"""Compile IR expressions to Python functions of the state, once per program.

A function returns a NumPy scalar where all lanes have one value, else an array with an element a lane. Inactive lanes
compute too; only reads of active lanes are checked.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Array, Call, Expr
from tile_core.dtypes import DTYPES
from tile_core.errors.execution import NoReferenceMeaning
from tile_core.ir import nodes
from tile_core.ir.warp import REDUCTIONS, SHUFFLES, VOTES
from tile_core.numerics.regions import region_of
from tile_core.reference import access, arithmetic, elements, extremes, functions, warps
from tile_core.reference.lanes import both, without
from tile_core.reference.observe import observed_expression
from tile_core.reference.rounding import INTEGRAL
from tile_core.reference.scope import CompileScope, Expression
from tile_core.reference.state import State

__all__ = ["compile_expression", "thread_number"]

_LEAVES = ("IntImm", "FloatImm", "StringImm", "int", "float", "bool")
_EXTREMES = {
    "tile.float_max": ("max", False), "tile.float_min": ("min", False), "tile.float_max_nan": ("max", True),
    "tile.float_min_nan": ("min", True),
}  # fmt: skip
_INTEGRAL = frozenset(("floor", "ceil", "trunc", "round", "nearbyint", "rint"))
_BITWISE = {
    "bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor", "shift_left": "LShift",
    "shift_right": "RShift",
}  # fmt: skip


def compile_expression(e: Expr, scope: CompileScope) -> Expression:
    """Return the function that evaluates an expression.

    Parameters
    ----------
    e
        An expression of a traced program.
    scope
        The numbers of variables and buffers.

    Raises
    ------
    NoReferenceMeaning
        For an operation that no rule here is about.
    """
    made = _compiled(e, scope)
    return observed_expression(e, made) if scope.observed else made


def thread_number(state: State, axis: int) -> Array:
    """Return the index of each thread along an axis of its block."""
    x, y, _ = state.threads
    lanes = state.lanes.numbers.astype(np.int32)
    return (lanes % x, lanes // x % y, lanes // (x * y))[axis]


def _compiled(e: Expr, scope: CompileScope) -> Expression:
    kind = type(e).__name__
    if kind in _LEAVES:
        return _constant(e, kind)
    if kind == "Var":
        number = scope.variable(e)
        return lambda state: state.values[number]
    maker = _MAKERS.get(kind)
    if maker is not None:
        return maker(e, scope)
    if hasattr(e, "a") and hasattr(e, "b"):
        function = arithmetic.binary(kind, nodes.dtype_of(e.a))
        if function is not None:
            a, b, dtype = compile_expression(e.a, scope), compile_expression(e.b, scope), nodes.dtype_of(e.a)
            if DTYPES[dtype].is_float:
                return _operator(kind, function, a, b, dtype)
            return _binary(function, a, b)
    raise NoReferenceMeaning(what=f"the expression {kind}", where=scope.where)


def _constant(e: Expr, kind: str) -> Expression:
    if kind in ("int", "float", "bool"):
        value: Array = np.int32(e) if kind == "int" else np.float32(e) if kind == "float" else np.bool_(e)
    elif kind == "StringImm":
        value = str(e.value)
    else:
        value = elements.constant(e.value, nodes.dtype_of(e))
    return lambda state: value


def _binary(function: Callable[[Array, Array], Array], a: Expression, b: Expression) -> Expression:
    return lambda state: function(a(state), b(state))


def _operator(
    kind: str, function: Callable[[Array, Array], Array], a: Expression, b: Expression, dtype: str
) -> Expression:
    """Return an operator on floats that a target may round otherwise."""

    def evaluate(state: State) -> Array:
        x, y = a(state), b(state)
        return function(x, y) if state.shaker is None else state.shaker.operator(kind, function, x, y, dtype)

    return evaluate


def _and(e: Expr, scope: CompileScope) -> Expression:
    a, b = compile_expression(e.a, scope), compile_expression(e.b, scope)

    def evaluate(state: State) -> Array:
        first = a(state)
        if not isinstance(first, np.ndarray):
            return b(state) if first else first
        return first & _masked(state, b, first, np.False_)

    return evaluate


def _or(e: Expr, scope: CompileScope) -> Expression:
    a, b = compile_expression(e.a, scope), compile_expression(e.b, scope)

    def evaluate(state: State) -> Array:
        first = a(state)
        if not isinstance(first, np.ndarray):
            return first if first else b(state)
        return first | _masked(state, b, ~first, np.False_)

    return evaluate


def _masked(state: State, e: Expression, condition: Array, otherwise: Array) -> Array:
    """Evaluate where a condition holds; something else if that is nowhere."""
    before = state.mask
    state.mask = both(before, condition)
    if state.mask is False:
        state.mask = before
        return otherwise
    value = e(state)
    state.mask = before
    return value


def _not(e: Expr, scope: CompileScope) -> Expression:
    a = compile_expression(e.a, scope)
    return lambda state: np.logical_not(a(state))


def _invert(e: Expr, scope: CompileScope) -> Expression:
    a, dtype = compile_expression(e.a, scope), nodes.dtype_of(e)
    return lambda state: elements.wrap(np.invert(a(state)), dtype)


def _cast(e: Expr, scope: CompileScope) -> Expression:
    value, source, target = compile_expression(e.value, scope), nodes.dtype_of(e.value), nodes.dtype_of(e)
    return lambda state: state.converted(value(state), source, target)


def _select(e: Expr, scope: CompileScope) -> Expression:
    condition, yes, no = (compile_expression(x, scope) for x in (e.condition, e.true_value, e.false_value))

    def evaluate(state: State) -> Array:
        c, a, b = condition(state), yes(state), no(state)
        if not isinstance(c, np.ndarray):
            return a if c else b
        return np.where(c, a, b)

    return evaluate


def _choice(e: Call, scope: CompileScope) -> Expression:
    condition, yes, no = (compile_expression(x, scope) for x in e.args)

    def evaluate(state: State) -> Array:
        c = condition(state)
        if not isinstance(c, np.ndarray):
            return yes(state) if c else no(state)
        before = state.mask
        chosen, left = both(before, c), without(before, c)
        if left is False:
            return yes(state)
        if chosen is False:
            return no(state)
        state.mask = chosen
        a = yes(state)
        state.mask = left
        b = no(state)
        state.mask = before
        return np.where(c, a, b)

    return evaluate


def _let(e: Expr, scope: CompileScope) -> Expression:
    value = compile_expression(e.value, scope)
    number = scope.define(e.var)
    body = compile_expression(e.body, scope)

    def evaluate(state: State) -> Array:
        state.values[number] = value(state)
        return body(state)

    return evaluate


def _load(e: Expr, scope: CompileScope) -> Expression:
    number, where = scope.buffer(e.source), scope.where
    indices = [compile_expression(i, scope) for i in e.indices]
    scope.reads.add(number)
    return lambda state: access.load(state, number, [i(state) for i in indices], where)


def _call(e: Call, scope: CompileScope) -> Expression:
    name = nodes.operator_name(e)
    if name == "if_then_else":
        return _choice(e, scope)
    if name.startswith("tile."):
        return _tile_call(e, name[5:], scope)
    args = list(e.args)
    if name == "call_pure_extern":
        name, args = str(args[0].value).removesuffix("f"), args[1:]
    values = [(_whole if name in _INTEGRAL else compile_expression)(a, scope) for a in args]
    types, dtype = [nodes.dtype_of(a) for a in args], nodes.dtype_of(e)
    if name in _BITWISE:
        function = arithmetic.binary(_BITWISE[name], types[0])
        assert function is not None
        return _binary(function, values[0], values[1])
    if name in ("ceildiv", "nextafter", "bitwise_not", "reinterpret", *functions.BITS, *functions.PREDICATES):
        return _special(name, values, types, dtype)
    if name in functions.FUNCTIONS:
        return _function(name, values, types, dtype, region_of(e))
    raise NoReferenceMeaning(what=name, where=scope.where)


def _whole(e: Expr, scope: CompileScope) -> Expression:
    """Compile a number that becomes an integer.

    A quotient is exact at level ``"standard"``.
    """
    dtype = nodes.dtype_of(e)
    function = arithmetic.binary("Div", dtype) if type(e) is tirx.Div and DTYPES[dtype].is_float else None
    if function is None:
        return compile_expression(e, scope)
    return _operator(INTEGRAL, function, compile_expression(e.a, scope), compile_expression(e.b, scope), dtype)


def _function(name: str, values: list[Expression], types: list[str], dtype: str, region: str | None) -> Expression:
    return lambda state: functions.apply(name, [v(state) for v in values], types, dtype, state.shaker, region)


def _special(name: str, values: list[Expression], types: list[str], dtype: str) -> Expression:
    """Return calls that are not functions of numbers in float64."""
    x = values[0]
    if name == "reinterpret":
        return lambda state: functions.reinterpret(x(state), types[0], dtype)
    if name == "bitwise_not":
        return lambda state: elements.wrap(np.invert(x(state)), types[0])
    if name == "nextafter":
        return lambda state: np.nextafter(x(state), values[1](state))
    if name == "ceildiv":
        return lambda state: arithmetic.ceiling_divide(x(state), values[1](state))
    if name in functions.BITS:
        count = functions.BITS[name]
        return lambda state: np.asarray(count(x(state))).astype(elements.holder(dtype))[()]
    test = functions.PREDICATES[name]
    return lambda state: test(elements.decode(x(state), types[0]))


def _tile_call(e: Call, name: str, scope: CompileScope) -> Expression:
    """Return the calls with a value: thread positions, extremes, warp operations."""
    dtype = nodes.dtype_of(e)
    if f"tile.{name}" in _EXTREMES:
        kind, nan = _EXTREMES[f"tile.{name}"]
        a, b = (compile_expression(x, scope) for x in e.args)
        return lambda state: extremes.extreme(
            kind, state.flushed(a(state), dtype), state.flushed(b(state), dtype), dtype, nan
        )
    if name == "thread_index":
        axis = int(nodes.as_int(e.args[0]))
        return lambda state: thread_number(state, axis)
    if name == "block_index":
        axis = int(nodes.as_int(e.args[0]))
        return lambda state: np.int32(state.grid.get(axis, 0))
    if name == "lane_index":
        return lambda state: (state.lanes.numbers % state.width).astype(np.int32)
    if name == "warp_index":
        return lambda state: (state.lanes.numbers // state.width).astype(np.int32)
    if name in SHUFFLES:
        value, amount = (compile_expression(x, scope) for x in e.args[:2])
        width = int(nodes.as_int(e.args[2]))
        return lambda state: warps.shuffle(state, name, value(state), amount(state), width)
    if name in VOTES:
        condition = compile_expression(e.args[0], scope)
        return lambda state: warps.vote(state, name, condition(state))
    if name in REDUCTIONS:
        operand = compile_expression(e.args[0], scope)
        return lambda state: warps.reduce(state, REDUCTIONS[name], operand(state), dtype)
    raise NoReferenceMeaning(what=f"T.{name}", where=scope.where)


_MAKERS: dict[str, Callable[[Expr, CompileScope], Expression]] = {
    "And": _and, "Or": _or, "Not": _not, "BitwiseNot": _invert, "Cast": _cast, "Select": _select, "Let": _let,
    "TensorLoad": _load, "BufferLoad": _load, "Call": _call,
}  # fmt: skip
