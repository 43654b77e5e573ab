"""Expressions as functions of the machine and its active lanes, vectorized over lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from machine import warps
from machine.scope import Numbers
from machine.state import State
from machine.values import BINARY, UNARY, numpy_type
from tile_core.compat.types import Array, Call, Expr, Var
from tile_core.ir import nodes
from tile_core.ir.attributes import KIND, MODE, NAME, WIDTH

__all__ = ["Expression", "compile_expression"]

#: In inactive lanes a value is undefined.
Expression = Callable[[State, Any], Any]


def compile_expression(e: Expr, numbers: Numbers) -> Expression:
    """Return the function that evaluates an expression."""
    name = type(e).__name__
    if name in BINARY:
        return _binary(name, compile_expression(e.a, numbers), compile_expression(e.b, numbers))
    if name in ("int", "float", "bool"):
        return _constant(e, np.asarray(e).dtype)
    return _MAKERS[name](e, numbers)


def when(value: Expression, state: State, on: Array, kind: Any) -> Array:
    """Return the value of an expression that is evaluated only if a lane is on."""
    return value(state, on) if on.any() else np.zeros(state.count, kind)


def _constant(value: float, kind: np.dtype[Any]) -> Expression:
    by_count: dict[int, Any] = {}

    def run(state: State, on: Array) -> Array:
        found = by_count.get(state.count)
        if found is None:
            found = by_count[state.count] = np.full(state.count, value, kind)
            found.flags.writeable = False
        return found

    return run


def _binary(name: str, a: Expression, b: Expression) -> Expression:
    function = BINARY[name]

    def run(state: State, on: Array) -> Array:
        x, y = a(state, on), b(state, on)
        assert x.dtype == y.dtype, f"{name} of {x.dtype} and {y.dtype}"
        result = function(x, y)
        return result if result.dtype == bool or result.dtype == x.dtype else result.astype(x.dtype)

    return run


def _variable(e: Var, numbers: Numbers) -> Expression:
    number, kind = numbers[e], numpy_type(nodes.dtype_of(e))

    def run(state: State, on: Array) -> Array:
        value = state.values.held[number]
        return value if isinstance(value, np.ndarray) else np.full(state.count, value, kind)

    return run


def _load(e: Expr, numbers: Numbers) -> Expression:
    region, at = numbers.region(e.source), [compile_expression(i, numbers) for i in e.indices]
    return lambda state, on: state.read(region, [i(state, on) for i in at], on)


def _and(e: Expr, numbers: Numbers) -> Expression:
    a, b = compile_expression(e.a, numbers), compile_expression(e.b, numbers)

    def run(state: State, on: Array) -> Array:
        first = a(state, on)
        return first & when(b, state, on & first, bool)

    return run


def _or(e: Expr, numbers: Numbers) -> Expression:
    a, b = compile_expression(e.a, numbers), compile_expression(e.b, numbers)

    def run(state: State, on: Array) -> Array:
        first = a(state, on)
        return first | when(b, state, on & ~first, bool)

    return run


def _not(e: Expr, numbers: Numbers) -> Expression:
    a = compile_expression(e.a, numbers)
    return lambda state, on: ~a(state, on)


def _cast(e: Expr, numbers: Numbers) -> Expression:
    value, kind = compile_expression(e.value, numbers), numpy_type(nodes.dtype_of(e))
    return lambda state, on: value(state, on).astype(kind)


def _select(e: Expr, numbers: Numbers) -> Expression:
    condition, yes, no = (compile_expression(x, numbers) for x in (e.condition, e.true_value, e.false_value))
    return lambda state, on: np.where(condition(state, on), yes(state, on), no(state, on))


def _let(e: Any, numbers: Numbers) -> Expression:
    number, value = numbers[e.var], compile_expression(e.value, numbers)
    body = compile_expression(e.body, numbers)

    def run(state: State, on: Any) -> Any:
        state.values.held[number] = value(state, on)
        return body(state, on)

    return run


def _call(e: Call, numbers: Numbers) -> Expression:
    name = nodes.operator_name(e)
    special = _CALLS.get(name)
    if special is not None:
        return special(e, numbers)
    args, kind = [compile_expression(a, numbers) for a in e.args], nodes.dtype_of(e)
    if name == "reinterpret":
        return lambda state, on: np.ascontiguousarray(args[0](state, on)).view(numpy_type(kind))
    if name in UNARY:
        return lambda state, on: UNARY[name](args[0](state, on))
    return _binary(name, *args)


def _choice(e: Call, numbers: Numbers) -> Expression:
    condition, yes, no = (compile_expression(x, numbers) for x in e.args)
    kind = numpy_type(nodes.dtype_of(e))

    def run(state: State, on: Array) -> Array:
        chosen = condition(state, on)
        return np.where(chosen, when(yes, state, on & chosen, kind), when(no, state, on & ~chosen, kind))

    return run


def _address(e: Call, numbers: Numbers) -> Expression:
    region = numbers.region(e.args[0].source)
    at = [compile_expression(i, numbers) for i in e.args[0].indices]
    return lambda state, on: state.address(region, [i(state, on) for i in at])


def _instruction(e: Call, numbers: Numbers) -> Expression:
    name, args = str(e.attrs[NAME]), [compile_expression(a, numbers) for a in e.args]

    def run(state: State, on: Array) -> Any:
        state.used.add(name)
        return state.instructions[name](state, [a(state, on) for a in args], on)

    return run


def _coordinate(e: Call, numbers: Numbers) -> Expression:
    axis = int(e.args[0].value)

    def run(state: State, on: Array) -> Array:
        (x, y, _), n = state.extents, state.lanes
        return (n % x, n // x % y, n // (x * y))[axis].astype(np.int32)

    return run


def _shuffle(e: Call, numbers: Numbers) -> Expression:
    mask, value, amount = (compile_expression(a, numbers) for a in e.args)
    mode, part = str(e.attrs[MODE]), int(e.attrs[WIDTH])

    def run(state: State, on: Array) -> Array:
        given = mask(state, on), value(state, on), amount(state, on)
        return warps.shuffle(state, *given, on, mode=mode, part=part)

    return run


def _vote(e: Call, numbers: Numbers) -> Expression:
    mask, condition = (compile_expression(a, numbers) for a in e.args)
    mode, kind = str(e.attrs[MODE]), numpy_type(nodes.dtype_of(e))
    return lambda state, on: warps.vote(state, mask(state, on), condition(state, on), on, mode=mode, kind=kind)


def _group_reduce(e: Call, numbers: Numbers) -> Expression:
    mask, value = (compile_expression(a, numbers) for a in e.args)
    kind = str(e.attrs[KIND])
    return lambda state, on: warps.group_reduce(state, mask(state, on), value(state, on), on, kind=kind)


def _loose(e: Call, numbers: Numbers) -> Expression:
    """The maximum or minimum of floats, by the weakest machine rules for zeros and subnormals."""
    a, b = (compile_expression(x, numbers) for x in e.args)
    choose = np.fmax if nodes.operator_name(e).endswith("max_loose") else np.fmin

    def run(state: State, on: Array) -> Array:
        found = choose(a(state, on), b(state, on))
        tiny = np.abs(found) < np.finfo(np.float32).tiny
        return np.where(tiny, np.copysign(np.float32(0), -found), found)

    return run


def _wait(e: Call, numbers: Numbers) -> Expression:
    left = int(nodes.as_int(e.args[0]))
    return lambda state, on: state.copies.wait(left)


def _phased(act: Callable[[Any, tuple[str, int], Any, list[int]], None]) -> Callable[[Any, Numbers], Expression]:
    """Return a call on a phased barrier object, which must be uniform over lanes."""

    def compiled(e: Call, numbers: Numbers) -> Expression:
        pointer, *args = (compile_expression(a, numbers) for a in e.args)

        def run(state: State, on: Array) -> None:
            address, lane = pointer(state, on), int(np.flatnonzero(on)[0])
            given = [int(a(state, on)[lane]) for a in args]
            act(state.copies, (str(address.region.name), int(address.at[0][lane])), on, given)

        return run

    return compiled


_CALLS: dict[str, Callable[[Any, Numbers], Expression]] = {
    "if_then_else": _choice, "tile.address": _address, "tile.instruction": _instruction,
    "tile.thread_index": _coordinate, "tile.shuffle": _shuffle, "tile.vote": _vote, "tile.group_reduce": _group_reduce,
    "tile.float_max_loose": _loose, "tile.float_min_loose": _loose, "tile.async_wait": _wait,
    "tile.async_commit": lambda e, numbers: lambda state, on: state.copies.commit(),
    "tile.fence_proxy": lambda e, numbers: lambda state, on: None,
    "tile.fence_init": lambda e, numbers: lambda state, on: None,
    "tile.store_commit": lambda e, numbers: lambda state, on: None,  # copies out of shared memory end where they begin
    "tile.store_wait": lambda e, numbers: lambda state, on: None,
    "tile.barrier_init": _phased(lambda copies, at, on, given: copies.init(at, given[0])),
    "tile.barrier_drop": _phased(lambda copies, at, on, given: copies.drop(at)),
    "tile.barrier_expect": _phased(lambda copies, at, on, given: copies.arrive(at, int(on.sum()), given[0])),
    "tile.barrier_arrive": _phased(lambda copies, at, on, given: copies.arrive(at, int(on.sum()))),
    "tile.barrier_wait": _phased(lambda copies, at, on, given: copies.wait_phase(at, given[0])),
}  # fmt: skip
_MAKERS: dict[str, Callable[[Any, Numbers], Expression]] = {
    "IntImm": lambda e, numbers: _constant(int(e.value), numpy_type(nodes.dtype_of(e))),
    "FloatImm": lambda e, numbers: _constant(float(e.value), numpy_type(nodes.dtype_of(e))),
    "Var": _variable, "TensorLoad": _load, "BufferLoad": _load, "And": _and, "Or": _or, "Not": _not, "Cast": _cast,
    "BitwiseNot": _not,
    "Select": _select, "Let": _let, "Call": _call,
}  # fmt: skip
