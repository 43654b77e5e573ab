"""Execute the blocks of a cluster in lockstep, statement by statement.

Only programs with copies from block to block need this; blocks of others follow each other. A loop or a branch with
such a copy inside is entered by the blocks together; all of them read their tiles before any of them writes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np

from tile_core.compat.tvm import tirx
from tile_core.compat.types import Array, Stmt
from tile_core.errors.execution import NoReferenceMeaning
from tile_core.ir import nodes
from tile_core.ir.visit import collect, role, statements
from tile_core.ops import copy_to_block
from tile_core.ops.base import OpCall
from tile_core.reference.elements import holder
from tile_core.reference.expressions import compile_expression
from tile_core.reference.ops.operands import RegionOperand
from tile_core.reference.ops.regions import MemoryRegion
from tile_core.reference.scope import CompileScope, Statement
from tile_core.reference.state import State

__all__ = ["ClusterStatement", "block_state", "compile_side_by_side", "has_sends"]

#: Executes a statement in some blocks, given the states of all blocks of the cluster.
ClusterStatement = Callable[[Sequence[State], Sequence[int]], None]


def has_sends(s: Stmt) -> bool:
    """Whether a statement is or contains a copy from block to block."""
    return any(map(copy_to_block.is_send, collect(s, tirx.Evaluate)))


def block_state(state: State) -> State:
    """Return a state of its own for a block, which shares the parameters."""
    mine = copy.copy(state)
    mine.values, mine.memories = list(state.values), list(state.memories)
    mine.frames, mine.grid = [], dict(state.grid)
    return mine


def compile_side_by_side(s: Stmt, scope: CompileScope) -> ClusterStatement:
    """Return the function that executes a statement in blocks side by side.

    Raises
    ------
    NoReferenceMeaning
        Where the blocks of a cluster may not come together.
    """
    if not has_sends(s):
        return _alone(scope.statement(s))
    if isinstance(s, tirx.SeqStmt):
        parts = [compile_side_by_side(x, scope) for x in statements(s)]

        def sequence(states: Sequence[State], ranks: Sequence[int]) -> None:
            for part in parts:
                part(states, ranks)

        return sequence
    if isinstance(s, tirx.For) and role(s) in ("serial", "unroll"):
        return _for(s, scope)
    if isinstance(s, tirx.IfThenElse):
        return _if(s, scope)
    if isinstance(s, tirx.AttrStmt):
        return compile_side_by_side(s.body, scope)
    if isinstance(s, tirx.Evaluate):
        return _send(s, scope)
    raise NoReferenceMeaning(what="a copy between blocks in this statement", where=nodes.where_of(s) or scope.where)


def _alone(one: Statement) -> ClusterStatement:
    def run(states: Sequence[State], ranks: Sequence[int]) -> None:
        for r in ranks:
            one(states[r])

    return run


def _for(s: Stmt, scope: CompileScope) -> ClusterStatement:
    start, extent = compile_expression(s.min, scope), compile_expression(s.extent, scope)
    number, kind = scope.define(s.loop_var), holder(nodes.dtype_of(s.loop_var)).type
    body = compile_side_by_side(s.body, scope)

    def run(states: Sequence[State], ranks: Sequence[int]) -> None:
        bounds = {r: (int(start(states[r])), int(extent(states[r]))) for r in ranks}
        for trip in range(max((n for _, n in bounds.values()), default=0)):
            mine = [r for r in ranks if trip < bounds[r][1]]
            for r in mine:
                states[r].values[number] = kind(bounds[r][0] + trip)
            body(states, mine)

    return run


def _if(s: Stmt, scope: CompileScope) -> ClusterStatement:
    condition, then = compile_expression(s.condition, scope), compile_side_by_side(s.then_case, scope)
    other = None if s.else_case is None else compile_side_by_side(s.else_case, scope)

    def run(states: Sequence[State], ranks: Sequence[int]) -> None:
        holds = [r for r in ranks if bool(condition(states[r]))]
        then(states, holds)
        if other is not None:
            other(states, [r for r in ranks if r not in holds])

    return run


def _send(s: Stmt, scope: CompileScope) -> ClusterStatement:
    call = OpCall.decode(s)
    source, to = (RegionOperand(a, scope) for a in call.args[:2])
    rank, where = compile_expression(call.args[copy_to_block.RANK], scope), scope.where

    def run(states: Sequence[State], ranks: Sequence[int]) -> None:
        sent: list[tuple[MemoryRegion, Array]] = []
        for r in ranks:
            here, there, to_rank = source.bound(states[r]), to.bound(states[r]), int(rank(states[r]))
            if here is None or there is None or not 0 <= to_rank < len(states):
                raise NoReferenceMeaning(what=f"a copy to block {to_rank} of a cluster of {len(states)}", where=where)
            region = MemoryRegion(states[to_rank], to.number, there.mins, there.extents, to.dtype, where)
            sent.append((region, here.read()))
        for region, values in sent:
            region.write(np.reshape(values, region.extents))

    return run
