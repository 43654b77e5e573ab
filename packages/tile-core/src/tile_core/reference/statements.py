"""Statements of the IR as Python functions of the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tile_core.compat.tvm import ir, tirx
from tile_core.compat.types import Array, Stmt
from tile_core.errors.execution import NoReferenceMeaning
from tile_core.ir import nodes
from tile_core.ir.grammar import PRIVATE
from tile_core.ir.visit import collect, role, statements
from tile_core.reference import access, allocation, elements
from tile_core.reference.expressions import compile_expression
from tile_core.reference.lanes import both, either, without
from tile_core.reference.observe import observed_statement
from tile_core.reference.ops import compile_op, compile_value
from tile_core.reference.parallel import compile_parallel, compile_update
from tile_core.reference.scope import CompileScope, Statement
from tile_core.reference.state import LoopFrame, State

__all__ = ["compile_statement"]


def compile_statement(s: Stmt, scope: CompileScope) -> Statement:
    """Return the function that executes a statement.

    Raises
    ------
    NoReferenceMeaning
        For an operation that no rule here is about.
    """
    before = scope.where
    scope.where = nodes.where_of(s) or before
    maker = _MAKERS.get(type(s).__name__)
    if maker is None:
        raise NoReferenceMeaning(what=f"the statement {type(s).__name__}", where=scope.where)
    known = (len(scope.variables), len(scope.buffers))
    made = maker(s, scope)
    if scope.observed:
        indices = [compile_expression(i, scope) for i in getattr(s, "indices", ())]
        made = observed_statement(s, made, scope, known, indices)
    scope.where = before
    return made


def _sequence(s: Stmt, scope: CompileScope) -> Statement:
    parts = [compile_statement(x, scope) for x in statements(s)]
    if not _leaves(s):

        def run(state: State) -> None:
            for part in parts:
                part(state)

        return run

    def run_until_left(state: State) -> None:
        for part in parts:
            part(state)
            if state.mask is False:
                return

    return run_until_left


def _leaves(s: Stmt) -> bool:
    return bool(collect(s, (tirx.Break, tirx.Continue)))


def _for(s: Stmt, scope: CompileScope) -> Statement:
    if role(s) == "parallel":
        made = compile_parallel(s, scope)
        if made is not None:
            return made
    start, extent = compile_expression(s.min, scope), compile_expression(s.extent, scope)
    step = 1 if s.step is None else int(nodes.as_int(s.step))
    number, kind = scope.define(s.loop_var), elements.holder(nodes.dtype_of(s.loop_var))
    body, leaves = compile_statement(s.body, scope), _leaves(s.body)

    def run(state: State) -> None:
        first, count = start(state), extent(state)
        if isinstance(first, np.ndarray) or isinstance(count, np.ndarray) or (leaves and state.count > 1):
            _lane_loop(state, first, count, step, number, kind, body)
            return
        before = state.mask
        state.frames.append(LoopFrame())
        for at in range(int(first), int(first) + int(count), step):
            state.values[number] = kind.type(at)
            body(state)
            if leaves and not _next(state, before):
                break
        state.frames.pop()
        state.mask = before

    return run


def _next(state: State, before: Array | None) -> bool:
    """Return whether an iteration that was left goes on with the next one."""
    frame = state.frames[-1]
    if state.mask is False and frame.continued is False:
        return False
    state.mask, frame.continued = either(state.mask, frame.continued), False
    return True


def _lane_loop(state: State, first: Array, count: Array, step: int, number: int, kind: Any, body: Statement) -> None:
    """Execute a loop whose bounds, or whose end, differ between lanes."""
    before = state.mask
    state.frames.append(LoopFrame())
    trips = -(-np.asarray(count).astype(np.int64) // step)
    most = int(np.max(np.broadcast_to(trips, state.count)[state.active()], initial=0))
    for at in range(most):
        state.mask = both(state.mask, at < trips) if trips.ndim else state.mask
        if state.mask is False:
            break
        state.values[number] = np.asarray(first + at * step).astype(kind)[()]
        body(state)
        if not _next(state, before):
            break
    state.frames.pop()
    state.mask = before


def _while(s: Stmt, scope: CompileScope) -> Statement:
    condition, body = compile_expression(s.condition, scope), compile_statement(s.body, scope)

    def run(state: State) -> None:
        before = state.mask
        state.frames.append(LoopFrame())
        while True:
            state.mask = both(state.mask, condition(state))
            if state.mask is False:
                break
            body(state)
            if not _next(state, before):
                break
        state.frames.pop()
        state.mask = before

    return run


def _if(s: Stmt, scope: CompileScope) -> Statement:
    condition, then = compile_expression(s.condition, scope), compile_statement(s.then_case, scope)
    other = None if s.else_case is None else compile_statement(s.else_case, scope)

    def run(state: State) -> None:
        c = condition(state)
        if not isinstance(c, np.ndarray):
            if c:
                then(state)
            elif other is not None:
                other(state)
            return
        before = state.mask
        chosen, left = both(before, c), without(before, c)
        if chosen is not False:
            state.mask = chosen
            then(state)
            chosen = state.mask
        if left is not False and other is not None:
            state.mask = left
            other(state)
            left = state.mask
        state.mask = either(chosen, left)

    return run


def _attribute(s: Stmt, scope: CompileScope) -> Statement:
    return compile_statement(s.body, scope)


def _break(s: Stmt, scope: CompileScope) -> Statement:
    def run(state: State) -> None:
        state.mask = False

    return run


def _continue(s: Stmt, scope: CompileScope) -> Statement:
    def run(state: State) -> None:
        state.leave()

    return run


def _allocate(s: Stmt, scope: CompileScope) -> Statement:
    buffer = s.buffer
    number, kind, where = scope.allocate(buffer), nodes.scope_of(buffer), scope.where
    dims = [int(d) for d in nodes.shape_of(buffer)]
    dtype, name, private = nodes.element_type(buffer), str(buffer.name), kind in PRIVATE
    base, units = number, scope.units
    del where

    def run(state: State) -> None:
        home = state.lanes if private else None
        state.memories[number] = allocation.scratch(state, dtype, dims, home, units[base], name, kind)

    return run


def _declare(s: Stmt, scope: CompileScope) -> Statement:
    view = s.buffer
    dims = [compile_expression(d, scope) for d in view.shape]
    dtype, name = nodes.element_type(view), str(view.name)
    if isinstance(s.data, ir.Call):
        source = s.data.args[0]
        number, shown = scope.allocate(view, source), scope.buffer(source)

        def run(state: State) -> None:
            shape = [int(d(state)) for d in dims]
            state.memories[number] = allocation.view(state.memories[shown], dtype, shape)

        return run
    pointer, number = scope.variable(s.data), scope.allocate(view)
    strides = [compile_expression(d, scope) for d in view.ty.strides or []]

    def run_pointer(state: State) -> None:
        shape, steps = [int(d(state)) for d in dims], [int(d(state)) for d in strides] or None
        state.memories[number] = allocation.at_address(state.values[pointer], dtype, shape, steps, name)

    return run_pointer


def _bind(s: Stmt, scope: CompileScope) -> Statement:
    value = compile_value(s, scope) if nodes.is_tile_call(s.value) else None
    if nodes.dtype_of(s.var) == "handle":
        value = compile_expression(s.value.args[0], scope)  # the address, as an integer
    value = compile_expression(s.value, scope) if value is None else value
    number = scope.define(s.var)

    def run(state: State) -> None:
        state.values[number] = value(state)

    return run


def _store(s: Stmt, scope: CompileScope) -> Statement:
    number, where = scope.buffer(s.buffer), scope.where
    if number in scope.reducers:
        return compile_update(s, scope)
    value, indices = compile_expression(s.value, scope), [compile_expression(i, scope) for i in s.indices]
    source, target = nodes.dtype_of(s.value), nodes.element_type(s.buffer)

    def run(state: State) -> None:
        x = state.converted(value(state), source, target)
        access.store(state, number, [i(state) for i in indices], x, where)

    return run


def _evaluate(s: Stmt, scope: CompileScope) -> Statement:
    if nodes.is_nop(s):
        return lambda state: None
    if nodes.is_tile_call(s.value):
        return compile_op(s, scope)
    if nodes.operator_name(s.value) == "assume":
        return lambda state: None
    value = compile_expression(s.value, scope)

    def run(state: State) -> None:
        value(state)

    return run


_MAKERS: dict[str, Callable[[Stmt, CompileScope], Statement]] = {
    "SeqStmt": _sequence, "For": _for, "While": _while, "IfThenElse": _if, "AttrStmt": _attribute, "Break": _break,
    "Continue": _continue, "AllocBuffer": _allocate, "DeclBuffer": _declare, "Bind": _bind, "BufferStore": _store,
    "Evaluate": _evaluate,
}  # fmt: skip
