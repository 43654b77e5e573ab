"""Statements as generators over the state, which pause before accesses and at barriers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from machine.expressions import Expression, compile_expression, when
from machine.scope import Numbers
from machine.state import State
from machine.values import element_of, numpy_type, poisoned
from tile_core.compat.tvm import tirx
from tile_core.compat.types import Array, Call, Expr, Stmt
from tile_core.ir import nodes
from tile_core.ir.attributes import ASYNC, BYTES, ONLY, STEP
from tile_core.ir.visit import collect
from tile_core.ops.base import OpCall, View
from tile_core.ops.registry import OPS

__all__ = ["Statement", "compile_statement"]

#: At least one lane is on.
Statement = Callable[[State, Any], Iterator[Any]]
_ENDLESS = 10000


def compile_statement(s: Stmt, numbers: Numbers) -> Statement:
    """Return the function that executes a statement."""
    return _MAKERS[type(s).__name__](s, numbers)


def _sequence(s: Stmt, numbers: Numbers) -> Statement:
    parts = [compile_statement(x, numbers) for x in s.seq]
    leaves = bool(collect(s, (tirx.Break, tirx.Continue)))

    def run(state: State, on: Array) -> Iterator[Stmt | None]:
        for part in parts:
            here = on & ~state.gone if leaves else on
            if here is on or here.any():
                yield from part(state, here)

    return run


def _attribute(s: Stmt, numbers: Numbers) -> Statement:
    body = compile_statement(s.body, numbers)
    if s.attr_key == ONLY and len(s.node) == 4:
        first, count = (int(nodes.as_int(n)) for n in s.node[1:3])
        return lambda state, on: body(state, on & (state.lanes >= first) & (state.lanes < first + count))
    if s.attr_key != STEP:
        return body

    def run(state: State, on: Array) -> Iterator[Stmt | None]:
        state.part()
        yield from body(state, on)
        state.part()

    return run


def _for(s: Stmt, numbers: Numbers) -> Statement:
    number, kind = numbers[s.loop_var], numpy_type(nodes.dtype_of(s.loop_var))
    start, extent = compile_expression(s.min, numbers), compile_expression(s.extent, numbers)
    step = 1 if s.step is None else int(nodes.as_int(s.step))
    body = _iterations(s.body, numbers)

    def run(state: State, on: Array) -> Iterator[Stmt | None]:
        yield None
        first, count = start(state, on).astype(kind), extent(state, on)

        def iterations() -> Iterator[Array]:
            for k in range(0, int(np.where(on, count, 0).max(initial=0)), step):
                state.values.held[number] = first + kind.type(k)
                yield on & (k < count)

        yield from body(state, iterations())

    return run


def _while(s: Stmt, numbers: Numbers) -> Statement:
    condition, body = compile_expression(s.condition, numbers), _iterations(s.body, numbers)

    def run(state: State, on: Array) -> Iterator[Stmt | None]:
        def iterations() -> Iterator[Array]:
            here = on
            for _ in range(_ENDLESS):
                here = here & ~state.left
                here = here & when(condition, state, here, bool)
                if not here.any():
                    return
                yield here
            raise AssertionError("a loop does not end")

        yield None
        yield from body(state, iterations())

    return run


def _iterations(s: Stmt, numbers: Numbers) -> Callable[[State, Iterator[Any]], Iterator[Any]]:
    body = compile_statement(s, numbers)

    def run(state: State, iterations: Iterator[Any]) -> Iterator[Stmt | None]:
        outer = state.left, state.skipped
        state.left = np.zeros(state.count, bool)
        for on in iterations:
            state.skipped = np.zeros(state.count, bool)
            here = on & ~state.left
            if here.any():
                yield from body(state, here)
                yield None
        state.left, state.skipped = outer

    return run


def _break(s: Stmt, numbers: Numbers) -> Statement:
    def run(state: State, on: Array) -> Iterator[Stmt | None]:
        state.left = state.left | on
        yield from ()

    return run


def _continue(s: Stmt, numbers: Numbers) -> Statement:
    def run(state: State, on: Array) -> Iterator[Stmt | None]:
        state.skipped = state.skipped | on
        yield from ()

    return run


def _branch(s: Stmt, numbers: Numbers) -> Statement:
    condition, then = compile_expression(s.condition, numbers), compile_statement(s.then_case, numbers)
    other = None if s.else_case is None else compile_statement(s.else_case, numbers)

    def run(state: State, on: Array) -> Iterator[Stmt | None]:
        yield None
        chosen = condition(state, on)
        here = on & chosen
        if here.any():
            yield from then(state, here)
        here = on & ~chosen
        if other is not None and here.any():
            yield from other(state, here)

    return run


def _bind(s: Stmt, numbers: Numbers) -> Statement:
    number, value = numbers[s.var], compile_expression(s.value, numbers)

    def run(state: State, on: Array) -> Iterator[Stmt | None]:
        yield None
        state.values.held[number] = value(state, on)

    return run


def _allocate(s: Stmt, numbers: Numbers) -> Statement:
    region = numbers.region(s.buffer)

    def run(state: State, on: Array) -> Iterator[Stmt | None]:
        if region.private:
            state.allocate(s.buffer)
        elif region.number not in state.memory.arrays.held or on.sum() == np.prod(state.extents):
            state.memory.allocate(s)
        yield from ()

    return run


def _declare(s: Stmt, numbers: Numbers) -> Statement:
    base, shape, kind = s.data.args[0], nodes.shape_of(s.buffer), element_of(s.buffer)

    def run(state: State, on: Array) -> Iterator[Stmt | None]:
        if numbers.region(base).private:
            held = state.private[base].reshape(state.count, -1)
            state.private[s.buffer] = held.view(kind).reshape(state.count, *shape)
        else:
            state.memory.arrays[s.buffer] = state.memory.arrays[base].reshape(-1).view(kind).reshape(shape)
        yield from ()

    return run


def _store(s: Stmt, numbers: Numbers) -> Statement:
    region, value = numbers.region(s.buffer), compile_expression(s.value, numbers)
    at = [compile_expression(i, numbers) for i in s.indices]

    def run(state: State, on: Array) -> Iterator[Stmt | None]:
        yield None
        new, index = value(state, on), [i(state, on) for i in at]
        yield None
        state.write(region, index, new, on)

    return run


def _evaluate(s: Stmt, numbers: Numbers) -> Statement:
    call = s.value
    if nodes.is_nop(s):
        return lambda state, on: iter(())
    if nodes.is_tile_call(call, "sync_threads"):
        return _barrier(s)
    if nodes.is_tile_call(call, "sync_part"):
        return _part_barrier(s, int(nodes.as_int(call.args[1])))
    if nodes.is_tile_call(call, "move"):
        return _move(call, numbers)
    if nodes.is_tile_call(call) and call.op.name[5:] in OPS:
        return _tile_op(OpCall.decode(s), numbers)
    value = compile_expression(call, numbers)

    def run(state: State, on: Array) -> Iterator[Stmt | None]:
        yield None
        value(state, on)

    return run


def _barrier(s: Stmt) -> Statement:
    def run(state: State, on: Array) -> Iterator[Stmt | None]:
        assert on.all(), "a part of the threads reaches a barrier"
        yield s

    return run


def _part_barrier(s: Stmt, count: int) -> Statement:
    def run(state: State, on: Array) -> Iterator[Stmt | None]:
        assert state.count == 1 or on.sum() == count, "not the threads of a part of the block reach its barrier"
        yield s

    return run


def _move(call: Call, numbers: Numbers) -> Statement:
    size = int(nodes.as_int(call.attrs[BYTES]))
    to, start = ((numbers.region(a.source), [compile_expression(i, numbers) for i in a.indices]) for a in call.args)

    def run(state: State, on: Array) -> Iterator[Stmt | None]:
        yield None
        target, source = (state.address(region, [i(state, on) for i in at]) for region, at in (to, start))
        state.watch(source, size, on, store=False)
        held = source.read(size, on)
        yield None
        state.watch(target, size, on, store=True)
        target.write(held, on)

    return run


def _tile_op(call: OpCall, numbers: Numbers) -> Statement:
    """A tile op by its reference semantics, on one thread that represents the block."""
    if not (call.name == "copy" and ASYNC in call.attrs):
        return compile_statement(OPS[call.name].meaning(call), numbers)
    dst, corners = call.args[1], [[_corner(m, numbers) for m in v.mins] for v in call.args[:2]]
    at = _corner(call.args[2].mins[0], numbers) if len(call.args) > 2 else None

    def run(state: State, on: Array) -> Iterator[Stmt | None]:
        views = tuple(
            View(v.buffer, tuple(int(m(state, on)[0]) for m in mins), v.extents)
            for v, mins in zip(call.args, corners, strict=False)
        )
        region = tuple(slice(m, m + e) for m, e in zip(views[1].mins, dst.extents, strict=True))
        tile = state.memory.arrays[dst.buffer][region]
        tile[...] = poisoned(tile.shape, tile.dtype)
        copy = compile_statement(OPS["copy"].meaning(OpCall("copy", views, {})), numbers)
        barrier = None if at is None else (str(call.args[2].name), int(at(state, on)[0]))

        def now() -> None:
            deque(copy(state, on), maxlen=0)

        state.copies.begin(numbers.region(dst.buffer), views[1].mins[0], now, barrier, tile.nbytes)
        yield from ()

    return run


def _corner(e: Expr, numbers: Numbers) -> Expression:
    return compile_expression(nodes.int_const(0) + e, numbers)


_MAKERS: dict[str, Callable[[Any, Numbers], Statement]] = {
    "SeqStmt": _sequence, "AttrStmt": _attribute, "For": _for, "While": _while, "Break": _break, "Continue": _continue,
    "IfThenElse": _branch, "Bind": _bind, "AllocBuffer": _allocate, "DeclBuffer": _declare, "BufferStore": _store,
    "Evaluate": _evaluate,
}  # fmt: skip
